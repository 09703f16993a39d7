package queue_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/explain"
	"archivist/pkg/kernel/table/tabletest"
)

// stands is the line of a job, and the ids of the first before it.
func (b *bench) stands(id string) (line explain.Ahead, ids []string) {
	b.Helper()
	x, err := b.q.ExplainJob(b.Context(), id)
	if err != nil || x.Ahead == nil {
		b.Fatalf("%s: %+v, %v", id, x, err)
	}
	for _, f := range x.Ahead.First {
		ids = append(ids, f.ID)
	}
	return *x.Ahead, ids
}

// TestStandsInTheOrderOfTheGate: those before a job at its gate are named in the order in which
// they run, also while the queue is paused.
func TestStandsInTheOrderOfTheGate(t *testing.T) {
	b := newTwinBench(t)
	b.q.Settings.MaxInFlight = 1
	b.do(ingest.ActPause, theQueue)
	for _, priority := range []int{50, 7, 90, 20, 20, 3, 60, 8} {
		b.submitJobs(ingest.Job{Collection: "c", Priority: priority})
		b.now = b.now.Add(time.Second)
	}
	asked := ingest.JobID(b.submitJobs(ingest.Job{Collection: "c", Priority: 95}), 1)
	line, ids := b.stands(asked)
	if line.N != 8 || line.Line != explain.AtGate || line.Of != ingest.WorkPending || line.Stop != "queue paused" ||
		len(ids) != 5 || line.First[0].State != string(ingest.Pending) || line.First[0].Collection != "c" {
		t.Errorf("%+v", line)
	}

	b.do(ingest.ActResume, theQueue)
	if line, _ := b.stands(asked); line.Stop != "scheduler silent" {
		t.Errorf("it has never run: %+v", line)
	}
	var ran []string
	for range 8 {
		b.tick()
		if line, _ := b.stands(asked); line.Stop != "no free slot" {
			t.Errorf("the only slot is taken: %+v", line)
		}
		id := b.last().Job
		ran = append(ran, id)
		b.forceFail(id)
	}
	if !slices.Equal(ran[:5], ids) {
		t.Errorf("first are %v, but what runs is %v", ids, ran)
	}
}

// TestStandsOnlyWhoIsThere: a job that has left the gate is not before another, though the index
// still has it there.
func TestStandsOnlyWhoIsThere(t *testing.T) {
	rows := tabletest.New()
	b := newBenchOn(t, tabletest.Table(rows))
	lag := 0
	rows.Lag = func() int { return lag }
	batch := b.submitJobs(make([]ingest.Job, 5)...)
	b.inWork() // the index has all
	lag = 1000 // from here on it stands still
	b.do(ingest.ActHold, jobTarget(ingest.JobID(batch, 3)))
	b.tick()
	line, ids := b.stands(ingest.JobID(batch, 5))
	if want := []string{ingest.JobID(batch, 4)}; line.N != 1 || !slices.Equal(ids, want) {
		t.Errorf("%d are before it, first %v; expected %v", line.N, ids, want)
	}
}

// TestStandsAtALock: first is who has the lock, then come those in line, as they get it one after
// another; one whose job is not made yet is its batch.
func TestStandsAtALock(t *testing.T) {
	b := newTwinBench(t)
	b.q.Settings.MaxInFlight = 10
	holder := b.estimated("same", 10)
	b.tick()
	var want []string
	for range 2 {
		want = append(want, b.estimated("same", 10))
	}
	unread := b.accept("", "same").Batch.ID
	b.take()
	asked := b.estimated("same", 10)
	for range 3 {
		b.estimated("same", 10)
	}
	b.tick()
	line, ids := b.stands(asked)
	all := append(append([]string{holder}, want...), unread)
	if line.N != 4 || line.Line != explain.ForLock || line.Of != "same" || !slices.Equal(ids, all) ||
		!line.First[0].Has || line.First[1].Has || line.First[0].State != string(ingest.Downloading) ||
		line.First[3].Kind != explain.Batch {
		t.Errorf("%+v; expected %v", line, all)
	}
	for i, id := range want {
		b.forceFail(all[i])
		b.tick()
		if !b.runs(id) {
			t.Fatalf("%s is %s", id, b.job(id).State)
		}
		if _, ids := b.stands(asked); !slices.Equal(ids, all[i+1:]) {
			t.Errorf("before it are %v; expected %v", ids, all[i+1:])
		}
	}
}

// TestStandsBehindManifests: a job that waits for manifests is behind the batches that have them.
func TestStandsBehindManifests(t *testing.T) {
	b := newTwinBench(t)
	b.q.Settings.MaxInFlight = 10
	list := b.acceptList("")
	after := b.unpackOne(b.accept("", "x"))
	b.atGate2(after)
	line, ids := b.stands(after)
	if line.N != 1 || line.Of != "earlier manifests" || !slices.Equal(ids, []string{list.Batch.ID}) ||
		line.First[0].Kind != explain.Batch {
		t.Errorf("%+v", line)
	}
	now := b.inWork()
	if len(now.Lines) != 1 || now.Lines[0].First != ingest.JobID(list.Batch.ID, 0) ||
		!slices.Equal(now.Lines[0].Waiting, []string{after}) ||
		!strings.Contains(now.Heads[0].Why, "Its manifest is not read yet") {
		t.Errorf("%+v", now.Lines)
	}
}

func (b *bench) inWork() queue.InWork {
	b.Helper()
	o, err := b.q.Overview(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	now, err := b.q.InWork(b.Context(), o)
	if err != nil {
		b.Fatal(err)
	}
	return now
}

// TestFirstOfGates: the first at each gate are named with their reasons, the lines before locks
// with who has them, and the limits with what is in use; that takes ten calls, however long the
// lines are.
func TestFirstOfGates(t *testing.T) {
	var calls atomic.Int64
	b := newBenchOn(t, tabletest.Table(&tabletest.Client{DynamoDBAPI: tabletest.New(),
		Do: func(_ string, call func() error) error { calls.Add(1); return call() }}))
	b.q.Settings.MaxInFlight, b.q.Settings.Share, b.q.Settings.Space = 30, 25, 1000
	a, c := b.estimated("a", 10), b.estimated("c", 10)
	b.tick()
	var behindA, behindC []string
	for range 12 {
		behindA = append(behindA, b.estimated("a", 10))
	}
	for range 4 {
		behindC = append(behindC, b.estimated("c", 10))
	}
	b.parkedWithSpace("p", 10)
	b.estimated("l", 990)
	for range 15 {
		b.estimated("a", 10)
	}
	b.q.Settings.MaxInFlight = 3
	b.submit(9, "")
	b.tick()

	calls.Store(0)
	now := b.inWork()
	if n := calls.Load(); n > 10 {
		t.Errorf("%d calls", n)
	}
	at := map[string][]string{}
	for _, h := range now.Heads {
		at[h.Gate] = append(at[h.Gate], h.Job.Job.ID)
		if h.N != len(at[h.Gate]) || h.Why == "" {
			t.Errorf("%s %d: %q", h.Gate, h.N, h.Why)
		}
	}
	if len(at[ingest.WorkPending]) != 5 || !slices.Equal(at[ingest.WorkProvisioning], behindA[:5]) ||
		len(at[ingest.WorkParked]) != 1 {
		t.Errorf("the first are %v", at)
	}
	for _, h := range now.Heads {
		says := "job " + a + " works on the same"
		if h.Gate == ingest.WorkProvisioning && !strings.Contains(h.Why, says) {
			t.Errorf("%s: %q", h.Job.Job.ID, h.Why)
		}
	}
	if len(now.Lines) != 3 || now.Lines[0].Of != "a" || now.Lines[1].Of != "c" || now.Lines[2].Of != "p" ||
		now.Lines[0].First != a || !now.Lines[0].Has || now.Lines[0].Job == nil ||
		now.Lines[0].Job.State != ingest.Downloading || now.Lines[1].First != c ||
		!slices.Equal(now.Lines[1].Waiting, behindC) || now.Lines[2].Has ||
		!slices.Equal(now.Lines[0].Waiting[:12], behindA) {
		t.Errorf("the lines are %+v", now.Lines)
	}
	if !now.More || now.Looked != 26 { // 25 at one gate, and the parked one
		t.Errorf("looked at %d, and there are more: %v", now.Looked, now.More)
	}
	l := now.Limits
	if fmt.Sprint(l.Collections) != "[{c 3}]" || fmt.Sprint(l.Stages) != "[{Estimating 1} {Downloading 2}]" ||
		l.Share != 25 || l.Capacity != 1000 {
		t.Errorf("the limits are %+v", l)
	}
}

// TestFirstIsExact: of the first at a gate it is known why it waits, also if a job that is not
// there is before it in line.
func TestFirstIsExact(t *testing.T) {
	b := newTwinBench(t)
	b.q.Settings.MaxInFlight = 10
	before := b.unpackOne(b.accept("", "x"))
	b.tick()
	b.handle(b.last(), fails(true))
	b.requeue(before)
	b.edit(before, func(row *queue.Job) { row.Parked, row.Due = true, b.now.Add(time.Hour).UnixMilli() }) // deferred
	after := b.estimated("x", 10)
	now := b.inWork()
	if len(now.Heads) != 1 || now.Heads[0].Job.Job.ID != after || !strings.Contains(now.Heads[0].Why, before) {
		t.Errorf("%+v", now.Heads)
	}
}
