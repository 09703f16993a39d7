package queue_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"archivist/pkg/events/event"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/queue/queuetest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/lease"
	"archivist/pkg/kernel/table/tabletest"
)

// actCrash is a system with a process that does an action, then runs the scheduler, and dies
// at its nth call. After that another process does the same.
type actCrash struct {
	*bench
	id       string // of the target
	recorded int
}

func newActCrash(t *testing.T, m *tabletest.Mortal, c actCase) (w *actCrash, mortal *queue.Queue) {
	fake := tabletest.New()
	w = &actCrash{bench: newBenchOn(t, tabletest.Table(fake))}
	w.q.Record = func(context.Context, string, string) error { w.recorded++; return nil }
	w.id = c.arrange(w)
	q := *w.q
	q.Table = tabletest.Through(fake, m.Do)
	return w, &q
}

// run does the action, then what the scheduler and the pages of an operation do.
func (w *actCrash) run(q *queue.Queue, c actCase) error {
	out, err := queuetest.Act(w.Context(), q, c.name, w.id, queuetest.Confirmed, func(a *ingest.Action) {
		a.Request = "r"
		if c.name == ingest.ActPrioritize {
			queuetest.Priority(1)(a)
		}
	})
	s := queue.Scheduler{Queue: q, Leases: &lease.Store{Table: q.Table, Now: q.Now, NewID: q.NewID}}
	for range c.ticks {
		if err != nil {
			return err
		}
		w.quiet()
		err = s.Tick(w.Context(), true)
	}
	for err == nil && out.Operation != "" {
		var op *queue.Operation
		if op, err = q.Operation(w.Context(), out.Operation); err == nil {
			if op.State != ingest.OperationRunning {
				return nil
			}
			_, err = queue.Admin{Queue: q}.RunPage(w.Context(), out.Operation, op.Exec, w.now.Add(time.Minute))
		}
	}
	return err
}

// once fails unless a job or batch has exactly one event of this type by "me", with this text
// in its detail.
func (w *actCrash) once(id, kind, text string) {
	w.Helper()
	s := event.Subject{Type: event.Batch, ID: id}
	if strings.Contains(id, "-") {
		s.Type = event.Job
	}
	p, err := w.q.Events(w.Context(), s, "")
	n := 0
	for i, e := range p.Items {
		if e.Version != int64(i+1) {
			w.Errorf("event %d of %s has version %d", i+1, id, e.Version)
		}
		if e.Type == kind && e.Actor == "me" && strings.Contains(e.Detail, text) {
			n++
		}
	}
	if n != 1 || err != nil {
		w.Errorf("%s has %d events %s with %s, %v", id, n, kind, text, err)
	}
}

// actCase is an action: how its target comes about, and what must be true in the end.
type actCase struct {
	name    ingest.ActionName
	ticks   int // of the scheduler, until it is complete
	arrange func(w *actCrash) string
	check   func(w *actCrash)
}

const toDeleted = `"to":"Deleted"`

var actCases = map[string]actCase{
	"delete a job": {ingest.ActDelete, 2, func(w *actCrash) string {
		id := w.failedJob(ingest.Recording)
		return w.edit(id, func(row *queue.Job) { row.Primary, row.ObjectVersion = "ark:/99999/fk4x", 1 })
	}, func(w *actCrash) {
		w.once(w.id, "job.state", toDeleted)
		if j := w.job(w.id); j.HasSpace || w.recorded == 0 || w.rows("SPACE") != 0 || w.countsOf(w.id).Deleted != 1 {
			w.Errorf("the job is %+v, recorded %d times, %d rows of space", j, w.recorded, w.rows("SPACE"))
		}
	}},
	"delete a batch": {ingest.ActDelete, 3, func(w *actCrash) string {
		id := w.failed(3)
		w.editBatch(id, func(row *queue.Batch) { row.State, row.Due = ingest.BatchFailed, 0 })
		w.edit(ingest.JobID(id, 2),
			func(row *queue.Job) { row.HasSpace = true; row.Due = w.now.Add(time.Hour).UnixMilli() })
		w.grant(ingest.JobID(id, 2))
		return id
	}, func(w *actCrash) {
		w.once(w.id, "batch.state", toDeleted)
		for n := 1; n <= 3; n++ {
			w.once(ingest.JobID(w.id, n), "job.state", toDeleted)
		}
		if _, err := w.q.Batch(w.Context(), w.id); !fault.Is(err, fault.NotFound) || w.rows("SPACE") != 0 {
			w.Errorf("the batch still exists: %v, %d rows of space", err, w.rows("SPACE"))
		}
	}},
	"clean up a completed batch": {ingest.ActCleanUp, 1, func(w *actCrash) string {
		id := w.submit(1, "")
		w.tick()
		w.handle(w.last(), ok)
		w.tick()
		w.through(w.last())
		w.handle(w.last(), saves(0))
		return id
	}, func(w *actCrash) {
		w.once(w.id, "batch.state", toDeleted)
		if _, err := w.q.Counts(w.Context(), w.id); !fault.Is(err, fault.NotFound) {
			w.Errorf("the counts still exist: %v", err)
		}
	}},
	"clean up a job": {ingest.ActCleanUp, 2, func(w *actCrash) string { return w.failedJob(ingest.Processing) },
		func(w *actCrash) {
			w.once(w.id, "job.cleaning", "")
			if j := w.job(w.id); j.HasSpace || j.State != ingest.Failed || w.rows("SPACE") != 0 {
				w.Errorf("the job is %+v, %d rows of space", j, w.rows("SPACE"))
			}
		}},
	"prioritize": {ingest.ActPrioritize, 0, func(w *actCrash) string { return ingest.JobID(w.submit(1, ""), 1) },
		func(w *actCrash) {
			w.once(w.id, "job.prioritized", "")
			if j := w.job(w.id); j.Priority != 1 {
				w.Errorf("the priority is %d", j.Priority)
			}
		}},
	"cancel": {ingest.ActCancel, 0, func(w *actCrash) string {
		w.q.Settings.MaxInFlight = 1
		id := w.submit(3, "x")
		w.tick()
		w.did(ingest.ActHold, ingest.JobID(id, 3))
		return id
	}, func(w *actCrash) {
		w.once(w.id, "batch.cancelled", "")
		page, err := queue.Admin{Queue: w.q}.Operations(w.Context(), "")
		if err != nil || len(page.Items) != 1 || page.Items[0].State != ingest.OperationDone {
			w.Errorf("the operations are %+v, %v", page.Items, err)
		}
		for n := 1; n <= 3; n++ {
			if j := w.job(ingest.JobID(w.id, n)); !strings.HasPrefix(j.Message, "cancelled by me") {
				w.Errorf("job %d is %s: %s", n, j.State, j.Message)
			}
		}
		if c := w.countsOf(w.id); c.Open() != 0 || c.Sum() != 3 || w.rows("SLOT") != 0 ||
			w.rows("LOCK#local#c#x") != 0 {
			w.Errorf("the counts are %+v, %d slots", c, w.rows("SLOT"))
		}
	}},
}

// TestActionsSurviveEveryCrash: the process that does an action dies at each of its calls in
// turn, before or after the call had its effect. The same request again, and the sweep, then
// complete the action: once, with one event.
func TestActionsSurviveEveryCrash(t *testing.T) {
	for name, c := range actCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tabletest.Crashes(t, 3, func(t *testing.T, m *tabletest.Mortal) {
				w, mortal := newActCrash(t, m, c)
				err := w.run(mortal, c)
				if !m.Dead() && err != nil {
					t.Fatalf("without a crash: %v", err)
				}
				w.now = w.now.Add(time.Hour) // the dead process loses its leases
				if m.Dead() {
					if err := w.run(w.q, c); err != nil {
						t.Errorf("after a crash: %v", err)
					}
				}
				c.check(w)
			})
		})
	}
}
