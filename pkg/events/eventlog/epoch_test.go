package eventlog_test

import (
	"strings"
	"testing"

	"archivist/pkg/events/event"
	"archivist/pkg/events/eventlog"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// raised are the events of the log as a whole: who raised the epoch, and to which.
func (w *world) raised() (out []string) {
	w.t.Helper()
	rows, _, err := event.Page(w.t.Context(), w.log.Table, event.Subject{Type: event.Queue, ID: "log"}, "")
	if err != nil {
		w.t.Fatal(err)
	}
	for _, r := range rows {
		out = append(out, r.Actor+" "+r.Detail)
	}
	return out
}

// TestRaiseEpoch: the epoch is raised once for each request, with an event; a reason is needed.
func TestRaiseEpoch(t *testing.T) {
	w := newWorld(t)
	by := eventlog.By{Actor: "ann", Reason: " restored ", Request: "r1"}
	for _, c := range []struct {
		request string
		want    int64
	}{{"r1", 2}, {"r1", 2}, {"r2", 3}, {"", 4}, {"", 5}} {
		by.Request = c.request
		if n, err := w.log.RaiseEpoch(t.Context(), by); err != nil || n != c.want {
			t.Errorf("request %q: epoch %d, %v; expected %d", c.request, n, err, c.want)
		}
	}
	if got := w.raised(); len(got) != 4 || got[0] != `ann {"epoch":2,"reason":"restored"}` ||
		got[3] != `ann {"epoch":5,"reason":"restored"}` {
		t.Errorf("events: %q", got)
	}
	for _, reason := range []string{"", " ", strings.Repeat("x", 501)} {
		by.Reason = reason
		if _, err := w.log.RaiseEpoch(t.Context(), by); !fault.Is(err, fault.Invalid) {
			t.Errorf("a reason of %d characters: %v", len(reason), err)
		}
	}
}

// TestRaiseEpochAfterPartialRestore: the row of the epoch was restored to an earlier moment than its
// events.
func TestRaiseEpochAfterPartialRestore(t *testing.T) {
	w := newWorld(t)
	if _, err := w.log.RaiseEpoch(t.Context(), restoredBy); err != nil {
		t.Fatal(err)
	}
	tx := w.log.Table.Begin(w.id())
	tx.Remove(&table.Head{PK: "LOGS", SK: "EPOCH", Rev: 1})
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n, err := w.log.RaiseEpoch(t.Context(), restoredBy); err != nil || n != 2 || len(w.raised()) != 2 {
		t.Errorf("the epoch is %d, %v, events: %q", n, err, w.raised())
	}
}

// TestRaiseEpochDies: whoever raises the epoch dies at each call, before or after its effect, and
// the same request is made again: the epoch was raised once.
func TestRaiseEpochDies(t *testing.T) {
	by := eventlog.By{Actor: "ann", Reason: "restored", Request: "r1"}
	for stop, done := 1, false; !done; stop++ {
		for _, after := range []bool{false, true} {
			w := newWorld(t)
			w.dies(stop, after)
			_, err := w.log.RaiseEpoch(t.Context(), by)
			done = err == nil
			w.do = nil
			if n, err := w.log.RaiseEpoch(t.Context(), by); err != nil || n != 2 || len(w.raised()) != 1 {
				t.Fatalf("died at call %d: the epoch is %d, %v, events: %q", stop, n, err, w.raised())
			}
		}
	}
}
