package sim

import (
	"maps"
	"slices"

	"archivist/pkg/ingest"
	"archivist/pkg/table/tabletest"
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
		c.met("lifted: " + kindOf(sk))
		return
	}
	h, stood := c.holds[sk]
	if !stood {
		h.since = c.changes
		c.met("placed: " + kindOf(sk))
	}
	h.until = number(it, "until_ms")
	c.holds[sk] = h
}

// stands reports whether a hold stands, by the clock of every actor.
func (c *checker) stands(sk string) bool {
	h, there := c.holds[sk]
	return there && (h.until == 0 || c.ahead(h.until))
}

// heldBy names a hold that keeps new work of a job from the gates, "" if none stands.
func (c *checker) heldBy(j *ingest.Job) string {
	for _, sk := range []string{"queue", "collection#" + j.Collection, "batch#" + j.Batch} {
		if c.stands(sk) {
			return sk
		}
	}
	return ""
}

// unheld checks what a gate grants against the holds that stand.
func (c *checker) unheld(prev, next *ingest.Job) {
	if c.stands("queue") {
		c.fail("job %s was admitted at %s while the queue is paused", next.ID, prev.State)
	}
	if by := c.heldBy(prev); prev.State == ingest.Pending && by != "" {
		c.fail("job %s was admitted although the hold %s stands", next.ID, by)
	}
}

// stores checks a job that begins to run in Storing against the pause of the storage: only
// a worker that claimed the job before the pause, or a person who asked before it, may let
// it in.
func (c *checker) stores(prev, next *ingest.Job) {
	begins := next.State == ingest.Storing && next.Running() && (prev.State != next.State || !prev.Running())
	if !begins || !c.stands("storage") {
		return
	}
	since := 0
	switch {
	case prev.State == ingest.Processing && prev.Running():
		since = c.took[next.ID]
	case c.w.acts != nil && c.w.acts.does.Name != "":
		since = c.w.acts.acted
	}
	if paused := c.holds["storage"].since; since == 0 || since > paused {
		c.fail("job %s goes from %s to %s while the storage is paused", next.ID, prev.State, next.State)
	}
}

func kindOf(sk string) string {
	for i, r := range sk {
		if r == '#' {
			return sk[:i]
		}
	}
	return sk
}

// standing lists the holds whose rows exist.
func (c *checker) standing() []string { return slices.Sorted(maps.Keys(c.holds)) }
