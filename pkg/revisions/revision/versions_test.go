package revision_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"archivist/pkg/events/consumer"
	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/ingest/reindex"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/objects/aip/aiptest"
	"archivist/pkg/objects/inventory"
	"archivist/pkg/revisions/archive"
	"archivist/pkg/revisions/archive/object"
	"archivist/pkg/revisions/revision"
	"archivist/pkg/revisions/runner"
	"archivist/pkg/revisions/workflow"
)

const ark = "ark:/99999/fk4tq65d6k"

// shelf is a revision queue beside a storage root whose objects are its archives.
type shelf struct {
	*world
	root *aiptest.Root
}

func newShelf(t *testing.T) *shelf {
	w := &shelf{newWorld(t), aiptest.New(t)}
	w.store.Open = func(_ context.Context, l archive.Location) (archive.Source, error) {
		return object.Open(l, w.root.Root, archive.Limits{}), nil
	}
	return w
}

// register registers the object as an archive.
func (w *shelf) register(name string, baseline int64) {
	w.t.Helper()
	_, err := w.store.Add(w.t.Context(), name, revision.Settings{Baseline: baseline,
		Location: archive.Location{Kind: archive.Object, ARK: ark}}, anna)
	w.must(err)
}

// preserve stores and records a version, whose event is returned as a consumer gets it.
func (w *shelf) preserve(workflows string) consumer.Item {
	w.t.Helper()
	stored := w.root.Store(ark, map[string]string{"_workflows/all.yaml": workflows, "n": fmt.Sprint(w.ids)},
		aiptest.System("maps", "", "who: x\n", ""))
	x := reindex.Reindexer{Root: w.root.Root, Inventory: inventory.Store{Table: w.store.Table}, NewID: w.store.NewID,
		Now: w.store.Now, Preserved: func(context.Context, string, string, int) error { return nil }}
	put, err := x.Missing(w.t.Context(), ark, reindex.By{Actor: "ada"}, w.now.Add(time.Minute))
	w.must(err)
	tx := w.store.Table.Begin(w.store.NewID())
	w.must(put(tx))
	w.must(tx.Commit(w.t.Context()))
	return w.created(stored.Head)
}

// created is the event of a version.
func (w *shelf) created(n int) consumer.Item {
	w.t.Helper()
	rows, _, err := event.Page(w.t.Context(), w.store.Table,
		event.Subject{Type: event.Version, ID: inventory.VersionID(ark, n)}, "")
	w.must(err)
	if len(rows) != 1 || rows[0].Type != "version.create" {
		w.t.Fatalf("version %d has the events %+v", n, rows)
	}
	e, err := rows[0].Envelope()
	w.must(err)
	return consumer.Item{Event: e}
}

// handle gives events to the consumer.
func (w *shelf) handle(events ...consumer.Item) {
	w.t.Helper()
	failed, err := revision.Versions{Store: w.store}.Handle(w.t.Context(), consumer.Batch{Events: events})
	w.must(err)
	if len(failed) > 0 {
		w.t.Fatalf("%+v", failed)
	}
}

// transaction is what the object says of a version.
func (w *shelf) transaction(n int64) string {
	w.t.Helper()
	src, err := w.store.Open(w.t.Context(), archive.Location{Kind: archive.Object, ARK: ark})
	w.must(err)
	r, err := src.Revision(w.t.Context(), n)
	w.must(err)
	return r.Transaction
}

// look is the archive.
func (w *shelf) look(name string) revision.Archive {
	w.t.Helper()
	a, err := w.store.Archive(w.t.Context(), name)
	w.must(err)
	return a
}

const oneTask = "[{name: index, depends: [PREV], command: x}]"

// TestVersionsAreRevisions: an object that is registered begins at its newest version, without any event. Later ones
// are notified by their events, which may come in any order and again; each is planned once, with the transaction
// that the object itself gives it.
func TestVersionsAreRevisions(t *testing.T) {
	w := newShelf(t)
	w.preserve(oneTask)
	before := w.preserve(oneTask)
	w.register("maps", 0)
	w.register("maps", 0) // the same again
	w.quiet("maps", runner.Succeeded)
	if a := w.look("maps"); a.First != 2 || a.Watermark != 2 || a.Trouble != nil {
		t.Fatalf("after it was registered: %+v", a)
	}
	events := []consumer.Item{before}
	for range 4 {
		events = append(events, w.preserve(oneTask))
	}
	events = append(events, events...)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
	for _, e := range events {
		w.handle(e)
		w.pass("maps")
	}
	w.handle(events...)
	w.quiet("maps", runner.Succeeded)
	for n := int64(2); n <= 6; n++ {
		r, err := w.store.Revision(t.Context(), "maps", n)
		w.must(err)
		in, err := w.store.Instance(t.Context(), fmt.Sprintf("maps/%d/index", n))
		w.must(err)
		if r.State != revision.Committed || in.State != workflow.Success ||
			r.Transaction != w.transaction(n) {
			t.Errorf("revision %d: %+v, its task is %s", n, r, in.State)
		}
	}
	if a := w.look("maps"); a.Mode != revision.Active || a.Watermark != 6 {
		t.Errorf("at the end: %+v", a)
	}
}

// TestVersionBetween: a version that is stored while the object is registered is planned, also if its event was
// handled before the archive was there; an object that is stored later is, too, and a baseline is kept.
func TestVersionBetween(t *testing.T) {
	for _, baseline := range []int64{0, 1} {
		w := newShelf(t)
		w.register("early", baseline)
		w.quiet("early", runner.Succeeded)
		w.handle(w.preserve(oneTask))
		w.handle(w.preserve(oneTask)) // nobody registered as maps yet
		w.register("maps", baseline)
		w.quiet("maps", runner.Succeeded)
		w.quiet("early", runner.Succeeded)
		if a := w.look("maps"); a.Watermark != 2 || a.First != 2-baseline {
			t.Errorf("baseline %d: %+v", baseline, a)
		}
		if a := w.look("early"); a.Watermark != 2 || a.First != 1 {
			t.Errorf("baseline %d, registered before the object was stored: %+v", baseline, a)
		}
	}
}

// TestOldVersions: events from before an archive was registered do not move where it begins, however late they come.
func TestOldVersions(t *testing.T) {
	w := newShelf(t)
	old := []consumer.Item{w.preserve(oneTask), w.preserve(oneTask)}
	w.now = w.now.Add(2 * time.Minute)
	w.register("maps", 0)
	w.handle(old[0])
	w.pass("maps")
	w.handle(old...)
	w.quiet("maps", runner.Succeeded)
	list, _, err := w.store.Revisions(t.Context(), "maps", "")
	w.must(err)
	if a := w.look("maps"); a.First != 2 || a.Watermark != 2 || len(list) != 1 {
		t.Errorf("%+v; %d revisions", a, len(list))
	}
}

// TestNoArchive: versions of an object that is no archive, or none any more, are no error and cost a query.
func TestNoArchive(t *testing.T) {
	w := newShelf(t)
	w.handle(w.preserve(oneTask))
	w.register("maps", 0)
	w.quiet("maps", runner.Succeeded)
	_, err := w.store.Delete(t.Context(), "maps", anna)
	w.must(err)
	if left := w.links(); left > 0 {
		t.Errorf("%d links of a deleted archive", left)
	}
	second := w.preserve(oneTask)
	w.handle(second)
	w.must(w.store.NotifyVersion(t.Context(), ark, revision.Notice{Revision: 2}, w.now.UnixMilli()))
	w.pass("maps")
	if _, err = w.store.Archive(t.Context(), "maps"); !fault.Is(err, fault.NotFound) {
		t.Errorf("it is there: %v", err)
	}
	w.register("maps", 0) // the name begins anew
	w.handle(second)
	w.quiet("maps", runner.Succeeded)
	if got := w.state("maps@2/2/index"); got != workflow.Success || w.links() != 1 {
		t.Errorf("in the new epoch the task is %s; %d links", got, w.links())
	}
}

// links counts the rows that say that the object is an archive.
func (w *shelf) links() int {
	var rows []table.Head
	_, err := w.store.Table.Page(w.t.Context(), table.Query{PK: "ARCHIVEOF#" + ark}, &rows)
	w.must(err)
	return len(rows)
}

// TestOtherObject: an archive stays that of its object; a late notice of another is refused.
func TestOtherObject(t *testing.T) {
	w := newShelf(t)
	w.preserve(oneTask)
	w.register("maps", 0)
	for _, l := range []archive.Location{{Kind: archive.Object, ARK: "ark:/99999/fk4other"},
		{Kind: archive.Git, URL: "https://example.org/maps.git", Branch: "main"}} {
		_, err := w.store.Add(t.Context(), "maps", revision.Settings{Location: l}, anna)
		if !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), ark) {
			t.Errorf("%s: %v", l, err)
		}
	}
	_, err := w.store.Notify(t.Context(), "maps", revision.Notice{Revision: 9, Object: "ark:/99999/fk4other"}, anna)
	if !fault.Is(err, fault.Conflict) {
		t.Errorf("a version of another object: %v", err)
	}
}

// TestOtherVersion: a version that has become another stops the archive, and the event is handled.
func TestOtherVersion(t *testing.T) {
	w := newShelf(t)
	w.register("maps", 1)
	first := w.preserve(oneTask)
	w.handle(first)
	w.quiet("maps", runner.Succeeded)
	first.Detail = []byte(strings.Replace(string(first.Detail), w.transaction(1), strings.Repeat("0", 128), 1))
	w.handle(first, first)
	if a := w.look("maps"); a.Mode != revision.Stopped || !strings.Contains(a.Why, "revision 1 was") {
		t.Errorf("%+v", a)
	}
}

// TestBadEvents: an event that names no version fails alone; one without a digest notifies all the same.
func TestBadEvents(t *testing.T) {
	w := newShelf(t)
	w.register("maps", 1)
	e := w.preserve(oneTask)
	e.Detail = nil
	bad := consumer.Item{Event: envelope.Event{ID: "bad", Subject: envelope.Ref{Type: "Version", ID: "x"}}}
	failed, err := revision.Versions{Store: w.store}.Handle(t.Context(),
		consumer.Batch{Events: []consumer.Item{bad, e}})
	if err != nil || len(failed) != 1 || failed[0].ID != "bad" {
		t.Errorf("%+v, %v", failed, err)
	}
	w.quiet("maps", runner.Succeeded)
	if got := w.state("maps/1/index"); got != workflow.Success {
		t.Errorf("the task is %s", got)
	}
}

// TestLostObject: an archive whose object is gone says so.
func TestLostObject(t *testing.T) {
	w := newShelf(t)
	w.register("maps", 1)
	w.handle(w.preserve(oneTask))
	for _, name := range w.root.Twin.Names("storage/") {
		w.must(w.root.Bucket.Delete(t.Context(), strings.TrimPrefix(name, "storage/")))
	}
	w.pass("maps")
	a := w.look("maps")
	if a.Trouble == nil || !strings.Contains(a.Trouble.Reason, ark+" is not in the storage root") {
		t.Errorf("%+v", a.Trouble)
	}
}

// examine examines the archive and its links, and repairs what is wrong.
func (w *shelf) examine() (wrong []string) {
	w.t.Helper()
	links := func(row table.Raw) bool { return row.SK == "ARCHIVE" || strings.HasPrefix(row.PK, "ARCHIVEOF#") }
	for _, x := range w.wrong(links) {
		wrong = append(wrong, x.Subject+": "+x.Evidence)
		w.must(x.Repair(w.t.Context()))
	}
	return wrong
}

// TestLinkIsExamined: the row that says that an object is an archive is there as long as it should be, and made again
// if it was lost.
func TestLinkIsExamined(t *testing.T) {
	w := newShelf(t)
	w.preserve(oneTask)
	w.register("maps", 0)
	w.quiet("maps", runner.Succeeded)
	w.want(w.examine())
	tx := w.store.Table.Begin("lost")
	tx.RemoveOwned(table.Key{PK: "ARCHIVEOF#" + ark, SK: "maps"}, "maps")
	w.must(tx.Commit(t.Context()))
	if wrong := w.examine(); len(wrong) != 1 || !strings.Contains(wrong[0], "is missing") || w.links() != 1 {
		t.Errorf("%v; %d links", wrong, w.links())
	}
	w.quiet("maps", runner.Succeeded)
	_, err := w.store.Delete(t.Context(), "maps", anna)
	w.must(err)
	w.want(w.examine())
	w.pass("maps")
	w.want(w.examine())
}
