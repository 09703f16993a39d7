package queue_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/table/tabletest"
)

// TestBacklog: few waiting jobs are counted by whoever looks; more are what the scheduler has
// counted, at most three minutes ago; else they are said to be more than were read.
func TestBacklog(t *testing.T) {
	b := newTwinBench(t)
	measure := func() {
		t.Helper()
		if err := b.q.Measure(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	shows := func(when string, n int, more bool) {
		t.Helper()
		o, err := b.q.Overview(t.Context())
		if err != nil || o.Waiting[ingest.WorkPending] != n || slices.Contains(o.MoreThan, ingest.WorkPending) != more {
			t.Errorf("%s: %v, more than that: %v; %v", when, o.Waiting, o.MoreThan, err)
		}
	}

	b.submitJobs(make([]ingest.Job, 100)...)
	shows("100", 100, false)
	b.submitJobs(make([]ingest.Job, 1400)...)
	shows("1,500 that were not counted yet", 100, true)
	measure()
	shows("1,500", 1500, false)
	b.submitJobs(make([]ingest.Job, 10)...)
	shows("1,510, of which the scheduler has counted 1,500", 1500, false)
	b.now = b.now.Add(time.Minute)
	measure()
	shows("1,510", 1510, false)
	b.now = b.now.Add(3*time.Minute + time.Second)
	shows("the scheduler has stopped", 100, true)
}

// TestBacklogIsBounded: no more than 10,000 are counted, and that there are more is said.
func TestBacklogIsBounded(t *testing.T) {
	b := newTwinBench(t)
	b.submitJobs(make([]ingest.Job, 10_001)...)
	if err := b.q.Measure(t.Context()); err != nil {
		t.Fatal(err)
	}
	o, err := b.q.Overview(t.Context())
	if err != nil || o.Waiting[ingest.WorkPending] != 10_000 || !slices.Contains(o.MoreThan, ingest.WorkPending) {
		t.Errorf("%v, more than that: %v; %v", o.Waiting, o.MoreThan, err)
	}
}

// TestOverviewIsCheap: whatever waits and holds space, an overview and what is in work take the
// same few calls, and the numbers are those of all.
func TestOverviewIsCheap(t *testing.T) {
	var calls atomic.Int64
	b := newBenchOn(t, tabletest.Table(&tabletest.Client{DynamoDBAPI: tabletest.New(),
		Do: func(_ string, call func() error) error { calls.Add(1); return call() }}))
	b.q.Settings.MaxInFlight, b.q.Settings.Space = 150, 10_000
	b.grants("SPACE", 250, 2)
	b.submitJobs(make([]ingest.Job, 700)...)
	b.tick()
	if err := b.q.Measure(t.Context()); err != nil {
		t.Fatal(err)
	}
	calls.Store(0)
	o, err := b.q.Overview(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if o.Running != 150 || o.SpaceFree != 9_500 || o.Waiting[ingest.WorkPending] != 550 || len(o.MoreThan) > 0 {
		t.Errorf("%+v", o)
	}
	now, err := b.q.InWork(t.Context(), o)
	if err != nil || len(now.Running) != 100 || len(now.Heads) != 5 {
		t.Errorf("%d run, %d are first; %v", len(now.Running), len(now.Heads), err)
	}
	const want = "Waiting to start: the limit of running jobs (150) is reached. " +
		"It is the first of 550 waiting jobs."
	if len(now.Heads) > 0 && now.Heads[0].Why != want {
		t.Errorf("%q; expected %q", now.Heads[0].Why, want)
	}
	if n := calls.Load(); n > 10 {
		t.Errorf("%d calls", n)
	}

	b.now = b.now.Add(time.Hour) // what was counted is too old: all is read
	if o, err = b.q.Overview(t.Context()); err != nil || o.SpaceFree != 9_500 {
		t.Errorf("%+v, %v", o, err)
	}
}
