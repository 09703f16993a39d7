package queue_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table/tabletest"
)

// TestAll: all that a filter finds is read at once, in few calls, if that is at most 400; else
// it is refused without reading it, also if a search would take too long.
func TestAll(t *testing.T) {
	var calls atomic.Int64
	b := newBenchOn(t, tabletest.Table(&tabletest.Client{DynamoDBAPI: tabletest.New(),
		Do: func(_ string, call func() error) error { calls.Add(1); return call() }}))
	small := b.submit(3, "")
	jobs := make([]ingest.Job, queue.MostSorted-2) // with these, one more than may be
	for i := range jobs {
		jobs[i] = ingest.Job{Collection: "c", Submitter: "eve"}
	}
	large := b.submitJobs(jobs...)
	names := func(context.Context) ([]string, error) { return []string{"c"}, nil }
	all := func(f queue.Find) (ids []string, cost int64, err error) {
		f.Names, f.Until = names, b.now.Add(time.Hour)
		calls.Store(0)
		rows, err := b.q.AllJobs(t.Context(), f)
		for _, j := range rows {
			ids = append(ids, j.Job.ID)
		}
		return ids, calls.Load(), err
	}
	for _, f := range []queue.Find{{}, {Collections: []string{"c"}}, {State: "Pending"}} {
		_, cost, err := all(f)
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(),
			"more than 400 jobs match") ||
			cost > 10 {
			t.Errorf("%+v: %d calls, %v", f, cost, err)
		}
	}
	for n := range 3 {
		b.did(ingest.ActHold, ingest.JobID(small, n+1))
	}
	ids, cost, err := all(queue.Find{State: "Pending", Collections: []string{"c"}})
	if len(ids) != queue.MostSorted-2 || cost > 10 || err != nil {
		t.Errorf("%d jobs in %d calls: %v", len(ids), cost, err)
	}
	if ids, cost, err = all(queue.Find{State: "Held"}); len(ids) != 3 || cost > 10 || err != nil ||
		!slices.IsSortedFunc(ids, func(a, b string) int { return strings.Compare(b, a) }) {
		t.Errorf("%v in %d calls: %v", ids, cost, err)
	}

	rows, err := b.q.AllJobsOf(t.Context(), large)
	if len(rows) != queue.MostSorted-2 || err != nil || rows[1].Row != 2 {
		t.Errorf("%d jobs of a batch: %v", len(rows), err)
	}
	b.editBatch(large, func(row *queue.Batch) { row.Unpacked = queue.MostSortedOf + 1 })
	if _, err = b.q.AllJobsOf(t.Context(), large); !fault.Is(err, fault.Invalid) ||
		!strings.Contains(err.Error(), "the batch has 801 jobs, and at most 800") {
		t.Errorf("too many jobs of a batch: %v", err)
	}
	batches, err := b.q.AllBatches(t.Context(), queue.Find{Names: names,
		Until: b.now.Add(time.Hour)})
	if len(batches) != 2 || err != nil {
		t.Errorf("%d batches: %v", len(batches), err)
	}
	_, err = b.q.AllJobs(t.Context(), queue.Find{Names: names, State: "Pending", Submitter: "eve",
		Collections: []string{"c"}})
	if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "takes too long") {
		t.Errorf("without time: %v", err)
	}
}
