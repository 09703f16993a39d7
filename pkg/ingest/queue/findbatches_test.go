package queue_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/queue/queuetest"
)

// batches are those of a collection, and what was seen of them.
type batches struct {
	*bench
	queue.Find
	ids   []string
	was   map[string]int // how often a batch that was looked at matched
	looks int
}

// make submits batches of two people by turns.
func (b *batches) make(n int) {
	b.Helper()
	for range n {
		by := []string{"eve", "bob"}[len(b.ids)%2]
		row, err := b.q.Submit(b.Context(), ingest.Batch{Collection: "c", Submitter: by, Mode: "add"}, "", nil, by)
		if err != nil {
			b.Fatal(err)
		}
		b.ids = append(b.ids, row.Batch.ID)
	}
}

func (b *batches) row(id string) *queue.Batch {
	b.Helper()
	row, err := b.q.Batch(b.Context(), id)
	if err != nil {
		b.Fatal(err)
	}
	return row
}

// move cancels or deletes some batches.
func (b *batches) move(n int) {
	b.Helper()
	for range n {
		id := b.ids[rand.IntN(len(b.ids))]
		switch b.row(id).State {
		case ingest.BatchPending:
			b.did(ingest.ActCancel, id)
		case ingest.BatchFailed:
			b.did(ingest.ActDelete, id, queuetest.Confirmed)
		}
	}
}

func (b *batches) look() {
	b.Helper()
	b.looks++
	for _, id := range b.ids {
		row := b.row(id)
		if (b.State == "" || string(row.State) == b.State) && (b.Submitter == "" || row.Submitter == b.Submitter) &&
			strings.Contains(row.Message, strings.ToLower(b.Message)) {
			b.was[id]++
		}
	}
}

// page reads a page, and reports whether there is another one.
func (b *batches) page() (ids []string, more bool) {
	b.Helper()
	p, err := b.q.FindBatches(b.Context(), b.Find)
	if err != nil {
		b.Fatal(err)
	}
	if p.Cursor != "" && len(p.Items) != queue.FindPage {
		b.Errorf("%+v: %d batches on a page with a cursor", b.Find, len(p.Items))
	}
	for i := range p.Items {
		ids = append(ids, p.Items[i].Batch.ID)
	}
	b.Cursor = p.Cursor
	return ids, b.Cursor != ""
}

// TestPagesWhileBatchesMove: as TestPagesWhileJobsMove, for batches that are made, cancelled and deleted.
func TestPagesWhileBatchesMove(t *testing.T) {
	for _, f := range []queue.Find{{}, {State: "Pending"}, {State: "Failed"}, {State: "Deleted"}, {Submitter: "eve"},
		{Submitter: "eve", State: "Pending"}, {Message: "A TEST"}, {Message: "a test", Submitter: "eve"}} {
		f.Collections = []string{"c"}
		b := batches{bench: newBench(t), Find: f, was: map[string]int{}}
		b.Until = b.now.Add(time.Hour)
		b.make(300)
		b.move(300)
		b.look()

		got, more := b.page()
		for more {
			b.move(30)
			b.make(5)
			b.look()
			var ids []string
			ids, more = b.page()
			got = append(got, ids...)
		}

		slices.Sort(got)
		if len(slices.Compact(slices.Clone(got))) < max(20, len(got)) {
			t.Errorf("%+v: %d batches are found, some of them twice", f, len(got))
		}
		for _, id := range b.ids {
			if _, is := slices.BinarySearch(got, id); is && b.was[id] == 0 || !is && b.was[id] == b.looks {
				t.Errorf("%+v: %s is listed: %v; it matched at %d of %d looks", f, id, is, b.was[id], b.looks)
			}
		}
	}
}

// TestCountBatches: batches of a state are counted exactly up to a limit, of a collection and of
// all, and that there is one more is known; no list is read more than once.
func TestCountBatches(t *testing.T) {
	const most = 20
	a := newArchive(t, 2, 0, nil)
	count := func(n int, more bool, calls int64, f queue.Find) {
		t.Helper()
		f.Limit, f.Until = most, a.now.Add(time.Hour)
		before := a.requests.Load()
		got, is, err := a.q.CountBatches(t.Context(), f)
		if took := a.requests.Load() - before; err != nil || got != n || is != more || took > calls {
			t.Errorf("%+v: %d, more %v, %v in %d calls; expected %d, %v in %d", f, got, is, err, took, n, more, calls)
		}
	}
	const pending, failed = string(ingest.BatchPending), string(ingest.BatchFailed)
	one, other := a.names[:1], a.names[1:]
	var last string
	submit := func(collection string) {
		t.Helper()
		row, err := a.q.Submit(t.Context(), ingest.Batch{Collection: collection, Mode: "add"}, "", nil, "me")
		if err != nil {
			t.Fatal(err)
		}
		last = row.Batch.ID
	}
	count(0, false, 2+1, queue.Find{State: pending}) // a process looks once whether the lists are whole
	for range most - 1 {
		submit(one[0])
	}
	submit(other[0])
	count(most, false, 2, queue.Find{State: pending})
	count(most-1, false, 1, queue.Find{State: pending, Collections: one})
	count(1, false, 1, queue.Find{State: pending, Collections: other})
	submit(one[0])
	count(most, true, 2, queue.Find{State: pending})
	count(most, false, 1, queue.Find{State: pending, Collections: one})
	submit(one[0])
	count(most, true, 1, queue.Find{State: pending, Collections: one})
	count(0, false, 2, queue.Find{State: failed})
	a.did(ingest.ActCancel, last)
	count(1, false, 2, queue.Find{State: failed})
	count(most, false, 1, queue.Find{State: pending, Collections: one})
	count(0, false, 1, queue.Find{State: failed, Collections: other})
}
