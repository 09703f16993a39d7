package queue

import (
	"context"
	"log/slog"
	"time"

	"archivist/pkg/events/event"
	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/lease"
	"archivist/pkg/kernel/table"
)

// Settings limit what the gates grant and what one tick does.
type Settings struct {
	MaxInFlight int           // running jobs at once; the concurrency of every stage is at least this
	Space       int64         // bytes of work files at once
	Reserve     int64         // jobs of unknown size wait while less than this is free
	Share       int           // running jobs of one collection at once; 0 = no limit
	Patience    time.Duration // a job that has waited longer reserves freed space; 0 = never
	FailedKeep  time.Duration // failed jobs keep their work files so long, even when others lack space
	SweepPage   int           // items checked per shard and tick, so that a tick ends in time
}

// Check returns an Invalid that names the first setting with which jobs could not run. No function
// starts with such settings.
func (s Settings) Check() error {
	for _, r := range []struct {
		ok   bool
		rule string
	}{
		{s.MaxInFlight >= 1 && s.MaxInFlight <= 1000,
			"maxInFlight must be 1 to 1,000: one queue cannot invoke more than 1,000 functions at once"},
		{s.Space > 0, "spaceGiB must be positive"},
		{s.Reserve >= 0 && s.Reserve <= s.Space,
			"reserveGiB must be 0 to spaceGiB: jobs of unknown size wait until this much is free"},
		{s.Share >= 0, "share must not be negative"},
		{s.Patience >= 0, "patienceMinutes must not be negative"},
		{s.FailedKeep >= 0, "failedKeepHours must not be negative"},
		{s.SweepPage >= 1, "sweepPage must be at least 1"},
	} {
		if !r.ok {
			return fault.New(fault.Invalid, "settings: %s", r.rule)
		}
	}
	return nil
}

// Queue is the service. Fields that may be nil say so; all others are required. It has no state
// of its own: any number of processes use one table.
type Queue struct {
	Table      *table.Table
	Now        func() time.Time
	NewID      func() string
	Executions Executions
	Wake       func(ctx context.Context) error // asks the scheduler to run the gates
	Metric     func(name string, n float64)

	// Clean removes a job's work files. It stops at a time, and reports whether it removed all.
	Clean func(ctx context.Context, job string, until time.Time) (all bool, err error)

	// Stored checks in the storage whether the version of a job at Storing is committed. If
	// so, it sets the version on the job. nil: the storage cannot be checked.
	Stored func(ctx context.Context, j *ingest.Job) error

	// Record writes the missing rows of a stored object, for an actor. A Conflict means that some
	// local ids are another object's; the rest is written. nil: nothing can be recorded.
	Record func(ctx context.Context, ark, actor string) error

	// Compose prepares mails to be sent. nil: there are no mails.
	Compose Compose

	// Uploads looks at the uploads that are due, and begins with none after a time. nil: there are none.
	Uploads func(ctx context.Context, until time.Time) error

	// Names remembers which collections are listed. nil: each submission reads the row of its collection.
	Names *Names

	Rules    ingest.Rules
	Settings Settings
	Log      *slog.Logger
}

// Compose prepares a mail about a batch. to are its recipients, by the current submission
// and profile of the collection; send sends it to one of them. If send returns an Invalid,
// the mail was refused: it is tried less often.
type Compose func(ctx context.Context, b *ingest.Batch, m ingest.Mail) (to []string, send Send,
	err error)

// Send sends a mail to one recipient. An Invalid means that it was refused.
type Send = func(ctx context.Context, to string) error

// Job is a job's row. Version is the number of its last event.
type Job struct {
	table.Head
	Version int64 `dynamo:"version"`
	lease.On
	ingest.Job
}

// Batch is a batch's row. Version is the number of its last event.
type Batch struct {
	table.Head
	Version int64 `dynamo:"version"`
	lease.On
	ingest.Batch
}

// Counts is a batch's count row. It is separate from the batch's row, so that a change of a
// job does not write the batch. StopAfter is repeated here, so that the end of a job reads one row.
type Counts struct {
	table.Head
	ingest.Counts
	StopAfter int `dynamo:"stop_after,omitempty"` // that of the batch
	// Weighed: the amounts are of all of its jobs. Those of a batch of an earlier version are not:
	// they are not shown.
	Weighed bool `dynamo:"weighed,omitempty"`
	// Untold: of some of its jobs it is not known whether they had callbacks, so none are shown.
	Untold bool `dynamo:"untold,omitempty"`
}

// sums are the numbers of jobs, and the amounts that are known of all jobs.
func (c *Counts) sums() ingest.Counts {
	sums := c.Counts
	switch {
	case !c.Weighed:
		sums.Amounts = ingest.Amounts{}
	case c.Untold:
		sums.Amounts = ingest.Amounts{Bytes: sums.Bytes}
	}
	return sums
}

func jobSubject(id string) event.Subject { return event.Subject{Type: event.Job, ID: id} }

func batchSubject(id string) event.Subject { return event.Subject{Type: event.Batch, ID: id} }

func jobKey(id string) table.Key { return jobSubject(id).Key() }

func batchKey(id string) table.Key { return batchSubject(id).Key() }

func countKey(id string) table.Key { return table.Key{PK: batchKey(id).PK, SK: "COUNT"} }

func head(k table.Key) table.Head { return table.Head{PK: k.PK, SK: k.SK} }

// Job reads a job. A missing one is a NotFound.
func (q *Queue) Job(ctx context.Context, id string) (*Job, error) {
	var row Job
	if err := q.Table.Get(ctx, jobKey(id), &row); err != nil {
		return nil, named(err, "job", id)
	}
	return &row, nil
}

// Batch reads a batch. A missing one is a NotFound.
func (q *Queue) Batch(ctx context.Context, id string) (*Batch, error) {
	var row Batch
	if err := q.Table.Get(ctx, batchKey(id), &row); err != nil {
		return nil, named(err, "batch", id)
	}
	return &row, nil
}

// Counts reads a batch's counts.
func (q *Queue) Counts(ctx context.Context, batch string) (ingest.Counts, error) {
	row, err := q.countRow(ctx, batch)
	return row.sums(), err
}

// CountsOf reads the counts of batches, in their order: zero of one whose rows were removed meanwhile.
func (q *Queue) CountsOf(ctx context.Context, batches []Batch) ([]ingest.Counts, error) {
	ids := make([]string, len(batches))
	for i := range batches {
		ids[i] = batches[i].Batch.ID
	}
	rows, err := readRows[Counts](ctx, q.Table, ids, countKey)
	if err != nil {
		return nil, err
	}

	counts := make([]ingest.Counts, len(ids))
	for i, row := range rows {
		if row != nil {
			counts[i] = row.sums()
		}
	}
	return counts, nil
}

// countRow reads the counts of a batch. Without them there is no such batch.
func (q *Queue) countRow(ctx context.Context, batch string) (row Counts, err error) {
	err = q.Table.Get(ctx, countKey(batch), &row)
	return row, named(err, "batch", batch)
}

// named adds the item's id to a NotFound.
func named(err error, what, id string) error {
	if fault.Is(err, fault.NotFound) {
		return fault.New(fault.NotFound, "there is no %s %q", what, id)
	}
	return err
}

// put inserts a new row, whose rev is 0, or saves one that was read. Both are conditions: that
// there is no such row, or that it was not written since.
func put(tx *table.Tx, row table.Row, rev int64) {
	if rev == 0 {
		tx.Insert(row)
	} else {
		tx.Save(row)
	}
}
