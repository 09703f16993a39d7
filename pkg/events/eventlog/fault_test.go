package eventlog_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/table/tabletest"
)

var errKilled = errors.New("the process was killed")

// dies lets the process die at its nth call, before or after the effect.
func (w *world) dies(stop int, after bool) {
	calls := 0
	w.do = func(_ string, call func() error) error {
		calls++
		if calls > stop || calls == stop && !after {
			return errKilled
		}
		err := call()
		if calls == stop {
			err = errKilled
		}
		return err
	}
}

// some makes events of a few subjects happen, in two logs, more than one transaction places.
func (w *world) some() (subjects []event.Subject) {
	for n := range 8 {
		w.happen("maps", job(n), job(n+100))
		w.happen("", job(n+200))
		subjects = append(subjects, job(n), job(n+100), job(n+200))
	}
	for range 55 {
		w.happen("maps", job(7))
	}
	return subjects
}

// TestCrash: a relay dies at each of its calls, before or after the effect. What it has not
// placed the sweep places.
func TestCrash(t *testing.T) {
	for _, after := range []bool{false, true} {
		for stop, done := 1, false; !done; stop++ {
			w := newWorld(t)
			subjects := w.some()
			w.dies(stop, after)
			_, err := w.log.Place(t.Context(), subjects)
			done = err == nil
			w.do = nil
			w.now = w.now.Add(time.Hour)
			if _, err := w.relay(w.fake).Sweep(t.Context(), w.now.Add(time.Hour)); err != nil {
				t.Fatal(err)
			}
			w.check()
			if t.Failed() {
				t.Fatalf("died at call %d", stop)
			}
		}
	}
}

// TestTwoRelays: while a relay works, another one places events of the same subjects and
// partitions, between any two of its calls. The response of that call is lost or not, the log
// is split or not. Both together say that they have placed each event once.
func TestTwoRelays(t *testing.T) {
	for _, lost := range []bool{false, true} {
		for _, split := range []bool{false, true} {
			for at, reached := 1, true; reached; at++ {
				reached = meet(t, at, lost, split)
				if t.Failed() {
					t.Fatalf("the other one came at call %d", at)
				}
			}
		}
	}
}

// meet lets another relay work at one call of the first one. It reports whether the first one
// made that call.
func meet(t *testing.T, at int, lost, split bool) (reached bool) {
	w := newWorld(t)
	subjects := w.some()
	other := w.relay(w.fake)
	var placed []envelope.Event
	var closed envelope.Partition
	calls := 0
	w.do = func(_ string, call func() error) error {
		calls++
		if calls != at {
			return call()
		}
		reached = true
		if lost {
			if err := call(); err != nil {
				return err
			}
		}
		do := w.do
		w.do = nil
		defer func() { w.do = do }()
		w.happen("maps", job(3), job(1000))
		var err error
		if split {
			err = other.Split(t.Context(), "maps", 2)
			closed, _ = other.Partition(t.Context(), "maps")
		} else {
			placed, err = other.Place(t.Context(), []event.Subject{job(1000), job(7), job(3), job(205)})
		}
		if err != nil {
			t.Fatal(err)
		}
		if lost {
			return errors.New("the connection was lost")
		}
		return call()
	}
	got, err := w.log.Place(t.Context(), subjects)
	if err != nil {
		t.Fatal(err)
	}
	w.do = nil
	placed = append(placed, got...)
	w.once(append(placed, w.place(job(3), job(1000))...)) // those may have happened after they were looked at
	w.check()
	if now, err := other.Partition(t.Context(), "maps"); err != nil || split && reached && now != closed {
		t.Errorf("after the split: %+v, later %+v, %v", closed, now, err)
	}
	return reached
}

// once checks that no event is named twice, and that each is where it is said to be.
func (w *world) once(placed []envelope.Event) {
	w.t.Helper()
	seen := map[string]bool{}
	for _, e := range placed {
		at := fmt.Sprint(e.Partition, " ", e.Seq)
		if seen[at] || seen[e.ID] {
			w.t.Errorf("%s at %s was placed twice", e.ID, at)
		}
		seen[at], seen[e.ID] = true, true
	}
	partitions, err := w.log.Partitions(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	all := 0
	for _, p := range partitions {
		for _, e := range w.read(p.Name) {
			all++
			if !seen[fmt.Sprint(e.Partition, " ", e.Seq)] || !seen[e.ID] {
				w.t.Errorf("nobody has said that %s at %d is placed", e.ID, e.Seq)
			}
		}
	}
	if 2*all != len(seen) {
		w.t.Errorf("%d events are placed; relays said %d", all, len(seen)/2)
	}
}

// TestWriterSettles: an event is placed before its writer, whose response was lost, has settled whether it was made.
// The writer learns that it was.
func TestWriterSettles(t *testing.T) {
	w := newWorld(t)
	tb := tabletest.Table(&tabletest.Client{DynamoDBAPI: w.fake, Do: func(op string, call func() error) error {
		err := call()
		if op == "TransactWriteItems" || op == "PutItem" {
			w.place(job(1)) // the relay is faster than the response, which is lost
			return errors.New("the connection was lost")
		}
		return err
	}})
	tb.Wait = func(context.Context, time.Duration) error { return nil }
	tx := tb.Begin("mine")
	if err := event.Append(tx, job(1), 1, event.New{Type: "job.state", Time: 1}); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Error("the writer of an event that was placed meanwhile:", err)
	}
}

// TestMissingVersion: an event whose forerunner cannot be read yet waits for it. One that never
// had a forerunner here is placed.
func TestMissingVersion(t *testing.T) {
	w := newWorld(t)
	w.happen("maps", job(1))
	w.place(job(1))
	w.versions[job(1)] = 2 // version 2 is missing
	w.happen("maps", job(1))
	w.happen("maps", job(1))
	if placed := w.place(job(1)); len(placed) != 0 {
		t.Errorf("placed %+v before version 2", placed)
	}
	w.now = w.now.Add(11 * time.Minute)
	if placed := w.place(job(1)); len(placed) != 2 || placed[0].Version != 3 {
		t.Errorf("placed %+v", placed)
	}
}
