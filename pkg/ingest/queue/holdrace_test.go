package queue_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"archivist/pkg/events/event"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table/tabletest"
)

// meanwhile is a bench in which something else is done before one call of the table.
type meanwhile struct {
	*bench
	at, calls int
	do        func()
	done      bool
}

func (w *meanwhile) call(_ string, call func() error) error {
	if w.do == nil {
		return call()
	}
	w.calls++
	if w.calls > w.at && !w.done {
		other := w.do
		w.do, w.done = nil, true // its own calls are not counted
		other()
		w.do = other
	}
	return call()
}

// atEachCall runs a case once for each call of the table between arrange and check: before
// the call, other is done. It ends with the first run in which act makes no such call.
func atEachCall(t *testing.T, arrange func(b *bench), act, other, check func(b *bench)) {
	t.Helper()
	for at := range 500 {
		w := &meanwhile{at: at}
		tb := tabletest.Table(&tabletest.Client{DynamoDBAPI: tabletest.New(), Do: w.call})
		tb.Wait = func(context.Context, time.Duration) error { return nil }
		w.bench = newBenchOn(t, tb)
		arrange(w.bench)
		w.do = func() { other(w.bench) }
		act(w.bench)
		w.do = nil
		if !w.done {
			if at == 0 {
				t.Fatal("nothing was called")
			}
			return
		}
		check(w.bench)
		if t.Failed() {
			t.Fatalf("when the other acted before call %d", at+1)
		}
	}
	t.Fatal("there is no end")
}

// tickOnce is a tick that may lose its lease.
func (b *bench) tickOnce() {
	b.Helper()
	if err := b.c.Tick(b.Context(), true); err != nil && !fault.Is(err, fault.Stale) {
		b.Fatal(err)
	}
}

// running are the jobs of a batch that have started.
func (b *bench) running(batch string) (ids []string) {
	b.Helper()
	rows, err := b.q.Jobs(b.Context(), batch, 0)
	if err != nil {
		b.Fatal(err)
	}
	for _, row := range rows {
		if row.Running() {
			ids = append(ids, row.Job.ID)
		}
	}
	return ids
}

// TestHoldDuringATick: whenever a hold or a pause is placed while a tick runs, no job that it
// stops is admitted after that; the next tick holds the jobs.
func TestHoldDuringATick(t *testing.T) {
	var batch string
	var then int // jobs that ran when the hold was placed
	arrange := func(b *bench) {
		b.q.Settings.MaxInFlight = 10
		batch = b.submit(3, "x")
	}
	check := func(b *bench) {
		b.Helper()
		if now := len(b.running(batch)); now != then {
			b.Errorf("%d jobs ran when the hold was placed, %d after the tick", then, now)
		}
		b.tick()
		if now := len(b.running(batch)); now != then {
			b.Errorf("%d jobs ran when the hold was placed, %d after the next tick", then, now)
		}
	}
	for name, place := range map[string]func(b *bench){
		"collection": func(b *bench) { b.do(ingest.ActHold, collectionC) },
		"batch":      func(b *bench) { b.do(ingest.ActHold, batchTarget(batch)) },
		"queue":      func(b *bench) { b.do(ingest.ActPause, theQueue) },
	} {
		t.Run(name, func(t *testing.T) {
			other := func(b *bench) {
				place(b)
				then = len(b.running(batch))
			}
			atEachCall(t, arrange, (*bench).tickOnce, other, func(b *bench) {
				check(b)
				if name != "queue" && int(b.counts(batch).Held) != 3-then {
					b.Errorf("%+v; %d of 3 jobs had started", b.counts(batch), then)
				}
			})
		})
	}
}

// TestLiftDuringATick: a tick that has read a hold makes no job Held after it is lifted.
func TestLiftDuringATick(t *testing.T) {
	var batch string
	var then int64
	atEachCall(t, func(b *bench) {
		batch = b.submit(3, "x")
		b.do(ingest.ActHold, collectionC)
	}, (*bench).tickOnce, func(b *bench) {
		b.do(ingest.ActRelease, collectionC)
		then = b.counts(batch).Held
	}, func(b *bench) {
		if now := b.counts(batch).Held; now != then {
			b.Errorf("%d jobs were held when the hold was lifted, %d after the tick", then, now)
		}
	})
}

// TestPauseAtTheEndOfProcessing: whenever the storage is paused, a job enters Storing before
// that or not at all.
func TestPauseAtTheEndOfProcessing(t *testing.T) {
	var id string
	var m queue.Message
	var then ingest.State
	atEachCall(t, func(b *bench) { id, m = b.processing("x") },
		func(b *bench) { b.handle(m, ok) },
		func(b *bench) {
			b.do(ingest.ActPause, theStorage)
			then = b.job(id).State
		}, func(b *bench) {
			if j := b.job(id); j.State != then || j.State == ingest.Processing && j.Waits != ingest.WaitsForStorage {
				b.Errorf("%s when the storage was paused, then %s (waits for %q)", then, j.State, j.Waits)
			}
		})
}

// TestResumeAtTheEndOfProcessing: whenever the pause ends, the job gets to Storing.
func TestResumeAtTheEndOfProcessing(t *testing.T) {
	var id string
	var m queue.Message
	atEachCall(t, func(b *bench) {
		id, m = b.processing("x")
		b.do(ingest.ActPause, theStorage)
	}, func(b *bench) { b.handle(m, ok) },
		func(b *bench) { b.do(ingest.ActResume, theStorage) },
		func(b *bench) {
			b.tick()
			b.toState(id, ingest.Storing)
		})
}

// TestRequeueIntoAPause: whenever a pause is placed, a requeue starts the job before that or
// parks it.
func TestRequeueIntoAPause(t *testing.T) {
	var id string
	var then bool
	for _, pause := range []ingest.Target{theQueue, theStorage} {
		atEachCall(t, func(b *bench) {
			id, _ = b.processing("x")
			b.toState(id, ingest.Storing)
			b.forceFail(id)
		}, func(b *bench) { b.requeue(id) }, func(b *bench) {
			b.do(ingest.ActPause, pause)
			then = b.runs(id)
		}, func(b *bench) {
			if j := b.job(id); b.runs(id) != then || j.State != ingest.Storing {
				b.Errorf("running %v when %s was paused, then %v at %s", then, pause, b.runs(id), j.State)
			}
		})
	}
}

// TestReleaseMeetsAHold: a release is done before the hold is placed, or refused.
func TestReleaseMeetsAHold(t *testing.T) {
	var id string
	var then ingest.State
	var refused error
	for _, scope := range []ingest.TargetKind{ingest.TargetCollection, ingest.TargetBatch} {
		atEachCall(t, func(b *bench) { id = b.heldAlone() },
			func(b *bench) { _, refused = b.try(ingest.ActRelease, jobTarget(id)) },
			func(b *bench) {
				target := ingest.Target{Kind: scope, ID: "maps"}
				if scope == ingest.TargetBatch {
					target.ID = id[:len(id)-len("-00001")]
				}
				b.do(ingest.ActHold, target)
				then = b.job(id).State
			}, func(b *bench) {
				if j := b.job(id); j.State != then {
					b.Errorf("%s when the hold was placed, then %s (%v)", then, j.State, refused)
				}
				if then == ingest.Held && !fault.Is(refused, fault.Held) {
					b.Errorf("the release ended with %v", refused)
				}
			})
	}
}

// TestHoldMeetsUnpack: a batch becomes Held only while a hold stands, and is not unpacked
// from the beginning after it became Held.
func TestHoldMeetsUnpack(t *testing.T) {
	var id string
	var then ingest.BatchState
	unpack := func(b *bench) {
		m := b.last()
		for range 3 { // a worker that lost the batch gets the message again
			if keep := b.handle(m, unpackAll([]ingest.Job{{Collection: "maps"}})); keep == 0 {
				return
			}
			b.now = b.now.Add(time.Hour)
		}
		b.Error("the message has no end")
	}
	note := func(name ingest.ActionName, target func() ingest.Target) func(b *bench) {
		return func(b *bench) {
			b.do(name, target())
			then = b.batch(id).State
		}
	}
	theCollection := func() ingest.Target { return collectionMaps }
	atEachCall(t, func(b *bench) { b.do(ingest.ActHold, collectionMaps); id = b.submitted() }, unpack,
		note(ingest.ActRelease, theCollection), func(b *bench) {
			if now := b.batch(id).State; (now == ingest.BatchHeld) != (then == ingest.BatchHeld) {
				b.Errorf("%s when the hold was lifted, then %s", then, now)
			}
		})
	for _, target := range []func() ingest.Target{theCollection, func() ingest.Target { return batchTarget(id) }} {
		atEachCall(t, func(b *bench) { id = b.submitted() }, unpack, func(b *bench) {
			if _, err := b.try(ingest.ActHold, target()); err != nil {
				b.Fatal(err)
			}
		}, func(b *bench) {
			row := b.batch(id)
			if held := row.State == ingest.BatchHeld; held != (row.Unpacked == 0) {
				b.Errorf("the batch is %s with %d jobs", row.State, row.Unpacked)
			}
			b.tick()
			if row.State == ingest.BatchProcessing && b.states(id) != "Held" {
				b.Errorf("its jobs are %s", b.states(id))
			}
		})
	}
}

// TestTwoAdminsHold: of two who hold at once, or lift at once, one changes it; each change
// has its event.
func TestTwoAdminsHold(t *testing.T) {
	for _, target := range []ingest.Target{collectionC, theQueue, theStorage} {
		names := []ingest.ActionName{ingest.ActHold, ingest.ActRelease}
		subject := event.Subject{Type: event.Collection, ID: "c"}
		if target != collectionC {
			names = []ingest.ActionName{ingest.ActPause, ingest.ActResume}
			subject = event.Subject{Type: event.Queue, ID: map[ingest.Target]string{theQueue: "ingest",
				theStorage: "storage"}[target]}
		}
		for i, name := range names {
			changes := 0
			act := func(b *bench) {
				res, err := b.try(name, target)
				if err != nil {
					b.Fatal(err)
				}
				if res.Changed {
					changes++
				}
			}
			atEachCall(t, func(b *bench) {
				changes = 0
				if i == 1 {
					b.do(names[0], target)
				}
			}, act, act, func(b *bench) {
				events, _, err := event.Page(b.Context(), b.q.Table, subject, "")
				if err != nil || changes != 1 || len(events) != i+1 {
					b.Errorf("%s %s: %d changes, %d events, %v", name, target, changes, len(events), err)
				}
			})
		}
	}
}

// TestHoldWithLostAnswers: an action whose answers are lost is done once.
func TestHoldWithLostAnswers(t *testing.T) {
	for at := range 6 {
		calls := 0
		lose := func(name string, call func() error) error {
			err := call()
			calls++
			if name == "TransactWriteItems" && calls > at && calls <= at+2 {
				return errors.New("the connection was closed")
			}
			return err
		}
		tb := tabletest.Table(&tabletest.Client{DynamoDBAPI: tabletest.New(), Do: lose})
		tb.Wait = func(context.Context, time.Duration) error { return nil }
		b := newBenchOn(t, tb)
		res := b.do(ingest.ActHold, collectionC)
		events, _, err := event.Page(t.Context(), tb, event.Subject{Type: event.Collection, ID: "c"}, "")
		if err != nil || len(events) != 1 || !res.Changed {
			t.Errorf("%+v; %d events, %v", res, len(events), err)
		}
		holds, err := b.q.Holds(t.Context())
		if err != nil || len(holds) != 1 {
			t.Errorf("%+v, %v", holds, err)
		}
	}
}

// TestEndMeetsAHold: a job whose own hold ends while its collection is put on hold is not
// admitted after that, whatever the sweep has read.
func TestEndMeetsAHold(t *testing.T) {
	var id string
	var then bool
	atEachCall(t, func(b *bench) {
		id = b.one()
		b.do(ingest.ActHold, jobTarget(id), b.now.Add(time.Hour))
		b.now = b.now.Add(time.Hour)
	}, (*bench).tickOnce, func(b *bench) {
		b.do(ingest.ActHold, collectionMaps)
		then = b.runs(id)
	}, func(b *bench) {
		for range 2 {
			b.tick()
		}
		if now := b.runs(id); now != then {
			b.Errorf("running %v when the hold was placed, then %v", then, now)
		}
		if j := b.job(id); !then && (j.State != ingest.Held || j.Hold.Scope != ingest.TargetCollection) {
			b.Errorf("the job is %s, %+v", j.State, j.Hold)
		}
	})
}

// TestHoldIsReplaced: a hold that is lifted and placed again while a tick runs stops what the
// first one would have stopped.
func TestHoldIsReplaced(t *testing.T) {
	var batch string
	atEachCall(t, func(b *bench) {
		batch = b.submit(3, "x")
		b.do(ingest.ActHold, collectionC)
	}, (*bench).tickOnce, func(b *bench) {
		b.do(ingest.ActRelease, collectionC)
		b.do(ingest.ActHold, collectionC)
	}, func(b *bench) {
		b.tick()
		if got := b.states(batch); got != "Held Held Held" {
			b.Errorf("jobs: %s", got)
		}
	})
}

// TestTwoAdminsRelease: of two who release a job or a batch at once, one changes it.
func TestTwoAdminsRelease(t *testing.T) {
	for kind, arrange := range map[event.Type]func(b *bench) string{
		event.Job: (*bench).heldAlone,
		event.Batch: func(b *bench) string {
			id := b.submitted()
			b.do(ingest.ActHold, batchTarget(id))
			return id
		},
	} {
		changes := 0
		var target ingest.Target
		var before string
		act := func(b *bench) {
			res, err := b.try(ingest.ActRelease, target)
			if err != nil {
				b.Fatal(err)
			}
			if res.Changed {
				changes++
			}
		}
		atEachCall(t, func(b *bench) {
			changes, target = 0, ingest.Target{Kind: ingest.TargetBatch, ID: arrange(b)}
			if kind == event.Job {
				target.Kind = ingest.TargetJob
			}
			before = b.types(kind, target.ID)
		}, act, act, func(b *bench) {
			want := before + map[event.Type]string{event.Job: ", job.released by admin",
				event.Batch: ", batch.released by admin"}[kind]
			if got := b.types(kind, target.ID); changes != 1 || got != want {
				b.Errorf("%d changes; events %s", changes, got)
			}
			if kind == event.Batch && b.batch(target.ID).Exec != 2 {
				b.Errorf("execution %d", b.batch(target.ID).Exec)
			}
		})
	}
}
