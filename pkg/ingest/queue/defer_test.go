package queue_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/fetch"
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
				if x, err := b.q.ExplainJob(t.Context(), id); err != nil || x.Waits != queue.OnSource ||
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
