package eventlog

import (
	"context"
	"errors"
	"time"

	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/table"
)

// sweepRows is the number of events that one page of the sweep looks at. Their subjects are placed
// before the next page.
const sweepRows = 200

// Sweep places events that have waited for longer than Grace, because what should have woken the
// relay was lost or refused, and those of earlier releases. It finishes stages, and removes
// abandoned ones. It stops at a time, and returns what it placed. An error names the subjects whose
// events cannot be placed; the others are placed all the same.
func (l *Log) Sweep(ctx context.Context, until time.Time) (placed []envelope.Event, err error) {
	errs := []error{l.sweepStages(ctx, until)}
	for shard := range event.UnplacedShards {
		got, err := l.sweepShard(ctx, shard, until)
		placed, errs = append(placed, got...), append(errs, err)
	}
	got, err := l.placeEarlier(ctx, until)
	return append(placed, got...), errors.Join(append(errs, err)...)
}

// sweepShard places what a shard of the index lists, oldest first. The index lags and has keys
// only: Place reads the events, and leaves alone those that have a place by now.
func (l *Log) sweepShard(ctx context.Context, shard int,
	until time.Time) (placed []envelope.Event, err error) {
	q := table.Query{
		Index: "work",
		PK:    event.Unplaced(shard),
		From:  "0",
		To:    event.UnplacedAt(l.Now().Add(-Grace).UnixMilli()),
		Limit: sweepRows,
	}

	var errs []error
	for l.Now().Before(until) {
		var rows []table.Head
		next, err := l.Table.Page(ctx, q, &rows)
		if err != nil {
			return placed, errors.Join(append(errs, err)...)
		}

		var subjects []event.Subject
		for _, r := range rows {
			s, err := event.SubjectAt(r.PK)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			subjects = append(subjects, s)
		}

		got, err := l.Place(ctx, subjects)
		placed, errs = append(placed, got...), append(errs, err)
		if next == "" {
			break
		}

		q.Cursor = next
	}
	return placed, errors.Join(errs...)
}
