package eventsim

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"archivist/pkg/doctor"
	"archivist/pkg/ingest"
	"archivist/pkg/queue"
	"archivist/pkg/table/tabletest"
)

// examine lets the doctor read all rows at the end, which knows nothing of the checker. The
// subjects of a simulation are no real jobs and objects: only what it finds of their events, the log
// and the consumers counts.
func (w *world) examine(ctx context.Context) {
	if w.check.err != nil {
		return
	}
	d := doctor.Doctor{Queue: &queue.Queue{Table: tabletest.Table(w.fake), Now: time.Now, NewID: w.newID,
		Rules: ingest.Rules{Timing: ingest.Timings["production"]}, Log: slog.New(slog.DiscardHandler)}}
	for cursor, progress := "", rowsPhase; progress == rowsPhase; {
		page, err := d.Check(ctx, cursor, false, time.Now().Add(time.Hour))
		if err != nil {
			w.check.fail("the doctor: %v", err)
			return
		}
		if page.Checked > len(w.check.ids) { // each event has a row, and most a place
			w.Met("rows read by the doctor")
		}
		for _, f := range page.Findings {
			switch kind, _, _ := strings.Cut(f.Invariant, "-"); kind {
			case "event", "log", "cursor", "kept":
				w.check.fail("the doctor finds %s of %s: %s", f.Invariant, f.Subject, f.Evidence)
			}
		}
		cursor, progress = page.Cursor, page.Progress
	}
}

// rowsPhase is how the doctor names its phase that reads the rows. Others need a storage root.
const rowsPhase = "the rows of the table"

// TestDoctorFindsDamage: at the end of a seed in which all is well, the place of an event is gone.
func TestDoctorFindsDamage(t *testing.T) {
	w := simulate(t, 1, mutant{})
	if w.check.err != nil {
		t.Fatal(w.check.err)
	}
	w.fake.Watch = nil
	rows := tabletest.Table(w.fake).Rows
	if err := rows.Delete("pk", "LOG#c0").Range("sk", "SEQ#000000000001").Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.examine(t.Context())
	if w.check.err == nil || !strings.Contains(w.check.err.Error(), "the doctor finds log-gap") {
		t.Errorf("found: %v", w.check.err)
	}
}
