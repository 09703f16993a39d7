package queue_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/queue/queuetest"
	"archivist/pkg/kernel/explain"
	"archivist/pkg/kernel/fault"
)

// TestCancelBatch: what has not started is deleted, what runs fails, what has ended stays. The
// batch then reports, and ends Failed with the reason.
func TestCancelBatch(t *testing.T) {
	b := newBench(t)
	b.q.Settings.MaxInFlight = 3
	batch := b.submit(5, "x")
	job := func(n int) string { return ingest.JobID(batch, n) }
	b.tick() // 1, 2 and 3 are Estimating
	messages := b.take()
	b.handle(messages[0], ok)          // 1 is in Provisioning
	b.handle(messages[1], fails(true)) // 2 is Failed
	b.did(ingest.ActHold, job(5))      // 4 is Pending
	plan := b.same(ingest.ActCancel, batch, queuetest.Dry)
	if plan.Operation != "" || !strings.Contains(plan.Summary, "4 unfinished jobs") {
		t.Errorf("planned: %+v", plan)
	}

	out := b.did(ingest.ActCancel, batch)
	row, e := b.batch(batch), b.newest(batch)
	if out.Operation == "" || row.Cancelled == nil || row.Cancelled.Actor != "me" ||
		row.Cancelled.Operation != out.Operation || row.Message != "cancelled by me: a test" ||
		row.State != ingest.BatchProcessing || e.Type != "batch.cancelled" || e.Actor != "me" {
		t.Errorf("%+v, the batch is %+v, its event %+v", out, row, e)
	}
	if m := b.last(); m.Operation != out.Operation {
		t.Errorf("started %+v", m)
	}
	if again := b.same(ingest.ActCancel, batch); again.Operation != out.Operation {
		t.Errorf("cancelled again by operation %s, first %s", again.Operation, out.Operation)
	}
	if op := b.finish(out.Operation); op.Tally != (ingest.Tally{Planned: 4, Done: 4}) {
		t.Errorf("the operation is %+v", op.Operation)
	}
	if got := b.states(batch); got != "Failed Failed Failed Deleted Deleted" {
		t.Errorf("the jobs are %s", got)
	}
	if j := b.job(job(3)); !strings.HasPrefix(j.Message, "cancelled by me: a test") || !b.stopped[job(3)+"-1"] ||
		b.rows("SLOT") != 0 || b.rows("LOCK#local#c#x") != 0 {
		t.Errorf("the running job is %+v, stopped %v, %d slots", j, b.stopped, b.rows("SLOT"))
	}
	for n, cancelled := range []bool{true, false, true, true, true} {
		if j := b.job(job(n + 1)); j.Cancelled != cancelled {
			t.Errorf("job %d is cancelled: %t", n+1, j.Cancelled)
		}
	}
	if j := b.job(job(2)); j.Message != "no" {
		t.Errorf("the failed job says %q", j.Message)
	}
	if j := b.job(job(5)); j.Hold != nil || !strings.HasPrefix(j.Message, "cancelled by me") ||
		b.newest(job(5)).Actor != "me" {
		t.Errorf("the held job is %+v", j)
	}
	b.handle(messages[2], func(context.Context, *queue.Claim) (ingest.Result, error) {
		t.Error("a cancelled job was worked on")
		return ingest.Result{}, nil
	})

	b.same(ingest.ActCancel, batch)
	b.handle(queue.Message{Batch: batch, Exec: b.batch(batch).Exec, Step: "report", Token: "t"}, saves(0))
	if row := b.batch(batch); row.State != ingest.BatchFailed || row.Message != "cancelled by me: a test" {
		t.Errorf("the batch is %+v", row)
	}
	b.same(ingest.ActCancel, batch)
	failed, _ := b.failedBatch()
	b.refuses(fault.Conflict, "is Failed|Pending or Processing|"+ingest.BatchFailed.Becomes(), ingest.ActCancel, failed)
}

// TestNothingStartsAfterCancel: between a cancel and the operation that ends the jobs, however long that
// is, none of them starts or passes a gate, and none is requeued. What has ended stays.
func TestNothingStartsAfterCancel(t *testing.T) {
	b := newBench(t)
	b.q.Settings.MaxInFlight = 3
	batch := b.submit(6, "x")
	job := func(n int) string { return ingest.JobID(batch, n) }
	b.tick() // 1, 2 and 3 are Estimating
	messages := b.take()
	b.handle(messages[0], ok)          // 1 is in Provisioning
	b.handle(messages[1], fails(true)) // 2 is Failed
	out := b.did(ingest.ActCancel, batch)
	_, err := (queue.Admin{Queue: b.q}).Interrupt(t.Context(), out.Operation, "wait", "me", ingest.Administrator)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		b.now = b.now.Add(time.Minute)
		b.tick()
	}
	if got := b.states(batch); got != "Provisioning Failed Estimating Pending Pending Pending" {
		t.Errorf("the jobs are %s", got)
	}
	b.refuses(fault.Conflict, "was cancelled by me|once the batch has reported", ingest.ActRequeue, job(2))
	x, err := b.q.ExplainJob(t.Context(), job(4))
	if err != nil || x.Waits != explain.Person || !strings.Contains(said(x), "operation continue "+out.Operation) {
		t.Errorf("%+v, %v", x, err)
	}
}

// TestCancelWhileUnpacking: no more jobs are made of a cancelled batch. Without any it fails at
// once; with some it says that it is incomplete.
func TestCancelWhileUnpacking(t *testing.T) {
	b := newBench(t)
	none := b.submitted()
	b.did(ingest.ActCancel, none)
	if row := b.batch(none); row.State != ingest.BatchFailed || row.Message != "cancelled by me: a test" {
		t.Errorf("without jobs the batch is %+v", row)
	}

	some := b.submitted()
	m := b.last()
	var out ingest.ActionResult
	keep := b.handle(m, func(ctx context.Context, c *queue.Claim) (ingest.Result, error) {
		if err := c.Unpack(ctx, make([]ingest.Job, 2), 4); err != nil {
			return ingest.Result{}, err
		}
		out = b.did(ingest.ActCancel, some)
		err := c.Unpack(ctx, make([]ingest.Job, 2), 4)
		if !fault.Is(err, fault.Stale) {
			t.Errorf("jobs were made of a cancelled batch: %v", err)
		}
		return ingest.Result{}, err
	})
	b.now = b.now.Add(keep)
	b.handle(m, ok)
	b.finish(out.Operation)
	if row := b.batch(some); row.State != ingest.BatchReporting || row.Expected != 2 || row.Incomplete == "" ||
		b.countsOf(some) != (ingest.Counts{Deleted: 2}) || b.answered[len(b.answered)-1] != "token Success " {
		t.Errorf("the batch is %+v, %+v, answered %v", row, b.countsOf(some), b.answered)
	}
}

// TestCancelIsTakenUpAgain: if the operation that cancels the jobs was interrupted, the same
// action starts another.
func TestCancelIsTakenUpAgain(t *testing.T) {
	b := newBench(t)
	batch := b.submit(2, "")
	first := b.did(ingest.ActCancel, batch)
	if _, err := (queue.Admin{Queue: b.q}).Interrupt(t.Context(), first.Operation, "wait", "me",
		ingest.Administrator); err != nil {
		t.Fatal(err)
	}
	second := b.did(ingest.ActCancel, batch)
	if second.Operation == first.Operation {
		t.Errorf("operation %s was started twice", first.Operation)
	}
	b.finish(second.Operation)
	if got := b.states(batch); got != "Deleted Deleted" {
		t.Errorf("the jobs are %s", got)
	}
}

// TestCancelAndEndAtOnce: a batch whose last job ends while it is cancelled is not cut short.
func TestCancelAndEndAtOnce(t *testing.T) {
	b := newBench(t)
	batch := b.submit(1, "")
	b.tick()
	b.handle(b.last(), ok)
	b.tick()
	m := b.last()
	b.interrupt(func() { b.through(m) })
	_, err := b.act(ingest.ActCancel, batch)
	row := b.batch(batch)
	if !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "is Reporting") || row.Cancelled != nil {
		t.Errorf("%v; the batch is %+v", err, row)
	}

	batch = b.submit(1, "")
	b.tick()
	b.handle(b.last(), ok)
	b.tick()
	m = b.last()
	out := b.did(ingest.ActCancel, batch)
	b.through(m)
	report := b.last()
	if op := b.finish(out.Operation); op.Tally.Done != op.Tally.Planned {
		t.Errorf("the operation is %+v", op.Operation)
	}
	b.handle(report, saves(0))
	if s := b.batch(batch).State; s != ingest.BatchCompleted {
		t.Errorf("all jobs were completed; the batch is %s", s)
	}
}

// TestStopAfterFailures: when the third job fails, the batch is cancelled in the name of the
// system, and its other jobs are given up.
func TestStopAfterFailures(t *testing.T) {
	b := newBench(t)
	b.q.Settings.MaxInFlight = 4
	row, err := b.q.Submit(t.Context(), ingest.Batch{Collection: "c", Mode: "add", StopAfter: 3}, "", nil, "me")
	if err != nil {
		t.Fatal(err)
	}
	batch := row.Batch.ID
	b.handle(b.last(), unpackAll(make([]ingest.Job, 8)))
	b.tick()
	messages := b.take()
	for _, m := range messages[:2] {
		b.handle(m, fails(true))
	}
	b.tick()
	if b.batch(batch).Cancelled != nil {
		t.Error("cancelled after two failures")
	}
	wakes := b.wakes
	b.handle(messages[2], fails(true))
	c := b.batch(batch).Cancelled
	if c == nil || c.Actor != "archivist" || !strings.Contains(c.Reason, "3 failed jobs") ||
		b.wakes == wakes {
		t.Fatalf("after the third failure: %+v", c)
	}
	b.take()
	b.tick()
	c = b.batch(batch).Cancelled
	if c.Operation == "" {
		t.Fatal("no operation cancels its jobs")
	}
	b.tick()
	if again := b.batch(batch).Cancelled; *again != *c {
		t.Errorf("the next sweep made %+v of %+v", again, c)
	}
	b.finish(c.Operation)
	if got := b.countsOf(batch); got.Open() != 0 || got.Failed < 4 || got.Failed+got.Deleted != 8 {
		t.Errorf("the counts are %+v", got)
	}
	b.handle(queue.Message{Batch: batch, Exec: b.batch(batch).Exec, Step: "report", Token: "t"}, saves(0))
	if row := b.batch(batch); row.State != ingest.BatchFailed || !strings.Contains(row.Message, "stopAfterFailures 3") {
		t.Errorf("the batch is %+v", row)
	}

	// A person who requeues a job of it is not overruled.
	id := ingest.JobID(batch, 1)
	b.requeue(id)
	if b.job(id).Cancelled {
		t.Error("a requeued job is cancelled")
	}
	b.now = b.now.Add(time.Hour)
	b.tick()
	if j := b.job(id); j.State != ingest.Estimating {
		t.Errorf("the requeued job is %s", j.State)
	}
}

// TestStopAfterFailuresWhileUnpacking: rows that cannot be ingested count, and end unpacking.
func TestStopAfterFailuresWhileUnpacking(t *testing.T) {
	b := newBench(t)
	row, err := b.q.Submit(t.Context(), ingest.Batch{Collection: "c", Mode: "add", StopAfter: 1}, "", nil, "me")
	if err != nil {
		t.Fatal(err)
	}
	bad := ingest.Job{LocalIDs: []string{"a\x00"}}
	m := b.last()
	keep := b.handle(m, func(ctx context.Context, c *queue.Claim) (ingest.Result, error) {
		for range 2 {
			if err := c.Unpack(ctx, []ingest.Job{bad, {}}, 4); err != nil {
				return ingest.Result{}, err
			}
		}
		return ingest.Result{Outcome: ingest.StepNext}, nil
	})
	b.now = b.now.Add(keep)
	b.handle(m, ok)
	got := b.batch(row.Batch.ID)
	if got.Unpacked != 2 || !got.Sealed || got.Cancelled == nil || !strings.Contains(got.Incomplete,
		"stopAfterFailures 1") {
		t.Errorf("the batch is %+v", got)
	}
}

// TestPersonsDoNotStopBatch: a job that a person fails does not count for stopAfterFailures, but one that fails by
// itself does.
func TestPersonsDoNotStopBatch(t *testing.T) {
	b := newTwinBench(t)
	b.q.Settings.MaxInFlight = 50
	batch, messages := b.stopsAfter(2, 5)
	b.forceFail(ingest.JobID(batch, 1))
	b.forceFail(ingest.JobID(batch, 2))
	b.handle(messages[2], fails(true))
	if c := b.countsOf(batch); c.Failed != 3 || c.Stopped != 2 || b.batch(batch).Cancelled != nil {
		t.Fatalf("counts %+v, cancelled %v", c, b.batch(batch).Cancelled)
	}
	b.requeue(ingest.JobID(batch, 1))
	if c := b.countsOf(batch); c.Failed != 2 || c.Stopped != 1 {
		t.Errorf("after a requeue: %+v", c)
	}
	b.handle(messages[3], fails(true))
	if by := b.batch(batch).Cancelled; by == nil || !strings.HasPrefix(by.Reason, "2 failed jobs,") {
		t.Errorf("after two failures: %+v", by)
	}
}

// TestStopNeedsTheFailures: jobs that are requeued while their failures are counted do not end a batch.
func TestStopNeedsTheFailures(t *testing.T) {
	b := newTwinBench(t)
	b.q.Settings.MaxInFlight = 50
	batch, messages := b.stopsAfter(2, 5)
	b.handle(messages[0], fails(true))
	between := false
	b.q.Now = func() time.Time { // stopBatch asks for the time after it has read the counts
		if !between && b.countsOf(batch).Failed == 2 {
			between = true
			b.requeue(ingest.JobID(batch, 1))
			b.requeue(ingest.JobID(batch, 2))
		}
		return b.now
	}
	b.handle(messages[1], fails(true))
	if c := b.countsOf(batch); !between || c.Failed != 0 || b.batch(batch).Cancelled != nil {
		t.Errorf("requeued between: %t; counts %+v, cancelled %v", between, c, b.batch(batch).Cancelled)
	}
}

// stopsAfter submits a batch of n jobs that ends after some failures, and admits its jobs.
func (b *bench) stopsAfter(failures, n int) (batch string, messages []queue.Message) {
	b.Helper()
	row, err := b.q.Submit(b.Context(), ingest.Batch{Collection: "c", Mode: "add", StopAfter: failures}, "", nil, "me")
	if err != nil {
		b.Fatal(err)
	}
	b.handle(b.last(), unpackAll(make([]ingest.Job, n)))
	b.take()
	b.tick()
	return row.Batch.ID, b.take()
}

// TestCancelLeavesNothing: a job that the operation of a cancel has given up is cancelled by another one later. One
// that a person has interrupted stays so.
func TestCancelLeavesNothing(t *testing.T) {
	b := newBench(t)
	batch := b.submit(2, "")
	for row := 1; row <= 2; row++ {
		b.edit(ingest.JobID(batch, row), func(j *queue.Job) { j.State = ingest.Storing })
	}
	answers := false
	b.q.Stored = func(_ context.Context, j *ingest.Job) error {
		if j.ID == ingest.JobID(batch, 1) && !answers {
			return errors.New("the storage does not answer")
		}
		return nil
	}
	first := b.did(ingest.ActCancel, batch).Operation
	d := queue.Admin{Queue: b.q}
	for range 10 {
		_, _ = d.RunPage(t.Context(), first, 1, b.now.Add(time.Minute))
	}
	if op := b.finish(first); op.Tally != (ingest.Tally{Planned: 2, Done: 1, Refused: 1}) {
		t.Fatalf("the operation is %+v", op.Tally)
	}
	answers = true
	b.now = b.now.Add(2 * time.Hour)
	b.tick()
	next := b.batch(batch).Cancelled.Operation
	if next == first || b.last().Operation != next {
		t.Fatalf("the operation %s is %s, started is %+v", first, next, b.last())
	}
	if _, err := d.Interrupt(t.Context(), next, "wait", "bob", ingest.Operator); err != nil {
		t.Fatal(err)
	}
	b.now = b.now.Add(24 * time.Hour)
	b.tick()
	if id := b.batch(batch).Cancelled.Operation; id != next {
		t.Errorf("the interrupted operation %s was replaced by %s", next, id)
	}
	if _, err := d.Continue(t.Context(), next, "go", "bob", ingest.Operator); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if _, err := d.RunPage(t.Context(), next, 2, b.now.Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	if got, row := b.states(batch), b.batch(batch); got != "Failed Failed" || row.Message != "cancelled by me: a test" {
		t.Errorf("the jobs are %s, the batch %+v", got, row)
	}
}
