package sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"archivist/pkg/events/event"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/test/adversary"
)

// checker checks every committed write against the invariants of the system. It keeps the
// first violation.
type checker struct {
	w          *world
	err        error
	changes    int // rows changed so far
	jobs       map[string]queue.Job
	batches    map[string]queue.Batch
	items      map[string]tabletest.Item // batches as they are stored
	counts     map[string]ingest.Counts
	slots      ledger
	spaces     ledger
	locks      map[string]string          // lock → the job that owns it
	lines      map[string]map[string]int  // lock → job in line → since which change
	listed     map[string]map[string]bool // job → the places where it is listed
	turned     map[string]int             // lock → its last change
	changed    map[string]int             // job → its last change
	moved      map[string]int             // job → its last change of rank within a place
	took       map[string]int             // job → when a worker last took it
	closed     map[string]closing         // batch → its last job
	tick       tick
	repaired   []string        // executions that the tick under way replaced
	rested     map[string]bool // batches that were on hold before they were unpacked: others may pass them
	oldest     string          // the first job that was made
	mails      map[string]int  // rows of pending mails by batch
	late       bool            // a job reached Storing
	tied       string          // the jobs in the present deadlock
	ties       int             // for how many ticks
	holds      map[string]hold // by their sort key
	operations map[string]ingest.Operation
	receipts   map[string]items  // of requests and operations
	cleans     map[string]bool   // jobs whose work files a person has removed
	started    map[string]string // request → the operation that it started
	owed       []string          // mails that became due
	reporting  map[string]int    // batch → changes before its newest report was begun
	acts       map[string]bool   // request and subject, if the request has acted on the subject
}

func newChecker(w *world) *checker {
	return &checker{w: w, jobs: map[string]queue.Job{}, batches: map[string]queue.Batch{}, rested: map[string]bool{},
		items:  map[string]tabletest.Item{},
		counts: map[string]ingest.Counts{},
		slots:  ledger{}, spaces: ledger{}, locks: map[string]string{}, lines: map[string]map[string]int{},
		listed: map[string]map[string]bool{},
		turned: map[string]int{}, changed: map[string]int{}, moved: map[string]int{},
		took: map[string]int{}, closed: map[string]closing{},
		holds: map[string]hold{}, operations: map[string]ingest.Operation{},
		receipts: map[string]items{},
		started:  map[string]string{}, cleans: map[string]bool{}, reporting: map[string]int{},
		acts: map[string]bool{}, mails: map[string]int{}}
}

func (c *checker) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
		c.w.Log("VIOLATION %v", c.err)
	}
}

// commit is called with each write, with all of its changes.
func (c *checker) commit(changes []tabletest.Change) {
	events, mails := map[string]event.Row{}, map[string]bool{}
	for _, ch := range changes {
		if ch.After == nil {
			continue
		}
		if prev, next := number(ch.Before, "rev"), number(ch.After, "rev"); next != prev+1 {
			c.fail("%s/%s: rev went from %d to %d", text(ch.After, "pk"), text(ch.After, "sk"), prev, next)
		}
		if strings.HasPrefix(text(ch.After, "sk"), "EV#") {
			e := adversary.Read[event.Row](ch.After)
			if ch.Before != nil {
				c.fail("%s: an event was overwritten", e.Key())
			}
			events[e.SubjectType+e.SubjectID] = e
			c.once(e)
		}
		if strings.HasPrefix(text(ch.After, "pk"), "MAIL#") && ch.Before == nil {
			m := adversary.Read[ingest.Mail](ch.After)
			mails[fmt.Sprintf("%s %s", m.Batch, m.Kind)] = true
			c.owed = append(c.owed, fmt.Sprintf("%s %s %d", m.Batch, m.Kind, m.Exec))
		}
	}
	if a := c.w.acting(); a != nil {
		a.wrote++
	}
	touched := map[string]bool{}
	count := false
	var gone []queue.Job
	for _, ch := range order(changes) {
		c.changes++
		if ch.After == nil && text(ch.Before, "sk") == "JOB" {
			gone = append(gone, adversary.Read[queue.Job](ch.Before))
		}
		id := c.row(ch, events, mails)
		if id != "" {
			touched[id] = true
		}
		sk := text(either(ch), "sk")
		count = count || sk == "JOB" || sk == "BATCH" || sk == "COUNT"
	}
	for _, ch := range changes { // after the receipts of the same transaction
		if text(ch.After, "sk") == "OPERATION" {
			c.operationRow(adversary.Read[queue.Operation](ch.After).Operation)
		}
	}
	for id := range touched {
		c.agrees(id)
	}
	for _, j := range gone {
		c.fromTheEnd(&j)
	}
	if count {
		c.recount()
	}
}

// order puts the rows of jobs first: what a job gets is checked against the table before the
// write.
func order(changes []tabletest.Change) []tabletest.Change {
	out := make([]tabletest.Change, 0, len(changes))
	for _, first := range []bool{true, false} {
		for _, ch := range changes {
			if (text(either(ch), "sk") == "JOB") == first {
				out = append(out, ch)
			}
		}
	}
	return out
}

// text, number and either read rows as they are stored.
var text, number, either = adversary.Text, adversary.Number, adversary.Either

// row checks one changed row, and returns the job that it belongs to.
func (c *checker) row(ch tabletest.Change, events map[string]event.Row, mails map[string]bool) (job string) {
	it, there := either(ch), ch.After != nil
	pk, sk := text(it, "pk"), text(it, "sk")
	byGate := events["Job"+sk].Component == "scheduler"
	switch {
	case sk == "JOB":
		return c.jobRow(adversary.Read[queue.Job](it), there, events)
	case sk == "BATCH":
		is := adversary.Read[queue.Batch](it)
		if !there {
			c.goes(is.Batch.ID)
			return ""
		}
		was := c.batches[is.Batch.ID]
		c.batch(was, is, events["Batch"+is.Batch.ID])
		if was.Report != is.Report || was.State != is.State && was.State == ingest.BatchUpdateReporting {
			c.reports(&was, &is, mails)
		}
		c.batches[is.Batch.ID] = is
		c.items[pk] = it
		return ingest.JobID(is.Batch.ID, 1)
	case sk == "COUNT":
		id := strings.TrimPrefix(pk, "BATCH#")
		c.counts[id] = adversary.Read[queue.Counts](it).Counts
		if c.counts[id].Open() == 0 {
			c.closed[id] = closing{c.w.acting(), c.changes}
		}
	case pk == "SLOT":
		c.slots.set(sk, reserved{collection: text(it, "coll"), n: 1}, there, byGate)
		return sk
	case pk == "SPACE":
		c.spaces.set(sk, reserved{collection: text(it, "coll"), n: number(it, "bytes")}, there, byGate)
		return sk
	case pk == "HOLD":
		c.holdRow(sk, it, there)
	case strings.HasPrefix(pk, "ACT#"):
		c.receiptRow(ch)
	case strings.HasPrefix(pk, "LOCK#"):
		c.line(pk, sk, text(it, "owned_by"), there)
		return text(it, "owned_by")
	case strings.HasPrefix(pk, "NAMED#") && !strings.HasPrefix(pk, "NAMED#batch#"):
		return c.names(pk+"/"+sk, text(it, "owned_by"), there)
	case strings.HasPrefix(pk, "MAIL#") && ch.Before == nil:
		c.mails[strings.TrimPrefix(pk, "MAIL#")]++
	case strings.HasPrefix(pk, "MAIL#") && !there:
		batch := strings.TrimPrefix(pk, "MAIL#")
		c.mails[batch]--
		if c.mails[batch] == 0 {
			delete(c.mails, batch)
		}
	case strings.HasPrefix(pk, "LEASE#"):
		c.lease(ch)
	case strings.HasPrefix(sk, "EV#") && !there:
		c.fail("%s/%s: an event was removed", pk, sk)
	}
	return ""
}

// jobRow checks a job's row.
func (c *checker) jobRow(next queue.Job, there bool, events map[string]event.Row) string {
	id := next.Job.ID
	if !there {
		if c.batches[next.Batch].State != ingest.BatchDeleted {
			c.fail("the row of job %s was removed before its batch was deleted", id)
		}
		if c.w.store.versions(&next.Job) > 0 && !c.w.store.rows[id] {
			c.fail("the row of job %s was removed, but its version is not recorded", id)
		}
		delete(c.jobs, id)
		return id
	}
	c.oldest = cmp.Or(c.oldest, id)
	prev, e := c.jobs[id], events["Job"+id]
	if a := c.w.acting(); a != nil && a.does.DryRun {
		c.fail("job %s was changed by a dry run", id)
	}
	c.job(prev, next, e)
	c.cancelled(&prev.Job, &next.Job)
	c.timely(prev, next, e)
	c.count(prev, next, e)
	got := len(next.Locks) > len(prev.Locks)
	switch {
	case next.HasSlot && !prev.HasSlot && e.Component == "scheduler":
		c.granted(prev.Job, next.Job)
		c.manifestsFirst(&prev.Job, &next.Job)
		c.unheld(&prev.Job, &next.Job)
	case next.HasSlot && !prev.HasSlot:
		c.fail("job %s got a slot from %s, past the gates", id, e.Component)
	case got && e.Component == "admin":
		c.inTurn(&prev.Job, &next.Job, c.w.acted())
	case got:
		c.inTurn(&prev.Job, &next.Job, c.took[id])
	}
	if next.Holder != "" && next.Holder != prev.Holder {
		c.took[id] = c.changes
	}
	c.stores(&prev.Job, &next.Job)
	c.late = c.late || next.State == ingest.Storing
	if next.Turn != prev.Turn && next.Entered == prev.Entered {
		c.moved[id] = c.changes
	}
	c.jobs[id], c.changed[id] = next, c.changes
	return id
}

// cancelled checks that after the cancel of a batch was committed, none of its jobs starts, passes a gate or
// is opened again before the batch has ended.
func (c *checker) cancelled(prev, next *ingest.Job) {
	b := c.batches[next.Batch]
	if b.Stops() == "" || prev.State == "" {
		return
	}
	c.w.Met("a job of a cancelled batch")
	passes := prev.Waiting() && next.Running() && !prev.Running()
	if passes || prev.State == ingest.Failed && next.State.Open() {
		c.fail("job %s went from %s to %s although its batch is cancelled", next.ID, prev.State, next.State)
	}
}

// fromTheEnd checks the order in which job rows are removed: from the last, so that the
// batch's row shows which exist.
func (c *checker) fromTheEnd(gone *queue.Job) {
	for id, j := range c.jobs {
		if j.Batch == gone.Batch && j.Row > gone.Row {
			c.fail("the row of job %s was removed before that of %s", gone.Job.ID, id)
		}
	}
}

// goes checks that nothing is left of a batch whose row is removed.
func (c *checker) goes(id string) {
	if c.batches[id].State != ingest.BatchDeleted {
		c.fail("the row of batch %s was removed while it was %s", id, c.batches[id].State)
	}
	for _, job := range c.sorted() {
		if c.jobs[job].Batch == id {
			c.fail("the row of batch %s was removed before that of job %s", id, job)
		}
	}
	delete(c.batches, id)
	c.w.Met("batch retired")
}

// sorted lists the jobs by id, so that a seed replays.
func (c *checker) sorted() []string { return slices.Sorted(maps.Keys(c.jobs)) }

// batchItem is a batch's row as it is stored.
func (c *checker) batchItem(pk string) tabletest.Item { return c.items[pk] }

func (c *checker) sortedBatches() []string { return slices.Sorted(maps.Keys(c.batches)) }

func (c *checker) job(prev, next queue.Job, e event.Row) {
	id := next.Job.ID
	if prev.State != next.State {
		c.w.Met(fmt.Sprintf("job %s→%s", prev.State, next.State))
		if err := ingest.CheckJob(prev.State, next.State); err != nil {
			c.fail("%v", err)
		}
	}
	if prev.State != next.State || prev.Exec != next.Exec {
		if e.Version != next.Version || next.Version != prev.Version+1 {
			c.fail("job %s went %s→%s (exec %d→%d) at version %d with event %d", id, prev.State, next.State, prev.Exec,
				next.Exec, next.Version, e.Version)
		}
	} else if next.Version != prev.Version && e.Version != next.Version {
		c.fail("job %s: version %d without its event", id, next.Version)
	}
	if next.Exec < prev.Exec {
		c.fail("job %s: exec fell", id)
	}
	c.placed(&next)
	if by := c.heldBy(&next.Job, false); prev.State == ingest.Held && next.State == ingest.Pending && by != "" {
		c.fail("job %s was released although the hold %s stands", id, by)
	}
	c.stopped("job "+id, next.State == ingest.Held, next.Hold)
	if next.State == ingest.Recording && prev.State == ingest.Storing {
		if n := c.w.store.versions(&next.Job); n != 1 {
			c.fail("job %s is Recording with %d stored versions", id, n)
		}
	}
	if next.State == ingest.Failed && prev.State != ingest.Failed && next.Message == "" {
		c.fail("job %s failed without a reason", id)
	}
}

// placed checks a job's place in the indexes against its state: every open job is at a gate
// with a turn, or has an execution and a due time.
func (c *checker) placed(is *queue.Job) {
	place, rank := is.Job.WorkKey()
	if place != is.Head.WorkPK || rank != is.Head.WorkSK {
		c.fail("job %s in %s is at %q %q of the index, and should be at %q %q", is.Job.ID, is.State, is.Head.WorkPK,
			is.Head.WorkSK, place, rank)
	}
	gate := slices.Contains(gates, place)
	switch {
	case is.State.Open() && place == "":
		c.fail("job %s in %s has no place in the index", is.Job.ID, is.State)
	case gate && is.Turn == "":
		c.fail("job %s in %s has no turn", is.Job.ID, is.State)
	case place == ingest.WorkFailed || place == ingest.WorkHeld && is.Hold.Until == 0: // for a person
	case place != "" && !gate && is.Due == 0:
		c.fail("job %s in %s is never due", is.Job.ID, is.State)
	}
}

func (c *checker) batch(prev, next queue.Batch, e event.Row) {
	if prev.State != next.State {
		c.w.Met(fmt.Sprintf("batch %s→%s", prev.State, next.State))
		if err := ingest.CheckBatch(prev.State, next.State); err != nil {
			c.fail("%v", err)
		}
		if e.Version != next.Version || next.Version != prev.Version+1 {
			c.fail("batch %s went to %s without its event", next.Batch.ID, next.State)
		}
	}
	if next.State == ingest.BatchReporting && prev.State != next.State && (!next.Sealed ||
		c.counts[next.Batch.ID].Open() > 0) {
		c.fail("batch %s reports, sealed %v, with %+v", next.Batch.ID, next.Sealed, c.counts[next.Batch.ID])
	}
	if prev.Cancelled != nil && next.Unpacked > prev.Unpacked {
		c.fail("batch %s was cancelled, and got %d more jobs", next.Batch.ID, next.Unpacked-prev.Unpacked)
	}
	if prev.Cancelled == nil && next.Cancelled != nil {
		c.w.Met("cancelled: " + strings.TrimRight(next.Cancelled.Actor, "01"))
	}
	c.rested[next.Batch.ID] = c.rested[next.Batch.ID] || next.State == ingest.BatchHeld
	c.stopped("batch "+next.Batch.ID, next.State == ingest.BatchHeld, next.Hold)
	if next.State == ingest.BatchDeleted && prev.State != next.State {
		c.retires(prev, next)
	}
	place, rank := next.Batch.WorkKey()
	if place != next.Head.WorkPK || rank != next.Head.WorkSK {
		c.fail("batch %s in %s is at %q %q of the index, and should be at %q %q", next.Batch.ID, next.State,
			next.Head.WorkPK, next.Head.WorkSK, place, rank)
	}
	if next.State == ingest.BatchFailed && prev.State == ingest.BatchPending && c.counts[next.Batch.ID].Open() > 0 {
		c.fail("batch %s failed with open jobs %+v, which no report will show", next.Batch.ID, c.counts[next.Batch.ID])
	}
	if next.State == ingest.BatchCompleted && prev.State != next.State {
		c.reportAgrees(&next)
	}
	if next.State == ingest.BatchCompleted && c.counts[next.Batch.ID].Open()+c.counts[next.Batch.ID].Failed > 0 {
		c.fail("batch %s is Completed with counts %+v", next.Batch.ID, c.counts[next.Batch.ID])
	}
}

// agrees checks a job against its reservations.
func (c *checker) agrees(id string) {
	j := c.jobs[id]
	if j.HasSlot != c.slots[id].there {
		c.fail("job %s (%s): slot %v, row %v", id, j.State, j.HasSlot, c.slots[id].there)
	}
	if j.HasSpace != c.spaces[id].there {
		c.fail("job %s (%s): space %v, row %v", id, j.State, j.HasSpace, c.spaces[id].there)
	}
	if n := c.spaces[id].n; j.HasSpace && n != j.SpaceNeeded {
		c.fail("job %s needs %d bytes, its space row has %d", id, j.SpaceNeeded, n)
	}
	for _, l := range j.Locks {
		if c.locks[l] != id {
			c.fail("job %s: lock %s is owned by %q", id, l, c.locks[l])
		}
	}
	chain := inLine(&j.Job)
	if _, made := c.jobs[id]; !made {
		chain = c.queued(id)
	}
	for _, l := range chain {
		if _, stands := c.lines[l][id]; !stands {
			c.fail("job %s (%s) is not in the line of %s", id, j.State, l)
		}
	}
	n := 0
	for _, line := range c.lines {
		if _, stands := line[id]; stands {
			n++
		}
	}
	if n != len(chain) {
		c.fail("job %s (%s) is in %d lines, and should be in %v", id, j.State, n, chain)
	}
	if j.Running() && !j.HasSlot {
		c.fail("job %s runs in %s without a slot", id, j.State)
	}
	c.isListed(&j.Job)
}

// queued lists the locks for which a batch of one object is in line for its only job: from its submission until it is
// unpacked, unless it is on hold or has ended.
//
// One that lists objects is in line among the manifests of its depositor until all of them are jobs.
func (c *checker) queued(job string) []string {
	b := c.batches[strings.Split(job, "-")[0]]
	if listsObjects(&b) && job == ingest.JobID(b.Batch.ID, 0) && b.State == ingest.BatchPending {
		return []string{"manifest#" + b.Collection + "#" + b.Submitter}
	}
	if job != ingest.JobID(b.Batch.ID, 1) || b.State != ingest.BatchPending || b.Unpacked > 0 {
		return nil
	}
	c.w.Met("in line before it is unpacked")
	j := ingest.Job{Collection: b.Collection, Primary: b.Primary, LocalIDs: b.LocalIDs, Related: b.Related}
	return j.LockKeys()
}

// listsObjects reports whether the objects of a batch are not known before it is unpacked.
func listsObjects(b *queue.Batch) bool { return b.Primary == "" && len(b.LocalIDs) == 0 }

// unread lists the manifests of a collection that are not read yet. The simulation has one depositor.
func (c *checker) unread(collection string) (ids []string) {
	for id, b := range c.batches {
		if b.Collection == collection && listsObjects(&b) && b.State == ingest.BatchPending {
			ids = append(ids, id)
		}
	}
	return ids
}

// mayAwaitManifests reports whether a job may wait at gate 2 because an earlier manifest is not read.
func (c *checker) mayAwaitManifests(j *ingest.Job) bool {
	return j.Behind && j.State == ingest.Provisioning &&
		slices.ContainsFunc(c.unread(j.Collection), func(batch string) bool { return batch < j.Batch })
}

// manifestsFirst checks that a job that was submitted after manifests does not take its object before they are
// read, for an hour at most.
func (c *checker) manifestsFirst(prev, next *ingest.Job) {
	waited := time.Since(time.UnixMilli(prev.Created)) + 2*c.w.s.skew
	if prev.State != ingest.Provisioning || prev.RetryCount > 0 || waited >= time.Hour {
		return
	}
	for _, id := range c.w.ahead[c.batches[next.Batch].Note] {
		b := c.batches[id]
		// Rows of other collections than their batch's are of the simulation only.
		if b.State == ingest.BatchPending && !c.rested[id] && b.Collection == next.Collection {
			c.fail("job %s passed the gate although the manifest of batch %s, which was submitted before, is not read",
				next.ID, id)
		}
		c.w.Met("passes after an earlier manifest")
	}
}

// inLine lists the locks for which a job is in line: those of its identifiers, from its
// submission until its version is recorded.
func inLine(j *ingest.Job) []string {
	switch j.State {
	case ingest.Pending, ingest.Estimating, ingest.Provisioning, ingest.Downloading, ingest.Processing, ingest.Storing,
		ingest.Recording:
		return j.LockKeys()
	}
	return nil
}
