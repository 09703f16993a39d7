package queue_test

import (
	"context"
	"errors"
	"testing"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/queue/queuetest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// loseRow removes a row, as a person could.
func (b *bench) loseRow(k table.Key) {
	b.Helper()
	if err := b.q.Table.Rows.Delete("pk", k.PK).Range("sk", k.SK).Run(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// TestMissingRows: a job whose slot, space, lock or place in line was removed by hand can be
// failed, requeued and processed; the missing row is logged and counted.
func TestMissingRows(t *testing.T) {
	lock := queue.LockKey("local#c#x")
	for name, k := range map[string]func(id string) table.Key{
		"slot":  func(id string) table.Key { return table.Key{PK: "SLOT", SK: id} },
		"lock":  func(string) table.Key { return lock },
		"line":  func(id string) table.Key { return table.Key{PK: lock.PK, SK: "WAITS#" + id} },
		"space": func(id string) table.Key { return table.Key{PK: "SPACE", SK: id} },
	} {
		b := newBench(t)
		id := b.estimated("x", 10)
		b.tick()
		b.loseRow(k(id))
		row, err := queuetest.ForceFail(t.Context(), b.q, id, "go", "me")
		if err != nil || row.State != ingest.Failed || (b.metrics["MissingRows"] == 0) != (name == "space") {
			t.Fatalf("%s: force-failed: %+v, %v, counted %v", name, row, err, b.metrics)
		}
		b.resume(id)
		if name == "space" {
			b.loseRow(k(id))
		}
		m := b.last()
		b.handle(m, sized(20)) // of another size than was reserved
		if j := b.job(id); j.State != ingest.Processing || b.metrics["MissingRows"] == 0 {
			t.Errorf("%s: after the download %s: %q", name, j.State, j.Message)
		}
		if o, err := b.q.Overview(t.Context()); err != nil || o.SpaceFree != 980 || o.Running != 1 {
			t.Errorf("%s: %+v, %v", name, o, err)
		}
	}
}

// TestRowOfAnotherJob: a job whose slot is another's in the table can be failed, and the row of the other stays.
func TestRowOfAnotherJob(t *testing.T) {
	b := newBench(t)
	id := b.estimated("x", 10)
	b.tick()
	key := table.Key{PK: "SLOT", SK: id}
	err := b.q.Table.Rows.Update("pk", key.PK).Range("sk", key.SK).Set("owned_by", "another").Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	row, err := queuetest.ForceFail(t.Context(), b.q, id, "go", "me")
	if err != nil || row.State != ingest.Failed || b.metrics["MissingRows"] != 1 {
		t.Errorf("force-failed: %+v, %v, counted %v", row, err, b.metrics)
	}
	var left queue.Reservation
	if err := b.q.Table.Get(t.Context(), key, &left); err != nil || left.Owner != "another" {
		t.Errorf("of the other is left: %+v, %v", left, err)
	}
}

// TestLockOfAnotherJob: a lock that another job owns is no missing row.
func TestLockOfAnotherJob(t *testing.T) {
	b := newBench(t)
	b.q.Settings.MaxInFlight = 10
	first := b.estimated("x", 10)
	b.tick()
	second := ingest.JobID(b.submit(1, ""), 1)
	b.tick()
	b.handle(queue.Message{Job: second, Exec: 1, State: string(ingest.Estimating)}, func(ctx context.Context,
		claim *queue.Claim) (ingest.Result, error) {
		claim.Job.LocalIDs = []string{"x"}
		claim.Job.Locks = claim.Job.LockKeys()
		var ce *table.ConditionError
		if err := claim.Checkpoint(ctx); !fault.Is(err, fault.Stale) || !errors.As(err, &ce) ||
			!ce.Failed(queue.LockKey("local#c#x")) {
			t.Errorf("the lock of %s was taken: %v", first, err)
		}
		return ingest.Fail(false, "done with"), nil
	})
	if b.metrics["MissingRows"] != 0 || len(b.job(first).Locks) != 1 {
		t.Errorf("counted %v", b.metrics)
	}
}

// TestLockFoundLate: a job that finds an identifier in its package does not overtake the jobs
// in line for it.
func TestLockFoundLate(t *testing.T) {
	b := newBench(t)
	b.q.Settings.MaxInFlight = 10
	b.q.Settings.Space = 100
	blocker := b.estimated("", 95)
	b.tick()
	first := b.estimated("x", 50) // waits for space
	second := b.estimated("", 1)
	b.tick()
	m := queue.Message{Job: second, Exec: 2, State: string(ingest.Downloading)}
	b.handle(m, ok)
	m.State = string(ingest.Processing)
	identify := func(ctx context.Context, claim *queue.Claim) (ingest.Result, error) {
		claim.Job.LocalIDs = []string{"x"}
		before := *claim.Job
		claim.Job.Locks = claim.Job.LockKeys()
		err := claim.Checkpoint(ctx)
		var ce *table.ConditionError
		if errors.As(err, &ce) && ce.Failed(queue.LockKey("local#c#x")) {
			*claim.Job = before
			return ingest.Result{Outcome: ingest.StepPark, Lock: "local#c#x"}, nil
		}
		return ingest.Result{Outcome: ingest.StepNext}, err
	}
	b.handle(m, identify)
	if j := b.job(second); j.State != ingest.Processing || !j.Parked {
		t.Fatalf("the second is %s with the locks %v", j.State, j.Locks)
	}
	b.forceFail(blocker)
	b.tick()
	b.now = b.now.Add(25 * 3600e9)
	b.tick()
	b.tick()
	if j := b.job(first); j.State != ingest.Downloading || len(j.Locks) != 1 {
		t.Errorf("the first is %s with the locks %v", j.State, j.Locks)
	}
	b.forceFail(first)
	b.tick()
	if j := b.job(second); j.Parked || len(j.Locks) != 1 {
		t.Errorf("then the second: parked %v, locks %v", j.Parked, j.Locks)
	}
}

// TestActionsEnd: an action on a job that others always change ends with an error.
func TestActionsEnd(t *testing.T) {
	b := newBench(t)
	id := ingest.JobID(b.submit(1, ""), 1)
	b.tick()
	m := b.last()
	real, nested := b.q.NewID, false
	b.q.NewID = func() string { // another process changes the job before each commit
		if !nested {
			nested = true
			b.handle(m, func(context.Context, *queue.Claim) (ingest.Result, error) {
				return ingest.Result{Outcome: ingest.StepContinue}, nil
			})
			nested = false
		}
		return real()
	}
	if _, err := queuetest.ForceFail(t.Context(), b.q, id, "go", "me"); !fault.Is(err, fault.Unavailable) {
		t.Errorf("force-fail: %v", err)
	}
}

// TestMissingRowOfCheckpoint: a job whose place in line was removed by hand gets its ARK, and with it another lock:
// what its other rows say of it changes, and the missing one is made again.
func TestMissingRowOfCheckpoint(t *testing.T) {
	lock := queue.LockKey("local#c#x")
	b := newBench(t)
	id := b.estimated("x", 10)
	b.tick()
	place := table.Key{PK: lock.PK, SK: "WAITS#" + id}
	b.loseRow(place)
	b.handle(b.last(), func(ctx context.Context, claim *queue.Claim) (ingest.Result, error) {
		claim.Job.Primary = "ark:/99999/fk4x"
		claim.Job.Locks = claim.Job.LockKeys()
		if err := claim.Checkpoint(ctx); err != nil {
			t.Error(err)
		}
		return ingest.Result{Outcome: ingest.StepNext}, nil
	})
	var row queue.Reservation
	err := b.q.Table.Get(t.Context(), place, &row)
	if err != nil || row.Owner != id || len(row.Related) != 1 || b.metrics["MissingRows"] != 1 {
		t.Errorf("%+v, %v, counted %v", row, err, b.metrics)
	}
}
