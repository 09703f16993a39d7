package queue_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"archivist/pkg/events/event"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/collection"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/fault"
)

var (
	collectionC = ingest.Target{Kind: ingest.TargetCollection, ID: "c"}
	theQueue    = ingest.Target{Kind: ingest.TargetQueue}
	theStorage  = ingest.Target{Kind: ingest.TargetStorage}
)

func jobTarget(id string) ingest.Target   { return ingest.Target{Kind: ingest.TargetJob, ID: id} }
func batchTarget(id string) ingest.Target { return ingest.Target{Kind: ingest.TargetBatch, ID: id} }

// try does an action as an administrator; until is when a hold ends.
func (b *bench) try(name ingest.ActionName, t ingest.Target, until ...time.Time) (ingest.ActionResult, error) {
	b.Helper()
	a := ingest.Action{Name: name, Target: t, Reason: "the shelf is counted", Actor: "ann",
		Role: ingest.Administrator}
	for _, end := range until {
		a.Until = end.UnixMilli()
	}
	return queue.Admin{Queue: b.q}.Act(b.Context(), a)
}

// do is try for an action that must change something.
func (b *bench) do(name ingest.ActionName, t ingest.Target, until ...time.Time) ingest.ActionResult {
	b.Helper()
	res, err := b.try(name, t, until...)
	if err != nil || !res.Changed {
		b.Fatalf("%s %s: %+v, %v", name, t, res, err)
	}
	return res
}

// refused is try for an action that must be refused with these words.
func (b *bench) refused(kind fault.Kind, name ingest.ActionName, t ingest.Target, says ...string) {
	b.Helper()
	_, err := b.try(name, t)
	if !fault.Is(err, kind) {
		b.Fatalf("%s %s: %v; expected a %s", name, t, err, kind)
	}
	for _, want := range says {
		if !strings.Contains(err.Error(), want) {
			b.Errorf("%s %s: %q does not say %q", name, t, err, want)
		}
	}
}

// states are the states of a batch's jobs.
func (b *bench) states(batch string) string {
	b.Helper()
	rows, err := b.q.Jobs(b.Context(), batch, 0)
	if err != nil {
		b.Fatal(err)
	}
	var all []string
	for _, row := range rows {
		all = append(all, string(row.State))
	}
	return strings.Join(all, " ")
}

// runs reports whether an execution drives a job.
func (b *bench) runs(id string) bool { j := b.job(id); return j.Running() }

func (b *bench) counts(batch string) ingest.Counts {
	b.Helper()
	c, err := b.q.Counts(b.Context(), batch)
	if err != nil {
		b.Fatal(err)
	}
	return c
}

// TestCollectionHold: what has started continues, what has not is held when its turn comes,
// without a slot, and is released only after the hold is lifted.
func TestCollectionHold(t *testing.T) {
	b := newBench(t)
	batch := b.submit(4, "x")
	b.tick() // two slots: two jobs start
	b.do(ingest.ActHold, collectionC)
	b.tick()
	if got := b.states(batch); got != "Estimating Estimating Held Held" {
		t.Fatalf("under the hold: %s", got)
	}
	if c := b.counts(batch); c.Held != 2 || c.Processing != 2 {
		t.Errorf("counts %+v", c)
	}
	held := ingest.JobID(batch, 3)
	if h := b.job(held).Hold; h == nil || h.Scope != ingest.TargetCollection || h.Actor != "ann" ||
		h.Reason != "the shelf is counted" || h.Since != b.now.UnixMilli() {
		t.Errorf("the job's hold is %+v", h)
	}
	b.refused(fault.Held, ingest.ActRelease, jobTarget(held), "collection c", "ann", "the shelf is counted",
		ingest.Timestamp(b.now.UnixMilli()))
	for _, m := range b.take() {
		b.handle(m, ok)
	}
	b.tick() // gate 2 does not ask for the hold
	if got := b.states(batch); got != "Downloading Downloading Held Held" {
		t.Fatalf("jobs that had started: %s", got)
	}

	res := b.do(ingest.ActRelease, collectionC)
	if res.Next == nil || res.Next.Name != ingest.ActRelease || res.Next.Filter.Collection != "c" {
		t.Errorf("lifting the hold offers %+v", res.Next)
	}
	b.tick()
	if got := b.states(batch); got != "Downloading Downloading Held Held" {
		t.Fatalf("lifting a hold released: %s", got)
	}
	b.do(ingest.ActRelease, jobTarget(held))
	if j := b.job(held); j.State != ingest.Pending || j.Hold != nil {
		t.Errorf("released: %s %+v", j.State, j.Hold)
	}
	if c := b.counts(batch); c.Held != 1 || c.Processing != 3 {
		t.Errorf("counts %+v", c)
	}
	for _, m := range b.take() {
		b.through(m)
	}
	b.tick()
	if j := b.job(held); j.State != ingest.Estimating {
		t.Errorf("after its release: %s", j.State)
	}
	events, _, err := event.Page(t.Context(), b.q.Table, event.Subject{Type: event.Collection, ID: "c"}, "")
	if err != nil || len(events) != 2 || events[0].Type != "collection.held" ||
		events[1].Type != "collection.released" || events[1].Actor != "ann" {
		t.Errorf("events of the collection: %+v, %v", events, err)
	}
}

// TestHeldJobThatHasStarted: a hold does not stop a job that waits for space: it keeps its place before others, and
// reserves freed space once its patience has ended.
func TestHeldJobThatHasStarted(t *testing.T) {
	b := newBench(t)
	b.q.Settings.Patience, b.q.Settings.MaxInFlight = time.Hour, 10
	running := b.estimated("", 500)
	b.tick()
	large := b.estimated("", 800)
	small := ingest.JobID(b.submitJobs(ingest.Job{Collection: "other", Priority: 9, SizeKnown: true}), 1)
	b.do(ingest.ActHold, collectionC)
	b.tick()
	m := queue.Message{Job: small, Exec: b.job(small).Exec, State: string(ingest.Estimating), Token: "t"}
	b.handle(m, sized(10))
	b.now = b.now.Add(2 * time.Hour)
	b.tick()
	if j := b.job(small); j.State != ingest.Provisioning {
		t.Errorf("behind a job of a held collection that reserves space, another is %s", j.State)
	}
	b.forceFail(running)
	b.now = b.now.Add(25 * time.Hour) // its work files go, and its space
	b.tick()
	b.tick()
	if j := b.job(large); j.State != ingest.Downloading {
		t.Errorf("with space, the job of the held collection is %s", j.State)
	}
}

// TestQueuePause: under a pause no gate admits, no requeue starts, what runs finishes, and
// submissions are accepted.
func TestQueuePause(t *testing.T) {
	b := newBench(t)
	running := b.estimated("x", 10) // Provisioning
	failed := b.one()
	b.tick()
	b.forceFail(failed)
	b.edit(failed, func(row *queue.Job) { row.LastSuccessful = ingest.Provisioning })
	b.do(ingest.ActPause, theQueue)
	batch := b.submit(2, "")
	b.requeue(failed)
	if j := b.job(failed); j.State != ingest.Downloading || !j.Parked || j.HasSlot || j.Waits != ingest.WaitsForTurn {
		t.Errorf("requeued under the pause: %s, parked %v, slot %v", j.State, j.Parked, j.HasSlot)
	}
	for range 2 {
		b.through(queue.Message{Job: running, Token: "t"})
		b.tick()
	}
	if j := b.job(running); j.State != ingest.Completed {
		t.Errorf("what ran is %s", j.State)
	}
	if got := b.states(batch); got != "Pending Pending" || b.job(failed).HasSlot {
		t.Errorf("admitted under the pause: %s", got)
	}
	if res, err := b.try(ingest.ActPause, theQueue); err != nil || res.Changed {
		t.Errorf("paused again: %+v, %v", res, err)
	}
	b.do(ingest.ActResume, theQueue)
	b.tick()
	if got := b.states(batch); got != "Estimating Pending" || !b.runs(failed) {
		t.Errorf("after the pause: %s; the requeued job %+v", got, b.job(failed))
	}
	events, _, err := event.Page(t.Context(), b.q.Table, event.Subject{Type: event.Queue, ID: "ingest"}, "")
	if err != nil || len(events) != 2 || events[0].Type != "queue.paused" || events[1].Type != "queue.resumed" {
		t.Errorf("events of the queue: %+v, %v", events, err)
	}
}

// processing submits a job and brings it to Processing; the message is for its worker.
func (b *bench) processing(local string) (id string, m queue.Message) {
	b.Helper()
	id = b.estimated(local, 10)
	b.tick()
	return id, b.toState(id, ingest.Processing)
}

// toState runs a job until it is in a state.
func (b *bench) toState(id string, s ingest.State) queue.Message {
	b.Helper()
	for {
		j := b.job(id)
		m := queue.Message{Job: id, Exec: j.Exec, State: string(j.State), Token: "t"}
		if j.State == s {
			return m
		}
		if !j.Running() {
			b.Fatalf("job %s is %s", id, j.State)
		}
		b.handle(m, ok)
	}
}

// TestStoragePause: no job enters Storing, not at the end of Processing, not by a requeue, not
// by a gate; a running Storing step finishes; everything continues after the pause.
func TestStoragePause(t *testing.T) {
	b := newBench(t)
	b.q.Settings.MaxInFlight = 4
	storing, _ := b.processing("a")
	late := b.toState(storing, ingest.Storing)
	processing, m := b.processing("b")
	failed, _ := b.processing("c")
	b.toState(failed, ingest.Storing)
	b.forceFail(failed)

	b.do(ingest.ActPause, theStorage)
	b.handle(m, func(_ context.Context, claim *queue.Claim) (ingest.Result, error) {
		claim.Job.Warned = 7 // what the step found is found again by the next try
		return ingest.Result{Outcome: ingest.StepNext}, nil
	})
	j := b.job(processing)
	if j.State != ingest.Processing || !j.Parked || j.Waits != ingest.WaitsForStorage || j.HasSlot || !j.HasSpace ||
		len(j.Locks) > 0 || j.Warned != 0 {
		t.Errorf("at the end of Processing: %+v", j)
	}
	if got := b.answered[len(b.answered)-1]; got != "t Parked " {
		t.Errorf("its execution got %q", got)
	}
	b.requeue(failed)
	if j := b.job(failed); j.State != ingest.Storing || !j.Parked {
		t.Errorf("requeued: %+v", j)
	}
	for range 2 {
		b.tick()
		if b.runs(processing) || b.runs(failed) {
			t.Error("a gate admitted a job into Storing")
		}
	}
	b.through(late)
	if j := b.job(storing); j.State != ingest.Completed {
		t.Errorf("the running Storing step ended %s", j.State)
	}
	other := b.estimated("d", 10) // gates 1 and 2 admit
	b.tick()
	if j := b.job(other); j.State != ingest.Downloading {
		t.Errorf("another job is %s", j.State)
	}

	b.do(ingest.ActResume, theStorage)
	b.tick()
	for _, id := range []string{processing, failed} {
		b.through(queue.Message{Job: id, Token: "t"})
		if j := b.job(id); j.State != ingest.Completed {
			t.Errorf("after the pause: %s", j.State)
		}
	}
}

// TestBatchHold: a batch without jobs becomes Held; of another one the jobs that have not
// started do. A release is refused while the collection is on hold.
func TestBatchHold(t *testing.T) {
	b := newBench(t)
	row, err := b.q.Submit(t.Context(), ingest.Batch{Collection: "c", Mode: "add"}, "", nil, "me")
	if err != nil {
		t.Fatal(err)
	}
	first, old := batchTarget(row.Batch.ID), b.last()
	b.do(ingest.ActHold, first)
	if got := b.batch(first.ID); got.State != ingest.BatchHeld || got.Hold.Scope != ingest.TargetBatch {
		t.Errorf("held: %s %+v", got.State, got.Hold)
	}
	b.handle(old, unpackAll([]ingest.Job{{Collection: "c"}}))
	if got := b.batch(first.ID); got.Unpacked != 0 {
		t.Error("the held batch was unpacked")
	}
	b.do(ingest.ActHold, collectionC)
	b.refused(fault.Held, ingest.ActRelease, first, "collection c", "ann")
	b.do(ingest.ActRelease, collectionC)
	if res := b.do(ingest.ActRelease, first); res.From != "Held" || res.To != "Pending" {
		t.Errorf("released: %+v", res)
	}
	b.handle(b.last(), unpackAll([]ingest.Job{{Collection: "c"}, {Collection: "c"}, {Collection: "c"}}))
	b.tick() // two start
	b.do(ingest.ActHold, first)
	b.tick()
	if got := b.states(first.ID); got != "Estimating Estimating Held" {
		t.Errorf("jobs: %s", got)
	}
	third := jobTarget(ingest.JobID(first.ID, 3))
	b.refused(fault.Held, ingest.ActRelease, third, "batch "+first.ID)
	if res := b.do(ingest.ActRelease, first); res.Next == nil || res.Next.Filter.Batch != first.ID {
		t.Errorf("lifting the hold offers %+v", res.Next)
	}
	b.do(ingest.ActRelease, third)
	for _, m := range b.take() {
		b.handle(m, fails(false))
	}
	b.tick()
	b.handle(b.take()[0], fails(false))
	b.refused(fault.Conflict, ingest.ActHold, first, "Reporting", "Pending, Held or Processing")
	b.refused(fault.Conflict, ingest.ActRelease, first, "Reporting")
}

// TestSubmitToHeldCollection: a batch of a held collection is accepted, and becomes Held
// instead of being unpacked.
func TestSubmitToHeldCollection(t *testing.T) {
	b := newBench(t)
	b.do(ingest.ActHold, collectionC)
	row, err := b.q.Submit(t.Context(), ingest.Batch{Collection: "c", Mode: "add"}, "", nil, "me")
	if err != nil {
		t.Fatal(err)
	}
	target := batchTarget(row.Batch.ID)
	b.handle(b.last(), func(context.Context, *queue.Claim) (ingest.Result, error) {
		t.Error("the batch was unpacked")
		return ingest.Result{}, nil
	})
	if got := b.batch(target.ID); got.State != ingest.BatchHeld || got.Hold.Scope != ingest.TargetCollection {
		t.Errorf("the batch is %s, %+v", got.State, got.Hold)
	}
	if got := b.answered[len(b.answered)-1]; got != "token Success " {
		t.Errorf("its execution got %q", got)
	}
	b.refused(fault.Held, ingest.ActRelease, target, "collection c")
	if res := b.do(ingest.ActRelease, collectionC); res.Next == nil {
		t.Error("lifting the hold does not offer to release the batch")
	}
	b.do(ingest.ActRelease, target)
	b.handle(b.last(), unpackAll([]ingest.Job{{Collection: "c"}}))
	b.tick()
	if got := b.states(target.ID); got != "Estimating" {
		t.Errorf("after its release: %s", got)
	}
}

// TestReleaseKeepsOwnHolds: what a lifted hold offers to release is what it has stopped. A job
// that a person has held by its id stays on hold.
func TestReleaseKeepsOwnHolds(t *testing.T) {
	b := newBench(t)
	b.do(ingest.ActPause, theQueue)
	batch := b.submit(2, "x")
	own, other := ingest.JobID(batch, 1), ingest.JobID(batch, 2)
	b.do(ingest.ActHold, jobTarget(own))
	b.do(ingest.ActHold, collectionC)
	b.do(ingest.ActResume, theQueue)
	b.tick()
	if got := b.states(batch); got != "Held Held" {
		t.Fatalf("under both holds: %s", got)
	}

	offered := b.do(ingest.ActRelease, collectionC).Next
	if offered == nil {
		t.Fatal("nothing is offered to be released")
	}
	mine, theirs := b.job(own), b.job(other)
	if !offered.Filter.Matches(&theirs) || offered.Filter.Matches(&mine) {
		t.Errorf("offered is %+v; expected job %s, and not %s", offered, other, own)
	}
	held := &ingest.Batch{Collection: "c", Hold: &ingest.Hold{Scope: ingest.TargetBatch}}
	if offered.Filter.MatchesBatch(held) {
		t.Errorf("offered is %+v, with a batch that has a hold of its own", offered)
	}
}

// TestHoldOfUnknownCollection: a hold of a collection that nobody has used is made, with a warning that its name may be
// wrong.
func TestHoldOfUnknownCollection(t *testing.T) {
	b := newBench(t)
	known := func(name string) ingest.Target { return ingest.Target{Kind: ingest.TargetCollection, ID: name} }
	b.submit(1, "") // to c
	profile := collection.Store{Table: b.q.Table, NewID: b.q.NewID}
	err := profile.Put(t.Context(), "atlas", collection.Profile{}, collection.By{Actor: "ann"}, b.now.UnixMilli())
	if err != nil {
		t.Fatal(err)
	}
	for name, warns := range map[string]bool{"c": false, "atlas": false, "dialy": true} {
		out := b.do(ingest.ActHold, known(name))
		if got := len(out.Warnings) == 1 && strings.Contains(out.Warnings[0], "has never been used"); got != warns {
			t.Errorf("%s: %+v", name, out)
		}
	}
	if out := b.do(ingest.ActRelease, known("dialy")); len(out.Warnings) > 0 {
		t.Errorf("its release: %+v", out)
	}
}
