package queue_test

import (
	"strings"
	"testing"
	"time"

	"archivist/pkg/event"
	"archivist/pkg/fault"
	"archivist/pkg/ingest"
	"archivist/pkg/queue"
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
