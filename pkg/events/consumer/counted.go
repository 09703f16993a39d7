package consumer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/guregu/dynamo/v2"

	"archivist/pkg/events/envelope"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// countedRow has what the last tick has counted of all consumers: so a list of them costs two reads,
// however many consumers and partitions there are. It is for people: nothing depends on it. Times
// are milliseconds since 1970.
type countedRow struct {
	table.Head
	At int64              `dynamo:"at_ms"`
	Of map[string]counted `dynamo:"by_consumer"`
}

// counted is what was counted of a consumer. The fields are those of Status. A row is written each
// minute, and billed by its size: of one that is up to date it has a few bytes.
type counted struct {
	At      int64 `dynamo:"at_ms,omitempty"` // 0: that of the row
	Created int64 `dynamo:"created_ms"`      // another consumer can have had the name
	Behind  int64 `dynamo:"behind,omitempty"`
	AtLeast bool  `dynamo:"at_least,omitempty"`
	Since   int64 `dynamo:"since_ms,omitempty"`
	Parked  int64 `dynamo:"parked,omitempty"`
	Waiting int64 `dynamo:"quiet_keys,omitempty"`
	Stopped int   `dynamo:"stopped,omitempty"`
	NextRun int64 `dynamo:"next_ms,omitempty"`
}

// countedKey is beside what the loop of the consumers has to remember.
var countedKey = table.Key{PK: "LEASE#consumers", SK: "COUNTED"}

// Counted lists all consumers by name, as they are, with what the last tick has counted of each: it
// says when that was. The places in the partitions are left out. It costs two reads.
func (s *Store) Counted(ctx context.Context) ([]Status, error) {
	list, err := s.List(ctx)
	if err != nil {
		return nil, err
	}
	row, err := s.counted(ctx)
	if err != nil {
		return nil, err
	}

	all := make([]Status, len(list))
	for i, c := range list {
		all[i].Consumer = c
		if n, known := row.Of[c.Name]; known && n.Created == c.Created {
			n.show(&all[i], cmp.Or(n.At, row.At))
		}
	}
	return all, nil
}

// show says what was counted at a time.
func (n counted) show(st *Status, at int64) {
	st.Counted, st.Behind, st.AtLeast, st.Since = at, n.Behind, n.AtLeast, n.Since
	st.LagSeconds = lagOf(n.Since, time.UnixMilli(at))
	st.Parked, st.Waiting, st.Stopped, st.NextRun = n.Parked, n.Waiting, n.Stopped, n.NextRun
}

// counted reads the row; an empty one, if nothing was counted yet.
func (s *Store) counted(ctx context.Context) (row countedRow, err error) {
	err = s.Table.Get(ctx, countedKey, &row)
	if fault.Is(err, fault.NotFound) {
		return row, nil
	}
	return row, err
}

// count keeps how far the consumers are that were looked at. Of the others the numbers stay, with
// their times; so do those of one that cannot be counted, which the error names. Of two ticks at
// once the last to write counts: each has counted within its minute.
func (s *Store) count(ctx context.Context, rows []row, partitions []envelope.Partition,
	seen *sighted, n *excerpts) error {
	var errs []error
	row := countedRow{At: s.Now().UnixMilli(), Of: map[string]counted{}}
	for i, c := range seen.list {
		one, err := s.countOne(ctx, c, partitions, seen.at[i], n)
		if err != nil {
			errs = append(errs, fmt.Errorf("consumer %s was not counted: %w", c.Name, err))
			continue
		}
		row.Of[c.Name] = one
	}
	return errors.Join(append(errs, s.keepCounted(ctx, rows, &row))...)
}

// countOne counts a consumer.
func (s *Store) countOne(ctx context.Context, c Consumer, partitions []envelope.Partition,
	at map[string]cursor, n *excerpts) (counted, error) {
	st, err := s.statusBy(ctx, c, partitions, at, true, n)
	if err != nil {
		return counted{}, err
	}
	next, err := s.nextRun(ctx, c)
	return counted{Created: st.Created, Behind: st.Behind, AtLeast: st.AtLeast, Since: st.Since,
		Parked: st.Parked, Waiting: st.Waiting, Stopped: st.Stopped, NextRun: next}, err
}

// keepCounted writes what was counted, beside what was counted before of other consumers.
func (s *Store) keepCounted(ctx context.Context, rows []row, row *countedRow) error {
	if err := s.countedBefore(ctx, rows, row); err != nil || len(row.Of) == 0 {
		return err
	}
	set := func(u *dynamo.Update) { u.Set("at_ms", row.At).Set("by_consumer", row.Of) }
	return s.Table.Change(ctx, countedKey, s.NewID(), set, &countedRow{})
}

// countedBefore adds what was counted before of the consumers that were not looked at now.
func (s *Store) countedBefore(ctx context.Context, rows []row, now *countedRow) error {
	var before countedRow
	for _, r := range rows {
		if _, is := now.Of[r.Name]; is || r.State != active {
			continue
		}
		if before.At == 0 {
			var err error
			if before, err = s.counted(ctx); err != nil {
				return err
			}
		}
		if n, is := before.Of[r.Name]; is {
			n.At = cmp.Or(n.At, before.At)
			now.Of[r.Name] = n
		}
	}
	return nil
}
