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

// TestPrioritize: a waiting job with a better priority is admitted first, and its place in
// the queue follows at once. The same again changes nothing.
func TestPrioritize(t *testing.T) {
	b := newBench(t)
	b.q.Settings.MaxInFlight = 1
	batch := b.submit(3, "")
	last := ingest.JobID(batch, 3)
	b.refuses(fault.Invalid, "priority", ingest.ActPrioritize, last)
	b.refuses(fault.Invalid, "priority", ingest.ActPrioritize, last, queuetest.Priority(1000))
	before := b.job(last).Turn
	out := b.did(ingest.ActPrioritize, last, queuetest.Priority(0))
	if j := b.job(last); j.Priority != 0 || j.Turn >= before || out.From != "" {
		t.Errorf("%+v; the job is %+v", out, j)
	}
	if e := b.newest(last); e.Type != "job.prioritized" || !strings.Contains(e.Detail,
		"priority changed from 5 to 0: a test") {
		t.Errorf("the event is %+v", e)
	}
	b.same(ingest.ActPrioritize, last, queuetest.Priority(0))
	b.tick()
	if m := b.last(); m.Job != last {
		t.Errorf("%s was admitted first", m.Job)
	}
}

// TestPrioritizeInEachState: a job that has not ended keeps the priority for when it next
// waits: also a held and a failed one. A worker that has the job repeats its try.
func TestPrioritizeInEachState(t *testing.T) {
	b := newBench(t)
	id := b.failedJob(ingest.Downloading)
	b.did(ingest.ActPrioritize, id, queuetest.Priority(7))
	b.resume(id)
	if j := b.job(id); j.Priority != 7 {
		t.Errorf("requeued with priority %d", j.Priority)
	}
	m := queue.Message{Job: id, Exec: b.job(id).Exec, State: string(ingest.Downloading), Token: "t"}
	b.handle(m, func(ctx context.Context, c *queue.Claim) (ingest.Result, error) {
		out := b.did(ingest.ActPrioritize, id, queuetest.Priority(8))
		if len(out.Warnings) != 1 || !strings.Contains(out.Warnings[0], "repeats its current try") {
			t.Errorf("warned of %v", out.Warnings)
		}
		return ok(ctx, c)
	})
	if j := b.job(id); j.State != ingest.Downloading || j.Priority != 8 {
		t.Errorf("the worker that lost the job wrote: %+v", j)
	}
	b.now = b.now.Add(time.Second)
	b.handle(m, ok)
	if j := b.job(id); j.State != ingest.Processing || j.Priority != 8 {
		t.Errorf("after the next try: %+v", j)
	}
	held := ingest.JobID(b.submit(1, ""), 1)
	b.edit(held, func(row *queue.Job) { row.State = ingest.Held })
	b.did(ingest.ActPrioritize, held, queuetest.Priority(3))
	for _, s := range []ingest.State{ingest.Completed, ingest.Deleted} {
		b.edit(held, func(row *queue.Job) { row.State = s })
		b.refuses(fault.Conflict, "is "+string(s)+"|a job that has not ended|"+s.Becomes(), ingest.ActPrioritize, held,
			queuetest.Priority(4))
	}
}

// TestPersonsDoNotSpendTries: a try that an action of a person has ended is no failed try, however often that happens.
func TestPersonsDoNotSpendTries(t *testing.T) {
	b := newBench(t)
	const often = 30 // more than the tries of any stage
	id := b.estimated("x", 10)
	b.tick()
	m := b.last()
	for n := range often {
		b.handle(m, func(ctx context.Context, c *queue.Claim) (ingest.Result, error) {
			b.did(ingest.ActPrioritize, id, queuetest.Priority(n+10))
			return ok(ctx, c)
		})
		b.now = b.now.Add(time.Second)
	}
	b.handle(m, ok)
	if j := b.job(id); j.State != ingest.Processing {
		t.Errorf("after %d changes of its priority the job is %s: %s", often, j.State, j.Message)
	}

	batch := b.submitted()
	m = b.last()
	b.handle(m, func(ctx context.Context, c *queue.Claim) (ingest.Result, error) {
		return ingest.Result{Outcome: ingest.StepContinue}, c.Unpack(ctx, make([]ingest.Job, 1), 10)
	})
	rest := func(ctx context.Context, c *queue.Claim) (ingest.Result, error) {
		return ingest.Result{Outcome: ingest.StepNext}, c.Unpack(ctx, make([]ingest.Job, 9), 10)
	}
	for range often {
		b.handle(m, func(ctx context.Context, c *queue.Claim) (ingest.Result, error) {
			b.did(ingest.ActHold, batch)
			b.did(ingest.ActRelease, batch)
			return rest(ctx, c)
		})
		b.now = b.now.Add(time.Minute)
	}
	b.handle(m, rest)
	if row := b.batch(batch); row.Unpacked != 10 || row.Incomplete != "" {
		t.Errorf("after %d holds the batch has %d of 10 jobs: %s", often, row.Unpacked, row.Incomplete)
	}
}
