// Package queue is the ingest service: it keeps batches and jobs as rows and
// moves them by one transaction per change, drives them through executions,
// lets them through the gates, and repairs what got lost.
package queue

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"archivist/pkg/event"
	"archivist/pkg/fault"
	"archivist/pkg/ingest"
	"archivist/pkg/lease"
	"archivist/pkg/table"
)

// Executions starts and stops the state machines' executions. They are
// wake-ups: nothing is decided from them but a person's stop.
type Executions interface {
	// Start begins an execution of a machine ("ingest-job" or "ingest-batch"). A
	// Conflict says that its name was used before, in the last 90 days.
	Start(ctx context.Context, machine, name string, input Message) error
	// Stop ends an execution; one that has ended is no error.
	Stop(ctx context.Context, machine, name, why string) error
	// StoppedByHand reports whether somebody aborted the execution, and what they said.
	StoppedByHand(ctx context.Context, machine, name string) (why string, stopped bool, err error)
	// Problem says which call an execution could not make at its last try, and why;
	// "" if it could, or if nobody knows.
	Problem(ctx context.Context, machine, name string) (string, error)
}

// The machines.
const (
	MachineJob   = "ingest-job"
	MachineBatch = "ingest-batch"
)

// Settings bound what the gates give out and what one tick does.
type Settings struct {
	MaxInFlight int           // running jobs at once; the concurrency of every stage is at least this
	Space       int64         // bytes of work files at once
	Reserve     int64         // jobs of unknown size wait while less than this is free
	Share       int           // running jobs of one collection at once; 0 = all
	Patience    time.Duration // after it a waiting job keeps the space that comes free for itself; 0 = never
	FailedKeep  time.Duration // failed jobs keep their work files so long, even when others lack space
	SweepPage   int           // items looked at per shard and tick, so that a tick ends in time
}

// Check returns an Invalid that names the setting with which work would never go
// on, nil if there is none.
func (s Settings) Check() error {
	for _, rule := range []struct {
		ok   bool
		says string
	}{
		{s.MaxInFlight >= 1 && s.MaxInFlight <= 1000, "maxInFlight must be 1 to 1,000: more than 1,000 functions cannot take from one queue at once"},
		{s.Space > 0, "spaceGiB must be positive"},
		{s.Reserve >= 0 && s.Reserve <= s.Space, "reserveGiB must be 0 to spaceGiB: jobs of unknown size wait until so much is free"},
		{s.Share >= 0, "share must not be negative"},
		{s.Patience >= 0, "patienceMinutes must not be negative"},
		{s.FailedKeep >= 0, "failedKeepHours must not be negative"},
		{s.SweepPage >= 1, "a sweep must look at one item at least"},
	} {
		if !rule.ok {
			return fault.New(fault.Invalid, "settings: %s", rule.says)
		}
	}
	return nil
}

// Queue is the service. Every field is needed but Stored and Compose.
type Queue struct {
	Table      *table.Table
	Now        func() time.Time
	NewID      func() string
	Executions Executions
	Wake       func(ctx context.Context) error // asks the scheduler to look at the gates
	Metric     func(name string, n float64)
	// Clean removes a job's work files until a time, and returns whether none is left.
	Clean func(ctx context.Context, job string, until time.Time) (all bool, err error)
	// Stored asks the storage whether the version of a job at Storing is committed,
	// and if so notes on the job which it is. nil: nobody can be asked.
	Stored func(ctx context.Context, j *ingest.Job) error
	// Compose makes mails ready to be sent. nil: no mails are owed.
	Compose  Compose
	Rules    ingest.Rules
	Settings Settings
	Log      *slog.Logger
}

// Message is what a stage's queue carries and an execution begins with: which
// item, under which execution, in which state or step, and the token to answer.
type Message struct {
	Job   string `json:"job,omitempty"`
	Batch string `json:"batch,omitempty"`
	Exec  int64  `json:"exec"`
	State string `json:"state,omitempty"`
	Step  string `json:"step,omitempty"`
	Token string `json:"token,omitempty"`
}

// Job is a job's row.
type Job struct {
	table.Head
	Version int64 `dynamo:"version"`
	lease.On
	ingest.Job
}

// Batch is a batch's row.
type Batch struct {
	table.Head
	Version int64 `dynamo:"version"`
	lease.On
	ingest.Batch
}

// Counts is a batch's count row.
type Counts struct {
	table.Head
	ingest.Counts
}

func jobSubject(id string) event.Subject   { return event.Subject{Type: event.Job, ID: id} }
func batchSubject(id string) event.Subject { return event.Subject{Type: event.Batch, ID: id} }

func jobKey(id string) table.Key   { return jobSubject(id).Key() }
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
	var row Counts
	err := q.Table.Get(ctx, countKey(batch), &row)
	return row.Counts, named(err, "batch", batch)
}

func named(err error, what, id string) error {
	if fault.Is(err, fault.NotFound) {
		return fault.New(fault.NotFound, "there is no %s %q", what, id)
	}
	return err
}

// Change is the detail of a job's or batch's event.
type Change struct {
	From   string `json:"from,omitempty"`
	To     string `json:"to"`
	Exec   int64  `json:"exec"`
	Reason string `json:"reason,omitempty"`
	Parked bool   `json:"parked,omitempty"`
}

// why is who caused a change, and for what.
type why struct {
	event, actor, component, reason string
}

// putJob writes a job's row as it shall be, with its event, and whatever must
// agree: the slot, space and lock rows, and the batch's counts. A job that is
// new is counted by the chunk that makes it. The job's lease ends with the change.
func (q *Queue) putJob(tx *table.Tx, row *Job, is ingest.Job, gone goneRows, w why) error {
	prev := row.Job
	if prev.State != is.State {
		if err := ingest.CheckJob(prev.State, is.State); err != nil {
			return err
		}
	}
	next := *row
	next.Job = is
	next.Version++
	next.Release()
	q.writeJob(tx, row, next)
	e := event.New{Type: w.event, Time: q.Now().UnixMilli(), Actor: w.actor, Component: w.component,
		Detail: Change{From: string(prev.State), To: string(is.State), Exec: is.Exec, Reason: w.reason, Parked: is.Parked}}
	if is.State == ingest.Failed {
		e.Outcome = event.Failure
		if prev.State != is.State {
			tx.OnCommit(func() { q.Metric(FailedJobs, 1) })
		}
	}
	if err := event.Append(tx, jobSubject(is.ID), next.Version, e); err != nil {
		return err
	}
	if add := ingest.Moved(prev.State, is.State); prev.State != "" && len(add) > 0 {
		tx.Count(countKey(is.Batch), add)
	}
	reserve(tx, prev, is, gone)
	return nil
}

// writeJob puts a job's row into the transaction as next is, at its place in the
// indexes, on the condition that nobody wrote it since row was read. row becomes
// next once the commit has succeeded.
func (q *Queue) writeJob(tx *table.Tx, row *Job, next Job) {
	next.Head.WorkPK, next.Head.WorkSK = next.Job.WorkKey()
	next.Head.ListPK, next.Head.ListSK = "jobs#"+next.Collection, fmt.Sprintf("%013d#%s", next.Created, next.Job.ID)
	if next.Rev == 0 {
		tx.Insert(&next)
	} else {
		tx.Save(&next)
	}
	tx.OnCommit(func() { *row = next })
}

// writeBatch is writeJob for a batch.
func (q *Queue) writeBatch(tx *table.Tx, row *Batch, next Batch) {
	next.Head.WorkPK, next.Head.WorkSK = next.Batch.WorkKey()
	next.Head.ListPK, next.Head.ListSK = "batches#"+next.Collection, fmt.Sprintf("%013d#%s", next.Created, next.Batch.ID)
	if next.Rev == 0 {
		tx.Insert(&next)
	} else {
		tx.Save(&next)
	}
	tx.OnCommit(func() { *row = next })
}

// putBatch writes a batch's row as it shall be, with its event if w names one.
// The batch's lease ends with an event, and stays without.
func (q *Queue) putBatch(tx *table.Tx, row *Batch, is ingest.Batch, w why) error {
	prev := row.Batch
	if prev.State != is.State {
		if err := ingest.CheckBatch(prev.State, is.State); err != nil {
			return err
		}
	}
	next := *row
	next.Batch = is
	if w.event != "" {
		next.Version++
		next.Release()
	}
	q.writeBatch(tx, row, next)
	q.owe(tx, prev, is)
	if w.event == "" {
		return nil
	}
	e := event.New{Type: w.event, Time: q.Now().UnixMilli(), Actor: w.actor, Component: w.component,
		Detail: Change{From: string(prev.State), To: string(is.State), Exec: is.Exec, Reason: w.reason}}
	if is.State == ingest.BatchFailed {
		e.Outcome = event.Failure
	}
	return event.Append(tx, batchSubject(is.ID), next.Version, e)
}

// changeJob commits one change of a job and sends the wake-ups that it is owed.
// more adds what else must be in the transaction. Where a row that the job owns is
// not there any more, because somebody removed it by hand, the change is made
// without it: else the job could never end.
func (q *Queue) changeJob(ctx context.Context, row *Job, next ingest.Job, w why, more ...func(*table.Tx) error) error {
	prev := row.Job
	owed := func() []ingest.Wake { return ingest.Wakes(prev, next) }
	var gone goneRows
	put := func(tx *table.Tx) error { return q.putJob(tx, row, next, gone, w) }
	parts := append([]func(*table.Tx) error{put}, more...)
	err := q.commit(ctx, parts, owed)
	if gone = q.goneRows(ctx, err, &prev); len(gone) == 0 {
		return err
	}
	q.Log.Error("rows of a job were not there; it is changed without them", "job", prev.ID, "rows", fmt.Sprint(gone))
	q.Metric(MissingRows, float64(len(gone)))
	return q.commit(ctx, parts, owed)
}

// changeBatch is changeJob for a batch.
func (q *Queue) changeBatch(ctx context.Context, row *Batch, next ingest.Batch, w why, more ...func(*table.Tx) error) error {
	prev := row.Batch
	put := func(tx *table.Tx) error { return q.putBatch(tx, row, next, w) }
	return q.commit(ctx, append([]func(*table.Tx) error{put}, more...), func() []ingest.Wake { return ingest.BatchWakes(prev, next) })
}

func (q *Queue) commit(ctx context.Context, parts []func(*table.Tx) error, owed func() []ingest.Wake) error {
	tx := q.Table.Begin(q.NewID())
	for _, add := range parts {
		if err := add(tx); err != nil {
			return err
		}
	}
	if err := tx.Commit(ctx); err != nil {
		return err
	}
	q.wake(ctx, owed())
	return nil
}

// wake sends wake-ups. One that fails is only logged: the change is committed,
// and the sweep sends again what is owed.
func (q *Queue) wake(ctx context.Context, wakes []ingest.Wake) {
	for _, w := range wakes {
		err := q.send(ctx, w)
		if starts := w.Kind == ingest.StartJob || w.Kind == ingest.StartBatch; starts && fault.Is(err, fault.Conflict) {
			err = q.anew(ctx, w)
		}
		if err != nil {
			q.Log.Warn("a wake-up failed; the sweep will send it", "kind", w.Kind, "id", w.ID, "exec", w.Exec, "error", err)
			switch w.Kind {
			case ingest.StartJob:
				q.block(ctx, w.ID, "", w.Exec, "its execution could not be started", err)
			case ingest.StartBatch:
				q.block(ctx, "", w.ID, w.Exec, "its execution could not be started", err)
			}
		}
	}
}

func (q *Queue) send(ctx context.Context, w ingest.Wake) error {
	switch w.Kind {
	case ingest.StartJob:
		return q.Executions.Start(ctx, MachineJob, ExecutionName(w.ID, w.Exec), Message{Job: w.ID, Exec: w.Exec, State: w.At})
	case ingest.StartBatch:
		return q.Executions.Start(ctx, MachineBatch, ExecutionName(w.ID, w.Exec), Message{Batch: w.ID, Exec: w.Exec, Step: w.At})
	case ingest.LookGates:
		return q.Wake(ctx)
	case ingest.CloseBatch:
		return q.CloseBatch(ctx, w.ID)
	case ingest.SendMail:
		if q.Compose == nil {
			return nil
		}
		return q.sendMail(ctx, mailKey(w.ID, ingest.MailKind(w.At), w.Exec), q.Rules.Timing.Short/3)
	}
	return fmt.Errorf("queue: no wake-up %q", w.Kind)
}

// anew gives an item an execution of another name, since that of a wake-up was used
// before: by an execution of a time that a restored table knows nothing of. It goes to
// a number that no execution before can have, since numbers rise by one at a time.
func (q *Queue) anew(ctx context.Context, w ingest.Wake) error {
	number := func(old int64) int64 { return max(old+1, q.Now().Unix()) }
	reason := why{event: "job.repaired", component: "queue", reason: "the name of its execution was used before"}
	if w.Kind == ingest.StartJob {
		row, err := q.Job(ctx, w.ID)
		if err != nil || row.Exec != w.Exec || string(row.State) != w.At || !row.Running() {
			return err // it went on
		}
		is := row.Job
		is.Exec = number(is.Exec)
		return q.changeJob(ctx, row, is, reason)
	}
	row, err := q.Batch(ctx, w.ID)
	if err != nil {
		return err
	}
	if stage, _ := ingest.StageOfBatch(row.State); row.Exec != w.Exec || stage.Name != w.At {
		return nil
	}
	is := row.Batch
	is.Exec, reason.event = number(is.Exec), "batch.repaired"
	return q.changeBatch(ctx, row, is, reason)
}

// ExecutionName is the name of the execution that drives an item: unique, since
// exec only rises.
func ExecutionName(id string, exec int64) string { return fmt.Sprintf("%s-%d", id, exec) }
