package eventlog_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"archivist/pkg/events/eventlog"
	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
)

// placed are the times of the places of a partition, in order.
func (w *world) placed(partition string) (times []int64) {
	w.t.Helper()
	q := table.Query{PK: "LOG#" + partition, Prefix: "SEQ#"}
	for first := true; first || q.Cursor != ""; first = false {
		var rows []struct {
			table.Head
			Placed int64 `dynamo:"placed_ms"`
		}
		next, err := tabletest.Table(w.fake).Page(w.t.Context(), q, &rows)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, r := range rows {
			times = append(times, r.Placed)
		}
		q.Cursor = next
	}
	return times
}

// TestClockGoesBack: the times of places do not fall, whatever a relay's clock does: days of the archive follow from
// them.
func TestClockGoesBack(t *testing.T) {
	w := newWorld(t)
	for _, hours := range []time.Duration{0, 30, -40, 5} {
		w.now = w.now.Add(hours * time.Hour)
		w.happen("maps", job(1))
		w.place(job(1))
	}
	times := w.placed("maps")
	for i := range times[1:] {
		if times[i+1] < times[i] {
			t.Errorf("the place %d is of %d, the one before of %d", i+2, times[i+1], times[i])
		}
	}
	if len(times) != 4 {
		t.Errorf("%d places", len(times))
	}
}

// TestEndedDay: nothing is placed on a day that has ended in the archive, also by a relay that has begun before.
func TestEndedDay(t *testing.T) {
	w, _ := days(t)
	late := w.relay(w.fake)
	began := w.now
	late.Now = func() time.Time { return began }
	w.now = w.now.Add(24 * time.Hour)
	w.archive(2)
	w.happen("maps", job(1))
	if placed, err := late.Place(t.Context(), w.subjects(1)); err != nil || len(placed) != 1 {
		t.Fatal(placed, err)
	}
	times := w.placed("maps")
	last, ended := time.UnixMilli(times[len(times)-1]).UTC(), began.Truncate(24*time.Hour)
	if last.Before(ended.Add(24 * time.Hour)) {
		t.Errorf("it was placed on %s, which was archived", last)
	}
}

// TestReadAfterExpiry: wherever a reader is, it reads the next event, whether that is in the table or in the archive.
// Places leave the table when they are as old as is kept, and not before.
func TestReadAfterExpiry(t *testing.T) {
	w := aged(t, 20)
	times := w.placed("maps")
	w.now = time.UnixMilli(times[0]).UTC().Add(keep.Log)
	if done := w.expire(none); done.References != 0 {
		t.Errorf("%d places expired that are exactly as old as is kept", done.References)
	}
	w.now = w.now.Add(time.Millisecond)
	if done := w.expire(none); done.References == 0 || done.References == len(times) {
		t.Errorf("%d of %d places expired", done.References, len(times))
	}
	for after := range int64(len(times)) {
		some, err := w.log.Read(t.Context(), "maps", after, 1)
		if err != nil || len(some) != 1 || some[0].Seq != after+1 {
			t.Fatalf("after %d there is %+v, %v", after, some, err)
		}
	}
}

// TestSweepSaysWhatFails: the sweep returns why events could not be placed.
func TestSweepSaysWhatFails(t *testing.T) {
	w := newWorld(t)
	w.happen("maps", job(1))
	w.now = w.now.Add(eventlog.Grace)
	full := errors.New("the table is full")
	w.do = func(op string, call func() error) error {
		if op == "TransactWriteItems" {
			return full
		}
		return call()
	}
	_, err := w.log.Sweep(t.Context(), w.now.Add(time.Minute))
	if err == nil || !strings.Contains(err.Error(), "full") {
		t.Errorf("the sweep says %v", err)
	}
}

// TestStageIsFinishedSoon: the events of a stage that was committed by a process that died then happen with a sweep
// after the grace.
func TestStageIsFinishedSoon(t *testing.T) {
	w := newWorld(t)
	all := w.staged(6)
	if err := w.log.Stage(t.Context(), "s", all); err != nil {
		t.Fatal(err)
	}
	writes := 0
	w.do = func(op string, call func() error) error {
		if op == "TransactWriteItems" {
			writes++
		}
		if writes > 1 {
			return errKilled
		}
		return call()
	}
	if err := w.log.CommitStage(t.Context(), "s"); err == nil {
		t.Fatal("it did not die")
	}
	w.do = nil
	w.now = w.now.Add(eventlog.Grace)
	if _, err := w.relay(w.fake).Sweep(t.Context(), w.now.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if n := w.happened(); n != 7 {
		t.Errorf("%d events have happened", n)
	}
}

// TestStageOfRemoved: no event is added to a stage that was removed while it was filled.
func TestStageOfRemoved(t *testing.T) {
	w := newWorld(t)
	all := w.staged(3)
	writes := 0
	w.do = func(op string, call func() error) error {
		if op == "TransactWriteItems" {
			writes++
		}
		if writes == 3 { // the marker and one event are there
			w.do = nil
			w.now = w.now.Add(eventlog.Abandoned)
			if _, err := w.relay(w.fake).Sweep(t.Context(), w.now.Add(time.Hour)); err != nil {
				t.Error(err)
			}
		}
		return call()
	}
	if err := w.log.Stage(t.Context(), "s", all); err == nil {
		t.Error("a removed stage was filled")
	}
	if n, _ := w.rows("STAGE#", "EVENT#"); n > 0 {
		t.Errorf("%d events are left of it", n)
	}
}
