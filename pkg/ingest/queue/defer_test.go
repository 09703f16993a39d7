package queue_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/explain"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/fetch"
	"archivist/pkg/kernel/table/tabletest"
)

// TestDeferredJobs: a job whose source asks to wait has neither an execution nor a slot, and
// is not processed, until its time has come. Then it continues in its state, and its tries
// still count: if the source always asks to wait, the job fails in the end.
func TestDeferredJobs(t *testing.T) {
	for _, state := range []ingest.State{ingest.Estimating, ingest.Downloading} {
		t.Run(string(state), func(t *testing.T) {
			b := newBench(t)
			b.q.Settings.MaxInFlight = 1
			id := ingest.JobID(b.submit(1, ""), 1)
			b.tick()
			if state == ingest.Downloading {
				b.handle(b.last(), ok)
				b.tick()
			}

			asks := func(context.Context, *queue.Claim) (ingest.Result, error) {
				return ingest.Defer(time.Hour, "the source answered 503 and asks to wait 3600 s"), nil
			}
			stage, _ := ingest.StageOf(state)
			for try := 1; try <= stage.Tries; try++ {
				exec := b.job(id).Exec
				b.handle(b.last(), asks)
				b.now = b.now.Add(59 * time.Minute)
				b.tick()
				if j := b.job(id); j.State != state || !j.Deferred() || j.HasSlot || j.Tries != try || j.Exec != exec {
					t.Fatalf("try %d: %s, deferred %v, slot %v, tries %d", try, j.State, j.Deferred(), j.HasSlot,
						j.Tries)
				}
				if x, err := b.q.ExplainJob(t.Context(), id); err != nil || x.Waits != explain.Source ||
					!strings.Contains(x.Why, "asks to wait 3600 s") {
					t.Fatalf("explain: %+v, %v", x, err)
				}

				b.now = b.now.Add(time.Minute)
				b.tick()
				b.tick()
				if j := b.job(id); j.State != state || j.Parked || !j.HasSlot || j.Exec != exec+1 {
					t.Fatalf("after try %d: %s, parked %v, slot %v", try, j.State, j.Parked, j.HasSlot)
				}
			}

			b.handle(b.last(), asks)
			if j := b.job(id); j.State != ingest.Failed || j.NotRecoverable || !strings.Contains(j.Message,
				"asks to wait 3600 s") {
				t.Errorf("in the end it is %s: %s", j.State, j.Message)
			}
		})
	}
}

// TestReadyJobIsNotPostponed: a sweep that fails at a job which another one has put back at its gate meanwhile leaves
// it there, and does not make it wait for its source again.
func TestReadyJobIsNotPostponed(t *testing.T) {
	meanwhile, refuse := "", func() error { return nil }
	tb := tabletest.Table(&tabletest.Client{
		DynamoDBAPI: tabletest.New(),
		Do:          func(_ string, call func() error) error { return call() },
		Refuse: func(partition string) error {
			if partition == meanwhile {
				return refuse()
			}
			return nil
		},
	})
	tb.Wait = func(context.Context, time.Duration) error { return context.DeadlineExceeded }
	b := newBenchOn(t, tb)
	id := b.estimated("", 10)
	b.tick()
	b.handle(b.last(), func(context.Context, *queue.Claim) (ingest.Result, error) {
		return ingest.Defer(time.Hour, "503"), nil
	})
	b.now = b.now.Add(2 * time.Hour)
	meanwhile, refuse = "JOB#"+id, func() error {
		meanwhile = ""
		if err := b.q.Sweep(t.Context(), b.now.Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		return tabletest.Throttled()
	}
	if err := b.q.Sweep(t.Context(), b.now.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if j := b.job(id); !j.Parked || j.Deferred() {
		t.Errorf("the job is %+v", j)
	}
}

// TestDeferredTooLong: a source that gives a little and asks to wait, again and again, holds space for a limited
// time; until then the jobs that wait for space are told who holds it.
func TestDeferredTooLong(t *testing.T) {
	b := newBench(t)
	b.q.Settings.Space, b.q.Settings.Reserve = 1000, 0
	id := b.estimated("a", 1000)
	b.tick()
	other := b.estimated("b", 1)
	asks := func(context.Context, *queue.Claim) (ingest.Result, error) {
		r := ingest.Defer(ingest.MaxDefer, "the source answered 503")
		r.Progress = true
		return r, nil
	}

	const waits = int(ingest.MaxDeferred / ingest.MaxDefer)
	for n := range waits + 1 {
		j := b.job(id)
		if !j.Running() {
			t.Fatalf("after %d waits: %s, %s", n, j.State, j.Message)
		}
		b.handle(queue.Message{Job: id, Exec: j.Exec, State: string(j.State), Token: "t"}, asks)
		x, err := b.q.ExplainJob(t.Context(), other)
		if n < waits && (err != nil || x.Waits != explain.Space || x.On != id ||
			!strings.Contains(x.Why, "because its source asks to wait")) {
			t.Fatalf("the job that waits for space: %+v, %v", x, err)
		}
		b.now = b.now.Add(ingest.MaxDefer)
		b.tick()
		b.tick()
	}

	if j := b.job(id); j.State != ingest.Failed || j.NotRecoverable || !strings.Contains(j.Message,
		"asked to wait for more than 7 days in all, the last time with: the source answered 503. Once the source "+
			"delivers, requeue") {
		t.Errorf("in the end it is %s: %s", j.State, j.Message)
	}
	b.now = b.now.Add(time.Hour)
	b.tick()
	b.tick()
	if j := b.job(other); j.State != ingest.Downloading {
		t.Errorf("the job that waited for its space is %s", j.State)
	}
	b.requeue(id)
	if j := b.job(id); j.AskedToWait != 0 {
		t.Errorf("a requeued job has waited for %d ms already", j.AskedToWait)
	}
}

// TestBatchWaitsForItsSource: a batch whose source asks to wait is tried again later than one
// whose source failed, at the latest when its message becomes visible again.
func TestBatchWaitsForItsSource(t *testing.T) {
	b := newBench(t)
	in := ingest.Batch{Collection: "c", Payload: ingest.Payload{URL: "http://x/a"}}
	batch, err := b.q.Submit(t.Context(), in, "", nil, "me")
	if err != nil {
		t.Fatal(err)
	}
	unpack, _ := ingest.StageNamed("unpack")
	visible := b.q.Rules.Timing.Times(unpack).Visibility
	for _, c := range []struct {
		after       time.Duration
		least, most time.Duration
	}{
		{0, time.Second, b.q.Rules.Timing.RetryWait(unpack.Tries) + time.Second},
		{time.Hour, visible, visible + time.Second},
	} {
		m := queue.Message{Batch: batch.Batch.ID, Exec: 1, Step: "unpack"}
		keep := b.handle(m, func(context.Context, *queue.Claim) (ingest.Result, error) {
			busy := &fetch.StatusError{URL: "http://x/a", Status: 503, After: c.after}
			return ingest.Result{}, &fault.Error{Kind: fault.Unavailable, Msg: busy.Error(), Err: busy}
		})
		if keep < c.least || keep > c.most {
			t.Errorf("asked to wait %s: tried again after %s; expected %s to %s", c.after, keep, c.least, c.most)
		}
		b.now = b.now.Add(keep)
	}
}
