package queue

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/explain"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// ExplainBatch explains what a batch waits for. A missing batch is a NotFound.
func (q *Queue) ExplainBatch(ctx context.Context, id string) (explain.Explanation, error) {
	return q.explain(ctx, id, q.explainBatch)
}

func (q *Queue) explainBatch(ctx context.Context, id string) (x explain.Part, err error) {
	row, err := q.Batch(ctx, id)
	if err != nil {
		return x, err
	}

	counts, err := q.Counts(ctx, id)
	if err != nil {
		return x, err
	}

	x.Waits = explain.Nothing
	switch row.State {
	case ingest.BatchPending:
		x = q.explainStage(row, reading(&row.Batch))
	case ingest.BatchReporting, ingest.BatchUpdateReporting:
		x = q.explainStage(row, fmt.Sprintf("All of its jobs have ended (%s); writing the report", ended(counts)))
	case ingest.BatchProcessing:
		x, err = q.explainOpen(ctx, row, counts)
	case ingest.BatchHeld:
		x, err = q.explainHeld(ctx, row.Hold, row.Collection, id, "")
	case ingest.BatchFailed:
		x = failedBatch(row, counts)
		if counts.Failed > 0 {
			err = q.failedCauses(ctx, row, counts.Failed, &x)
		}
	case ingest.BatchCompleted:
		x.Why = fmt.Sprintf("All of its jobs have ended: %s.", ended(counts))
	case ingest.BatchDeleted:
		x.Why = deletedBatch(&row.Batch)
	}

	if err != nil {
		return x, err
	}

	explained(&x, explain.Batch, row, id, string(row.State), row.Entered)
	problems, err := q.MailProblems(ctx, row)
	for _, p := range problems {
		x.Why += p.Sentence()
	}
	return x, err
}

// deletedBatch states why a batch was deleted.
func deletedBatch(b *ingest.Batch) string {
	why := "It was completed long ago"
	if b.Removal != nil {
		why = "It was " + strings.TrimSuffix(b.Removal.String("deleted"), ".")
	}
	return why + "; its history is kept, and its other records are being removed."
}

// reading names what unpack does for a batch.
func reading(b *ingest.Batch) string {
	if b.Unpacked == 0 {
		return "Reading the submission"
	}
	return fmt.Sprintf("Reading the submission (%s of %s made)", ingest.Number(b.Unpacked),
		ingest.Counted(b.Expected, "job"))
}

// ended lists the numbers of jobs by how they ended.
func ended(c ingest.Counts) string {
	var parts []string
	for _, class := range []struct {
		n    int64
		name string
	}{{c.Completed, "completed"}, {c.Failed, "failed"}, {c.Deleted, "deleted"}} {
		if class.n > 0 {
			parts = append(parts, ingest.Number(class.n)+" "+class.name)
		}
	}
	return strings.Join(parts, ", ")
}

// explainOpen states how many jobs of a batch are open, and what one of them waits for.
func (q *Queue) explainOpen(ctx context.Context, row *Batch,
	counts ingest.Counts) (explain.Part, error) {
	x := says(explain.Parts, "")
	open := fmt.Sprintf("Jobs that have not ended: %s of %s", ingest.Number(counts.Open()),
		ingest.Number(row.Expected))
	switch {
	case counts.Open() == 0:
		x.Waits, x.Why = explain.Start, "All of its jobs have ended; the report starts shortly."
		return x, nil
	case counts.Held > 0:
		open += fmt.Sprintf(", %s of them on hold", ingest.Number(counts.Held))
	}

	x.Why = open + "."
	if row.Cancelled != nil {
		x.Why = fmt.Sprintf("It was %s %s", sentence(row.Cancelled.String("cancelled")), x.Why)
	}

	if counts.Held > 0 {
		var err error
		x, err = q.explainHolds(ctx, row, counts, x)
		if err != nil || counts.Processing == 0 {
			return x, err
		}
	}

	job, err := q.openJob(ctx, row.Batch.ID)
	if err != nil || job == nil {
		return x, err
	}

	x.On = job.Job.ID
	x.Why += fmt.Sprintf(" Job %s delays it most.", x.On)
	return x, nil
}

// explainHolds adds to the explanation of a batch why some of its jobs are on hold; if all
// of the open ones are, also what must be done.
func (q *Queue) explainHolds(ctx context.Context, row *Batch, counts ingest.Counts, x explain.Part) (
	explain.Part, error) {
	active, err := q.holdOn(ctx, row.Collection, row.Batch.ID)
	all := counts.Processing == 0
	switch {
	case err != nil:
	case active != nil && all:
		x.Waits, x.Until = explain.Hold, active.Until
		x.Why += " " + capital(untilReleased("jobs", active, true))
		x.Do = append(x.Do, ends(active))
	case active != nil:
		x.Why += " " + capital(sentence(active.Description()))
	case all:
		x.Waits = explain.Person
		x.Why += " Neither the batch nor its collection is on hold: an operator must release the jobs that are held " +
			"without an end."
		x.Do = append(x.Do, explain.Step{What: "Release its jobs",
			Command: "archivist job release --batch " + row.Batch.ID + " --all-held --reason TEXT"})
	}
	return x, err
}

// maxCompared is the number of running jobs of a batch that are read to find the one that
// delays it most.
const maxCompared = readers

// openJob finds the job of a batch that best explains its delay: among the running jobs the
// one with most problems, or longest in its state; or else the first that waits. It is nil
// if none is among the first waiting jobs of any gate. It reads a bounded number of rows, whatever
// the size of the batch.
func (q *Queue) openJob(ctx context.Context, batch string) (*Job, error) {
	ids, err := q.runningJobs(ctx, batch)
	if err != nil {
		return nil, err
	}

	// None of its jobs runs: then one that waits says why.
	if len(ids) == 0 {
		if ids, err = q.waitingJob(ctx, batch); err != nil {
			return nil, err
		}
	}

	var worst *Job
	for _, id := range ids {
		row, err := q.Job(ctx, id)
		if fault.Is(err, fault.NotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if row.State.Open() && (worst == nil || moreProblems(row, worst) > 0) {
			worst = row
		}
	}
	return worst, nil
}

// moreProblems is positive if a has more problems than b: it is blocked, it was tried or
// repaired more often, or it is longer in its state. A refused call counts most: only a person can
// correct it.
func moreProblems(a, b *Job) int {
	return cmp.Or(min(len(a.Blocked), 1)-min(len(b.Blocked), 1),
		a.Tries+a.Repairs-b.Tries-b.Repairs,
		cmp.Compare(b.Entered, a.Entered))
}

// runningJobs lists the first jobs of a batch that have a slot.
func (q *Queue) runningJobs(ctx context.Context, batch string) (ids []string, err error) {
	err = q.each(ctx, table.Query{PK: slotPK, Limit: 1000}, func(s Reservation) {
		if isOf(batch, s.Owner) && len(ids) < maxCompared {
			ids = append(ids, s.Owner)
		}
	})
	return ids, err
}

// waitingJob finds the first job of a batch that waits, among the first at each gate.
func (q *Queue) waitingJob(ctx context.Context, batch string) ([]string, error) {
	for _, place := range gates {
		var page []candidate
		if _, err := q.Table.Page(ctx, table.Query{
			Index: "work",
			PK:    place,
			Limit: countedMost,
		}, &page); err != nil {
			return nil, err
		}

		if i := slices.IndexFunc(page,
			func(w candidate) bool { return isOf(batch, w.ID) }); i >= 0 {
			return []string{page[i].ID}, nil
		}
	}
	return nil, nil
}

// isOf reports whether a job is of a batch.
func isOf(batch, job string) bool { return strings.HasPrefix(job, batch+"-") }

// failedBatch states what to do about a failed batch.
func failedBatch(row *Batch, counts ingest.Counts) explain.Part {
	failed, sum := ingest.Number(counts.Failed), ingest.Number(counts.Sum())
	report := explain.Step{What: "Report it",
		Command: "archivist batch update-report " + row.Batch.ID + " --reason TEXT"}
	requeue := explain.Step{What: "When the causes are corrected, requeue its failed jobs",
		Command: "archivist job requeue --batch " + row.Batch.ID + " --all-failed --reason TEXT"}
	switch {
	case row.Cancelled != nil && counts.Open() == 0:
		return cancelledBatch(row, counts, report)
	case counts.Sum() == 0:
		return says(explain.Person, fmt.Sprintf("It has no jobs: %s Correct the cause, then submit it again.",
			sentence(row.Message)))
	case counts.Open() > 0:
		report.What = "When all have ended, report it"
		return says(explain.Person, fmt.Sprintf("Jobs that are open again: %s of %s, failed: %s.",
			ingest.Number(counts.Open()), sum, failed), report)
	case counts.Failed > 0:
		return says(explain.Person, fmt.Sprintf("Failed jobs: %s of %s. Correct the causes, then requeue the jobs or "+
			"submit their objects again.", failed, sum), requeue)
	case row.Incomplete != "":
		return says(explain.Person, fmt.Sprintf("None of its jobs is failed now (%s), but not all of its rows became "+
			"jobs: %s Submit the other rows again.", ended(counts), sentence(row.Incomplete)))
	}
	return says(explain.Person, fmt.Sprintf("None of its jobs is failed now (%s). A report completes the batch.",
		ended(counts)), report)
}

// cancelledBatch states by whom a batch was cancelled, and how its jobs ended. If they are all
// completed nevertheless, report is how the batch is completed.
func cancelledBatch(row *Batch, counts ingest.Counts, report explain.Step) explain.Part {
	why := "It was " + sentence(row.Cancelled.String("cancelled"))
	if counts.Sum() == 0 {
		return says(explain.Person, why+" It has no jobs.")
	}
	why = fmt.Sprintf("%s All of its jobs have ended: %s.", why, ended(counts))
	if counts.Failed+counts.Deleted == 0 && row.Incomplete == "" {
		return says(explain.Person, why+" A report completes the batch.", report)
	}
	return says(explain.Person, why)
}
