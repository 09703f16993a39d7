package sim

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table/tabletest"
)

// hold is a hold or pause that stands.
type hold struct {
	since int   // change
	until int64 // milliseconds; 0: without end
}

// holdRow records a change of a row in the partition of holds. Its sort key is "queue",
// "storage", "collection#NAME" or "batch#ID".
func (c *checker) holdRow(sk string, it tabletest.Item, there bool) {
	if !there {
		delete(c.holds, sk)
		c.w.Met("lifted: " + kindOf(sk))
		return
	}
	h, stood := c.holds[sk]
	if !stood {
		h.since = c.changes
		c.w.Met("placed: " + kindOf(sk))
	}
	h.until = number(it, "hold_until")
	c.holds[sk] = h
}

// stands reports whether a hold stands, by the clock of every actor.
func (c *checker) stands(sk string) bool {
	h, there := c.holds[sk]
	return there && (h.until == 0 || c.ahead(h.until))
}

// heldBy names a hold of a job's collection or batch, or a pause, that keeps new work from
// the gates; "" if none stands.
func (c *checker) heldBy(j *ingest.Job, pauses bool) string {
	for _, sk := range []string{"queue", "collection#" + j.Collection, "batch#" + j.Batch} {
		if c.stands(sk) && (pauses || sk != "queue") {
			return sk
		}
	}
	return ""
}

// mayBeHeld reports whether the running tick may have found a hold that stops a job.
func (c *checker) mayBeHeld(j *ingest.Job) bool {
	_, coll := c.holds["collection#"+j.Collection]
	_, batch := c.holds["batch#"+j.Batch]
	_, storage := c.holds["storage"]
	place, _ := j.WorkKey()
	return place == ingest.WorkPending && (coll || batch) || storage && j.NeedsStorage()
}

// unheld checks what a gate grants against the holds that stand.
func (c *checker) unheld(prev, next *ingest.Job) {
	if c.stands("queue") {
		c.fail("job %s was admitted at %s while the queue is paused", next.ID, prev.State)
	}
	place, _ := prev.WorkKey()
	if by := c.heldBy(prev, true); place == ingest.WorkPending && by != "" {
		c.fail("job %s was admitted although the hold %s stands", next.ID, by)
	}
}

// stores checks a job that begins to run in Storing against the pause of the storage.
func (c *checker) stores(prev, next *ingest.Job) {
	begins := next.State == ingest.Storing && next.Running() && (prev.State != next.State || !prev.Running())
	if begins && c.stands("storage") {
		c.fail("job %s goes from %s to %s while the storage is paused", next.ID, prev.State, next.State)
	}
	if next.NeedsStorage() && next.Parked && !prev.Parked {
		c.w.Met("parked for the storage")
	}
}

func kindOf(sk string) string {
	kind, _, _ := strings.Cut(sk, "#")
	return kind
}

// targetOf is what a hold is on.
func targetOf(sk string) ingest.Target {
	kind, id, _ := strings.Cut(sk, "#")
	return ingest.Target{Kind: ingest.TargetKind(kind), ID: id}
}

// lift ends the holds and releases what they have stopped. Those with an end may be left to
// end by themselves.
func (w *world) lift(ctx context.Context, a *actor) {
	w.finishOperations(ctx, a)
	holds := w.check.standing()
	slices.Reverse(holds) // the batches after their collections
	for _, sk := range holds {
		until := time.Until(time.UnixMilli(w.check.holds[sk].until)) + 2*w.s.skew
		if w.check.holds[sk].until != 0 && (!w.check.stands(sk) || a.Rng.IntN(2) == 0) {
			_ = a.Sleep(max(until, 0))
			continue
		}
		name := ingest.ActRelease
		if !strings.Contains(sk, "#") {
			name = ingest.ActResume
		}
		w.must(ctx, a, name, targetOf(sk))
	}
	for _, id := range w.check.sortedBatches() {
		if b := w.check.batches[id]; b.State == ingest.BatchHeld && (b.Hold.Until == 0 || a.Rng.IntN(2) == 0) {
			w.must(ctx, a, ingest.ActRelease, ingest.Target{Kind: ingest.TargetBatch, ID: id})
		}
	}
	for _, id := range w.check.sorted() {
		if j := w.check.jobs[id]; j.State == ingest.Held && (j.Hold.Until == 0 || a.Rng.IntN(2) == 0) {
			w.must(ctx, a, ingest.ActRelease, ingest.Target{Kind: ingest.TargetJob, ID: id})
		}
	}
}

// must does an action that can have no reason to be refused: faults have stopped. The rows of a batch that was deleted
// can be removed before that of its hold, which the next sweep removes.
func (w *world) must(ctx context.Context, a *actor, name ingest.ActionName, t ingest.Target) {
	err := a.perform(ctx, ingest.Action{Name: name, Target: t, Reason: "it is over", Actor: a.Name,
		Role: ingest.Administrator, Confirm: true})
	gone := t.Kind == ingest.TargetBatch && fault.Is(err, fault.NotFound)
	if err != nil && !gone && w.s.refuses != refusesRows {
		w.check.fail("%s of %s was refused: %v", name, t, err)
	}
}

// stopped checks that a held job or batch says why, so that a person can release it.
func (c *checker) stopped(what string, held bool, by *ingest.Hold) {
	if held != (by != nil) {
		c.fail("%s is Held: %v; its hold is %+v", what, held, by)
	}
	if by != nil && (by.Reason == "" || by.Actor == "" || by.Since == 0 || by.Scope == "") {
		c.fail("%s is held without a reason, actor, time or scope: %+v", what, by)
	}
}

// standing lists the holds whose rows exist.
func (c *checker) standing() []string { return slices.Sorted(maps.Keys(c.holds)) }
