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
	listed   map[string][]table.Row
	made     int // jobs, also those that were removed
	requests atomic.Int64
}

// newArchive has batches of ten jobs, in collections by turns. The state of the nth job is stateOf(n). Its lists of all
// collections are whole: it was swept before there were jobs.
func newArchive(t *testing.T, collections, jobs int, stateOf func(n int) ingest.State) *archive {
	return fill(t, true, collections, jobs, stateOf)
}

// fill is newArchive for lists that are whole, or not known to be.
func fill(t *testing.T, whole bool, collections, jobs int, stateOf func(n int) ingest.State) *archive {
	a := &archive{jobs: map[string]*queue.Job{}, listed: map[string][]table.Row{}}
	count := func(_ string, call func() error) error { a.requests.Add(1); return call() }
	a.bench = newBenchOn(t, tabletest.Table(&tabletest.Client{DynamoDBAPI: tabletest.New(), Do: count}))
	for n := range collections {
		a.names = append(a.names, fmt.Sprintf("c%03d", n))
	}
	a.q.Names = &queue.Names{}
	if whole {
		a.tick()
	}
	for n := range jobs {
		a.add(stateOf(n))
	}
	return a
}

// modes are archives whose lists of all collections are whole, and not known to be.
var modes = map[string]bool{"whole": true, "merged": false}

// idOf is the id of the nth job.
func idOf(n int) string { return ingest.JobID(fmt.Sprintf("B%06d", n/10), n%10+1) }

// add makes the next job.
func (a *archive) add(state ingest.State) {
	a.Helper()
	n := a.made
	a.made++
	row := &queue.Job{Job: ingest.Job{ID: idOf(n), Batch: fmt.Sprintf("B%06d", n/10), Row: n%10 + 1,
		Collection: a.names[n/10%len(a.names)], State: state, Submitter: fmt.Sprint("s", n%3),
		LocalIDs: []string{fmt.Sprint("id-", n)}, Message: fmt.Sprintf("answered %d", 400+n%5),
		Created: b0 + int64(n/7)}}
	row.Head = table.Head{PK: "JOB#" + row.Job.ID, SK: "JOB"}
	if n%5 == 1 {
		row.LocalIDs = append(row.LocalIDs, "same")
	}
	if n%11 == 0 {
		row.Primary = "ark:/99999/fk4y"
	}
	a.jobs[row.Job.ID] = row
	a.put(row)
}

// remove removes a job with the rows under which it is listed.
func (a *archive) remove(id string) {
	a.Helper()
	tx := a.q.Table.Begin(a.q.NewID())
	tx.Remove(a.jobs[id])
	tx.Follow(id, a.listed[id], nil)
	if err := tx.Commit(a.Context()); err != nil {
		a.Fatal(err)
	}
	delete(a.jobs, id)
	delete(a.listed, id)
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
	if row.State == ingest.Completed {
		row.Message = ""
	}
	tx.InsertOrSave(row)
	tx.Follow(row.Job.ID, a.listed[row.Job.ID], queue.Listed(&row.Job))
	a.listed[row.Job.ID] = queue.Listed(&row.Job)
	if err := tx.Commit(a.Context()); err != nil {
		a.Fatal(err)
	}
}

func (a *archive) rand() int { return rand.IntN(2) }

// pages reads all pages of a list, and calls between after each. It fails for a page that is short and not the last,
// and for a job that is on two.
func (a *archive) pages(f queue.Find, between func()) (ids []string) {
	a.Helper()
	f.Names = func(context.Context) ([]string, error) { return a.names, nil }
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

// turned fails if the list with the oldest first is not another one turned around.
func (a *archive) turned(f queue.Find, newest []string) {
	a.Helper()
	f.Oldest = true
	oldest := a.pages(f, func() {})
	slices.Reverse(oldest)
	if !slices.Equal(oldest, newest) {
		a.Errorf("%+v: the oldest first are %d jobs, not the %d turned around", f, len(oldest),
			len(newest))
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
	filters := map[string]struct {
		find queue.Find
		is   func(j *ingest.Job) bool
	}{
		"all":       {queue.Find{}, func(*ingest.Job) bool { return true }},
		"submitter": {queue.Find{Submitter: "s1"}, func(j *ingest.Job) bool { return j.Submitter == "s1" }},
		"message": {queue.Find{Message: "ANSWERED 404"},
			func(j *ingest.Job) bool { return strings.HasSuffix(j.Message, "404") }},
		"message of none": {queue.Find{Message: "4", State: "Completed"}, func(*ingest.Job) bool { return false }},
		"submitter, state": {queue.Find{Submitter: "s1", State: "Deleted"},
			func(j *ingest.Job) bool { return j.Submitter == "s1" && j.State == ingest.Deleted }},
		"submitter, completed": {queue.Find{Submitter: "s1", State: "Completed"},
			func(j *ingest.Job) bool { return j.Submitter == "s1" && j.State == ingest.Completed }},
		"no submitter": {queue.Find{Submitter: "s"}, func(*ingest.Job) bool { return false }},
		"local id, collection": {queue.Find{LocalID: "same", Collections: []string{"c002", "c004"}},
			func(j *ingest.Job) bool {
				return slices.Contains(j.LocalIDs, "same") && (j.Collection == "c002" || j.Collection == "c004")
			}},
		"local id, state, after": {queue.Find{LocalID: "same", State: "Failed", After: b0 + 20},
			func(j *ingest.Job) bool {
				return slices.Contains(j.LocalIDs, "same") && j.State == ingest.Failed && j.Created >= b0+20
			}},
		"ark": {queue.Find{ARK: "ark:/99999/fk4y"}, func(j *ingest.Job) bool { return j.Primary != "" }},
		"ark, local id": {queue.Find{ARK: "ark:/99999/fk4y", LocalID: "id-22"},
			func(j *ingest.Job) bool { return j.Primary != "" && j.LocalIDs[0] == "id-22" }},
		"local id": {queue.Find{LocalID: "id-7"}, func(j *ingest.Job) bool { return j.LocalIDs[0] == "id-7" }},
		"after":    {queue.Find{After: b0 + 100}, func(j *ingest.Job) bool { return j.Created >= b0+100 }},
		"before":   {queue.Find{Before: b0 + 100}, func(j *ingest.Job) bool { return j.Created < b0+100 }},
		"unknown":  {queue.Find{ARK: "ark:/99999/fk4x"}, func(*ingest.Job) bool { return false }},
		"collection": {queue.Find{Collections: []string{"c003"}},
			func(j *ingest.Job) bool { return j.Collection == "c003" }},
		"collection, passing": {queue.Find{Collections: []string{"c003"}, State: "Storing"},
			func(j *ingest.Job) bool { return j.Collection == "c003" && j.State == ingest.Storing }},
		"collection, passing, submitter": {queue.Find{Collections: []string{"c003"}, State: "Storing", Submitter: "s1"},
			func(j *ingest.Job) bool {
				return j.Collection == "c003" && j.State == ingest.Storing && j.Submitter == "s1"
			}},
		"message, submitter": {queue.Find{Message: "404", Submitter: "s1"},
			func(j *ingest.Job) bool { return strings.HasSuffix(j.Message, "404") && j.Submitter == "s1" }},
		"message, submitter, state": {queue.Find{Message: "404", Submitter: "s1", State: "Failed"},
			func(j *ingest.Job) bool {
				return strings.HasSuffix(j.Message, "404") && j.Submitter == "s1" && j.State == ingest.Failed
			}},
		"message, collection, passing": {queue.Find{Message: "40", Collections: []string{"c001"}, State: "Downloading"},
			func(j *ingest.Job) bool { return j.Collection == "c001" && j.State == ingest.Downloading }},
	}
	for _, s := range states {
		filters[string(s)] = struct {
			find queue.Find
			is   func(j *ingest.Job) bool
		}{queue.Find{State: string(s)}, func(j *ingest.Job) bool { return j.State == s }}
	}
	for mode, whole := range modes {
		a := fill(t, whole, 7, 1500, func(n int) ingest.State { return states[n%len(states)] })
		for name, f := range filters {
			got := a.pages(f.find, func() {})
			a.turned(f.find, got)
			slices.Sort(got)
			if want := a.those(f.is); !slices.Equal(got, want) {
				t.Errorf("%s, %s: %d jobs; expected %d", mode, name, len(got), len(want))
			}
		}
	}
}

// TestPagesWhileJobsMove: whoever pages through a list while jobs move, are made and are removed gets each job once
// that matched all the time, and none that never did.
func TestPagesWhileJobsMove(t *testing.T) {
	states := []ingest.State{ingest.Pending, ingest.Downloading, ingest.Storing, ingest.Failed, ingest.Completed}
	finds := []queue.Find{{}, {LocalID: "same"}, {ARK: "ark:/99999/fk4y"}, {Submitter: "s1"}, {Message: "40"},
		{Submitter: "s1", State: "Completed"}, {Submitter: "s1", State: "Failed"},
		{LocalID: "same", State: "Completed"}, {LocalID: "same", ARK: "ark:/99999/fk4y"},
		{Message: "404", State: "Failed"}, {Message: "anew", Submitter: "s2"}, {Message: "anew", State: "Failed"}}
	for _, s := range states {
		finds = append(finds, queue.Find{State: string(s)},
			queue.Find{State: string(s), Collections: []string{"c001", "c002", "c003"}})
	}
	for n, f := range finds {
		f.Oldest = n%3 == 1
		whole := n%4 > 0 // a list that is not whole is merged of others, which are the same in all of these
		a := fill(t, whole, 5, 600, func(n int) ingest.State { return states[n%len(states)] })
		matches := func(j *queue.Job) bool {
			return (f.State == "" || string(j.State) == f.State) && (f.Submitter == "" || j.Submitter == f.Submitter) &&
				(f.Collections == nil || slices.Contains(f.Collections, j.Collection)) &&
				(f.LocalID == "" || slices.Contains(j.LocalIDs, f.LocalID)) && (f.ARK == "" || j.Primary == f.ARK) &&
				strings.Contains(j.Message, f.Message)
		}
		was := map[string]int{} // how often a job that was looked at matched
		looks := 0
		look := func() {
			looks++
			for id, j := range a.jobs {
				if matches(j) {
					was[id]++
				}
			}
		}
		look()
		got := a.pages(f, func() {
			n := 0
			for id, j := range a.jobs {
				n++
				if n > 60 {
					break
				}
				switch {
				case n%10 == 1:
					a.remove(id)
					continue
				case n%2 == 0: // the others only move to another place in their state
					j.State = states[rand.IntN(len(states))]
				case n%3 == 0:
					j.Message = fmt.Sprintf("answered anew %d", 400+rand.IntN(5))
				}
				a.put(j)
			}
			for range 10 {
				a.add(states[rand.IntN(len(states))])
			}
			look()
		})
		for n := range a.made {
			id := idOf(n)
			if listed := slices.Contains(got, id); listed && was[id] == 0 || !listed && was[id] == looks {
				t.Errorf("%+v: %s is listed: %v; it matched at %d of %d looks", f, id, listed, was[id], looks)
			}
		}
	}
}

// aPage is a list, how many jobs its first page has, and how many requests that takes at most.
type aPage struct {
	find  queue.Find
	items int
	most  int64
}

// firstPages are those of TestReadsOfAPage.
func firstPages(names []string, jobs int64) []aPage {
	const (
		page, two = 4 + 1, 8 + 1 // each part of a list, or of two, and the rows
		apart     = two + 8      // the second half of them
	)
	one := names[1:2]
	return []aPage{
		{queue.Find{}, 50, page},
		{queue.Find{State: "Completed"}, 50, page},
		{queue.Find{State: "Failed"}, 50, page},
		{queue.Find{State: "Storing"}, 30, page},
		{queue.Find{State: "Storing", Collections: one}, 0, page - 1},
		{queue.Find{State: "Storing", Collections: names[:1]}, 30, page},
		{queue.Find{State: "Storing", Submitter: "s1"}, 10, page},
		{queue.Find{State: "Deleted"}, 6, page},
		{queue.Find{State: "Held"}, 0, page},
		{queue.Find{State: "Deleted", Collections: one}, 0, 1},
		{queue.Find{Collections: names[:1]}, 50, 2},
		{queue.Find{Submitter: "s2"}, 50, page},
		{queue.Find{Submitter: "nobody"}, 0, page},
		{queue.Find{Submitter: "nobody", State: "Completed"}, 0, two},
		{queue.Find{Submitter: "s0", State: "Failed"}, 50, two},
		{queue.Find{Submitter: "s1", State: "Deleted"}, 2, two},
		{queue.Find{Submitter: "s0", State: "Completed"}, 0, apart},
		{queue.Find{LocalID: "id-3"}, 1, 2},
		{queue.Find{LocalID: "nothing"}, 0, 1},
		{queue.Find{LocalID: "same"}, 50, 3},
		{queue.Find{LocalID: "same", State: "Held"}, 0, 3 + jobs/5/table.MaxGets},
		{queue.Find{LocalID: "same", ARK: "ark:/99999/fk4y"}, 50, 5},
		{queue.Find{ARK: "ark:/99999/fk4nothing"}, 0, 1},
		{queue.Find{State: "Completed", Message: "4"}, 0, apart},
		{queue.Find{State: "Failed", Message: "answered"}, 50, two},
		{queue.Find{Message: "404"}, 50, page},
		{queue.Find{Message: "nothing"}, 0, page + 4},
		{queue.Find{Message: "404", Submitter: "s1"}, 2, apart},
		{queue.Find{Message: "nothing", Submitter: "s1", State: "Storing"}, 0, apart},
		{queue.Find{Message: "answered", Submitter: "s0", State: "Failed"}, 50, two},
	}
}

// TestReadsOfAPage: how many requests a page of all collections takes grows with the number neither of collections nor
// of jobs: for what is common, rare and not there. Only two filters of which each has thousands that the other has not
// take more. As long as the lists of all collections are not whole, each of those of 50 collections is read.
func TestReadsOfAPage(t *testing.T) {
	const jobs, collections = 6000, 50
	a := newArchive(t, collections, jobs, func(n int) ingest.State {
		switch {
		case n%1000 == 7:
			return ingest.Deleted
		case n%1000 < 5:
			return ingest.Storing
		case n%3 == 0: // exactly those of the submitter s0
			return ingest.Failed
		}
		return ingest.Completed
	})
	reads := func(f queue.Find, items int, most int64) {
		t.Helper()
		f.Until = a.now.Add(time.Hour)
		f.Names = func(context.Context) ([]string, error) { return a.names, nil }
		before := a.requests.Load()
		p, err := a.q.FindJobs(t.Context(), f)
		if n := a.requests.Load() - before; err != nil || len(p.Items) != items || n > most {
			f.Names = nil
			t.Errorf("%+v: %d jobs in %d requests, %v; expected %d in at most %d", f, len(p.Items), n, err,
				items, most)
		}
	}
	reads(queue.Find{}, 50, 4+1+1) // a process looks once whether the lists are whole
	for _, c := range firstPages(a.names, jobs) {
		reads(c.find, c.items, c.most)
		c.find.Oldest = true
		reads(c.find, c.items, c.most)
	}

	a.notWhole()
	const merged = collections + 2
	reads(queue.Find{State: "Failed"}, 50, merged)
	reads(queue.Find{State: "Storing"}, 30, merged)
	reads(queue.Find{State: "Storing", Collections: a.names[1:2]}, 0, 2)
}

// TestPassesOver: what is rare is found among thousands of newer ones without reading these.
func TestPassesOver(t *testing.T) {
	a := newArchive(t, 1, 3, func(int) ingest.State { return ingest.Deleted })
	for n := range 100 {
		tx := a.q.Table.Begin(a.q.NewID())
		for i := range 100 {
			at := table.Key{PK: "NAMED#submitter#c000#s0", SK: fmt.Sprintf("%013d#newer", b0+1+100*n+i)}
			tx.Insert(table.OwnedAt("newer", at)[0])
		}
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	before := a.requests.Load()
	p, err := a.q.FindJobs(t.Context(), queue.Find{State: "Deleted", Submitter: "s0", Collections: a.names,
		Until: a.now.Add(time.Hour)})
	if n := a.requests.Load() - before; err != nil || len(p.Items) != 1 || p.Cursor != "" || n > 4 {
		t.Errorf("%d jobs in %d requests, cursor %q, %v", len(p.Items), n, p.Cursor, err)
	}
}

// TestSearchEnds: a search that has no time left says where it goes on.
func TestSearchEnds(t *testing.T) {
	a := newArchive(t, 3, 1000, func(int) ingest.State { return ingest.Failed })
	a.jobs[idOf(0)].Message = "the oldest"
	a.put(a.jobs[idOf(0)])
	f := queue.Find{Collections: a.names, Message: "OLD", Until: a.now}
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
	for _, bad := range []queue.Find{{Cursor: "x"}, {Cursor: "1."}, {Cursor: "B000001-00001"},
		{Cursor: "oldest.1794000000000.B000001-00001"}, {Cursor: "1794000000000.B000001-00001",
			Oldest: true},
		{Cursor: "oldest.", Oldest: true}} {
		if _, err := a.q.FindJobs(context.Background(), bad); !fault.Is(err, fault.Invalid) {
			t.Errorf("the cursor %q, oldest first: %v: %v", bad.Cursor, bad.Oldest, err)
		}
	}
}
