package eventlog_test

import (
	"fmt"
	"testing"
	"time"

	"archivist/pkg/events/event"
	"archivist/pkg/events/eventlog"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
)

// staged are events of many jobs, one of which has a row, and two of one job.
func (w *world) staged(n int) (all []eventlog.Staged) {
	w.t.Helper()
	for i := range n {
		all = append(all, eventlog.Staged{Subject: job(i),
			Event: event.New{Type: "job.state", Time: w.now.UnixMilli(), Component: "test"}})
	}
	all = append(all, all[0])
	tx := tabletest.Table(w.fake).Begin(w.id())
	tx.Insert(&jobRow{Head: table.Head{PK: job(1).Key().PK, SK: job(1).Key().SK}, Version: 1})
	if err := tx.Commit(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	w.happen("", job(1))
	return all
}

type jobRow struct {
	table.Head
	Version int64 `dynamo:"version"`
}

// TestStage: a process dies at each of its calls while it stages, commits and appends events.
// After the sweep all of them have happened, each once, or none.
func TestStage(t *testing.T) {
	const n = 6
	committed, abandoned := 0, 0
	for stop, done := 1, false; !done; stop++ {
		for _, after := range []bool{false, true} {
			w := newWorld(t)
			all := w.staged(n)
			w.dies(stop, after)
			err := w.log.Stage(t.Context(), "s", all)
			if err == nil {
				err = w.log.CommitStage(t.Context(), "s")
			}
			done = err == nil
			w.do = nil
			if got := w.happened(); got != 0 && got != n+1 && done {
				t.Fatalf("died at call %d: %d events happened", stop, got)
			}
			w.now = w.now.Add(eventlog.Abandoned + time.Hour)
			for range 2 { // the first one finishes stages, the second one places what has happened
				if _, err := w.relay(w.fake).Sweep(t.Context(), w.now.Add(time.Hour)); err != nil {
					t.Fatal(err)
				}
			}
			switch got := w.happened(); got {
			case 0:
				abandoned++
			case n + 1:
				committed++
				w.settle(all)
			default:
				t.Fatalf("died at call %d: %d events happened", stop, got)
			}
			w.check()
			if rows, _ := w.rows("STAGE#", ""); rows > 0 {
				t.Fatalf("died at call %d: %d rows of the stage are left", stop, rows)
			}
		}
	}
	if committed < n || abandoned < n {
		t.Errorf("%d were committed, %d abandoned", committed, abandoned)
	}
}

// happened is the number of events of the stage that have happened.
func (w *world) happened() (n int) {
	for _, it := range w.fake.All() {
		var r event.Row
		if k := keyOf(it); len(k.SK) > 3 && k.SK[:3] == event.Prefix && (table.Raw{Item: it}).Decode(&r) == nil &&
			r.Tx == "s" {
			n++
			if r.TxCount != 7 || r.ID != fmt.Sprintf("s.%d", r.TxIndex) {
				w.t.Errorf("%s is event %d of %d", r.ID, r.TxIndex, r.TxCount)
			}
		}
	}
	return n
}

// settle counts what has happened for check.
func (w *world) settle(all []eventlog.Staged) {
	for _, s := range all {
		w.versions[s.Subject]++
	}
	var row jobRow
	if err := w.log.Table.Get(w.t.Context(), job(1).Key(), &row); err != nil || row.Version != w.versions[job(1)] {
		w.t.Errorf("the row of a job is at version %d of %d: %v", row.Version, w.versions[job(1)], err)
	}
}

// TestStageRefused: what cannot happen is refused before anything does.
func TestStageRefused(t *testing.T) {
	w := newWorld(t)
	all := w.staged(3)
	if err := w.log.CommitStage(t.Context(), "none"); !fault.Is(err, fault.NotFound) {
		t.Error("a stage that never was:", err)
	}
	bad := append(all[:1:1], eventlog.Staged{Subject: job(9), Event: event.New{Type: "unknown"}})
	if err := w.log.Stage(t.Context(), "s", bad); err == nil {
		t.Error("an event of an unknown type was staged")
	}
	if err := w.log.CommitStage(t.Context(), "s"); !fault.Is(err, fault.Conflict) {
		t.Error("an incomplete stage was committed:", err)
	}
	if err := w.log.Stage(t.Context(), "s", all); !fault.Is(err, fault.Conflict) {
		t.Error("other events under the same id:", err)
	}
	if n := w.happened(); n != 0 {
		t.Errorf("%d events happened", n)
	}
}
