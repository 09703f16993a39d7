package queue_test

import (
	"context"
	"testing"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/table/tabletest"
)

// TestMailSurvivesEveryCrash: the process that adds, sends or records a mail dies before or
// after each of its calls. Afterwards every mail was received, always with the same id, and
// the batch has its result once.
func TestMailSurvivesEveryCrash(t *testing.T) {
	twice := 0
	for _, after := range []bool{false, true} {
		for at := 1; ; at++ {
			w := newCrash(t, at, after)
			w.run()
			if !w.Dead() {
				break // it makes no more calls than this
			}
			if len(w.post.got) > 2 {
				twice++
			}
		}
	}
	if twice == 0 {
		t.Error("no mail was received twice: there was no crash between sending and recording")
	}
}

// crash is a system with a process that dies at its nth call.
type crash struct {
	*bench
	*tabletest.Mortal
	post   *post
	mortal *queue.Queue
}

func newCrash(t *testing.T, at int, after bool) *crash {
	w := &crash{bench: newBench(t), Mortal: &tabletest.Mortal{At: at, After: after},
		post: &post{to: []string{"a@example.org"}}}
	fake := tabletest.New()
	w.q.Table = tabletest.Table(fake)
	w.c.Leases.Table = w.q.Table
	w.q.Compose = w.post.compose
	mortal := *w.q
	mortal.Table = tabletest.Through(fake, w.Do)
	w.mortal = &mortal
	return w
}

// work makes the mortal process handle a message, and another one after it died.
func (w *crash) work(m queue.Message, step queue.Step) {
	stage, _ := ingest.StageNamed(m.Step)
	w.post.do = w.Do
	_, _ = (&queue.Worker{Queue: w.mortal, Stage: stage, Step: step, Answers: w}).Handle(w.Context(), m)
	w.post.do = nil
}

func (w *crash) run() {
	w.Helper()
	row, err := w.q.Submit(w.Context(), ingest.Batch{Collection: "c", Mode: "add"}, "", nil, "me")
	if err != nil {
		w.Fatal(err)
	}
	unpack := func(ctx context.Context, claim *queue.Claim) (ingest.Result, error) {
		return ingest.Result{Outcome: ingest.StepNext}, claim.Unpack(ctx, make([]ingest.Job, 1), 1)
	}
	w.work(w.last(), unpack)
	fails := func(context.Context, *queue.Claim) (ingest.Result, error) { return ingest.Fail(false, "no"), nil }
	id := row.Batch.ID
	for range 100 {
		if len(w.batch(id).Mails) == 2 {
			break
		}
		w.now = w.now.Add(2 * time.Minute)
		w.tick()
		switch m := w.last(); {
		case m.Step == "unpack":
			w.handle(m, unpack)
		case m.Step == "report" && !w.Dead():
			w.work(m, ok)
		case m.Step == "report":
			w.handle(m, ok)
		default:
			w.handle(m, fails)
		}
	}
	owed, ended := w.mails(id)
	if got := w.batch(id); got.State != ingest.BatchFailed || len(got.Mails) != 2 {
		w.Errorf("died at call %d (after it %v): the batch is %s with %+v", w.At, w.After, got.State, got.Mails)
	}
	if len(w.post.distinct()) != 2 || len(w.post.got) > 3 || len(owed) != 0 || len(ended) != 2 {
		w.Errorf("died at call %d (after it %v): sent %v, owed %+v, ended %d", w.At, w.After, w.post.got, owed,
			len(ended))
	}
}
