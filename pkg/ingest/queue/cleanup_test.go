package queue_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/queue/queuetest"
	"archivist/pkg/kernel/fault"
)

// TestCleanUpJob: the work files of a failed job are removed now, not after their retention,
// but not while a worker of it may be late. A requeue before that wins.
func TestCleanUpJob(t *testing.T) {
	b := newBench(t)
	id := b.failedJob(ingest.Processing)
	b.same(ingest.ActCleanUp, id, queuetest.Dry)
	out := b.did(ingest.ActCleanUp, id)
	if e := b.newest(id); e.Type != "job.cleaning" || e.Actor != "me" || len(out.Warnings) != 1 {
		t.Errorf("%+v, the event is %+v", out, e)
	}
	b.same(ingest.ActCleanUp, id)
	b.tick()
	if len(b.cleaned) > 0 {
		t.Errorf("cleaned %v while a worker of it may be late", b.cleaned)
	}
	b.requeue(id)
	b.quiet()
	b.tick()
	if j := b.job(id); len(b.cleaned) > 0 || j.State != ingest.Processing || !j.HasSpace {
		t.Errorf("cleaned %v after a requeue; the job is %+v", b.cleaned, j)
	}
	b.refuses(fault.Conflict, "is Processing|clean-up needs Failed|"+ingest.Processing.Becomes(), ingest.ActCleanUp, id)

	b.forceFail(id)
	b.quiet()
	b.did(ingest.ActCleanUp, id)
	b.tick()
	b.same(ingest.ActCleanUp, id) // not all files are removed yet
	due := b.job(id).Due
	b.edit(id, func(row *queue.Job) { row.Due = b.now.Add(time.Hour).UnixMilli() })
	b.same(ingest.ActCleanUp, id) // nor when the sweep tries again later
	b.edit(id, func(row *queue.Job) { row.Due = due })
	b.refuses(fault.Held, "being removed", ingest.ActRequeue, id)
	b.tick()
	if j := b.job(id); len(b.cleaned) != 2 || j.HasSpace || j.State != ingest.Failed || j.LastSuccessful != "" {
		t.Errorf("cleaned %v; the job is %+v", b.cleaned, j)
	}
	if e := b.newest(id); e.Type != "job.cleaned" || !strings.Contains(e.Detail, "a person requested it") {
		t.Errorf("the event is %+v", e)
	}
	b.same(ingest.ActCleanUp, id)
}

// TestDeleteWhileCleaned: a job that is deleted while the sweep removes its work files is
// cleaned to the end.
func TestDeleteWhileCleaned(t *testing.T) {
	b := newBench(t)
	id := b.failedJob(ingest.Processing)
	b.quiet()
	b.did(ingest.ActCleanUp, id)
	clean := b.q.Clean
	b.q.Clean = func(ctx context.Context, job string, until time.Time) (bool, error) {
		b.q.Clean = clean
		b.did(ingest.ActDelete, id, queuetest.Confirmed)
		return true, nil
	}
	b.tick()
	if j := b.job(id); j.State != ingest.Deleted || !j.HasSpace {
		t.Errorf("the job is %+v", j)
	}
	b.quiet()
	b.tick()
	b.tick()
	if j := b.job(id); j.HasSpace || b.rows("SPACE") != 0 {
		t.Errorf("the job is %+v, %d rows of space", j, b.rows("SPACE"))
	}
}

// TestCleanUpBatch: the rows of a completed batch are removed now; for a failed one the
// operation on its jobs is named.
func TestCleanUpBatch(t *testing.T) {
	b := newBench(t)
	batch, job := b.failedBatch()
	out := b.same(ingest.ActCleanUp, batch)
	if out.Next == nil || out.Next.Name != ingest.ActCleanUp || out.Next.Filter.Batch != batch ||
		out.Next.Check(b.now) != nil {
		t.Errorf("a failed batch: %+v", out)
	}
	b.complete(job)
	b.refuses(fault.Conflict, "is Processing|Completed or Failed", ingest.ActCleanUp, b.submit(1, ""))
	if _, err := b.updateReport(batch); err != nil {
		t.Fatal(err)
	}
	b.handle(b.last(), saves(1))
	b.did(ingest.ActCleanUp, batch)
	b.same(ingest.ActCleanUp, batch)
	if e := b.newest(batch); e.Actor != "me" || !strings.Contains(e.Detail, "a test") {
		t.Errorf("the event is %+v", e)
	}
	b.tick()
	if _, err := b.q.Batch(t.Context(), batch); !fault.Is(err, fault.NotFound) {
		t.Errorf("the batch still exists: %v", err)
	}
}

// TestRetentionWaitsForWorkFiles: the row of a deleted job goes with its batch, but only
// after its work files.
func TestRetentionWaitsForWorkFiles(t *testing.T) {
	b := newBench(t)
	id := b.failedJob(ingest.Processing)
	other := strings.TrimSuffix(id, "1") + "2"
	b.did(ingest.ActDelete, id, queuetest.Confirmed)
	b.edit(other, func(row *queue.Job) { row.State, row.Due, row.HasSlot = ingest.Completed, 0, false })
	b.editBatch(b.job(id).Batch, func(row *queue.Batch) { row.State = ingest.BatchCompleted })
	b.did(ingest.ActCleanUp, b.job(id).Batch)
	b.tick()
	if j := b.job(id); !j.HasSpace {
		t.Errorf("the job is %+v", j)
	}
	b.quiet()
	b.tick()
	b.tick()
	b.tick()
	if _, err := b.q.Job(t.Context(), id); !fault.Is(err, fault.NotFound) || b.rows("SPACE") != 0 {
		t.Errorf("the job still exists: %v, %d rows of space", err, b.rows("SPACE"))
	}
}
