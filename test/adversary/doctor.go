package adversary

import (
	"context"
	"log/slog"
	"time"

	"archivist/pkg/app/doctor"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/table/tabletest"
)

// Examine lets the doctor read all rows, which knows nothing of a simulation's checker, unless the seed has shown a
// violation. Each finding for which counts holds is one. There must be more rows than that.
func (w *World) Examine(ctx context.Context, fake *tabletest.Fake, more int, counts func(queue.Finding) bool,
	fail func(format string, args ...any)) {
	if w.Failed() {
		return
	}
	d := doctor.Doctor{Queue: &queue.Queue{Table: tabletest.Table(fake), Now: time.Now,
		NewID: func() string { return "doctor" },
		Rules: ingest.Rules{Timing: ingest.Timings["production"]}, Log: slog.New(slog.DiscardHandler)}}
	for cursor, progress := "", rowsPhase; progress == rowsPhase; {
		page, err := d.Check(ctx, cursor, false, time.Now().Add(time.Hour))
		if err != nil {
			fail("the doctor: %v", err)
			return
		}
		for _, f := range page.Findings {
			if counts(f) {
				fail("the doctor finds %s of %s: %s", f.Invariant, f.Subject, f.Evidence)
			}
		}
		if page.Checked > more {
			w.Met("rows read by the doctor")
		}
		cursor, progress = page.Cursor, page.Progress
	}
}

// rowsPhase is how the doctor names its phase that reads the rows. Others need a storage root.
const rowsPhase = "the rows of the table"
