package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"archivist/pkg/events/check"
	"archivist/pkg/events/event"
	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// batchEvent checks that a batch with events has a row, unless it was deleted. Only
// batches are checked so: the events of other subjects outlive their rows, or their rows are
// never removed. The first event that a page reads is enough.
func (x *exam) batchEvent(ctx context.Context) error {
	id := x.ID()
	if x.Before.PK == x.PK || x.SK != event.Key(batchSubject(id), 1).SK {
		return nil
	}

	missing, err := x.Missing(ctx, batchKey(id))
	if err != nil || !missing {
		return err
	}

	last, err := x.LastState(ctx, batchSubject(id))
	if err != nil {
		return err
	}
	if last != string(ingest.BatchDeleted) {
		x.Subject = "batch:" + id
		x.Row.Add("batch-row", check.Restore, nil, "the batch has no row; by its events it is %s", last)
	}
	return nil
}

// batch checks a batch's row, its newest event, and that there are counts. The row of
// counts is one of its own, so that jobs which end do not compete for the batch's row.
func (x *exam) batch(ctx context.Context) error {
	var b Batch
	if !x.Into(&b) {
		return nil
	}

	if !x.valid("batch", b.Batch.ID, string(b.State),
		slices.Contains(ingest.BatchStates(), b.State)) {
		return nil
	}

	x.batchProgress(&b)
	missing, err := x.Missing(ctx, table.Key{PK: x.PK, SK: "COUNT"})
	if err != nil {
		return err
	}

	if missing {
		x.Row.Add("batch-counts", "", x.makeCounts(&b),
			"the batch has no row of counts: its jobs cannot end")
	}

	first := b.First()
	err = errors.Join(x.owned(ctx, &b.Head, &first),
		x.listed(ctx, &b.Head, b.Batch.ID, listedBatch(&b.Batch)),
		x.History(ctx, batchSubject(b.Batch.ID), b.Version, string(b.State)))
	should := b
	should.Place()
	x.Placed(b.Head, should.Head, x.unless(b.Live(x.Queue.Now()), &should))
	return err
}

// batchProgress checks that something moves a batch on. A batch that nothing wakes would stay
// as it is for ever, without an error anywhere.
func (x *exam) batchProgress(b *Batch) {
	explain := "archivist explain " + b.Batch.ID
	place, _ := b.Batch.WorkKey()
	switch {
	case b.State == ingest.BatchProcessing && !b.Sealed:
		x.Row.Add("batch-sealed", explain, nil,
			"the batch is Processing, but not sealed: it never reports")
	case b.State == ingest.BatchHeld && b.Hold == nil:
		x.Row.Add("held-reason", fmt.Sprintf("archivist batch release %s --reason …", b.Batch.ID), nil,
			"the batch is Held, but its row has no hold that says why")
	case b.State == ingest.BatchDeleted && b.Due == 0:
		x.Row.Add("due", explain, nil, "the batch is Deleted, but never due: its rows are not removed")
	default:
		x.due(b.Due, place, b.Live(x.Queue.Now()), explain)
	}
}

// makeCounts makes the missing counts of a batch from its jobs. No job can enter or leave a
// class meanwhile: that writes the counts. Counts that are missing are inserted, so two
// repairs at once make them once. A job that an earlier version completed does not tell its
// callbacks, nor that it had none: then no callbacks are shown, rather than too few. The jobs
// of a batch that has none cannot end; those of rows that are not unpacked yet do not count.
func (x *exam) makeCounts(b *Batch) func(context.Context) error {
	return func(ctx context.Context) error {
		r := recount{Jobs: map[ingest.State]int64{}}
		for r.After < b.Unpacked {
			if err := r.next(ctx, x.Queue, &b.Batch); err != nil {
				return err
			}
		}

		if len(r.Missing) > 0 || r.unknown() {
			return fault.New(fault.Conflict, "jobs are missing, or in no state: %s", r.missing())
		}
		return x.Making(&b.Head, func(tx *table.Tx) {
			tx.Insert(&Counts{Head: head(countKey(b.Batch.ID)), Counts: r.counts(), StopAfter: b.StopAfter,
				Weighed: true, Untold: r.Untold})
		})(ctx)
	}
}

// recount is the count of a batch's jobs, as far as it was made. It goes through several
// pages as part of the cursor, so it is small: one number for each state, not one for each
// job.
type recount struct {
	Writing check.Writing          `json:"writing"` // of the row of counts when it began
	Begun   int                    `json:"begun"`   // how often
	After   int                    `json:"after"`   // the last row that was counted
	Jobs    map[ingest.State]int64 `json:"jobs"`    // by state
	Stopped int64                  `json:"stopped"` // failed by a person
	Amounts ingest.Amounts         `json:"amounts"` // of those that have ended
	Untold  bool                   `json:"untold"`  // of a completed job nothing is known of callbacks
	Missing []int                  `json:"missing"` // rows without a job, the first of them
	More    int                    `json:"more"`    // the number of the others
}

// next counts the next hundred jobs. Rows of the manifest are numbered from 1, and the list
// of jobs is in their order; a number that the list leaves out is a job that is missing.
func (r *recount) next(ctx context.Context, q *Queue, b *ingest.Batch) error {
	jobs, err := q.Jobs(ctx, b.ID, r.After)
	if err != nil {
		return err
	}

	last := min(r.After+100, b.Unpacked)
	for _, j := range jobs {
		for r.After++; r.After < j.Row; r.After++ {
			r.lacks(r.After)
		}
		r.Jobs[j.State]++
		if j.Stopped {
			r.Stopped++
		}
		r.Amounts.Add(j.Amounts())
		r.Untold = r.Untold || j.State == ingest.Completed && len(j.Calls) == 0
	}

	for r.After++; r.After <= last; r.After++ {
		r.lacks(r.After)
	}

	r.After = last
	return nil
}

// mostMissing is how many rows without a job are named.
const mostMissing = 10

func (r *recount) lacks(row int) {
	if len(r.Missing) < mostMissing {
		r.Missing = append(r.Missing, row)
	} else {
		r.More++
	}
}

// missing lists the rows without a job.
func (r *recount) missing() string {
	text := strings.Trim(fmt.Sprint(r.Missing), "[]")
	if r.More > 0 {
		text += fmt.Sprintf(" and %d more", r.More)
	}
	return text
}

// unknown reports whether a job is in no state. Its class cannot be told, so the sums would
// be wrong by it.
func (r *recount) unknown() bool {
	for state := range r.Jobs {
		if !slices.Contains(ingest.JobStates(), state) {
			return true
		}
	}
	return false
}

// counts are the numbers by class.
func (r *recount) counts() (c ingest.Counts) {
	c.Stopped, c.Amounts = r.Stopped, r.Amounts
	for state, n := range r.Jobs {
		switch state.Class() {
		case ingest.ClassHeld:
			c.Held += n
		case ingest.ClassFailed:
			c.Failed += n
		case ingest.ClassCompleted:
			c.Completed += n
		case ingest.ClassDeleted:
			c.Deleted += n
		default:
			c.Processing += n
		}
	}
	return c
}

// countTries is how often a batch is counted anew whose jobs end meanwhile: it is left alone then, and counted when it
// rests.
const countTries = 3

// begun is the recount of a batch that an earlier page or try has begun, or a new one. A recount is valid only if no
// job changed its class meanwhile: that writes the row of counts. Begun counts how often that was in vain.
func (x *exam) begun() (r recount) {
	_ = json.Unmarshal(x.From, &r) // one that cannot be read begins anew
	now := x.Written()
	if r.Writing != now || r.Begun == 0 {
		r = recount{Writing: now, Begun: r.Begun + 1, Jobs: map[ingest.State]int64{}}
	}
	x.From, _ = json.Marshal(r)
	return r
}

// counts counts the jobs of a batch and compares. A batch of more jobs than one page
// counts is continued in the next page.
//
// A hundred jobs are one query. The count is compared only if neither the row of counts (by
// examine) nor the batch's row was written meanwhile: unpacking raises the number of jobs,
// and the removal of a deleted batch takes them away, without the row of counts.
func (x *exam) counts(ctx context.Context) error {
	var c Counts
	if !x.Into(&c) {
		return nil
	}

	id := strings.TrimPrefix(x.PK, "BATCH#")
	x.Subject = "batch:" + id
	b, err := x.Batch(ctx, id)
	if fault.Is(err, fault.NotFound) {
		x.Row.Add("batch-row", check.Restore, nil, "there are counts, but no batch")
		return nil
	}

	if err != nil {
		return err
	}

	r := x.begun()
	if r.Begun > countTries {
		return nil // its jobs run: it is counted when it rests
	}

	for n := 0; r.After < b.Unpacked; n++ {
		if n > 0 && (n == recountsOfPage || x.Enough()) {
			x.Rest, err = json.Marshal(r)
			return err
		}
		if err := r.next(ctx, x.Queue, &b.Batch); err != nil {
			return err
		}
	}

	r.Writing = check.Writing{} // another try counts again
	x.From, _ = json.Marshal(r)
	x.compareCounts(b, c, &r)
	if len(x.Problems) == 0 {
		return nil
	}

	again, err := x.Batch(ctx, id)
	switch {
	case fault.Is(err, fault.NotFound):
		return check.ErrChanged // its rows are being removed
	case err != nil:
		return err
	case again.Rev != b.Rev:
		return check.ErrChanged // it was just unpacked, for example
	}
	return nil
}

// recountsOfPage is how many hundreds of jobs one page counts. They are 2,000 jobs, which
// take some seconds.
const recountsOfPage = 20

// countText writes counts as text.
func countText(c ingest.Counts) string {
	text := fmt.Sprintf("%d processing, %d held, %d failed (%d by a person), %d completed, %d deleted", c.Processing,
		c.Held, c.Failed, c.Stopped, c.Completed, c.Deleted)
	if c.Amounts != (ingest.Amounts{}) {
		text += fmt.Sprintf("; %d bytes; callbacks: %d delivered, %d failed, %d given up",
			c.Bytes, c.Called, c.CallFailed, c.Uncalled)
	}
	return text
}

// compareCounts compares a batch and its counts with its jobs. The order matters: a finding
// that says more ends the comparison, so that no repair writes over what it shows.
func (x *exam) compareCounts(b *Batch, c Counts, r *recount) {
	if r.unknown() {
		return // that is a finding of its own; the job's class is not known
	}

	is := r.counts()
	ended := b.State == ingest.BatchCompleted || b.State == ingest.BatchDeleted
	if ended && is.Open() > 0 {
		x.Row.Add("batch-open-jobs", "archivist batch show "+b.Batch.ID, nil,
			"the batch is %s, with %d open jobs", b.State,
			is.Open())
	}

	if b.State == ingest.BatchCompleted && is.Failed > 0 {
		x.Row.Add("batch-open-jobs", "archivist batch show "+b.Batch.ID, nil,
			"the batch is Completed, with %d failed jobs",
			is.Failed)
	}

	if b.State == ingest.BatchDeleted {
		return // the rows of its jobs are being removed
	}

	if len(r.Missing) > 0 {
		x.Row.Add("job-row", check.Restore, nil,
			"the batch has %d jobs; those of these rows are missing: %s", b.Unpacked, r.missing())
		return // corrected counts would hide that
	}

	x.compareSums(c, is)
	if b.Sealed && is.Sum() != int64(b.Expected) {
		x.Row.Add("batch-sum", "archivist batch show "+b.Batch.ID, nil,
			"it is sealed and expects %d jobs; it has %d",
			b.Expected, is.Sum())
	}
}

// compareSums compares counts with what they should be.
func (x *exam) compareSums(c Counts, is ingest.Counts) {
	if !c.Weighed { // not all of its jobs have added theirs
		is.Amounts, c.Amounts = ingest.Amounts{}, ingest.Amounts{}
	}
	if is == c.Counts {
		return
	}
	right := c
	right.Counts = is
	repair := func(ctx context.Context) error {
		return x.Commit(ctx, func(tx *table.Tx) error { tx.Save(&right); return nil })
	}
	x.Row.Add("batch-counts", "", repair, "its counts are %s; its jobs are %s", countText(c.Counts), countText(is))
}
