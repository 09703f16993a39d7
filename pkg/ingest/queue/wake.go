package queue

import (
	"context"
	"fmt"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
)

// wake sends wake-ups. A failure is only logged: the change is committed, and the sweep
// sends the wake-up again.
func (q *Queue) wake(ctx context.Context, wakes []ingest.Wake) {
	for _, w := range wakes {
		err := q.send(ctx, w)
		if err == nil {
			continue
		}

		q.Log.Warn("a wake-up failed; the sweep will send it again",
			"kind", w.Kind, "id", w.ID, "exec", w.Exec, "error", err)
		switch w.Kind {
		case ingest.StartJob:
			q.block(ctx, w.ID, "", w.Exec, "its execution could not be started", err)
		case ingest.StartBatch:
			q.block(ctx, "", w.ID, w.Exec, "its execution could not be started", err)
		case ingest.StartOperation:
			q.blockOperation(ctx, w.ID, w.Exec, "its execution could not be started", err)
		}
	}
}

// send makes one try of a wake-up. Executions and the scheduler run elsewhere. A batch is closed,
// and a mail sent, by this process.
func (q *Queue) send(ctx context.Context, w ingest.Wake) error {
	switch w.Kind {
	case ingest.StartJob:
		return q.start(ctx, w, MachineJob, Message{Job: w.ID, Exec: w.Exec, State: w.At})
	case ingest.StartBatch:
		return q.start(ctx, w, MachineBatch, Message{Batch: w.ID, Exec: w.Exec, Step: w.At})
	case ingest.StartOperation:
		return q.start(ctx, w, MachineAdmin, Message{Operation: w.ID, Exec: w.Exec})
	case ingest.LookGates:
		return q.Wake(ctx)
	case ingest.CloseBatch:
		return q.CloseBatch(ctx, w.ID)
	case ingest.SendMail:
		if q.Compose == nil {
			return nil
		}
		// 20 s in production: the function that made the change has to end in time.
		return q.sendMail(ctx, mailKey(w.ID, ingest.MailKind(w.At), w.Exec), q.Rules.Timing.Short/3)
	}
	return fmt.Errorf("queue: no wake-up %q", w.Kind)
}

// start starts an item's execution.
func (q *Queue) start(ctx context.Context, w ingest.Wake, machine string, m Message) error {
	err := q.Executions.Start(ctx, machine, ExecutionName(w.ID, w.Exec), m)
	if fault.Is(err, fault.Conflict) {
		return q.renumber(ctx, w)
	}
	return err
}

// renumber gives an item an execution with another number, because the name of its
// execution is in use: by one that was started before the table was restored to an earlier
// time. Numbers rise by one at a time, so no earlier execution can have the new number.
func (q *Queue) renumber(ctx context.Context, w ingest.Wake) error {
	number := func(old int64) int64 { return max(old+1, q.Now().Unix()) }
	by := origin{
		event:     "job.repaired",
		component: "queue",
		reason:    "the name of its execution is in use; another one is started",
	}

	switch w.Kind {
	case ingest.StartOperation:
		row, err := q.Operation(ctx, w.ID)
		if err != nil || !row.RunsAs(w.Exec) {
			return err
		}
		next := row.Operation
		next.Exec, by.event = number(next.Exec), "operation.repaired"
		return q.changeOperation(ctx, row, next, by)
	case ingest.StartJob:
		row, err := q.Job(ctx, w.ID)
		if err != nil || row.Exec != w.Exec || string(row.State) != w.At || !row.Running() {
			return err // it has changed since
		}
		next := row.Job
		next.Exec = number(next.Exec)
		return q.changeJob(ctx, row, next, by)
	}

	row, err := q.Batch(ctx, w.ID)
	if err != nil {
		return err
	}

	if stage, _ := ingest.StageOfBatch(row.State); row.Exec != w.Exec || stage.Name != w.At {
		return nil
	}

	next := row.Batch
	next.Exec, by.event = number(next.Exec), "batch.repaired"
	return q.changeBatch(ctx, row, next, by)
}
