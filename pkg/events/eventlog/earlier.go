package eventlog

import (
	"context"
	"errors"
	"strings"
	"time"

	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// Releases before 2026-11-22 wrote events that nothing places. An event like that is placed
// with the next one of its subject. The others are found by one scan of the table, which the
// sweep goes through once, as long as its time allows.

// deployed is how long after its first run the sweep begins that scan: by then no function of
// the release before is running.
const deployed = time.Hour

// scanRows is the number of rows that a step of the scan reads. The cursor is written after each
// step.
const scanRows = 500

// placeEarlier continues the scan. An error names events that could not be placed, and does not
// stop it. The first call only writes when the scan begins.
func (l *Log) placeEarlier(ctx context.Context,
	until time.Time) (placed []envelope.Event, err error) {
	if l.noEarlier.Load() {
		return nil, nil
	}

	row := earlier{Head: table.Head{PK: directory, SK: earlierSK}}
	err = l.Table.Get(ctx, row.Key(), &row)
	if fault.Is(err, fault.NotFound) {
		row.From = l.Now().Add(deployed).UnixMilli()
		return nil, l.saveEarlier(ctx, &row)
	}

	if err != nil {
		return nil, err
	}

	var errs []error
	for row.Done == 0 && l.Now().Before(until) && l.Now().UnixMilli() >= row.From {
		got, err := l.scanEarlier(ctx, &row, &errs)
		placed = append(placed, got...)
		if err != nil {
			errs = append(errs, err)
			break
		}
	}

	l.noEarlier.Store(row.Done > 0)
	return placed, errors.Join(errs...)
}

// scanEarlier is one step of the scan: it places what it finds, then moves the cursor. What could
// not be placed is added to errs. If the time ran out, the cursor stays, and the step is repeated.
func (l *Log) scanEarlier(ctx context.Context, row *earlier,
	errs *[]error) ([]envelope.Event, error) {
	page, next, err := l.Table.Scan(ctx, "", scanRows, row.Cursor)
	if err != nil {
		return nil, err
	}

	var subjects []event.Subject
	for _, r := range page {
		_, has := r.Item["log_seq"]
		if has || !strings.HasPrefix(r.SK, event.Prefix) {
			continue
		}
		// Events in other partitions are moved, and then placed.
		if s, err := event.SubjectAt(r.PK); err == nil {
			subjects = append(subjects, s)
		}
	}

	placed, err := l.Place(ctx, subjects)
	if ctx.Err() != nil {
		return placed, err
	}

	*errs = append(*errs, err)
	row.Cursor, row.Placed = next, row.Placed+int64(len(placed))
	if next == "" {
		row.Done = l.Now().UnixMilli()
	}
	return placed, l.saveEarlier(ctx, row)
}

// saveEarlier writes the row. A Stale means that another sweep goes on with the scan.
func (l *Log) saveEarlier(ctx context.Context, row *earlier) error {
	tx := l.Table.Begin(l.NewID())
	tx.InsertOrSave(row)
	return tx.Commit(ctx)
}
