package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"archivist/pkg/ingest"
)

// knot lists the jobs in a deadlock: they wait for each other over locks, lines and space.
// Even after all running jobs have ended and all failed jobs were cleaned up, none of them
// can continue, unless a rule makes an exception.
func (c *checker) knot() []string { return slices.Sorted(maps.Keys(c.stuck(nil))) }

// stuck lists the jobs that can never continue while the jobs in keep give nothing back.
func (c *checker) stuck(keep map[string]bool) map[string]bool {
	stuck := maps.Clone(keep)
	if stuck == nil {
		stuck = map[string]bool{}
	}
	for id, j := range c.jobs {
		if j.Waiting() && j.State != ingest.Pending {
			stuck[id] = true
		}
	}
	for shrank := true; shrank; {
		shrank = false
		for id := range stuck {
			j := c.jobs[id].Job
			if !keep[id] && c.behindStuck(&j, stuck) == "" && c.fitsBeside(&j, stuck) {
				delete(stuck, id)
				shrank = true
			}
		}
	}
	return stuck
}

// behindStuck names a stuck job before which j is not admitted.
func (c *checker) behindStuck(j *ingest.Job, stuck map[string]bool) string {
	for _, lock := range j.LockKeys() {
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

// fitsBeside reports whether j has space, or would have it if only the stuck jobs held some.
func (c *checker) fitsBeside(j *ingest.Job, stuck map[string]bool) bool {
	if !j.NeedsSpace() {
		return true
	}
	held := int64(0)
	for id, r := range c.spaces {
		if stuck[id] {
			held += r.n
		}
	}
	return held+j.SpaceNeeded <= capacity && (j.SizeKnown || held <= capacity-reserve)
}

// waitsFor states what each job of the deadlock waits for.
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
		says = append(says, fmt.Sprintf("%s (%s, parked %v, holds %d of %d) waits for %s", id, j.State, j.Parked,
			c.spaces[id].n, j.SpaceNeeded, on))
	}
	if len(says) == 0 {
		return "no deadlock"
	}
	return "deadlock: " + strings.Join(says, "; ")
}

// knotTicks is the number of ticks with a free slot after which a deadlock is a violation.
const knotTicks = 10

// uncleaned reports whether a failed job holds space, which it gives back in time.
func (c *checker) uncleaned() bool {
	for _, j := range c.jobs {
		if j.Uncleaned() {
			return true
		}
	}
	return false
}

// behindMoving reports whether a job of a deadlock also waits for one that moves. The rule that makes an exception for
// a deadlock finds it once such jobs have gone from the lines before it.
func (c *checker) behindMoving(knot []string) bool {
	for _, id := range knot {
		j := c.jobs[id].Job
		for _, lock := range j.LockKeys() {
			for other := range c.lines[lock] {
				if other < id && !slices.Contains(knot, other) {
					return true
				}
			}
		}
	}
	return false
}

// untied counts the ticks for which the same jobs are in a deadlock, and wait for no others.
func (c *checker) untied() {
	jobs := c.knot()
	knot := strings.Join(jobs, " ")
	switch {
	case knot == "" || knot != c.tied:
		c.tied, c.ties = knot, 0
	case c.behindMoving(jobs): // atRest shows it if they never move
	case c.slots.sum("", "", now) < int64(c.w.s.slots) && !c.uncleaned():
		c.ties++
		if c.ties > knotTicks {
			c.fail("for %d ticks a %s", c.ties, c.waitsFor())
		}
	}
}

// mayBeLate lists the jobs and batches that may be late because they need a dependency that
// always refuses, if a message or a metric reports it.
func (c *checker) mayBeLate() map[string]bool {
	late := map[string]bool{}
	switch c.w.s.refuses {
	case refusesReport:
		for id, b := range c.batches {
			if b.Note == "0" && b.State == ingest.BatchReporting && strings.Contains(b.Message, errRefused.Error()) {
				late[id] = true
			}
		}
	case refusesMail:
		for id, b := range c.batches { // its row stays until its mails are sent or given up
			if b.State == ingest.BatchDeleted && c.mails[id] > 0 {
				late[id] = true
			}
		}
	case refusesClean:
		keep := map[string]bool{}
		for id, j := range c.jobs {
			if j.Uncleaned() {
				keep[id] = true
			}
		}
		c.lateBehind(keep, late, c.w.metrics["RepairErrors"] > 0)
	case refusesRows:
		c.lateBehind(c.keptBy(c.oldest), late, c.w.metrics["RepairErrors"]+c.w.metrics["GateErrors"] > 0)
		keep := map[string]bool{}
		c.lateInOperations(keep)
		c.heldInTheEnd(keep)
		c.lateBehind(keep, late, true) // the pages fail, which the function's alarm reports
		late[c.oldest] = true
		c.lateInOperations(late)
		c.heldInTheEnd(late)
		for id, j := range c.jobs { // its slot, its collection's share
			late[id] = late[id] || c.w.s.share > 0 && c.slots[c.oldest].there &&
				j.Collection == c.jobs[c.oldest].Collection
		}
	}
	if c.w.s.patience > 0 && len(late) > 0 {
		for id, j := range c.jobs { // free space may be reserved for a late job
			late[id] = late[id] || j.State == ingest.Provisioning && !j.HasSpace
		}
		c.lateBehind(maps.Clone(late), late, true)
	}
	for id := range maps.Clone(late) {
		late[c.jobs[id].Batch] = true
	}
	return late
}

// lateInOperations adds the jobs of batches of which an operation is not done: each page of it waits for the row that
// cannot be read.
func (c *checker) lateInOperations(late map[string]bool) {
	for _, o := range c.operations {
		if o.State == ingest.OperationDone || o.Filter.Batch == "" {
			continue
		}
		for id, j := range c.jobs {
			late[id] = late[id] || j.Batch == o.Filter.Batch
		}
	}
}

// heldInTheEnd adds the jobs that an operation has held after the faults had stopped: one that waits for the row that
// cannot be read does so after all holds were lifted.
func (c *checker) heldInTheEnd(late map[string]bool) {
	for id, j := range c.jobs {
		late[id] = late[id] || j.State == ingest.Held && j.Hold.Since >= c.w.calmed.Add(-2*c.w.s.skew).UnixMilli()
	}
}

// keptBy lists the jobs that keep what they have while the row of one cannot be read:
// clean-ups begin with the oldest job, and wait for it.
func (c *checker) keptBy(job string) map[string]bool {
	keep := map[string]bool{job: true}
	if oldest := c.jobs[job]; oldest.Uncleaned() {
		for id, j := range c.jobs {
			if j.Uncleaned() {
				keep[id] = true
			}
		}
	}
	return keep
}

// lateBehind adds the jobs that wait for what the jobs in keep hold, if that was reported.
func (c *checker) lateBehind(keep, late map[string]bool, reported bool) {
	for id := range c.stuck(keep) {
		if reported {
			late[id] = true
		}
	}
}

// gaveUp is in the message of an item that was tried too often.
const gaveUp = "times without success"

// unreported names an item that ended, or is late, because of a dependency that refuses, and
// whose message does not show that.
func (c *checker) unreported() error {
	says := func(message string) bool { return strings.Contains(message, errRefused.Error()) }
	for _, id := range c.sorted() {
		j := c.jobs[id]
		stage, _ := ingest.StageNamed(c.w.s.of(&j.Job).refused)
		if c.w.s.refuses == refusesStep && stage.Job != "" && j.State == ingest.Failed && strings.Contains(j.Message,
			gaveUp) && c.w.refused[id] && !says(j.Message) {
			return fmt.Errorf("job %s: %s", id, j.Message)
		}
	}
	for id, b := range c.batches {
		first := b.Note == "0"
		switch {
		case c.w.s.refuses == refusesUnpack && first && b.Unpacked > 0 && b.Unpacked < len(c.w.s.plans[0]) &&
			c.w.refused[id] && b.Cancelled == nil && !says(b.Incomplete):
			return fmt.Errorf("batch %s has %d of %d jobs: %s", id, b.Unpacked, len(c.w.s.plans[0]), b.Incomplete)
		case c.w.s.refuses == refusesReport && first && c.w.refused[id] && !says(b.Message):
			return fmt.Errorf("batch %s cannot report: %s", id, b.Message)
		}
	}
	return nil
}
