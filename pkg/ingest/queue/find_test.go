package queue_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
)

// archive is a table with many jobs of some collections, whose requests are counted.
type archive struct {
	*bench
	names    []string
	jobs     map[string]*queue.Job
	requests atomic.Int64
}

// newArchive has batches of ten jobs, in collections by turns. The state of the nth job is stateOf(n).
func newArchive(t *testing.T, collections, jobs int, stateOf func(n int) ingest.State) *archive {
	a := &archive{jobs: map[string]*queue.Job{}}
	count := func(_ string, call func() error) error { a.requests.Add(1); return call() }
	a.bench = newBenchOn(t, tabletest.Table(&tabletest.Client{DynamoDBAPI: tabletest.New(), Do: count}))
	for n := range collections {
		a.names = append(a.names, fmt.Sprintf("c%03d", n))
	}
	for n := range jobs {
		batch := fmt.Sprintf("B%06d", n/10)
		row := &queue.Job{Job: ingest.Job{ID: ingest.JobID(batch, n%10+1), Batch: batch, Row: n%10 + 1,
			Collection: a.names[n/10%collections], State: stateOf(n), Submitter: fmt.Sprint("s", n%3),
			LocalIDs: []string{fmt.Sprint("id-", n)}, Message: fmt.Sprintf("answered %d", 400+n%5),
			Created: b0 + int64(n/7)}}
		row.Head = table.Head{PK: "JOB#" + row.Job.ID, SK: "JOB"}
		a.jobs[row.Job.ID] = row
		a.put(row)
	}
	return a
}

// b0 is when the first job of an archive was made.
const b0 = 1_794_000_000_000

// put writes a job at its places, as a change of its state does.
func (a *archive) put(row *queue.Job) {
	a.Helper()
	row.Turn, row.Entered = row.Job.ID, row.Created
	row.Parked = a.rand() == 0 && row.State.Open() && row.State != ingest.Held && row.State != ingest.Pending
	row.HasSpace = row.State == ingest.Failed && a.rand() == 0
	row.Due = row.Created + 1000
	row.Place()
	tx := a.q.Table.Begin(a.q.NewID())
	if row.Rev == 0 {
		tx.Insert(row)
	} else {
		tx.Save(row)
	}
	if err := tx.Commit(a.Context()); err != nil {
		a.Fatal(err)
	}
}

func (a *archive) rand() int { return rand.IntN(2) }

// pages reads all pages of a list, and calls between after each. It fails for a page that is short and not the last,
// and for a job that is on two.
func (a *archive) pages(f queue.Find, between func()) (ids []string) {
	a.Helper()
	if f.Collections == nil {
		f.Collections = a.names
	}
	f.Until = a.now.Add(time.Hour)
	for {
		p, err := a.q.FindJobs(a.Context(), f)
		if err != nil {
			a.Fatal(err)
		}
		if p.Cursor != "" && len(p.Items) != queue.FindPage {
			a.Fatalf("%+v: %d jobs on a page with a cursor", f, len(p.Items))
		}
		for _, j := range p.Items {
			if slices.Contains(ids, j.Job.ID) {
				a.Fatalf("%+v: %s is listed twice", f, j.Job.ID)
			}
			ids = append(ids, j.Job.ID)
		}
		f.Cursor = p.Cursor
		if f.Cursor == "" {
			return ids
		}
		between()
	}
}

// those are the ids of the jobs that a function selects.
func (a *archive) those(is func(j *ingest.Job) bool) (ids []string) {
	for id, j := range a.jobs {
		if is(&j.Job) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// TestEachFilterFindsAll: each filter, of all collections and of one, finds exactly the jobs that match, on full
// pages.
func TestEachFilterFindsAll(t *testing.T) {
	states := ingest.JobStates()
	a := newArchive(t, 7, 1500, func(n int) ingest.State { return states[n%len(states)] })
	filters := map[string]struct {
		find queue.Find
		is   func(j *ingest.Job) bool
	}{
		"all":       {queue.Find{}, func(*ingest.Job) bool { return true }},
		"submitter": {queue.Find{Submitter: "s1"}, func(j *ingest.Job) bool { return j.Submitter == "s1" }},
		"message": {queue.Find{Message: "ANSWERED 404"},
			func(j *ingest.Job) bool { return strings.HasSuffix(j.Message, "404") }},
		"local id": {queue.Find{LocalID: "id-7"}, func(j *ingest.Job) bool { return j.LocalIDs[0] == "id-7" }},
		"after":    {queue.Find{After: b0 + 100}, func(j *ingest.Job) bool { return j.Created >= b0+100 }},
		"before":   {queue.Find{Before: b0 + 100}, func(j *ingest.Job) bool { return j.Created < b0+100 }},
		"unknown":  {queue.Find{ARK: "ark:/99999/fk4x"}, func(*ingest.Job) bool { return false }},
		"collection": {queue.Find{Collections: []string{"c003"}},
			func(j *ingest.Job) bool { return j.Collection == "c003" }},
	}
	for _, s := range states {
		filters[string(s)] = struct {
			find queue.Find
			is   func(j *ingest.Job) bool
		}{queue.Find{State: string(s)}, func(j *ingest.Job) bool { return j.State == s }}
	}
	for name, f := range filters {
		got := a.pages(f.find, func() {})
		slices.Sort(got)
		if want := a.those(f.is); !slices.Equal(got, want) {
			t.Errorf("%s: %d jobs; expected %d", name, len(got), len(want))
		}
	}
}

// TestPagesWhileJobsMove: whoever pages through a list while jobs move gets each job once that matched all the time,
// and none that never did.
func TestPagesWhileJobsMove(t *testing.T) {
	open := []ingest.State{ingest.Pending, ingest.Downloading, ingest.Storing, ingest.Failed, ingest.Completed}
	for _, state := range append(open, "") {
		a := newArchive(t, 5, 1000, func(n int) ingest.State { return open[n%len(open)] })
		was := map[string]int{} // how often a job that was looked at was in the state
		looks := 0
		look := func() {
			looks++
			for id, j := range a.jobs {
				if state == "" || j.State == state {
					was[id]++
				}
			}
		}
		look()
		got := a.pages(queue.Find{State: string(state)}, func() {
			n := 0
			for _, j := range a.jobs {
				n++
				if n > 60 {
					break
				}
				if n%2 == 0 { // the others only move to another place in their state
					j.State = open[rand.IntN(len(open))]
				}
				a.put(j)
			}
			look()
		})
		for id := range a.jobs {
			if listed := slices.Contains(got, id); listed && was[id] == 0 || !listed && was[id] == looks {
				t.Errorf("%s: %s is listed: %v; it was in the state at %d of %d looks", state, id, listed, was[id],
					looks)
			}
		}
	}
}

// TestReadsOfAPage: how many requests a page takes does not grow with the number of jobs, where a place or the index
// tells what is wanted; and not more than by a hundredth of them, where only the rows do.
func TestReadsOfAPage(t *testing.T) {
	const jobs, collections = 6000, 50
	a := newArchive(t, collections, jobs, func(n int) ingest.State {
		switch {
		case n%1000 == 7:
			return ingest.Failed
		case n%1000 < 5:
			return ingest.Storing
		}
		return ingest.Completed
	})
	for _, c := range []struct {
		find  queue.Find
		items int
		most  int64
	}{
		{queue.Find{}, 50, collections + 10},
		{queue.Find{State: "Completed"}, 50, collections + 10},
		{queue.Find{State: "Failed"}, 6, 4},
		{queue.Find{State: "Storing"}, 30, 14},
		{queue.Find{Collections: a.names[:1]}, 50, 2},
		{queue.Find{Submitter: "s2"}, 50, collections + 30},
		{queue.Find{LocalID: "id-3"}, 1, 4*collections + jobs/table.MaxGets},
	} {
		if c.find.Collections == nil {
			c.find.Collections = a.names
		}
		c.find.Until = a.now.Add(time.Hour)
		before := a.requests.Load()
		p, err := a.q.FindJobs(t.Context(), c.find)
		if n := a.requests.Load() - before; err != nil || len(p.Items) != c.items || n > c.most {
			t.Errorf("%+v: %d jobs in %d requests, %v; expected %d in at most %d", c.find, len(p.Items), n, err,
				c.items, c.most)
		}
	}
}

// TestSearchEnds: a search that has no time left says where it goes on.
func TestSearchEnds(t *testing.T) {
	a := newArchive(t, 3, 300, func(int) ingest.State { return ingest.Completed })
	f := queue.Find{Collections: a.names, LocalID: "id-0", Until: a.now} // the oldest
	found, pages := 0, 0
	for {
		p, err := a.q.FindJobs(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		found, pages = found+len(p.Items), pages+1
		f.Cursor = p.Cursor
		if f.Cursor == "" {
			break
		}
	}
	if found != 1 || pages < 3 {
		t.Errorf("%d jobs on %d pages", found, pages)
	}
	for _, cursor := range []string{"x", "1.", "B000001-00001"} {
		if _, err := a.q.FindJobs(context.Background(), queue.Find{Cursor: cursor}); !fault.Is(err, fault.Invalid) {
			t.Errorf("the cursor %q: %v", cursor, err)
		}
	}
}
