package queue_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"archivist/pkg/events/event"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/queue/queuetest"
	"archivist/pkg/kernel/table/tabletest"
)

// between is what happens between a crash of an operation and its next run.
type between struct {
	name string
	do   func(w *bulkCrash)
}

var betweens = []between{
	{"nothing", func(*bulkCrash) {}},
	{"the requeued jobs fail again", func(w *bulkCrash) {
		for row := 1; row <= bulkJobs; row++ {
			if id := ingest.JobID(w.of, row); w.job(id).State != ingest.Failed {
				w.failJob(id)
			}
		}
	}},
	{"a person requeues a job", func(w *bulkCrash) {
		_, _ = queuetest.Requeue(w.Context(), w.q, ingest.JobID(w.of, 2), "again", "bob")
	}},
	{"a person requeues a job, which fails again", func(w *bulkCrash) {
		if _, err := queuetest.Requeue(w.Context(), w.q, ingest.JobID(w.of, 2), "again", "bob"); err == nil {
			w.failJob(ingest.JobID(w.of, 2))
		}
	}},
	{"another operation is done", func(w *bulkCrash) { w.finish(w.operate(w.bulk(), "other", false).Operation.ID) }},
	{"it is interrupted and continued", func(w *bulkCrash) {
		d := queue.Admin{Queue: w.q}
		if op := w.onlyOperation(); op != nil {
			_, _ = d.Interrupt(w.Context(), op.Operation.ID, "wait", "bob", ingest.Administrator)
			_, _ = d.Continue(w.Context(), op.Operation.ID, "now", "bob", ingest.Administrator)
		}
	}},
	{"the sweep restarts it", func(w *bulkCrash) {
		w.now = w.now.Add(time.Hour)
		w.tick()
	}},
}

// bulkJobs is the number of jobs of the operation; the last cannot be requeued.
const bulkJobs = 4

// bulkCrash is a system with a process that runs an operation and dies at its nth call.
type bulkCrash struct {
	*bench
	mortal *queue.Queue
	of     string // the batch
	calls  int
	at     int
	after  bool
	hit    bool
	dead   bool
	then   func() // if set, this is done at the call, and the process lives
}

func newBulkCrash(t *testing.T, at int, after bool) *bulkCrash {
	fake := tabletest.New()
	w := &bulkCrash{bench: newBenchOn(t, tabletest.Table(fake)), at: at, after: after}
	w.q.Settings.MaxInFlight = 100
	w.of = w.failed(bulkJobs)
	w.edit(ingest.JobID(w.of, bulkJobs), func(row *queue.Job) { row.NotRecoverable = true })
	mortal := *w.q
	mortal.Table = tabletest.Through(fake, w.call)
	w.mortal = &mortal
	return w
}

func (w *bulkCrash) bulk() ingest.Bulk {
	return ingest.Bulk{Name: ingest.ActRequeue, Filter: ingest.Filter{Batch: w.of}}
}

// call passes a call of the mortal process to the table.
func (w *bulkCrash) call(_ string, call func() error) error {
	w.calls++
	if w.calls != w.at && !w.dead {
		return call()
	}
	if w.calls == w.at {
		w.hit = true
		var err error
		if w.after {
			err = call()
		}
		if w.then != nil {
			w.then()
			if !w.after {
				err = call()
			}
			return err
		}
	}
	w.dead = true
	return tabletest.ErrDead
}

// run makes the mortal process start the operation and run its pages.
func (w *bulkCrash) run() error {
	d := queue.Admin{Queue: w.mortal}
	op, err := d.Start(w.Context(), w.bulk(), "source fixed", "ann", ingest.Administrator, "r", false)
	for err == nil && op.State == ingest.OperationRunning {
		op, err = d.RunPage(w.Context(), op.Operation.ID, 1, w.now.Add(time.Minute))
		if op != nil && op.Exec != 1 {
			return nil
		}
	}
	return err
}

// onlyOperation is the operation that was started, nil if there is none.
func (w *bulkCrash) onlyOperation() *queue.Operation {
	w.Helper()
	page, err := queue.Admin{Queue: w.q}.Operations(w.Context(), "")
	if err != nil || len(page.Items) > 2 {
		w.Fatalf("%d operations, %v", len(page.Items), err)
	}
	if len(page.Items) == 0 {
		return nil
	}
	return &page.Items[len(page.Items)-1]
}

// requeues counts how often a job was requeued, in all and by an operation.
func (w *bulkCrash) requeues(job, operation string) (all, by int) {
	w.Helper()
	p, err := w.q.Events(w.Context(), event.Subject{Type: event.Job, ID: job}, "")
	if err != nil {
		w.Fatal(err)
	}
	for _, e := range p.Items {
		var detail queue.Change
		if e.Type != "job.requeued" {
			continue
		}
		if err := json.Unmarshal([]byte(e.Detail), &detail); err != nil {
			w.Fatal(err)
		}
		all++
		if detail.Request == operation {
			by++
		}
	}
	return all, by
}

// check checks that the operation has acted on each item once and counted all.
func (w *bulkCrash) check(what string, id string) {
	w.Helper()
	op := w.finish(id)
	refused, err := queue.Admin{Queue: w.q}.Refusals(w.Context(), id, "")
	if err != nil {
		w.Fatal(err)
	}
	is := map[string]bool{}
	for _, r := range refused.Items {
		is[r.Job] = true
	}
	acted := 0
	for row := 1; row <= bulkJobs; row++ {
		job := ingest.JobID(w.of, row)
		all, by := w.requeues(job, id)
		if by > 1 || w.job(job).RetryCount != all || by == 1 && is[job] {
			w.Errorf("%s: job %d was requeued %d times, %d by the operation; retries %d, refused %v", what, row,
				all, by, w.job(job).RetryCount, is[job])
		}
		acted += by
	}
	t := op.Tally
	if t.Done != acted || t.Refused != len(is) || t.Left() != 0 || op.State != ingest.OperationDone {
		w.Errorf("%s: acted on %d jobs, refused %d, but the operation is %s with %+v", what, acted, len(is),
			op.State, t)
	}
	if op.Cursor == "" && t.Planned > 0 {
		w.Errorf("%s: no cursor after %+v", what, t)
	}
	w.history(id, w.events(id)...)
}

// events are the types of the operation's events, of which only the first and the last are
// the same in all runs.
func (w *bulkCrash) events(id string) (types []string) {
	w.Helper()
	p, err := w.q.Events(w.Context(), event.Subject{Type: event.Operation, ID: id}, "")
	if err != nil {
		w.Fatal(err)
	}
	for _, e := range p.Items {
		types = append(types, e.Type)
	}
	if types[0] != "operation.started" || types[len(types)-1] != "operation.done" {
		w.Errorf("the history is %v", types)
	}
	return types
}

// TestBulkSurvivesEveryCrash: the process that starts and runs an operation dies before or
// after each of its calls, and other things happen before the operation is run again. No
// job is acted on twice, and the counts are those of the jobs.
func TestBulkSurvivesEveryCrash(t *testing.T) {
	runs, most := 0, 0
	for _, meanwhile := range betweens {
		for _, after := range []bool{false, true} {
			for at := 1; ; at++ {
				w := newBulkCrash(t, at, after)
				err := w.run()
				if !w.hit {
					if err != nil {
						t.Fatal(err)
					}
					break // it makes no more calls than this
				}
				if !errors.Is(err, tabletest.ErrDead) {
					t.Fatalf("died at call %d, but returned %v", at, err)
				}
				meanwhile.do(w)
				op := w.operate(w.bulk(), "r", false) // the same request again
				w.check(meanwhile.name, op.Operation.ID)
				runs, most = runs+1, max(most, at)
				if t.Failed() {
					t.Fatalf("%s, died at call %d, after it: %v", meanwhile.name, at, after)
				}
			}
		}
	}
	if most < 4*bulkJobs {
		t.Errorf("the operation makes only %d calls", most)
	}
	t.Logf("%d crashes, at up to %d calls", runs, most)
}

// TestBulkByTwoExecutions: at each call of an execution, another one runs the rest of the
// operation, or a person interrupts it. Then the first continues.
func TestBulkByTwoExecutions(t *testing.T) {
	for name, other := range map[string]func(*bulkCrash){
		"another execution": func(w *bulkCrash) {
			if op := w.onlyOperation(); op != nil {
				w.finish(op.Operation.ID)
			}
		},
		"another execution, for a part of the page": func(w *bulkCrash) {
			op := w.onlyOperation()
			if op == nil {
				return
			}
			other := *w.q
			other.Now = func() time.Time { w.now = w.now.Add(time.Second); return w.now }
			until := w.now.Add(time.Duration(3+w.at%5) * time.Second)
			if _, err := (queue.Admin{Queue: &other}).RunPage(w.Context(), op.Operation.ID, 1, until); err != nil {
				w.Fatal(err)
			}
		},
		"a person interrupts and continues": betweens[5].do,
		"a person interrupts": func(w *bulkCrash) {
			if op := w.onlyOperation(); op != nil && op.State == ingest.OperationRunning {
				d := queue.Admin{Queue: w.q}
				_, err := d.Interrupt(w.Context(), op.Operation.ID, "stop", "bob", ingest.Administrator)
				if err != nil {
					w.Fatal(err)
				}
			}
		},
	} {
		for _, after := range []bool{false, true} {
			for at := 1; ; at++ {
				w := newBulkCrash(t, at, after)
				w.then = func() { other(w) }
				if err := w.run(); err != nil {
					t.Fatalf("%s at call %d: %v", name, at, err)
				}
				if !w.hit {
					break
				}
				op := w.onlyOperation()
				if op.State == ingest.OperationInterrupted {
					d := queue.Admin{Queue: w.q}
					_, err := d.Continue(t.Context(), op.Operation.ID, "on", "bob", ingest.Administrator)
					if err != nil {
						t.Fatal(err)
					}
				}
				w.check(name, op.Operation.ID)
				if t.Failed() {
					t.Fatalf("%s at call %d, after it: %v", name, at, after)
				}
			}
		}
	}
}

// TestActSurvivesEveryCrash: the process that does a request dies before or after each of its
// calls. What it did is undone, and the same request is made again. It acts once in all.
func TestActSurvivesEveryCrash(t *testing.T) {
	for _, c := range []struct {
		kind     ingest.TargetKind
		do, undo ingest.ActionName
		event    string
		of       event.Type
	}{
		{ingest.TargetJob, ingest.ActRequeue, "", "job.requeued", event.Job},
		{ingest.TargetBatch, ingest.ActHold, ingest.ActRelease, "batch.held", event.Batch},
		{ingest.TargetCollection, ingest.ActHold, ingest.ActRelease, "collection.held", event.Collection},
		{ingest.TargetQueue, ingest.ActPause, ingest.ActResume, "queue.paused", event.Queue},
	} {
		for _, after := range []bool{false, true} {
			for at := 1; ; at++ {
				w := newBulkCrash(t, at, after)
				target := ingest.Target{Kind: c.kind, ID: map[ingest.TargetKind]string{ingest.TargetBatch: w.of,
					ingest.TargetJob: ingest.JobID(w.of, 1), ingest.TargetCollection: "c"}[c.kind]}
				subject := event.Subject{Type: c.of, ID: cmp.Or(target.ID, "ingest")}
				a := ingest.Action{Name: c.do, Target: target, Reason: "x", Actor: "ann", Role: ingest.Administrator,
					Request: "r"}
				_, err := queue.Admin{Queue: w.mortal}.Act(t.Context(), a)
				if !w.hit {
					if err != nil {
						t.Fatal(err)
					}
					break
				}
				if c.undo == "" {
					if w.job(target.ID).State != ingest.Failed {
						w.failJob(target.ID)
					}
				} else if _, err := (queue.Admin{Queue: w.q}).Act(t.Context(), ingest.Action{Name: c.undo,
					Target: target, Reason: "y", Actor: "bob", Role: ingest.Administrator}); err != nil {
					t.Fatal(err)
				}
				out, err := queue.Admin{Queue: w.q}.Act(t.Context(), a)
				if n := w.count(subject, c.event); err != nil || !out.Changed || n != 1 {
					t.Fatalf("%s a %s, died at call %d, after it %v: %+v, %v, %d events", c.do, c.kind, at, after, out,
						err, n)
				}
			}
		}
	}
}

// count counts the events of a type of a subject.
func (w *bulkCrash) count(s event.Subject, kind string) (n int) {
	w.Helper()
	p, err := w.q.Events(w.Context(), s, "")
	if err != nil {
		w.Fatal(err)
	}
	for _, e := range p.Items {
		if e.Type == kind {
			n++
		}
	}
	return n
}
