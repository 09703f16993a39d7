package queue_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/queue/queuetest"
	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
)

// TestTally: jobs are counted where they wait or run, by collection, with their space; of more than 1,000 at a place
// the first are counted, and that is said.
func TestTally(t *testing.T) {
	b := newBench(t)
	b.estimated("", 250) // of 1,000
	held := struct{ table.Head }{table.Head{PK: "BATCH#held", SK: "BATCH", WorkPK: ingest.WorkHeld, WorkSK: "1"}}
	tx := b.q.Table.Begin("a batch")
	tx.Insert(&held)
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.submitJobs(ingest.Job{Collection: "maps", Priority: 5}, ingest.Job{Collection: "maps", Priority: 5})
	tally, err := b.q.Tally(t.Context(), false)
	if err != nil || len(tally.Cut) > 0 || len(tally.Of[""]) > 0 || tally.Of["maps"][ingest.WorkPending].Jobs != 2 {
		t.Fatalf("%+v, %v", tally, err)
	}
	var waits queue.Amount
	for _, at := range tally.Of {
		waits.Bytes += at[ingest.WorkProvisioning].Bytes
		waits.Jobs += at[ingest.WorkProvisioning].Jobs
	}
	if waits != (queue.Amount{Jobs: 1, Bytes: 250}) {
		t.Errorf("at the second gate: %+v of %+v", waits, tally)
	}

	b.tick()
	tally, err = b.q.Tally(t.Context(), false)
	running := queue.Amount{}
	for _, at := range tally.Of {
		running.Jobs += at[queue.Running].Jobs
		running.Bytes += at[queue.Running].Bytes
	}
	if err != nil || running.Jobs != 2 || running.Bytes != 250 ||
		tally.Of["maps"][ingest.WorkPending].Jobs != 1 {
		t.Errorf("running %+v of %+v, %v", running, tally, err)
	}

	many := make([]ingest.Job, 1200)
	for i := range many {
		many[i] = ingest.Job{Collection: "songs", Priority: 5}
	}
	b.submitJobs(many...)
	tally, err = b.q.Tally(t.Context(), false)
	if err != nil || !slices.Equal(tally.Cut, []string{ingest.WorkPending}) ||
		tally.Of["songs"][ingest.WorkPending].Jobs != 999 { // beside one of maps
		t.Errorf("%v, %v: %+v", tally.Cut, err, tally.Of["songs"])
	}
}

// TestTallyDeferred: a job that waits because its source asked for it is counted as deferred, and one that has a slot
// is not. Each job is in one number.
func TestTallyDeferred(t *testing.T) {
	b := newBench(t)
	b.q.Settings.MaxInFlight = 1
	b.submitJobs(ingest.Job{Collection: "maps", Priority: 5})
	b.tick()
	counted := func(deferred, running int) {
		t.Helper()
		tally, err := b.q.Tally(t.Context(), false)
		of := tally.Of["maps"]
		if err != nil || of[queue.Deferred].Jobs != deferred || of[queue.Running].Jobs != running ||
			of[ingest.WorkParked].Jobs != 0 {
			t.Errorf("%+v, %v", tally, err)
		}
	}
	counted(0, 1)
	b.handle(b.last(), func(context.Context, *queue.Claim) (ingest.Result, error) {
		return ingest.Defer(time.Hour, "the source answered 503"), nil
	})
	counted(1, 0)
}

// TestTallyDeleted: a job that was deleted is not counted as failed while its work files are still
// to be removed.
func TestTallyDeleted(t *testing.T) {
	b := newBench(t)
	id := b.failedJob(ingest.Processing)
	b.quiet()
	failed := func() int {
		t.Helper()
		tally, err := b.q.Tally(t.Context(), false)
		if err != nil {
			t.Fatal(err)
		}
		return tally.Of[b.job(id).Collection][ingest.WorkFailed].Jobs
	}
	if n := failed(); n != 1 {
		t.Errorf("%d jobs have failed, expected 1", n)
	}
	b.did(ingest.ActDelete, id, queuetest.Confirmed)
	if j := b.job(id); !j.Uncleaned() {
		t.Fatalf("the test needs a job with work files: %+v", j)
	}
	if n := failed(); n != 0 {
		t.Errorf("%d deleted jobs are counted as failed", n)
	}
}

// TestTallyUnreadable: a row that cannot be read is not counted in a place, and not passed over in
// silence.
func TestTallyUnreadable(t *testing.T) {
	b := newBench(t)
	id := b.failedJob(ingest.Processing)
	b.quiet()
	broken := struct {
		table.Head
		ID    string `dynamo:"id"`
		State []int  `dynamo:"job_state"`
	}{}
	key := table.Key{PK: "JOB#" + id, SK: "JOB"}
	if err := b.q.Table.Get(t.Context(), key, &broken.Head); err != nil {
		t.Fatal(err)
	}
	broken.ID, broken.State = id, []int{5}
	tx := b.q.Table.Begin("damage")
	tx.Save(&broken)
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	tally, err := b.q.Tally(t.Context(), false)
	if err != nil || tally.Unreadable != 1 {
		t.Errorf("%+v, %v", tally, err)
	}
}

// TestQuickTally: a quick one takes at most ten calls, whatever there is, and says of which places it has not counted
// all. It does not count what is deferred.
func TestQuickTally(t *testing.T) {
	read := &readTable{Fake: tabletest.New()}
	b := newBenchOn(t, tabletest.Table(read))
	b.failsAll(150, true)
	count := func(quick bool, failed, calls int, cut ...string) {
		t.Helper()
		read.calls = 0
		tally, err := b.q.Tally(t.Context(), quick)
		of := tally.Of["c"]
		if err != nil || of[ingest.WorkFailed].Jobs != failed || !slices.Equal(tally.Cut, cut) || read.calls > calls {
			t.Errorf("%v: %+v, cut %q, %v; %d calls", quick, of, tally.Cut, err, read.calls)
		}
		if _, there := of[queue.Deferred]; there != !quick {
			t.Errorf("deferred jobs are in it: %v", there)
		}
	}
	b.submitJobs(ingest.Job{Collection: "c", Priority: 5})
	b.tick()
	b.handle(b.last(), func(context.Context, *queue.Claim) (ingest.Result, error) {
		return ingest.Defer(time.Hour, "the source answered 503"), nil
	})
	count(true, 150, 10)
	b.failsAll(300, true)
	count(true, 200, 10, ingest.WorkFailed)
	count(false, 450, 21)
}
