package queue

import (
	"context"

	"archivist/pkg/event"
	"archivist/pkg/fault"
	"archivist/pkg/fetch"
	"archivist/pkg/ingest"
	"archivist/pkg/table"
)

// What the jobs of one transaction may have, beside the batch, its counts and its
// events, within DynamoDB's 100 rows and 4 MB; and what one job's row may have when
// it is made, within 400 KB, so that it has room for what is found out later.
const (
	chunkRows  = 95
	chunkBytes = 3 << 20
	newBytes   = 200 << 10
)

// rowBytes is more than the size of a job's event, or of a place in line.
const rowBytes = 2 << 10

// Chunk returns how many of the jobs, from the first, one transaction makes: a
// job has its row, its event, and its place in line for each identifier.
func Chunk(jobs []ingest.Job) int {
	rows, bytes := 0, 0
	for i, j := range jobs {
		j, _ = admissible(j)
		n := 2 + len(j.LockKeys())
		rows, bytes = rows+n, bytes+table.Size(Job{Job: j})+n*rowBytes
		if rows > chunkRows || bytes > chunkBytes {
			return max(i, 1)
		}
	}
	return len(jobs)
}

// admissible returns the job as it can be made, and why it can only be made to say
// that it failed, "" if it can be ingested.
func admissible(j ingest.Job) (ingest.Job, string) {
	if err := ingest.CheckSubmission(&j.Primary, &j.LocalIDs, j.Payload); err != nil {
		return ingest.Refused(j), err.Error() + ". Correct it and submit the object again"
	}
	if table.Size(Job{Job: j}) > newBytes {
		return ingest.Refused(j), "its description is too long; shorten it and submit the object again"
	}
	return j, ""
}

// Unpack makes the batch's next jobs. The batch's row holds how far it is, so a
// chunk happens once; the one that reaches expected seals the batch and moves it
// to Processing. The jobs' ids follow from their rows. A row that cannot be
// ingested becomes a job that is Failed with the reason, and the others go on. An
// Invalid means that the batch has too many rows.
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
		err = q.putBatch(tx, row, next, origin{event: "batch.state", actor: next.Submitter, component: "unpack"})
	} else {
		next = q.Rules.DueBatch(next, q.Now())
		err = q.putBatch(tx, row, next, origin{})
		tx.Prove(batchKey(next.ID)) // there is no event of the batch that could
	}
	if err != nil {
		return err
	}
	if err := tx.Commit(ctx); err != nil {
		return err
	}

	if failed := count[string(ingest.ClassFailed)]; failed > 0 {
		q.Metric(FailedJobs, float64(failed))
	}
	q.wake(ctx, ingest.BatchWakes(prev, next))
	return nil
}

// makeJobs puts the next jobs of a batch into tx, and their numbers by class into its
// counts.
func (q *Queue) makeJobs(tx *table.Tx, b *ingest.Batch, jobs []ingest.Job) (count map[string]int64, err error) {
	count = map[string]int64{}
	for _, j := range jobs {
		b.Unpacked++
		j.Row, j.ID, j.Batch = b.Unpacked, ingest.JobID(b.ID, b.Unpacked), b.ID
		made, err := q.makeJob(tx, j, b.Submitter)
		if err != nil {
			return nil, err
		}
		count[string(made.State.Class())]++
	}
	tx.Count(countKey(b.ID), count)
	return count, nil
}

// makeJob puts a new job into tx, with its event and its places in line.
func (q *Queue) makeJob(tx *table.Tx, j ingest.Job, submitter string) (ingest.Job, error) {
	j, refused := admissible(j)
	j = q.Rules.New(j, q.Now())
	e := event.New{Type: "job.state", Component: "unpack", Actor: submitter}
	if refused != "" {
		j.URL = fetch.Redact(j.URL) // it is never fetched
		j = q.Rules.Failed(j, refused, false, q.Now())
		e.Outcome = event.Failure
	}
	e.Time, e.Detail = j.Created, Change{To: string(j.State), Reason: refused}
	row := &Job{Head: head(jobKey(j.ID)), Version: 1, Job: j}
	q.writeJob(tx, row, *row)
	reserve(tx, ingest.Job{ID: j.ID}, j, nil)
	return j, event.Append(tx, jobSubject(j.ID), 1, e)
}
