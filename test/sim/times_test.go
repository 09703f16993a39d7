package sim

import (
	"cmp"
	"slices"
	"time"

	"archivist/pkg/events/event"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/table/tabletest"
)

// ahead reports whether a time, in milliseconds, is still to come by every
// actor's clock.
func (c *checker) ahead(ms int64) bool {
	return time.UnixMilli(ms).After(time.Now().Add(2 * c.w.s.skew))
}

// timely checks a change of a job against the times of its row: no worker takes a job that
// another one holds, and no repair or clean-up comes before its time.
func (c *checker) timely(prev, next queue.Job, e event.Row) {
	id := next.Job.ID
	if prev.Holder != "" && next.Holder != "" && prev.Holder != next.Holder && c.ahead(prev.Until) {
		c.fail("job %s was taken while another worker holds it for %s", id, time.Until(time.UnixMilli(prev.Until)))
	}
	c.defers(prev, next)
	switch e.Type {
	case "job.repaired":
		stage, _ := ingest.StageOf(next.State)
		grace := timing.Times(stage).Grace
		if c.ahead(prev.Due) || prev.Holder != "" && c.ahead(prev.Until) {
			c.fail("job %s was repaired before it was due", id)
		}
		if next.Due-prev.Due < grace.Milliseconds() || next.Repairs != prev.Repairs+1 {
			c.fail("job %s is due again too soon after its repair %d", id, next.Repairs)
		}
		c.repaired = append(c.repaired, queue.ExecutionName(id, prev.Exec))
	case "job.continued":
		if next.Tries != 0 || next.Repairs != 0 {
			c.fail("job %s made progress, but has %d tries and %d repairs", id, next.Tries, next.Repairs)
		}
	case "job.cleaning":
		c.cleans[id] = true
	case "job.cleaned":
		asked := next.State == ingest.Deleted || c.cleans[id]
		kept := time.Since(time.UnixMilli(prev.Entered)) + 2*c.w.s.skew
		if !asked && kept < min(c.w.s.keepFailed, day) {
			c.fail("the work files of job %s were kept for only %s", id, kept)
		}
		c.w.Met("cleaned")
	}
	if failure := e.Outcome == event.Failure; e.Type == "job.state" && failure != (next.State == ingest.Failed) {
		c.fail("job %s went to %s with the outcome %s", id, next.State, e.Outcome)
	}
	switch next.State {
	case ingest.Notify, ingest.Completed, ingest.Failed, ingest.Pending:
		if len(next.Locks) > 0 {
			c.fail("job %s in %s owns %v", id, next.State, next.Locks)
		}
	}
}

// defers checks a job whose source asks to wait: until that time it has no execution, no
// worker and no slot, and only a person can end the wait.
func (c *checker) defers(prev, next queue.Job) {
	id := next.Job.ID
	switch {
	case next.Deferred():
		if next.HasSlot || next.Holder != "" || prev.Deferred() && next.Exec != prev.Exec {
			c.fail("job %s is deferred, but has a slot (%v), a worker (%q) or a new execution", id, next.HasSlot,
				next.Holder)
		}
		asked := func(until time.Time) bool { // the row has the time of the end of the step
			late := time.UnixMilli(next.Due).Sub(until)
			return late > -2*c.w.s.skew-time.Millisecond && late <= 2*c.w.s.skew+timing.Long
		}
		if !prev.Deferred() && !slices.ContainsFunc(c.w.asked[id], asked) {
			c.fail("job %s is deferred until %d; its source asked for %v", id, next.Due, c.w.asked[id])
		}
	case prev.Deferred() && next.State == prev.State:
		if c.ahead(prev.Due) {
			c.fail("job %s continues before the time that its source asked for", id)
		}
		c.w.Met("deferred and continued")
	}
}

// day is how long a failed job keeps its work files at least, if it is to keep
// them longer.
const day = 24 * time.Hour

// retires checks that a batch is retired only after its retention, or by a person.
func (c *checker) retires(prev, next queue.Batch) {
	if next.Removal != nil {
		c.w.Met("removed by a person")
		return
	}
	if time.Since(time.UnixMilli(prev.Entered))+2*c.w.s.skew < retention && prev.State == ingest.BatchCompleted {
		c.fail("batch %s was retired after %s", prev.Batch.ID, time.Since(time.UnixMilli(prev.Entered)))
	}
}

// passes checks that a lease passes to another holder only after its end.
func (c *checker) passes(ch tabletest.Change) {
	if holder := text(ch.Before, "holder"); holder != "" && text(ch.After, "holder") != "" &&
		c.ahead(number(ch.Before, "until_ms")) {
		c.fail("the lease of %s passed to another holder before its end", holder)
	}
}

// ticked is called after a tick without a fault: the executions that it replaced must be
// stopped.
func (c *checker) ticked() {
	for _, name := range c.repaired {
		if !c.w.ended[name] {
			c.fail("execution %s was replaced, but not stopped", name)
		}
	}
}

// before reports whether j is before k at a gate: by priority, then by entry time; with
// aging by the time at which each would reach priority 0.
func (c *checker) before(j, k ingest.Job) bool {
	if c.w.s.aging > 0 {
		worth := func(j ingest.Job) int64 { return j.Entered + int64(j.Priority)*c.w.s.aging.Milliseconds() }
		return cmp.Or(cmp.Compare(worth(j), worth(k)), cmp.Compare(j.ID, k.ID)) < 0
	}
	return cmp.Or(cmp.Compare(j.Priority, k.Priority), cmp.Compare(j.Entered, k.Entered), cmp.Compare(j.ID, k.ID)) < 0
}

// count counts what a change of a job shows.
func (c *checker) count(prev, next queue.Job, e event.Row) {
	byGate := e.Component == "scheduler" && next.HasSlot && !prev.HasSlot
	for what, happened := range map[string]bool{
		"refused as a row":       prev.Job.ID == "" && next.State == ingest.Failed,
		"parked":                 next.Parked && !prev.Parked && !next.Deferred(),
		"deferred":               next.Deferred() && !prev.Deferred(),
		"admitted after parking": byGate && prev.Parked,
		"unknown size admitted":  byGate && next.State == ingest.Downloading && !next.SizeKnown,
		"many ids locked":        len(next.Locks) > 10 && len(prev.Locks) == 0,
		"requeued":               prev.State == ingest.Failed && next.State != ingest.Failed && prev.Job.ID != "",
		"requeued without space": prev.State == ingest.Failed && !prev.HasSpace && next.Parked,
		"failed after its commit": next.State == ingest.Failed && prev.State != ingest.Failed &&
			next.ObjectVersion > 0,
		"repaired":                 e.Type == "job.repaired",
		"taken from a dead worker": prev.Holder != "" && next.Holder != "" && prev.Holder != next.Holder,
	} {
		if happened {
			c.w.Met(what)
		}
	}
}
