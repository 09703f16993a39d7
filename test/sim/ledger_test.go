package sim

import (
	"slices"
	"strings"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/table/tabletest"
)

// reserved is a reservation, with the values that the running tick can have read: the tick
// counted the rows at some time since it began.
type reserved struct {
	collection  string
	there       bool
	n           int64 // bytes, or 1 for a slot; 0 if there is no row
	least, most int64 // of n, since the tick began; a gate knows its own grants
	gate        bool  // granted by the running tick
}

// ledger is the rows of one kind, by job.
type ledger map[string]reserved

// begin is called when a tick begins.
func (l ledger) begin() {
	for job, r := range l {
		if !r.there {
			delete(l, job)
			continue
		}
		r.least, r.most, r.gate = r.n, r.n, false
		l[job] = r
	}
}

// set records a change of a job's row.
func (l ledger) set(job string, is reserved, there, byGate bool) {
	r := l[job]
	is.there, is.most, is.gate = there, r.most, r.gate
	if !there {
		is.n = 0
	}
	switch {
	case byGate && there:
		is.least, is.gate = is.n, true
		if !r.there {
			is.most += is.n // the tick may have counted a row of the job that it gave back since, and counts its grant
		}
	case r.gate:
		is.least = r.least // the tick counts its own grants, even if they are given back
	case r.there:
		is.least = min(r.least, is.n)
	}
	is.most = max(is.most, is.n)
	l[job] = is
}

// sum adds up the rows of others than job, of one collection if it is not "".
func (l ledger) sum(job, collection string, of func(reserved) int64) (n int64) {
	for owner, r := range l {
		if owner != job && (collection == "" || r.collection == collection) {
			n += of(r)
		}
	}
	return n
}

func least(r reserved) int64 { return r.least }
func most(r reserved) int64  { return r.most }
func now(r reserved) int64   { return r.n }

// tick is the running tick: its fence is the newest.
type tick struct {
	began    int // changes when it began
	troubled bool
	by       *actor // who raised the fence last
}

// lease checks a change of a lease row.
func (c *checker) lease(ch tabletest.Change) {
	if ch.After == nil {
		c.fail("a lease row was removed: its fence would start again")
		return
	}
	prev, next := number(ch.Before, "fence"), number(ch.After, "fence")
	if next < prev || next > prev+1 {
		c.fail("the fence went from %d to %d", prev, next)
	}
	if text(ch.After, "holder") != "" && text(ch.Before, "holder") != text(ch.After, "holder") && next != prev+1 {
		c.fail("the lease passed to another holder without a new fence")
	}
	if next > prev {
		c.passes(ch)
		c.repaired = nil
		c.tick = tick{began: c.changes, troubled: c.w.Throttles(), by: c.w.acting()}
		c.slots.begin()
		c.spaces.begin()
	}
}

// granted checks what a gate granted to a job against the limits and the order, with the
// table before the write.
func (c *checker) granted(prev, next ingest.Job) {
	c.tick.troubled = c.tick.troubled || c.w.Throttles()
	if c.w.acting() != nil && c.w.acting() != c.tick.by {
		c.fail("%s was admitted by a tick that has lost its lease", next.ID)
	}
	if n := c.slots.sum(next.ID, "", least); n+1 > int64(c.w.s.slots) {
		c.fail("the gates granted too many slots: %d and that of %s", n, next.ID)
	}
	if n := c.slots.sum(next.ID, next.Collection, least); c.w.s.share > 0 && n+1 > int64(c.w.s.share) {
		c.fail("collection %s has more than its share: %d slots and that of %s", next.Collection, n, next.ID)
	}
	place, _ := prev.WorkKey()
	estimates := prev.State == ingest.Pending || prev.State == ingest.Estimating // it needs a slot only
	if !estimates && prev.NeedsSpace() {
		held, over := c.spaces.sum(next.ID, "", least), c.behind(next.ID)
		if held+next.SpaceNeeded > capacity {
			c.w.Met("granted over the limit")
		}
		if held+next.SpaceNeeded > capacity+over {
			c.fail("%s was granted %d bytes in addition to %d of %d; jobs that wait for it hold %d", next.ID,
				next.SpaceNeeded, held, capacity, over)
		}
		if !next.SizeKnown && held-over > capacity-reserve {
			c.fail("%s of unknown size was admitted with %d of %d bytes in use", next.ID, held, capacity)
		}
	}
	if prev.State != ingest.Pending {
		c.inTurn(&prev, &next, c.tick.began)
	}
	for _, other := range c.sorted() {
		if other != next.ID && c.passedOver(other, prev) {
			c.fail("%s was admitted at %s before %s, which is first and could run", next.ID, place, other)
		}
	}
}

// inTurn checks a job that got its locks against their lines: a job that was before it at
// since must have been admitted first.
func (c *checker) inTurn(prev, j *ingest.Job, since int) {
	for _, lock := range j.Locks {
		if slices.Contains(prev.Locks, lock) {
			continue
		}
		for other, at := range c.lines[lock] {
			if other < j.ID && at <= since {
				c.fail("%s got the lock %s before %s, which is before it in line", j.ID, lock, other)
			}
		}
	}
}

var gates = []string{ingest.WorkParked, ingest.WorkProvisioning, ingest.WorkPending}

// passedOver reports whether the job id could certainly have run when the running tick
// checked it: it waits before the admitted job, and was not changed since before the tick
// and the lag of the indexes.
func (c *checker) passedOver(id string, on ingest.Job) bool {
	j := c.jobs[id].Job
	at, _ := j.WorkKey()
	place, _ := on.WorkKey()
	batch := c.batches[j.Batch]
	switch {
	case batch.Stops() != "":
		return false
	case !slices.Contains(gates, at) || at != place && slices.Index(gates, at) > slices.Index(gates, place):
		return false
	case at == place && !c.before(j, on), c.mayBeHeld(&j):
		return false
	case c.changed[id] > c.tick.began-maxLag || c.tick.troubled:
		return false
	case c.moved[on.ID] > c.tick.began-maxLag: // the tick may have found it at its earlier rank
		return false
	case c.slots.sum("", "", most) >= int64(c.w.s.slots) || c.w.s.share > 0 && c.slots.sum("", j.Collection,
		most) >= int64(c.w.s.share):
		return false
	}
	if j.State == ingest.Pending {
		return true
	}
	if j.NeedsSpace() {
		taken := c.spaces.sum("", "", most)
		if taken+j.SpaceNeeded > capacity || !j.SizeKnown && taken > capacity-reserve || c.w.s.patience > 0 {
			return false // the space may be reserved for a job before it
		}
	}
	if c.mayAwaitManifests(&j) {
		return false
	}
	for _, lock := range j.LockKeys() {
		if c.locks[lock] != "" || c.turned[lock] > c.tick.began || c.first(lock) != id {
			return false
		}
	}
	return true
}

// first is the first job in the line for a lock.
func (c *checker) first(lock string) string {
	first := ""
	for job := range c.lines[lock] {
		if first == "" || job < first {
			first = job
		}
	}
	return first
}

// behind is by how much a job may be granted over the limit: what all parked jobs hold, if
// one that holds some waits for the job in the lines for locks, directly or through others.
// (The space of only its own followers is not enough: two jobs could each need what the
// other's followers hold.)
func (c *checker) behind(job string) (n int64) {
	wait := map[string]bool{job: true}
	for grew := true; grew; {
		grew = false
		for id, j := range c.jobs {
			if wait[id] || j.Running() && j.State != ingest.Estimating { // it will wait for its locks at gate 2
				continue
			}
			chain := inLine(&j.Job)
			// The tick may have found it waiting, and read a line after it had left that: then it seemed to be last.
			left := j.State == ingest.Failed && c.changed[id] > c.tick.began
			if left {
				chain = j.LockKeys()
			}
			for _, lock := range chain {
				for other := range c.lines[lock] {
					if (left || other < id) && wait[other] && !wait[id] {
						wait[id], grew = true, true
					}
				}
			}
		}
	}
	held := false
	for id, j := range c.jobs {
		if id != job && !j.Running() && (wait[id] || j.Parked) {
			n += c.spaces[id].most
			held = held || wait[id] && c.spaces[id].most > 0
		}
	}
	if !held {
		return 0
	}
	return n
}

// line records a change of a place in line or of a lock.
func (c *checker) line(pk, sk, owner string, there bool) {
	lock := strings.TrimPrefix(pk, "LOCK#")
	c.turned[lock] = c.changes
	job, waits := strings.CutPrefix(sk, "WAITS#")
	switch {
	case !waits && there:
		c.locks[lock] = owner
	case !waits:
		delete(c.locks, lock)
	case there:
		if c.lines[lock] == nil {
			c.lines[lock] = map[string]int{}
		}
		c.lines[lock][job] = c.changes
	default:
		delete(c.lines[lock], job)
	}
}

// isListed checks that a job is listed where its row says, and nowhere else.
func (c *checker) isListed(j *ingest.Job) {
	rows := queue.Listed(j)
	for _, r := range rows {
		if !c.listed[j.ID][r.Key().String()] {
			c.fail("job %s (%s) is not listed at %s", j.ID, j.State, r.Key())
		}
	}
	if len(rows) != len(c.listed[j.ID]) {
		c.fail("job %s (%s) is listed at %d places, and should be at %d: %v", j.ID, j.State, len(c.listed[j.ID]),
			len(rows), c.listed[j.ID])
	}
}

// names notes that a job is listed at a place, or not any more.
func (c *checker) names(place, job string, there bool) string {
	if c.listed[job] == nil {
		c.listed[job] = map[string]bool{}
	}
	if there {
		c.listed[job][place] = true
	} else {
		delete(c.listed[job], place)
	}
	return job
}
