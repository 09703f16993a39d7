package queue_test

import (
	"strings"
	"testing"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/explain"
	"archivist/pkg/kernel/fault"
)

// TestRequeueAndFailTwice: only a failed job can be requeued, and one that was requeued is not
// requeued again. A job that has failed stays as it is.
func TestRequeueAndFailTwice(t *testing.T) {
	b := newBench(t)
	id := b.failedJob(ingest.Downloading)
	b.did(ingest.ActRequeue, id)
	b.tick()
	b.refuses(fault.Conflict, "is Downloading|requeue needs Failed|"+ingest.Downloading.Becomes(), ingest.ActRequeue,
		id)
	if j := b.job(id); j.RetryCount != 1 || j.Exec != 3 {
		t.Errorf("the job is %+v", j)
	}
	b.did(ingest.ActFail, id)
	b.same(ingest.ActFail, id)
	b.refuses(fault.Conflict, "fail needs|"+ingest.Pending.Becomes(), ingest.ActFail, ingest.JobID(b.submit(1, ""), 1))
}

// failedAt submits a batch of n jobs that have failed after a state was done, with their work files.
func (b *bench) failedAt(n int, done ingest.State, priority int) (batch string) {
	b.Helper()
	batch = b.failed(n)
	for row := range n {
		b.edit(ingest.JobID(batch, row+1), func(row *queue.Job) { row.LastSuccessful, row.Priority = done, priority })
	}
	return batch
}

// TestBulkRequeueKeepsTheLimits: jobs that are requeued together wait as new ones do: no more run than may, and a
// more urgent job of another collection goes before them.
func TestBulkRequeueKeepsTheLimits(t *testing.T) {
	const jobs, most, share = 60, 5, 3
	b := newBench(t)
	b.q.Settings.MaxInFlight, b.q.Settings.Share = most, share
	batch := b.failedAt(jobs, ingest.Provisioning, 99)
	b.finish(b.operate(ingest.Bulk{Name: ingest.ActRequeue, Filter: ingest.Filter{Batch: batch}}, "",
		false).Operation.ID)
	if n := len(b.running(batch)); n > 0 || len(b.take()) > 1 { // that of the operation
		t.Errorf("%d requeued jobs run before their turn", n)
	}

	urgent := ingest.JobID(b.submitJobs(ingest.Job{Collection: "urgent", SizeKnown: true}), 1)
	for tick := range 30 {
		b.tick()
		running := len(b.running(batch))
		if running > share {
			t.Fatalf("%d requeued jobs run; the collection may have %d", running, share)
		}
		if tick == 0 && (!b.runs(urgent) || running == 0) {
			t.Errorf("the urgent job runs: %v, beside %d requeued ones", b.runs(urgent), running)
		}
		for _, m := range b.take() {
			b.through(m)
		}
		b.now = b.now.Add(time.Minute)
	}
	if got := strings.Count(b.states(batch), "Completed"); got != jobs {
		t.Errorf("%d of %d requeued jobs are Completed: %s", got, jobs, b.states(batch))
	}
}

// TestRequeueRespectsHolds: a requeued job does not run while its collection or its batch is on hold; explain names
// the hold, and the job continues once it is lifted.
func TestRequeueRespectsHolds(t *testing.T) {
	for _, kind := range []ingest.TargetKind{ingest.TargetCollection, ingest.TargetBatch} {
		for _, done := range []ingest.State{"", ingest.Provisioning, ingest.Processing, ingest.Storing} {
			b := newBench(t)
			b.q.Settings.MaxInFlight = 10
			batch := b.submit(2, "") // the other one is open: a batch that has ended has no hold
			id, target := ingest.JobID(batch, 1), ingest.Target{Kind: kind, ID: "c"}
			b.failJob(id)
			b.edit(id, func(row *queue.Job) { row.LastSuccessful = done })
			if kind == ingest.TargetBatch {
				target.ID = batch
			}
			b.do(ingest.ActHold, target)
			b.requeue(id)
			b.tick()
			if j := b.job(id); j.HasSlot || j.Running() {
				t.Errorf("%s on hold, %s done: the job runs: %+v", kind, done, j)
			}
			b.explains(id, explain.Hold, target.ID+" is on hold", "release")

			b.do(ingest.ActRelease, target)
			if j := b.job(id); j.State == ingest.Held {
				b.did(ingest.ActRelease, id)
			}
			b.tick()
			if !b.runs(id) {
				t.Errorf("%s released, %s done: the job does not run: %+v", kind, done, b.job(id))
			}
		}
	}
}

// TestRequeuedUnderALastingHold: a requeued job keeps its work files under a hold, but no longer than failed jobs keep
// theirs. Then it has failed again, with the hold as the cause.
func TestRequeuedUnderALastingHold(t *testing.T) {
	b := newBench(t)
	batch := b.submit(2, "")
	id := ingest.JobID(batch, 1)
	b.tick()
	b.handle(queue.Message{Job: id, Exec: 1, State: string(ingest.Estimating), Token: "t"}, sized(10))
	b.tick()
	b.handle(queue.Message{Job: id, Exec: b.job(id).Exec, State: string(ingest.Downloading), Token: "t"}, fails(true))
	b.do(ingest.ActHold, collectionC)
	b.requeue(id)
	b.now = b.now.Add(23 * time.Hour)
	b.tick()
	if b.job(id).State == ingest.Failed || !b.job(id).HasSpace {
		t.Fatalf("before the time has ended: %+v", b.job(id))
	}
	b.now = b.now.Add(2 * time.Hour)
	b.tick()
	if j := b.job(id); j.State != ingest.Failed || j.NotRecoverable || !strings.Contains(j.Message, "is on hold") {
		t.Errorf("after it: %+v", j)
	}
	b.do(ingest.ActRelease, collectionC)
	b.requeue(id)
	b.tick()
	if !b.runs(id) {
		t.Errorf("requeued after the hold, it does not run: %+v", b.job(id))
	}
}
