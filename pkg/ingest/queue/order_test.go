package queue_test

import (
	"context"
	"testing"
	"time"

	"archivist/pkg/events/event"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
)

// TestGateOrder: a free slot goes first to parked jobs, then to those that wait for space,
// then to new ones.
func TestGateOrder(t *testing.T) {
	b := newBench(t)
	b.q.Settings.MaxInFlight = 10
	parked := b.estimated("", 10)
	b.tick()
	m := b.last()
	b.handle(m, func(context.Context, *queue.Claim) (ingest.Result, error) {
		return ingest.Result{Outcome: ingest.StepPark, Lock: "gone by now"}, nil
	})
	b.q.Settings.MaxInFlight = 0
	fresh := ingest.JobID(b.submit(1, ""), 1)
	b.q.Settings.MaxInFlight = 1
	b.tick()
	if j := b.job(parked); j.Parked {
		t.Fatal("the parked job was not first")
	}
	b.forceFail(parked)
	b.q.Settings.MaxInFlight = 10
	waits := b.estimated("", 10) // lets the fresh one in, too
	b.handle(queue.Message{Job: fresh, Exec: 1, State: string(ingest.Estimating)}, fails(true))
	b.requeue(fresh)
	b.q.Settings.MaxInFlight = 1
	b.tick()
	if b.job(waits).State != ingest.Downloading || b.job(fresh).State != ingest.Pending {
		t.Errorf("the job that waits for space is %s, the new one %s", b.job(waits).State, b.job(fresh).State)
	}
}

// TestMoreThanAPage: all pages of the reservations and of the waiting jobs count, not only
// the first.
func TestMoreThanAPage(t *testing.T) {
	b := newTwinBench(t)
	b.q.Settings.MaxInFlight, b.q.Settings.Space = 2000, 2000
	b.grants("SLOT", 1100, 0)
	b.grants("SPACE", 1100, 1)
	if o, err := b.q.Overview(t.Context()); err != nil || o.Running != 1100 || o.SpaceFree != 900 {
		t.Errorf("%+v, %v", o, err)
	}
	const blocked = 120
	b.submit(blocked, "")
	b.tick()
	for _, m := range b.take() {
		b.handle(m, sized(1000)) // more than is free
	}
	b.now = b.now.Add(time.Second)
	small := b.estimated("", 1)
	b.tick()
	if j := b.job(small); j.State != ingest.Downloading {
		t.Errorf("the job behind a page of jobs that do not fit is %s", j.State)
	}
}

// TestGatesEndInTime: the gates start no new page when their time is over.
func TestGatesEndInTime(t *testing.T) {
	b := newTwinBench(t)
	b.q.Settings.MaxInFlight = 1000
	batch := b.submit(250, "")
	real := b.q.NewID
	b.q.NewID = func() string { b.now = b.now.Add(time.Second); return real() }
	if err := b.c.Tick(t.Context(), false); err != nil && !fault.Is(err, fault.Stale) {
		t.Fatal(err)
	}
	if first, last := b.job(ingest.JobID(batch, 1)),
		b.job(ingest.JobID(batch, 250)); first.State != ingest.Estimating || last.State != ingest.Pending {
		t.Errorf("the first is %s, the last %s", first.State, last.State)
	}
}

// TestLaggingIndex: the row decides, not the index, which may show an earlier state.
func TestLaggingIndex(t *testing.T) {
	b := newBench(t)
	fake := tabletest.New()
	lag := 0
	fake.Lag = func() int { return lag }
	b.q.Table = tabletest.Table(fake)
	b.c.Leases.Table = b.q.Table
	b.q.Settings.MaxInFlight = 10
	id := b.estimated("", 10)
	if _, err := b.q.Overview(t.Context()); err != nil { // the index shows it as waiting for space
		t.Fatal(err)
	}
	lag = 1000 // from here on the index stands still
	b.tick()
	m := b.last()
	b.tick()
	if j := b.job(id); j.Exec != m.Exec || j.State != ingest.Downloading {
		t.Errorf("admitted again: execution %d, %s", j.Exec, j.State)
	}
	lag = 0
	waits := b.estimated("", 10)
	b.tick()
	b.forceFail(waits)
	b.now = b.now.Add(time.Hour)
	if _, err := b.q.Overview(t.Context()); err != nil { // the index shows it as waiting for a repair
		t.Fatal(err)
	}
	lag = 1000
	b.tick()
	if j := b.job(waits); j.State != ingest.Failed || j.Exec != 2 {
		t.Errorf("a failed job was repaired: execution %d, %s", j.Exec, j.State)
	}
}

// TestFailedStepWritesNothing: what a step adds to its last transaction is written only if
// it succeeds.
func TestFailedStepWritesNothing(t *testing.T) {
	for _, end := range []ingest.Result{ingest.Fail(true, "no"), {Outcome: ingest.StepContinue},
		{Outcome: ingest.StepNext}} {
		b := newBench(t)
		b.submit(1, "")
		b.tick()
		k := table.Key{PK: "OBJECT#x", SK: "OBJECT"}
		b.handle(b.last(), func(_ context.Context, claim *queue.Claim) (ingest.Result, error) {
			claim.OnCommit(func(_ context.Context, tx *table.Tx) error {
				tx.Insert(&table.Head{PK: k.PK, SK: k.SK})
				return nil
			})
			return end, nil
		})
		var row table.Head
		if err := b.q.Table.Get(t.Context(), k, &row); (err == nil) != (end.Outcome == ingest.StepNext) {
			t.Errorf("%s: %v", end.Outcome, err)
		}
	}
}

// TestFreeingWakesTheGates: a job that is failed by an operator loses its execution, and the
// gates are woken for what it frees.
func TestFreeingWakesTheGates(t *testing.T) {
	b := newBench(t)
	id := ingest.JobID(b.submit(2, ""), 1)
	b.tick()
	before := b.wakes
	b.forceFail(id)
	if b.wakes == before || !b.stopped[queue.ExecutionName(id, 1)] {
		t.Errorf("%d wake-ups, stopped %v", b.wakes-before, b.stopped)
	}
}

// TestLongStepTakesNoTries: a job whose step continues over many messages does not fail
// because of their number.
func TestLongStepTakesNoTries(t *testing.T) {
	b := newBench(t)
	id := ingest.JobID(b.submit(1, ""), 1)
	b.tick()
	m := b.last()
	for range 30 {
		if keep := b.handle(m, func(context.Context, *queue.Claim) (ingest.Result, error) {
			return ingest.Result{Outcome: ingest.StepContinue}, nil
		}); keep != 0 {
			t.Fatalf("kept for %s", keep)
		}
	}
	if j := b.job(id); j.State != ingest.Estimating || j.Tries != 0 {
		t.Errorf("%s after %d tries", j.State, j.Tries)
	}
}

// TestRepairsBackOff: an item that is repaired again and again is repaired less and less
// often, and not before its time.
func TestRepairsBackOff(t *testing.T) {
	b := newTwinBench(t)
	id := ingest.JobID(b.submit(1, ""), 1)
	b.tick()
	last, gap := b.now, time.Duration(0)
	for range 24 * 60 {
		b.now = b.now.Add(time.Minute)
		exec := b.job(id).Exec
		b.tick()
		if b.job(id).Exec == exec {
			continue
		}
		if now := b.now.Sub(last); now < gap-2*time.Minute {
			t.Fatalf("repaired after %s, the time before after %s", now, gap)
		} else {
			last, gap = b.now, now
		}
	}
	if most := b.q.Rules.Timing.MaxBackoff; gap < most || gap > most+2*time.Minute || b.repairs > 30 {
		t.Errorf("at last every %s; %d repairs in a day", gap, b.repairs)
	}
}

// TestFailureOutcome: the event of a failed job has the outcome failure.
func TestFailureOutcome(t *testing.T) {
	b := newBench(t)
	id := ingest.JobID(b.submit(1, ""), 1)
	b.tick()
	b.handle(b.last(), fails(true))
	p, err := b.q.Events(t.Context(), event.Subject{Type: event.Job, ID: id}, "")
	if err != nil || len(p.Items) != 3 || p.Items[1].Outcome != event.Success || p.Items[2].Outcome != event.Failure {
		t.Errorf("%+v, %v", p.Items, err)
	}
}
