package queue_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/queue/queuetest"
)

// TestNow: what runs is named with since when and how far, and the first at a gate with its reason.
func TestNow(t *testing.T) {
	b := newBench(t) // two slots
	batch := b.submit(3, "")
	b.tick()
	o, err := b.q.Overview(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	now, err := b.q.InWork(t.Context(), o)
	jobs, heads := now.Running, now.Heads
	if err != nil || len(jobs) != 2 || jobs[0].State != ingest.Estimating ||
		jobs[0].Entered != b.now.UnixMilli() || jobs[0].Execution() != jobs[0].Job.ID+"-1" {
		t.Errorf("what runs: %+v, %v", jobs, err)
	}
	if len(heads) != 1 || heads[0].Gate != ingest.WorkPending ||
		heads[0].Job.Job.ID != ingest.JobID(batch, 3) || !strings.HasPrefix(heads[0].Why, "Waiting to start: ") {
		t.Errorf("the heads are %+v", heads)
	}
}

// TestStagesOf: each state that a job was in has how long, and how often.
func TestStagesOf(t *testing.T) {
	b := newBench(t)
	id := ingest.JobID(b.submit(1, ""), 1)
	wait := func(d time.Duration) { b.now = b.now.Add(d) }
	wait(10 * time.Second)
	b.tick()
	wait(3 * time.Second)
	b.handle(b.last(), func(context.Context, *queue.Claim) (ingest.Result, error) {
		return ingest.Fail(true, "404"), nil
	})
	wait(time.Minute)
	if _, err := queuetest.Requeue(t.Context(), b.q, id, "again", "me"); err != nil {
		t.Fatal(err)
	}
	wait(20 * time.Second)
	b.tick()

	row, err := b.q.Job(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	stages, err := b.q.StagesOf(t.Context(), row)
	if err != nil || len(stages) != 3 {
		t.Fatalf("%+v, %v", stages, err)
	}
	for i, want := range []struct {
		state ingest.State
		spent time.Duration
		times int
		left  bool
	}{{ingest.Pending, 30 * time.Second, 2, true}, {ingest.Estimating, 3 * time.Second, 2, false},
		{ingest.Failed, time.Minute, 1, true}} {
		s := stages[i]
		if s.State != want.state || s.Spent != want.spent.Milliseconds() || s.Times != want.times ||
			s.Last != 0 != want.left {
			t.Errorf("%+v; expected %+v", s, want)
		}
	}
}
