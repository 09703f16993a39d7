package queue_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/queue/queuetest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// failMany submits n jobs that fail while downloading, so that each keeps work files, and
// moves the clock past their retention.
func (b *bench) failMany(n int) {
	b.Helper()
	b.q.Settings.MaxInFlight, b.q.Settings.Space = 10*n, 1<<40
	b.submit(n, "")
	b.tick()
	for _, step := range []queue.Step{sized(1), fails(true)} {
		for _, m := range b.take() {
			b.handle(m, step)
		}
		b.tick()
	}
	b.now = b.now.Add(25 * time.Hour)
}

// repairedAfter is the number of minutes until each of the jobs has a new execution.
func (b *bench) repairedAfter(ids []string, most int) int {
	b.Helper()
	for minute := 1; minute <= most; minute++ {
		b.now = b.now.Truncate(time.Minute).Add(time.Minute)
		b.tick()
		lost := 0
		for _, id := range ids {
			if b.job(id).Exec == 1 {
				lost++
			}
		}
		if lost == 0 {
			return minute
		}
	}
	return most + 1
}

// grace is the number of minutes from the start of a lost execution to its repair.
func (b *bench) grace() int {
	return int(b.q.Rules.Timing.Times(ingest.Stages[1]).Grace.Minutes()) + 2
}

// TestCleanUpsKeepNoRepairWaiting: neither many clean-ups nor those that always fail delay
// the repair of a running job.
func TestCleanUpsKeepNoRepairWaiting(t *testing.T) {
	for name, clean := range map[string]func(b *bench) (bool, error){
		"that fail":      func(*bench) (bool, error) { return false, errors.New("AccessDenied") },
		"that never end": func(b *bench) (bool, error) { b.now = b.now.Add(time.Second); return false, nil },
		"that take time": func(b *bench) (bool, error) { b.now = b.now.Add(150 * time.Millisecond); return true, nil },
	} {
		b := newTwinBench(t)
		b.q.Settings.SweepPage = 5
		b.q.Clean = func(context.Context, string, time.Time) (bool, error) { return clean(b) }
		b.failMany(100)
		if took := b.repairedAfter(b.lose(8), 60); took > b.grace() {
			t.Errorf("with clean-ups %s: repaired after %d minutes; the grace is %d", name, took, b.grace())
		}
	}
}

// TestFailingRepairsLetOthersPass: items whose repair always fails do not prevent the repair
// of others.
func TestFailingRepairsLetOthersPass(t *testing.T) {
	b := newTwinBench(t)
	b.q.Settings.MaxInFlight, b.q.Settings.SweepPage = 1000, 5
	silent := map[string]bool{}
	b.q.Executions = deafExecutions{b, silent}
	for _, id := range b.lose(60) {
		silent[queue.ExecutionName(id, 1)] = true
	}
	b.now = b.now.Add(10 * time.Minute)
	if took := b.repairedAfter(b.lose(8), 60); took > b.grace()+3 { // 60 in 4 shards, 5 each time
		t.Errorf("repaired after %d minutes", took)
	}
	b.q.Executions = b
	if b.repairedAfter(nil, 1) != 1 {
		t.Error("the next minute was not swept")
	}
	b.q.Settings.SweepPage = 100
	b.now = b.now.Add(2 * b.q.Rules.Timing.MaxBackoff)
	b.tick()
	for name := range silent {
		if !b.stopped[name] {
			t.Errorf("%s was not repaired when it could be", name)
			break
		}
	}
}

// deafExecutions returns an error for some of the executions.
type deafExecutions struct {
	*bench
	silent map[string]bool
}

func (d deafExecutions) StoppedByHand(ctx context.Context, machine, name string) (string, bool, error) {
	if d.silent[name] {
		return "", false, errors.New("no answer")
	}
	return d.bench.StoppedByHand(ctx, machine, name)
}

// TestAnyTickSweeps: if the tick of each minute is dropped because the tick of a wake-up is
// running, the wake-ups sweep instead, once a minute.
func TestAnyTickSweeps(t *testing.T) {
	b := newTwinBench(t)
	ids := b.lose(2)
	const minutes = 10
	for range minutes * 60 {
		b.now = b.now.Add(time.Second)
		if err := b.c.Tick(t.Context(), false); err != nil {
			t.Fatal(err)
		}
	}
	if b.job(ids[0]).Exec == 1 || b.job(ids[1]).Exec == 1 {
		t.Error("the lost executions were not repaired")
	}
	var row table.Head
	err := b.q.Table.Get(t.Context(), table.Key{PK: "LEASE#clock", SK: "SWEEP"}, &row)
	if err != nil || row.Rev < minutes || row.Rev > minutes+1 {
		t.Errorf("%d sweeps in %d minutes, %v", row.Rev, minutes, err)
	}
}

// TestRequeueWaitsForTheCleanUp: a job whose work files are partly removed is not requeued
// before the rest is removed.
func TestRequeueWaitsForTheCleanUp(t *testing.T) {
	b := newBench(t)
	b.failMany(1)
	ids, err := b.q.FindJobs(t.Context(), queue.Find{Collections: []string{"c"}})
	if err != nil || len(ids.Items) != 1 {
		t.Fatal(ids, err)
	}
	id := ids.Items[0].Job.ID
	clean := b.q.Clean
	b.q.Clean = func(ctx context.Context, job string, until time.Time) (bool, error) {
		if j := b.job(job); j.Due <= b.now.UnixMilli() { // if this process ended here, others would wait behind the job
			t.Error("the due time was not postponed before the clean-up")
		}
		return clean(ctx, job, until)
	}
	b.tick() // the first clean-up does not get to the end
	if _, err := queuetest.Requeue(t.Context(), b.q, id, "again", "me"); !fault.Is(err, fault.Held) {
		t.Errorf("requeued half-way: %v", err)
	}
	b.tick()
	row, err := queuetest.Requeue(t.Context(), b.q, id, "again", "me")
	if err != nil || row.State != ingest.Pending || row.HasSpace {
		t.Errorf("requeued after it: %+v, %v", row, err)
	}
}
