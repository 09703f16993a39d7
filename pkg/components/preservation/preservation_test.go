package preservation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"archivist/pkg/components/component"
	"archivist/pkg/events/event"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/pkg/objects/aip/aiptest"
	"archivist/pkg/objects/fixity"
	"archivist/pkg/objects/formats"
	"archivist/pkg/objects/inventory"
	"archivist/pkg/objects/ocfl"
	"archivist/pkg/objects/replica"
)

const ark = "ark:/99999/fk4x"

// world has one stored object, and all services.
type world struct {
	*testing.T
	root *aiptest.Root
	tb   *table.Table
	now  time.Time
	tick time.Duration // of each look at the clock
	Services
	failures float64
}

func newWorld(t *testing.T) *world {
	w := &world{T: t, root: aiptest.New(t), tb: tabletest.Table(tabletest.New()),
		now: time.Date(2030, 1, 2, 0, 0, 0, 0, time.UTC)}
	w.root.Store(ark, map[string]string{"a.txt": "one", "b.txt": "two"}, nil)
	n := 0
	id := func() string { n++; return fmt.Sprint("tx", n) }
	now := func() time.Time { w.now = w.now.Add(w.tick); return w.now }
	to := w.root.Bucket
	to.Name = "copy"
	identify := func(_ context.Context, name string, _ io.ReaderAt, _ int64) ([]formats.Match, error) {
		return []formats.Match{{ID: "x-fmt/111", Name: name}}, nil
	}
	w.Services = Services{Now: now, DelayDays: 3,
		Fixity: &fixity.Checker{Table: w.tb, NewID: id, Now: now, At: fixity.InStorage,
			Root: w.root.Root, Limits: fixity.DefaultLimits},
		Formats: &formats.Maker{Store: formats.Store{Table: w.tb, Derived: w.root.Derived}, NewID: id, Now: now,
			Root: w.root.Root},
		Open: func() (formats.Identify, string, error) { return identify, "V1", nil },
		Replica: &replica.Replica{Table: w.tb, NewID: id, Now: now, Inventory: inventory.Store{Table: w.tb},
			Root: w.root.Root, To: to},
		Queue: &queue.Queue{
			Table: w.tb,
			Now:   now,
			NewID: id,
			Compose: func(context.Context, *ingest.Batch, ingest.Mail) (
				[]string, queue.Send, error) {
				return nil, nil, nil
			},
		},
		Metric: func(name string, value float64) {
			if name == PreservationFailures {
				w.failures += value
			}
		}}
	return w
}

// run runs a component on an item.
func (w *world) run(name, item string) (component.Result, error) {
	kind, subject, err := component.ParseID(item)
	if err != nil {
		w.Fatal(err)
	}
	return Functions(w.Services)[name].Run(w.Context(), component.Work{Component: name, Item: item, Kind: kind,
		Subject: subject, Deadline: w.now.Add(10 * time.Minute).UnixMilli()})
}

// damage changes a stored file by hand.
func (w *world) damage(ending string) {
	w.Helper()
	for _, name := range w.root.Twin.Names("storage/" + ocfl.Prefix(ark)) {
		if key, ok := strings.CutPrefix(name, "storage/"); ok && strings.HasSuffix(name, ending) {
			if err := w.root.Bucket.Put(w.Context(), key, []byte("damaged"), bucket.Condition{}); err != nil {
				w.Fatal(err)
			}
		}
	}
}

// TestFixity: a good object is a success; a damaged file is a failure with a report, and an alarm.
func TestFixity(t *testing.T) {
	w := newWorld(t)
	r, err := w.run(FixityCheck, "object:"+ark)
	if err != nil || r.Outcome != "" || !strings.HasPrefix(r.Reason, "ok: ") || w.failures != 0 {
		t.Errorf("got %+v, %v", r, err)
	}
	w.damage("/a.txt")
	r, err = w.run(FixityCheck, "object:"+ark)
	if err != nil || r.Outcome != event.Failure || r.Changed || w.failures != 1 || len(r.Report.Entries) != 1 ||
		r.Report.Total != 1 || !strings.HasSuffix(r.Report.Entries[0].File, "/a.txt") ||
		r.Report.Entries[0].Type != fixity.Mismatch || !strings.Contains(r.Reason, "/a.txt") {
		t.Errorf("got %+v, %v; %v alarms", r, err, w.failures)
	}
	for name, other := range map[string]string{FixityCheck: "version:" + ark + "/v1", Identification: "object:" + ark,
		Replication: "item:a", DelayedBatches: "item:a"} {
		if _, err := w.run(name, other); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s on %s: %v", name, other, err)
		}
	}
}

// TestUnreadable: what S3 does not deliver is no damage; the check waits, and raises an alarm after a day.
func TestUnreadable(t *testing.T) {
	w := newWorld(t)
	w.root.Twin.Before = func(op, name string) int {
		if op == "GET object" && strings.HasSuffix(name, "/a.txt") {
			return http.StatusServiceUnavailable
		}
		return 0
	}
	for _, failures := range []float64{0, 1} {
		r, err := w.run(FixityCheck, "object:"+ark)
		if !fault.Is(err, fault.Unavailable) || r.Outcome != "" || w.failures != failures {
			t.Errorf("got %+v, %v; %v alarms, want %v", r, err, w.failures, failures)
		}
		w.now = w.now.Add(25 * time.Hour)
	}
	w.root.Twin.Before = nil
	if r, err := w.run(FixityCheck, "object:"+ark); err != nil || r.Outcome != "" {
		t.Errorf("got %+v, %v", r, err)
	}
}

// TestAgain: work that does not end in its time goes on in the next turn.
func TestAgain(t *testing.T) {
	for name, item := range map[string]string{FixityCheck: "object:" + ark, Identification: "version:" + ark + "/v1",
		Replication: "version:" + ark + "/v1"} {
		w := newWorld(t)
		w.tick = 3 * time.Minute
		if name == Identification {
			w.tick = 8 * time.Minute
		}
		for turn := 1; ; turn++ {
			r, err := w.run(name, item)
			if err != nil || turn > 50 {
				t.Fatalf("%s: turn %d: %+v, %v", name, turn, r, err)
			}
			if !r.Again {
				if turn < 2 || r.Outcome != "" {
					t.Errorf("%s: %d turns: %+v", name, turn, r)
				}
				break
			}
		}
	}
}

// TestFormats: the formats of a version are identified; a function without signatures does nothing.
func TestFormats(t *testing.T) {
	w := newWorld(t)
	r, err := w.run(Identification, "version:"+ark+"/v1")
	if err != nil || r.Reason != "2 files of 1 formats; 0 files are of no known format, 0 have warnings" {
		t.Errorf("got %+v, %v", r, err)
	}
	w.Open = func() (formats.Identify, string, error) { return nil, "", ErrNoSignatures }
	if _, err := w.run(Identification, "version:"+ark+"/v1"); !fault.Is(err, fault.Unavailable) {
		t.Errorf("without signatures: %v", err)
	}
}

// TestReplication: a version is copied once; damage is an alarm; without a bucket the work waits.
func TestReplication(t *testing.T) {
	w := newWorld(t)
	for range 2 {
		r, err := w.run(Replication, "version:"+ark+"/v1")
		if err != nil || !strings.HasPrefix(r.Reason, "version 1 is copied: ") || w.failures != 0 {
			t.Errorf("got %+v, %v", r, err)
		}
	}
	w.root.Store(ark, map[string]string{"a.txt": "one", "c.txt": "three"}, nil)
	w.damage("/c.txt")
	if _, err := w.run(Replication, "version:"+ark+"/v2"); !fault.Is(err, fault.Invalid) || w.failures != 1 {
		t.Errorf("a damaged file: %v, %v alarms", err, w.failures)
	}
	w.Replica = nil
	if _, err := w.run(Replication, "version:"+ark+"/v2"); !fault.Is(err, fault.Unavailable) {
		t.Errorf("no bucket: %v", err)
	}
}

// TestReplicationAgain: a version that a person lets be copied again is looked at again: a copy that was lost is made
// anew, and a damaged object is not called copied.
func TestReplicationAgain(t *testing.T) {
	w := newWorld(t)
	version := "version:" + ark + "/v1"
	if _, err := w.run(Replication, version); err != nil {
		t.Fatal(err)
	}
	copies := w.root.Twin.Names("copy/" + ocfl.Prefix(ark))
	for _, name := range copies {
		if err := w.Replica.To.Delete(t.Context(), strings.TrimPrefix(name, "copy/")); err != nil {
			t.Fatal(err)
		}
	}
	_, err := w.run(Replication, version)
	now := w.root.Twin.Names("copy/" + ocfl.Prefix(ark))
	if err != nil || len(copies) == 0 || !slices.Equal(now, copies) {
		t.Errorf("the copy that was lost has %q, %v", now, err)
	}
	w.damage("/inventory.json")
	if r, err := w.run(Replication, version); !fault.Is(err, fault.Invalid) || w.failures != 1 {
		t.Errorf("a damaged inventory: %+v, %v, %v alarms", r, err, w.failures)
	}
}

// TestCopyCheck: a copy is checked once it is complete; damage of it is a failure of its own, with an alarm.
func TestCopyCheck(t *testing.T) {
	w := newWorld(t)
	r, err := w.run(CopyCheck, "object:"+ark)
	if err != nil || !r.NotYet || w.failures != 0 {
		t.Errorf("before the copy: %+v, %v", r, err)
	}
	if _, err := w.run(Replication, "version:"+ark+"/v1"); err != nil {
		t.Fatal(err)
	}
	r, err = w.run(CopyCheck, "object:"+ark)
	if err != nil || !strings.HasPrefix(r.Reason, "ok: ") {
		t.Errorf("got %+v, %v", r, err)
	}
	for _, name := range w.root.Twin.Names("copy/" + ocfl.Prefix(ark)) {
		if key, _ := strings.CutPrefix(name, "copy/"); strings.HasSuffix(key, "/a.txt") {
			if err := w.Replica.To.Put(t.Context(), key, []byte("damaged"), bucket.Condition{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	r, err = w.run(CopyCheck, "object:"+ark)
	if err != nil || r.Outcome != event.Failure || w.failures != 1 || len(r.Report.Entries) != 1 ||
		r.Report.Entries[0].Component != CopyCheck || !strings.HasSuffix(r.Report.Entries[0].File, "/a.txt") {
		t.Errorf("got %+v, %v; %v alarms", r, err, w.failures)
	}
	if r, err := w.run(FixityCheck, "object:"+ark); err != nil || !strings.HasPrefix(r.Reason, "ok: ") {
		t.Errorf("the storage root: %+v, %v", r, err)
	}
	in, err := fixity.InCopy.Last(t.Context(), w.tb, ark)
	if err != nil || in[ark].Outcome != fixity.Damaged {
		t.Errorf("the last check of the copy: %+v, %v", in, err)
	}
	w.Replica = nil
	if _, err := w.run(CopyCheck, "object:"+ark); !fault.Is(err, fault.Unavailable) {
		t.Errorf("no bucket: %v", err)
	}
}

// TestDelay: a batch that has not ended is reported once it is old enough, by a mail.
func TestDelay(t *testing.T) {
	w := newWorld(t)
	batch := func(id string, state ingest.BatchState, days int) {
		row := &queue.Batch{Batch: ingest.Batch{ID: id, State: state,
			Created: w.now.Add(-time.Duration(days) * 24 * time.Hour).UnixMilli()}}
		key := event.Subject{Type: event.Batch, ID: id}.Key()
		row.PK, row.SK = key.PK, key.SK
		tx := w.tb.Begin("batch" + id)
		tx.Insert(row)
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	batch("young", ingest.BatchProcessing, 2)
	batch("old", ingest.BatchProcessing, 3)
	batch("done", ingest.BatchCompleted, 30)
	for id, want := range map[string]string{"young": "the batch is 2 days old", "old": "a mail is sent",
		"done": "the batch has ended: Completed", "none": "was removed"} {
		for range 2 {
			r, err := w.run(DelayedBatches, "batch:"+id)
			if err != nil || !strings.Contains(r.Reason, want) || r.NotYet != (id == "young") {
				t.Errorf("%s: %+v, %v", id, r, err)
			}
		}
		var mails []queue.Mail
		if _, err := w.tb.Page(t.Context(), table.Query{PK: "MAIL#" + id}, &mails); err != nil {
			t.Fatal(err)
		}
		if want := map[string]int{"old": 1}[id]; len(mails) != want ||
			want > 0 && mails[0].Kind != ingest.MailDelayed {
			t.Errorf("%s: mails %+v", id, mails)
		}
	}
	w.Queue.Compose = nil
	if r, err := w.run(DelayedBatches, "batch:old"); err != nil || !strings.Contains(r.Reason, "sends no mails") {
		t.Errorf("without mails: %+v, %v", r, err)
	}
}

// TestInstall: the definitions are installed once; what a person changes stays, until another one ships.
func TestInstall(t *testing.T) {
	w := newWorld(t)
	n := 0
	store := &component.Store{Table: w.tb, Now: w.Now, NewID: func() string { n++; return fmt.Sprintf("c%04d", n) },
		Wake: func(context.Context, string) error { return nil }}
	for name := range Functions(w.Services) {
		store.Functions = append(store.Functions, name)
	}
	install := func(o Options) {
		t.Helper()
		if err := Install(t.Context(), store, Definitions(o)); err != nil {
			t.Fatal(err)
		}
	}
	is := func(name string) component.Component {
		t.Helper()
		c, err := store.Get(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	install(Options{FixityDays: 90})
	install(Options{FixityDays: 90})
	if c := is(FixityCheck); c.EveryDays != 90 || c.Version != 1 {
		t.Errorf("installed twice: %+v", c)
	}
	if _, err := store.Get(t.Context(), Replication); !fault.Is(err, fault.NotFound) {
		t.Errorf("replication without a bucket: %v", err)
	}
	by := component.By{Actor: "ada", Reason: "too often"}
	err := errors.Join(store.Pause(t.Context(), FixityCheck, by), store.Delete(t.Context(), DelayedBatches, by))
	if err != nil {
		t.Fatal(err)
	}
	install(Options{FixityDays: 90})
	if c := is(FixityCheck); !c.Paused {
		t.Errorf("it runs again: %+v", c)
	}
	if _, err := store.Get(t.Context(), DelayedBatches); !fault.Is(err, fault.NotFound) {
		t.Errorf("it is there again: %v", err)
	}
	install(Options{FixityDays: 30, Replica: true})
	if c := is(FixityCheck); c.EveryDays != 30 {
		t.Errorf("another setting: %+v", c)
	}
	is(Replication)
	if c := is(CopyCheck); c.EveryDays != 30 {
		t.Errorf("copies are checked every %d days", c.EveryDays)
	}
}
