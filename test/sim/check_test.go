package sim

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/guregu/dynamo/v2"

	"archivist/pkg/event"
	"archivist/pkg/ingest"
	"archivist/pkg/queue"
	"archivist/pkg/table/tabletest"
)

// checker sees every write as it is committed and holds it against the
// invariants of the system. It keeps the first violation.
type checker struct {
	w       *world
	err     error
	jobs    map[string]queue.Job
	batches map[string]queue.Batch
	counts  map[string]ingest.Counts
	slots   map[string]bool
	granted map[string]bool // slots that a gate gave
	spaces  map[string]bool
	locks   map[string]string
	retired int
	lines   map[string]map[string]bool // job → locks before which it stands in line
}

func newChecker(w *world) *checker {
	return &checker{w: w, jobs: map[string]queue.Job{}, batches: map[string]queue.Batch{}, counts: map[string]ingest.Counts{},
		slots: map[string]bool{}, granted: map[string]bool{}, spaces: map[string]bool{}, locks: map[string]string{}, lines: map[string]map[string]bool{}}
}

func (c *checker) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
		c.w.log("VIOLATION %v", c.err)
	}
}

func read[T any](it tabletest.Item) T {
	var v T
	if it != nil {
		if err := dynamo.UnmarshalItem(it, &v); err != nil {
			panic(err)
		}
	}
	return v
}

// commit is called with each write, whole.
func (c *checker) commit(changes []tabletest.Change) {
	events := map[string]event.Row{}
	for _, ch := range changes {
		if ch.After == nil {
			continue
		}
		if was, is := number(ch.Before, "rev"), number(ch.After, "rev"); is != was+1 {
			c.fail("%s/%s: rev went from %d to %d", text(ch.After, "pk"), text(ch.After, "sk"), was, is)
		}
		if strings.HasPrefix(text(ch.After, "sk"), "EV#") {
			e := read[event.Row](ch.After)
			if ch.Before != nil {
				c.fail("%s: an event was overwritten", e.Key())
			}
			events[e.SubjectType+e.SubjectID] = e
		}
	}
	touched := map[string]bool{}
	for _, ch := range changes {
		if id := c.row(ch, events); id != "" {
			touched[id] = true
		}
	}
	for id := range touched {
		c.agrees(id)
	}
	c.recount()
}

func text(it tabletest.Item, name string) string {
	v, _ := it[name].(*types.AttributeValueMemberS)
	if v == nil {
		return ""
	}
	return v.Value
}

func number(it tabletest.Item, name string) (n int64) {
	if v, ok := it[name].(*types.AttributeValueMemberN); ok {
		n, _ = strconv.ParseInt(v.Value, 10, 64)
	}
	return n
}

// row takes in one changed row, and returns the job that it belongs to.
func (c *checker) row(ch tabletest.Change, events map[string]event.Row) (job string) {
	it, there := ch.After, true
	if it == nil {
		it, there = ch.Before, false
	}
	pk, sk := text(it, "pk"), text(it, "sk")
	switch {
	case sk == "JOB":
		is := read[queue.Job](it)
		if !there {
			if c.batches[is.Batch].State != ingest.BatchDeleted {
				c.fail("the row of job %s went before its batch", is.Job.ID)
			}
			delete(c.jobs, is.Job.ID)
			return is.Job.ID
		}
		c.job(c.jobs[is.Job.ID], is, events["Job"+is.Job.ID])
		c.jobs[is.Job.ID] = is
		return is.Job.ID
	case sk == "BATCH":
		is := read[queue.Batch](it)
		if !there {
			delete(c.batches, is.Batch.ID)
			c.retired++
			return ""
		}
		c.batch(c.batches[is.Batch.ID], is, events["Batch"+is.Batch.ID])
		c.batches[is.Batch.ID] = is
	case sk == "COUNT":
		c.counts[strings.TrimPrefix(pk, "BATCH#")] = read[queue.Counts](it).Counts
	case pk == "SLOT":
		// A requeue takes its slot without testing the limit, also while a gate is
		// counting: what the gates themselves let in must be within it.
		c.slots[sk] = there
		c.granted[sk] = there && events["Job"+sk].Component == "clock"
		if n := c.held(c.granted); n > maxInFlight || c.w.share > 0 && n > c.w.share {
			c.fail("the gates over-started: %d slots", n)
		}
		return sk
	case pk == "SPACE":
		c.spaces[sk] = there
		return sk
	case strings.HasPrefix(sk, "WAITS#"):
		job := strings.TrimPrefix(sk, "WAITS#")
		if c.lines[job] == nil {
			c.lines[job] = map[string]bool{}
		}
		c.lines[job][strings.TrimPrefix(pk, "LOCK#")] = there
		return job
	case sk == "LOCK":
		c.locks[pk] = ""
		if there {
			c.locks[pk] = text(it, "owned_by")
		}
	}
	return ""
}

func (c *checker) held(m map[string]bool) (n int) {
	for _, v := range m {
		if v {
			n++
		}
	}
	return n
}

func (c *checker) job(was, is queue.Job, e event.Row) {
	if was.State != is.State {
		if err := ingest.CheckJob(was.State, is.State); err != nil {
			c.fail("%v", err)
		}
	}
	if was.State != is.State || was.Exec != is.Exec {
		if e.Version != is.Version || is.Version != was.Version+1 {
			c.fail("job %s went %s→%s (exec %d→%d) at version %d with event %d", is.Job.ID, was.State, is.State, was.Exec, is.Exec, is.Version, e.Version)
		}
	} else if is.Version != was.Version && e.Version != is.Version {
		c.fail("job %s: version %d without its event", is.Job.ID, is.Version)
	}
	if is.Exec < was.Exec {
		c.fail("job %s: exec fell", is.Job.ID)
	}
	place, _ := is.Job.Place()
	if is.State.Open() && is.State != ingest.Held && place == "" {
		c.fail("job %s in %s is nowhere", is.Job.ID, is.State)
	}
	if is.State == ingest.Recording && was.State == ingest.Storing {
		n := 0
		for _, j := range c.w.store.head(object(&is.Job)) {
			if j == is.Job.ID {
				n++
			}
		}
		if n != 1 {
			c.fail("job %s is Recording with %d stored versions", is.Job.ID, n)
		}
	}
}

func (c *checker) batch(was, is queue.Batch, e event.Row) {
	if was.State != is.State {
		if err := ingest.CheckBatch(was.State, is.State); err != nil {
			c.fail("%v", err)
		}
		if e.Version != is.Version {
			c.fail("batch %s went to %s without its event", is.Batch.ID, is.State)
		}
	}
	if is.State == ingest.BatchCompleted && c.counts[is.Batch.ID].Open()+c.counts[is.Batch.ID].Failed > 0 {
		c.fail("batch %s is Completed with counts %+v", is.Batch.ID, c.counts[is.Batch.ID])
	}
}

// agrees holds a job against its scarce rows.
func (c *checker) agrees(id string) {
	j := c.jobs[id]
	if j.HasSlot != c.slots[id] {
		c.fail("job %s (%s): slot %v, row %v", id, j.State, j.HasSlot, c.slots[id])
	}
	if j.HasSpace != c.spaces[id] {
		c.fail("job %s (%s): space %v, row %v", id, j.State, j.HasSpace, c.spaces[id])
	}
	for _, l := range j.Locks {
		if c.locks["LOCK#"+l] != id {
			c.fail("job %s: lock %s is owned by %q", id, l, c.locks["LOCK#"+l])
		}
	}
	if chain := j.Chain(); c.held(c.lines[id]) != len(chain) {
		c.fail("job %s (%s) stands in line for %v, its rows are %v", id, j.State, chain, c.lines[id])
	}
	if j.Running() && !j.HasSlot {
		c.fail("job %s runs in %s without a slot", id, j.State)
	}
}

// recount holds every batch's counts against its jobs.
func (c *checker) recount() {
	sum := map[string]map[ingest.Class]int64{}
	for _, j := range c.jobs {
		if sum[j.Batch] == nil {
			sum[j.Batch] = map[ingest.Class]int64{}
		}
		sum[j.Batch][j.State.Class()]++
	}
	for id, b := range c.batches {
		if b.State == ingest.BatchDeleted {
			continue // its jobs' rows go
		}
		n, got := sum[id], c.counts[id]
		want := ingest.Counts{Processing: n[ingest.ClassProcessing], Held: n[ingest.ClassHeld], Failed: n[ingest.ClassFailed], Completed: n[ingest.ClassCompleted], Deleted: n[ingest.ClassDeleted]}
		if got != want {
			c.fail("batch %s counts %+v, its jobs are %+v", id, got, want)
		}
		if b.Sealed && got.Sum() != int64(b.Expected) {
			c.fail("batch %s sums to %d of %d", id, got.Sum(), b.Expected)
		}
	}
}

// success holds an answered success against the job's row.
func (c *checker) success(m queue.Message) {
	if m.Job == "" {
		return
	}
	j := c.jobs[m.Job]
	if j.Exec == m.Exec && string(j.State) == m.State {
		c.fail("success was answered for job %s at %s, which it has not left", m.Job, m.State)
	}
}

// allRetired names what is left of completed batches after their rows were kept
// long enough.
func (c *checker) allRetired() error {
	for id, b := range c.batches {
		if b.State != ingest.BatchFailed {
			return fmt.Errorf("batch %s is still there, %s", id, b.State)
		}
	}
	for id, j := range c.jobs {
		if _, there := c.batches[j.Batch]; !there {
			return fmt.Errorf("job %s is there without its batch", id)
		}
	}
	return nil
}

// atRest names what has not come to rest.
func (c *checker) atRest() error {
	for id, j := range c.jobs {
		if j.State.Open() {
			return fmt.Errorf("job %s is still %s (exec %d, parked %v)", id, j.State, j.Exec, j.Parked)
		}
		n := 0
		for _, v := range c.w.store.head(object(&j.Job)) {
			if v == id {
				n++
			}
		}
		if j.State == ingest.Completed && n != 1 {
			return fmt.Errorf("job %s is Completed with %d versions", id, n)
		}
	}
	for id, b := range c.batches {
		if b.State != ingest.BatchCompleted && b.State != ingest.BatchFailed {
			return fmt.Errorf("batch %s is still %s", id, b.State)
		}
	}
	if n := c.held(c.slots); n > 0 {
		return fmt.Errorf("%d slots are held by nobody", n)
	}
	return nil
}
