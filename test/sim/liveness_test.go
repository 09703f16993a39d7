package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"archivist/pkg/ingest"
)

// knot lists the jobs that wait for each other in a circle, over locks, lines
// and space: all that runs may end, all that failed may be cleaned away, and
// still none of them can go on unless a rule makes an exception.
func (c *checker) knot() []string { return slices.Sorted(maps.Keys(c.stuck(nil))) }

// stuck lists the jobs that can never go on while those that keep give nothing back.
func (c *checker) stuck(keep map[string]bool) map[string]bool {
	stuck := map[string]bool{}
	for id, j := range c.jobs {
		if place, _ := j.Job.Place(); place == ingest.PlaceParked || place == ingest.PlaceProvisioning {
			stuck[id] = true
		}
	}
	for shrank := true; shrank; {
		shrank = false
		for id := range stuck {
			j := c.jobs[id].Job
			if c.behindStuck(&j, stuck) == "" && c.fitsBeside(&j, stuck, keep) {
				delete(stuck, id)
				shrank = true
			}
		}
	}
	return stuck
}

// behindStuck names a stuck job before which j is not let on.
func (c *checker) behindStuck(j *ingest.Job, stuck map[string]bool) string {
	for _, lock := range j.Wanted() {
		for other := range c.lines[lock] {
			if other < j.ID && stuck[other] {
				return other
			}
		}
		if owner := c.locks[lock]; owner != j.ID && stuck[owner] {
			return owner
		}
	}
	return ""
}

// fitsBeside reports whether j has space, or would have once only the stuck jobs
// and those that keep it hold some.
func (c *checker) fitsBeside(j *ingest.Job, stuck, keep map[string]bool) bool {
	if j.HasSpace {
		return true
	}
	held := int64(0)
	for id, r := range c.spaces {
		if stuck[id] || keep[id] {
			held += r.n
		}
	}
	return held+j.SpaceNeeded <= capacity && (j.SizeKnown || held <= capacity-reserve)
}

// waitsFor says what each job of the knot waits for.
func (c *checker) waitsFor() string {
	knot := c.knot()
	stuck := map[string]bool{}
	for _, id := range knot {
		stuck[id] = true
	}
	var says []string
	for _, id := range knot {
		j := c.jobs[id].Job
		on := "space"
		if other := c.behindStuck(&j, stuck); other != "" {
			on = other
		}
		says = append(says, fmt.Sprintf("%s (%s, parked %v, holds %d of %d) waits for %s", id, j.State, j.Parked, c.spaces[id].n, j.SpaceNeeded, on))
	}
	if len(says) == 0 {
		return "no circle"
	}
	return "a circle: " + strings.Join(says, "; ")
}

// untying is whether a gate unties knots of space and lines.
const untying = false

// knotTicks is for how many ticks with a free slot a knot may stand.
const knotTicks = 10

// untied counts the ticks after which the same jobs are in a knot.
func (c *checker) untied() {
	knot := strings.Join(c.knot(), " ")
	switch {
	case knot == "" || knot != c.tied:
		c.tied, c.ties = knot, 0
	case c.slots.sum("", "", now) < maxInFlight:
		if c.ties++; c.ties > knotTicks && untying {
			c.fail("for %d ticks: %s", c.ties, c.waitsFor())
		}
	}
}

// mayBeLate lists the jobs and batches that need what refuses for ever, and says
// of each that it tells so: a message, or a metric.
func (c *checker) mayBeLate() map[string]bool {
	late := map[string]bool{}
	if !untying {
		for id := range c.stuck(nil) {
			late[id], late[c.jobs[id].Batch] = true, true
		}
	}
	switch c.w.s.refuses {
	case refusesReport:
		for id, b := range c.batches {
			if b.Note == "0" && b.State == ingest.BatchReporting && strings.Contains(b.Message, errRefused.Error()) {
				late[id] = true
			}
		}
	case refusesClean:
		if tellsClean && c.w.metrics["RepairErrors"] == 0 {
			return nil
		}
		keep := map[string]bool{}
		for id, j := range c.jobs {
			keep[id] = j.Uncleaned()
		}
		for id := range c.stuck(keep) {
			late[id], late[c.jobs[id].Batch] = true, true
		}
	}
	return late
}

// tellsClean is whether a clean-up that fails is told as a metric.
const tellsClean = false
