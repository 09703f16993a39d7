package queue

import (
	"context"

	"archivist/pkg/events/event"
	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/fetch"
	"archivist/pkg/kernel/table"
)

// Limits of the jobs in one transaction, in addition to the batch, its counts, its event, its mail, and what lists it
// before and after, within DynamoDB's 100 rows and 4 MB. newBytes limits a new job's row, within DynamoDB's 400 KB, to
// leave room for what later steps add.
const (
	chunkRows  = 88
	chunkBytes = 3 << 20
	newBytes   = 200 << 10
)

// rowBytes is an upper limit of the size of a job's event, of a row under which it is listed, or of a place in line
// without the lock keys that it lists.
const rowBytes = 2 << 10

// Chunk returns how many of the first jobs fit into one transaction: a job has its row, its event, a place in line for
// each identifier, and the rows under which it is listed.
func Chunk(jobs []ingest.Job) int {
	rows, bytes := 0, 0
	for i, j := range jobs {
		j, refused := admissible(j)
		keys := j.LockKeys()
		j.Created, j.Message = 1, refused // as if it were made: it is listed under its message, too
		n := 2 + len(keys) + len(Listed(&j))
		rows, bytes = rows+n, bytes+table.Size(Job{Job: j})+n*rowBytes
		for _, key := range keys { // each place in line lists the other keys
			bytes += len(key) * len(keys)
		}
		// At least one job: a single one is within the limits, by newBytes and MaxLocalIDs.
		if rows > chunkRows || bytes > chunkBytes {
			return max(i, 1)
		}
	}
	return len(jobs)
}

// admissible returns the job with clean identifiers and "". If the job cannot be ingested,
// it returns a shortened job and the reason.
func admissible(j ingest.Job) (ingest.Job, string) {
	if err := ingest.CheckSubmission(&j.Primary, &j.LocalIDs, j.Payload); err != nil {
		return ingest.Refused(j), err.Error() + ". Correct it and submit the object again"
	}
	if table.Size(Job{Job: j}) > newBytes {
		return ingest.Refused(j),
			"its description is too long; shorten it and submit the object again"
	}
	return j, ""
}

// Unpack makes the batch's next jobs under the lease, and saves the warnings of its
// manifest; see Queue.Unpack.
func (c *Claim) Unpack(ctx context.Context, jobs []ingest.Job, expected int) error {
	row := c.item.(*Batch)
	row.Warnings = c.Batch.Warnings
	err := c.q.Unpack(ctx, row, jobs, expected)
	if fault.Is(err, fault.Invalid) {
		c.refused = err
	}
	*c.Batch = row.Batch
	return err
}

// Unpack makes the batch's next jobs. The batch's row counts the jobs made, so that no chunk
// is made twice. The chunk that reaches expected seals the batch and moves it to
// Processing. The jobs' ids follow from their row numbers. A row that cannot be ingested
// becomes a Failed job with the reason; the other rows are not affected. An Invalid means
// that the batch has too many rows.
func (q *Queue) Unpack(ctx context.Context, row *Batch, jobs []ingest.Job, expected int) error {
	if expected > ingest.MaxJobs {
		return fault.New(fault.Invalid, "the batch has %d rows; at most %d are allowed. "+
			"Split it into several submissions", expected, ingest.MaxJobs)
	}

	prev, next := row.Batch, row.Batch
	tx := q.Table.Begin(q.NewID())
	count, err := q.makeJobs(tx, &next, jobs)
	if err != nil {
		return err
	}

	next.Tries, next.Repairs, next.Blocked, next.Expected = 0, 0, "", expected
	if next.Unpacked == expected {
		next = q.seal(next)
		err = q.putBatch(tx, row, next, nil, origin{
			event:     "batch.state",
			actor:     next.Actor(),
			component: "unpack",
		})
	} else {
		next = q.Rules.DueBatch(next, q.Now())
		err = q.putBatch(tx, row, next, nil, origin{})
		tx.Prove(batchKey(next.ID)) // without an event, the row proves the commit
	}

	if err != nil {
		return err
	}

	if err := tx.Commit(ctx); err != nil {
		return err
	}

	failed := count[string(ingest.ClassFailed)]
	if failed > 0 {
		q.Metric(FailedJobs, float64(failed))
	}

	wakes := ingest.BatchWakes(prev, next)
	if failed > 0 && next.State == prev.State { // perhaps too many
		wakes = append(wakes, ingest.Wake{Kind: ingest.CloseBatch, ID: next.ID})
	}

	q.wake(ctx, wakes)
	return nil
}

// makeJobs puts the next jobs of a batch into tx, and their numbers by class into its
// counts.
func (q *Queue) makeJobs(tx *table.Tx, b *ingest.Batch,
	jobs []ingest.Job) (count map[string]int64, err error) {
	count = map[string]int64{}
	first := b.First() // it has its places in line already
	for _, j := range jobs {
		b.Unpacked++
		j.Row, j.ID, j.Batch = b.Unpacked, ingest.JobID(b.ID, b.Unpacked), b.ID
		j.Cause, j.Behind = b.Cause, b.Behind
		before := ingest.Job{ID: j.ID}
		if first.ID == j.ID {
			before = first
		}
		made, err := q.makeJob(tx, j, before, b.Actor())
		if err != nil {
			return nil, err
		}
		count[string(made.State.Class())]++
	}

	tx.Count(countKey(b.ID), count)
	return count, nil
}

// makeJob puts a new job into tx, with its event and its places in line. before is the job as
// far as it has some already. A refused one is made and fails in one event.
func (q *Queue) makeJob(tx *table.Tx, j, before ingest.Job, submitter string) (ingest.Job, error) {
	j, refused := admissible(j)
	j = q.Rules.New(j, q.Now())
	e := event.New{Type: "job.state", Component: "unpack", Actor: submitter}
	if refused != "" {
		j.URL = fetch.Redact(j.URL) // it is never fetched
		j = q.Rules.Failed(j, refused, false, q.Now())
		e.Outcome = event.Failure
	}

	e.Time, e.Detail = j.Created, Change{To: string(j.State), Reason: ingest.Cut(refused, mostText)}
	e.Parents, e.Identifiers, e.After = jobParents(j), jobIdentifiers(j), propertiesOfJob(j)
	row := &Job{Head: head(jobKey(j.ID)), Version: 1, Job: j}
	q.writeJob(tx, row, *row)
	reserve(tx, before, j, nil)
	return j, event.Append(tx, jobSubject(j.ID), 1, e)
}
