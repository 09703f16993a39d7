package queue_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/queue/queuetest"
	"archivist/pkg/kernel/fault"
)

func TestJobToTheEnd(t *testing.T) {
	b := newBench(t)
	batch := b.submit(1, "x")
	id := ingest.JobID(batch, 1)
	b.tick()
	b.handle(b.last(), ok) // estimate
	if j := b.job(id); j.State != ingest.Provisioning || b.answered[len(b.answered)-1] != "token Parked " {
		t.Fatalf("after estimate: %s, answered %v", j.State, b.answered)
	}
	b.tick()
	m := b.last()
	for _, want := range []ingest.State{ingest.Processing, ingest.Storing, ingest.Recording, ingest.Notify,
		ingest.Completed} {
		b.handle(m, ok)
		if j := b.job(id); j.State != want {
			t.Fatalf("after %s: %s, want %s", m.State, j.State, want)
		}
		m.State = string(want)
	}
	b.handle(b.last(), ok) // the report, which the last job's end started
	row, err := b.q.Batch(t.Context(), batch)
	if err != nil || row.State != ingest.BatchCompleted {
		t.Errorf("the batch is %s, %v", row.State, err)
	}
	c, err := b.q.Counts(t.Context(), batch)
	if err != nil || c != (ingest.Counts{Completed: 1}) {
		t.Errorf("the counts are %+v, %v", c, err)
	}
	if b.repairs != 0 {
		t.Errorf("%d repairs", b.repairs)
	}
}

func TestStaleMessages(t *testing.T) {
	b := newBench(t)
	id := ingest.JobID(b.submit(1, ""), 1)
	b.tick()
	estimate := b.last()
	b.handle(estimate, ok)
	b.handle(estimate, func(context.Context, *queue.Claim) (ingest.Result, error) {
		t.Error("a stale message was worked on")
		return ingest.Result{}, nil
	})
	if got := b.answered[len(b.answered)-1]; got != "token Parked " {
		t.Errorf("a repeated message got the answer %q", got)
	}
	b.tick()
	b.handle(estimate, ok)
	if got := b.answered[len(b.answered)-1]; got != "token Superseded " {
		t.Errorf("a message of an old execution got the answer %q", got)
	}
	if m := b.last(); m.Job != id || m.State != string(ingest.Downloading) || m.Exec != 2 {
		t.Errorf("started %+v", m)
	}
}

// TestOneWorker: a second message for a job with a lease comes back after the lease; a
// worker that is too slow cannot write.
func TestOneWorker(t *testing.T) {
	b := newBench(t)
	id := ingest.JobID(b.submit(1, ""), 1)
	b.tick()
	m := b.last()
	lease := b.q.Rules.Timing.Short + b.q.Rules.Timing.Margin
	b.handle(m, func(context.Context, *queue.Claim) (ingest.Result, error) {
		if keep := b.handle(m, ok); keep < lease {
			t.Errorf("the second message comes back after %s; the lease is %s", keep, lease)
		}
		b.now = b.now.Add(lease + time.Second)
		b.handle(m, ok) // the lease has run out: another worker does it
		return ingest.Fail(false, "too late"), nil
	})
	if j := b.job(id); j.State != ingest.Provisioning {
		t.Errorf("the slow worker wrote: %s %s", j.State, j.Message)
	}
}

func TestTriesEnd(t *testing.T) {
	b := newBench(t)
	id := ingest.JobID(b.submit(1, ""), 1)
	b.tick()
	m := b.last()
	for range 10 {
		keep := b.handle(m, func(context.Context, *queue.Claim) (ingest.Result, error) {
			return ingest.Result{}, errors.New("the disk is full")
		})
		if keep == 0 {
			t.Fatal("the message of a failed try would be deleted")
		}
		b.now = b.now.Add(keep)
	}
	b.handle(m, ok)
	if j := b.job(id); j.State != ingest.Failed || !strings.Contains(j.Message, "10 times") ||
		!strings.Contains(j.Message, "disk is full") {
		t.Errorf("after 10 tries: %s %q", j.State, j.Message)
	}
	if _, err := queuetest.Requeue(t.Context(), b.q, id, "more disk", "me"); err != nil {
		t.Fatal(err)
	}
	if j := b.job(id); j.State != ingest.Pending || j.Tries != 0 || j.RetryCount != 1 {
		t.Errorf("requeued: %+v", j)
	}
}

func TestSlotsAndLocks(t *testing.T) {
	b := newBench(t)
	first, second := ingest.JobID(b.submit(3, "same"), 1), ""
	b.tick()
	if n := len(b.started); n != 3 { // one unpack, two estimates
		t.Fatalf("%d executions; MaxInFlight is 2", n)
	}
	x, err := b.q.ExplainJob(t.Context(), strings.TrimSuffix(first, "1")+"3")
	if err != nil || x.Waits != "limit" {
		t.Errorf("the third waits for %+v, %v", x, err)
	}
	b.q.Settings.MaxInFlight = 4
	second = ingest.JobID(b.submit(1, "same"), 1)
	b.tick()
	for _, m := range b.started {
		if m.Job != "" {
			m.Token = "t"
			b.handle(m, ok)
		}
	}
	b.tick() // all but the second of one local id go on to download
	x, err = b.q.ExplainJob(t.Context(), second)
	if err != nil || x.Waits != "lock" || x.On != first {
		t.Errorf("the second of one local id waits for %+v, %v", x, err)
	}
	if _, err := queuetest.ForceFail(t.Context(), b.q, first, "make way", "me"); err != nil {
		t.Fatal(err)
	}
	b.tick()
	if j := b.job(second); j.State != ingest.Downloading || len(j.Locks) != 1 {
		t.Errorf("after the lock went: %s %v", j.State, j.Locks)
	}
	row, err := queuetest.Requeue(t.Context(), b.q, first, "again", "me")
	if err != nil || !row.Parked || row.WaitsOn != second || row.HasSlot {
		t.Errorf("requeued while another job holds the lock: %+v, %v", row, err)
	}
}

func TestSweepRepairsOnce(t *testing.T) {
	b := newBench(t)
	id := ingest.JobID(b.submit(1, ""), 1)
	b.tick()
	b.now = b.now.Add(time.Hour)
	b.tick()
	j := b.job(id)
	if j.Exec != 2 || b.repairs != 1 || !b.stopped[queue.ExecutionName(id, 1)] || b.last().Exec != 2 {
		t.Errorf("repaired: %+v, %d repairs, started %+v", j.Work, b.repairs, b.last())
	}
	b.tick()
	if b.repairs != 1 {
		t.Errorf("%d repairs; it is not due again", b.repairs)
	}
	b.stopped["by hand "+queue.ExecutionName(id, 2)] = true
	b.now = b.now.Add(2 * time.Hour)
	b.tick()
	if j := b.job(id); j.State != ingest.Failed || !strings.Contains(j.Message,
		"stopped its execution in AWS (a person)") {
		t.Errorf("stopped by hand: %s %q", j.State, j.Message)
	}
}

func TestIdempotencyKey(t *testing.T) {
	b := newBench(t)
	submit := func(key, body string) (*queue.Batch, error) {
		return b.q.Submit(t.Context(), ingest.Batch{Collection: "c"}, key, []byte(body), "me")
	}
	one, err := submit("k", "a")
	if err != nil {
		t.Fatal(err)
	}
	if two, err := submit("k", "a"); err != nil || two.Batch.ID != one.Batch.ID {
		t.Errorf("the same key: %v, %v", two, err)
	}
	if _, err := submit("k", "b"); !fault.Is(err, fault.Conflict) {
		t.Errorf("another body: %v", err)
	}
	const week = 7 * 24 * time.Hour
	b.now = b.now.Add(week - time.Minute)
	if two, err := submit("k", "a"); err != nil || two.Batch.ID != one.Batch.ID {
		t.Errorf("the same key just before the end of a week: %v, %v", two, err)
	}
	b.now = b.now.Add(time.Minute)
	if later, err := submit("k", "b"); err != nil || later.Batch.ID == one.Batch.ID {
		t.Errorf("after a week: %v, %v", later, err)
	}
}

func TestUnpackInChunks(t *testing.T) {
	b := newBench(t)
	const n = 100
	row, err := b.q.Submit(t.Context(), ingest.Batch{Collection: "c"}, "", nil, "me")
	if err != nil {
		t.Fatal(err)
	}
	chunks := func(until int) queue.Step {
		return func(ctx context.Context, claim *queue.Claim) (ingest.Result, error) {
			for claim.Batch.Unpacked < until {
				jobs := make([]ingest.Job, n-claim.Batch.Unpacked)
				if err := claim.Unpack(ctx, jobs[:queue.Chunk(jobs)], n); err != nil {
					return ingest.Result{}, err
				}
			}
			if until < n {
				return ingest.Result{}, errors.New("died half-way")
			}
			return ingest.Result{Outcome: ingest.StepNext}, nil
		}
	}
	m := b.last()
	b.now = b.now.Add(b.handle(m, chunks(50)))
	b.handle(m, chunks(n))
	got, err := b.q.Batch(t.Context(), row.Batch.ID)
	if err != nil || got.State != ingest.BatchProcessing || got.Expected != n || !got.Sealed {
		t.Fatalf("unpacked: %+v, %v", got.Batch, err)
	}
	c, err := b.q.Counts(t.Context(), row.Batch.ID)
	if err != nil || c != (ingest.Counts{Processing: n}) {
		t.Errorf("the counts are %+v, %v", c, err)
	}
	jobs, err := b.q.Jobs(t.Context(), row.Batch.ID, 90)
	if err != nil || len(jobs) != 10 || jobs[9].Row != n {
		t.Errorf("the last page has %d jobs, %v", len(jobs), err)
	}
}

// TestChain: jobs for one local id run in the order of their submission, even if a later one
// has a better priority, and a failed one does not block the others.
func TestChain(t *testing.T) {
	b := newBench(t)
	b.q.Settings.MaxInFlight = 10
	var ids []string
	for range 3 {
		ids = append(ids, ingest.JobID(b.submit(1, "same"), 1))
	}
	b.tick()
	for _, m := range b.started {
		if m.Job != "" {
			m.Token = "t"
			b.handle(m, func(_ context.Context, claim *queue.Claim) (ingest.Result, error) {
				if m.Job != ids[0] {
					claim.Job.Priority = 0
				}
				return ingest.Result{Outcome: ingest.StepNext}, nil
			})
		}
	}
	states := func() (out []ingest.State) {
		for _, id := range ids {
			out = append(out, b.job(id).State)
		}
		return out
	}
	b.tick()
	if got := fmt.Sprint(states()); got != "[Downloading Provisioning Provisioning]" {
		t.Errorf("first %s", got)
	}
	for _, id := range ids[:2] {
		if _, err := queuetest.ForceFail(t.Context(), b.q, id, "next", "me"); err != nil {
			t.Fatal(err)
		}
		b.tick()
	}
	if got := fmt.Sprint(states()); got != "[Failed Failed Downloading]" {
		t.Errorf("then %s", got)
	}
	if _, err := queuetest.Requeue(t.Context(), b.q, ids[0], "again", "me"); err != nil {
		t.Fatal(err)
	}
	x, err := b.q.ExplainJob(t.Context(), ids[0])
	if err != nil || x.Waits != "lock" || x.On != ids[2] {
		t.Errorf("the requeued one waits for %+v, %v", x, err)
	}
}

// TestFailedIsCleaned: after its retention a failed job gives its space back, and a requeue
// starts from the beginning.
func TestFailedIsCleaned(t *testing.T) {
	b := newBench(t)
	id := ingest.JobID(b.submit(1, ""), 1)
	b.tick()
	b.handle(b.last(), ok)
	b.tick()
	m := b.last()
	b.handle(m, ok)
	m.State = string(ingest.Processing)
	b.handle(m, func(context.Context, *queue.Claim) (ingest.Result, error) { return ingest.Fail(true, "no"), nil })
	b.tick()
	if j := b.job(id); !j.HasSpace || j.LastSuccessful != ingest.Downloading || len(b.cleaned) > 0 {
		t.Errorf("just failed: %+v, cleaned %v", j, b.cleaned)
	}
	b.now = b.now.Add(25 * time.Hour)
	b.tick()
	if j := b.job(id); !j.HasSpace || len(b.cleaned) != 1 {
		t.Errorf("half cleaned: %+v, cleaned %v", j, b.cleaned)
	}
	b.tick()
	if j := b.job(id); j.HasSpace || j.State != ingest.Failed || fmt.Sprint(b.cleaned) != fmt.Sprint([]string{id, id}) {
		t.Errorf("after a day: %+v, cleaned %v", j, b.cleaned)
	}
	b.tick()
	if row, err := queuetest.Requeue(t.Context(), b.q, id, "again", "me"); err != nil || row.State != ingest.Pending ||
		len(b.cleaned) != 2 {
		t.Errorf("requeued: %+v, %v", row, err)
	}
}

// TestFiveHundred: in a large batch, each admission is the first waiting job, no job has two
// holders, and the counts always add up to the batch.
func TestFiveHundred(t *testing.T) {
	const n, slots = 500, 7
	b := newBench(t)
	b.q.Settings.MaxInFlight = slots
	row, err := b.q.Submit(t.Context(), ingest.Batch{Collection: "c"}, "", nil, "me")
	if err != nil {
		t.Fatal(err)
	}
	batch := row.Batch.ID
	b.handle(b.last(), func(ctx context.Context, claim *queue.Claim) (ingest.Result, error) {
		var jobs []ingest.Job
		for i := range n {
			jobs = append(jobs, ingest.Job{Collection: "c", Priority: (i * 7919) % 100, SizeKnown: true})
		}
		for claim.Batch.Unpacked < n {
			left := jobs[claim.Batch.Unpacked:]
			if err := claim.Unpack(ctx, left[:queue.Chunk(left)], n); err != nil {
				return ingest.Result{}, err
			}
		}
		return ingest.Result{Outcome: ingest.StepNext}, nil
	})
	waiting := map[string]string{} // turn by job
	for i := 1; i <= n; i++ {
		id := ingest.JobID(batch, i)
		waiting[id] = b.job(id).Turn
	}
	for seen := len(b.started); len(waiting) > 0; {
		b.tick()
		if len(b.started) == seen {
			t.Fatalf("no job was admitted with %d waiting", len(waiting))
		}
		for ; seen < len(b.started); seen++ {
			m := b.started[seen]
			for id, turn := range waiting {
				if turn < waiting[m.Job] {
					t.Fatalf("%s (%s) was admitted before %s (%s)", m.Job, waiting[m.Job], id, turn)
				}
			}
			delete(waiting, m.Job)
			b.handle(m, func(context.Context, *queue.Claim) (ingest.Result, error) {
				if keep := b.handle(m, ok); keep == 0 {
					t.Errorf("job %s has two holders", m.Job)
				}
				return ingest.Fail(false, "done with"), nil
			})
		}
		c, err := b.q.Counts(t.Context(), batch)
		if err != nil || c.Sum() != n || c.Failed != int64(n-len(waiting)) {
			t.Fatalf("the counts are %+v with %d waiting, %v", c, len(waiting), err)
		}
	}
}
