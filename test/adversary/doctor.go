package adversary

import (
	"context"
	"log/slog"
	"time"

	"archivist/pkg/doctor"
	"archivist/pkg/ingest"
	"archivist/pkg/queue"
	"archivist/pkg/table/tabletest"
)

// Examine lets the doctor read all rows, which knows nothing of a simulation's checker, and calls found
// for each finding. It returns how many rows were checked.
func Examine(ctx context.Context, fake *tabletest.Fake, newID func() string, found func(queue.Finding)) (rows int,
	err error) {
	d := doctor.Doctor{Queue: &queue.Queue{Table: tabletest.Table(fake), Now: time.Now, NewID: newID,
		Rules: ingest.Rules{Timing: ingest.Timings["production"]}, Log: slog.New(slog.DiscardHandler)}}
	for cursor, progress := "", rowsPhase; progress == rowsPhase; {
		page, err := d.Check(ctx, cursor, false, time.Now().Add(time.Hour))
		if err != nil {
			return rows, err
		}
		rows = page.Checked
		for _, f := range page.Findings {
			found(f)
		}
		cursor, progress = page.Cursor, page.Progress
	}
	return rows, nil
}

// rowsPhase is how the doctor names its phase that reads the rows. Others need a storage root.
const rowsPhase = "the rows of the table"
