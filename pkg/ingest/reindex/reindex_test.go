package reindex_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"archivist/pkg/events/event"
	"archivist/pkg/ingest/reindex"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/pkg/objects/aip/aiptest"
	"archivist/pkg/objects/inventory"
	"archivist/pkg/objects/ocfl"
)

const first, second = "ark:/99999/fk4a", "ark:/99999/fk4b"

// archive is a storage root and an inventory, on twins.
type archive struct {
	*aiptest.Root
	reindex.Reindexer
	preserved []string // what Preserved was called with
}

// later is a time that a fixed clock does not reach.
var later = time.UnixMilli(2)

func newArchive(t *testing.T) *archive {
	a := &archive{Root: aiptest.New(t)}
	ids := 0
	a.Reindexer = reindex.Reindexer{
		Root:      a.Root.Root,
		Inventory: inventory.Store{Table: tabletest.Table(tabletest.New())},
		NewID:     func() string { ids++; return fmt.Sprint("tx ", ids) },
		Now:       func() time.Time { return time.UnixMilli(1) },
		Preserved: func(_ context.Context, job, ark string, version int) error {
			a.preserved = append(a.preserved, fmt.Sprint(job, " ", ark, " ", version))
			return nil
		},
	}
	return a
}

// store stores a version of an object of the collection "maps".
func (a *archive) store(ark, localIDs, title string) {
	a.Store(ark, map[string]string{"a.txt": title}, aiptest.System("maps", localIDs, "what: "+title+"\n", ""))
}

// commit commits what Missing returned.
func (a *archive) commit(t *testing.T, put func(*table.Tx) error) {
	t.Helper()
	tx := a.Inventory.Table.Begin("by hand")
	if err := put(tx); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// rows describes an object's rows in the inventory.
func (a *archive) rows(t *testing.T, ark string) string {
	t.Helper()
	o, err := a.Inventory.Object(t.Context(), ark)
	if err != nil {
		t.Fatal(err)
	}
	versions, _, err := a.Inventory.Versions(t.Context(), ark, "")
	if err != nil {
		t.Fatal(err)
	}
	reserved, err := a.Inventory.Reserved(t.Context(), ark)
	if err != nil || reserved == nil {
		t.Fatalf("the ark is not reserved, %v", err)
	}
	text := fmt.Sprintf("%s %q v%d for %s:", o.Collection, o.Title, o.HeadOf, reserved.Job)
	for _, v := range versions {
		text += fmt.Sprintf(" v%d by %s", v.Number, v.Job)
	}
	return text
}

// TestObject: all rows of a stored object are written; a second call writes nothing.
func TestObject(t *testing.T) {
	a := newArchive(t)
	a.store(first, "x", "old")
	a.store(first, "x; y", "new")
	changed, done, err := a.Object(t.Context(), first, "ada", later)
	if err != nil || !changed || !done {
		t.Errorf("got %v, %v, %v", changed, done, err)
	}
	if got, want := a.rows(t, first), `maps "new" v2 for job1: v1 by job1 v2 by job2`; got != want {
		t.Errorf("the rows are %s, want %s", got, want)
	}
	for _, id := range []string{"x", "y"} {
		if ark, err := a.Inventory.ByLocalID(t.Context(), "maps", id); err != nil || ark != first {
			t.Errorf("%s is %q, %v", id, ark, err)
		}
	}
	if want := []string{"job1 " + first + " 1", "job2 " + first + " 2"}; !slices.Equal(a.preserved, want) {
		t.Errorf("preserved are %q, want %q", a.preserved, want)
	}
	if changed, done, err := a.Object(t.Context(), first, "ada", later); err != nil || changed || !done {
		t.Errorf("again: %v, %v, %v", changed, done, err)
	}
}

// TestNoObject: an object that is not stored is a NotFound; a failure of Preserved is an error.
func TestNoObject(t *testing.T) {
	a := newArchive(t)
	if _, _, err := a.Object(t.Context(), first, "ada", later); !fault.Is(err, fault.NotFound) {
		t.Errorf("got %v, want a NotFound", err)
	}
	a.store(first, "x", "old")
	broken := errors.New("the table does not answer")
	a.Preserved = func(context.Context, string, string, int) error { return broken }
	if _, _, err := a.Object(t.Context(), first, "ada", later); !errors.Is(err, broken) {
		t.Errorf("got %v, want the error", err)
	}
}

// TestMissingOfAJob: a job's own version is recorded as stored by it, and Preserved is not
// called; the files that the job has are not read again.
func TestMissingOfAJob(t *testing.T) {
	a := newArchive(t)
	a.store(first, "x", "old")
	by := reindex.By{Actor: "ada", Job: "job1", Known: [][]byte{[]byte("what: old\n"), []byte("another file")}}
	put, err := a.Missing(t.Context(), first, by, later)
	if err != nil || put == nil || len(a.preserved) > 0 {
		t.Fatalf("%v, %q", err, a.preserved)
	}
	a.commit(t, put)
	if got, want := a.rows(t, first), `maps "old" v1 for job1: v1 by job1`; got != want {
		t.Errorf("the rows are %s, want %s", got, want)
	}
}

// TestMissingOfAnEarlierJob: a job whose version is not the newest is not recorded as the
// job of the newest.
func TestMissingOfAnEarlierJob(t *testing.T) {
	a := newArchive(t)
	a.store(first, "x", "old")
	a.store(first, "x", "new")
	put, err := a.Missing(t.Context(), first, reindex.By{Actor: "ada", Job: "job1"}, later)
	if err != nil || put == nil {
		t.Fatal(err)
	}
	a.commit(t, put)
	var log []event.Row
	_, err = a.Inventory.Table.Page(t.Context(), table.Query{PK: "OBJECT#" + first, Prefix: event.Prefix}, &log)
	if err != nil || len(log) != 1 || strings.Contains(log[0].Detail, "job1") {
		t.Errorf("the log is %+v, %v; want one event, of no job", log, err)
	}
}

// TestConflict: a local id of another object is a Conflict; the other rows are written.
func TestConflict(t *testing.T) {
	a := newArchive(t)
	a.store(first, "x", "one")
	a.store(second, "x; y", "two")
	if _, _, err := a.Object(t.Context(), first, "ada", later); err != nil {
		t.Fatal(err)
	}
	changed, done, err := a.Object(t.Context(), second, "ada", later)
	if !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), `"x" is that of `+first) || !changed || !done {
		t.Errorf("got %v, %v, %v", changed, done, err)
	}
	if got, want := a.rows(t, second), `maps "two" v1 for job2: v1 by job2`; got != want {
		t.Errorf("the rows are %s, want %s", got, want)
	}
	if ark, err := a.Inventory.ByLocalID(t.Context(), "maps", "x"); err != nil || ark != first {
		t.Errorf("the local id is that of %q, %v", ark, err)
	}
}

// TestStopped: without time each call records one version, until all are recorded.
func TestStopped(t *testing.T) {
	a := newArchive(t)
	const versions = 4
	for n := range versions {
		a.store(first, "x", fmt.Sprint(n))
	}
	calls := 0
	for done := false; !done; calls++ {
		var err error
		if _, done, err = a.Object(t.Context(), first, "ada", time.UnixMilli(0)); err != nil || calls > versions {
			t.Fatalf("call %d: %v", calls, err)
		}
	}
	if calls != versions {
		t.Errorf("%d calls, want %d", calls, versions)
	}
	if got := a.rows(t, first); !strings.HasSuffix(got, "v1 by job1 v2 by job2 v3 by job3 v4 by job4") {
		t.Errorf("the rows are %s", got)
	}
}

// TestAll: all objects are reindexed, at least one in each call, and those that cannot be
// read are listed.
func TestAll(t *testing.T) {
	for name, until := range map[string]time.Time{"at once": later, "one in a call": time.UnixMilli(0)} {
		a := newArchive(t)
		for n := range 5 {
			for v := range 1 + n%3 { // those of several versions take several calls
				a.store(fmt.Sprintf("ark:/99999/fk4%d", n), fmt.Sprint("id ", n), fmt.Sprint("title ", v))
			}
		}
		spoiled := ocfl.Prefix("ark:/99999/fk43")
		err := a.Root.Bucket.Put(t.Context(), spoiled+"inventory.json", []byte("{}"), bucket.Condition{})
		if err != nil {
			t.Fatal(err)
		}
		var sum reindex.Result
		calls := 0
		for first := true; first || sum.Cursor != ""; first = false {
			page, err := a.All(t.Context(), sum.Cursor, "", "ada", until)
			if err != nil {
				t.Fatal(err)
			}
			sum.Objects, sum.Changed, sum.Cursor = sum.Objects+page.Objects, sum.Changed+page.Changed, page.Cursor
			sum.Failed = append(sum.Failed, page.Failed...)
			calls++
		}
		listed := len(sum.Failed) == 1 && strings.HasPrefix(sum.Failed[0].Key, spoiled)
		if sum.Objects != 5 || sum.Changed != 4 || !listed {
			t.Errorf("%s: %+v", name, sum)
		}
		if until == later && calls != 1 || until != later && calls < 5 {
			t.Errorf("%s: %d calls", name, calls)
		}
	}
}
