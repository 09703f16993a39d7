package consumer

import (
	"context"
	"fmt"
	"slices"
	"time"

	"archivist/pkg/events/envelope"
	"archivist/pkg/events/filter"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// Explanation says why a consumer did or did not get an event.
type Explanation struct {
	Consumer string `json:"consumer"`
	Event    string `json:"event"`
	State    string `json:"state"` // one of those below
	Reason   string `json:"reason"`
}

// States of an event, for a consumer.
const (
	EventUnplaced    = "unplaced"     // it has no place in the log yet
	EventNotSelected = "not-selected" // the consumer does not handle it
	EventSkipped     = "skipped"      // it was before the start, or a person skipped it
	EventWaiting     = "waiting"      // the cursor has not come to it
	EventQuiet       = "quiet"        // it waits until its order key is quiet
	EventParked      = "parked"
	EventHandled     = "handled"
)

// Explain says why a consumer did or did not get an event, and what is to be done if it waits. It
// judges by the present definition, so an event that was handled under an earlier one can be said
// to be not selected. It reads, and changes nothing. Files of a version are explained together, by
// its event. A NotFound means that there is no such consumer.
func (s *Store) Explain(ctx context.Context, name string, e envelope.Event) (Explanation, error) {
	x := Explanation{Consumer: name, Event: e.ID}
	c, err := s.Get(ctx, name)
	if err != nil {
		return x, err
	}

	if e.Seq == 0 {
		x.State, x.Reason = EventUnplaced,
			"the event has no place in the log yet; it gets one within a minute or two"
		return x, nil
	}

	f, err := filter.Compile(c.Filter)
	if err != nil {
		return x, err
	}

	cur, err := s.cursor(ctx, name, e.Partition)
	if err != nil {
		return x, err
	}

	if skip := decide(c, f, e, cur.From); skip != "" {
		x.State, x.Reason = EventNotSelected, skip
		if skip == skipFilter {
			x.Reason += ": " + c.Filter
		}
		return x, nil
	}

	if e.Seq > cur.Seq {
		x.State, x.Reason = EventWaiting, s.whyWaiting(c, cur, e)
		return x, nil
	}

	for _, one := range show(f, e) {
		x.State, x.Reason, err = s.fate(ctx, c, cur, one.Event)
		if err != nil || x.State != EventHandled {
			return x, err
		}
	}

	if f.SelectsFiles(e) {
		x.State, x.Reason, err = s.fateOfFiles(ctx, c, cur, e)
	}
	return x, err
}

// fateOfFiles is what became of the files of a version that the cursor has passed: the first of
// them that is parked, or that some may wait. It does not read their list.
func (s *Store) fateOfFiles(ctx context.Context, c Consumer, cur cursor,
	e envelope.Event) (state, reason string,
	err error) {
	if cur.Parked > 0 {
		rows, err := readAll[parkedRow](ctx, s.Table,
			table.Query{PK: parkedPK(c.Name, e.Partition)})
		if err != nil {
			return "", "", err
		}
		for _, row := range rows {
			if slices.ContainsFunc(row.Refs,
				func(f ref) bool { return f.Seq == e.Seq && f.Shown != nil }) {
				p := row.event(e.Partition)
				return EventParked,
					fmt.Sprintf("%s %s is parked: %s; redrive or discard it", p.Subject.Type,
						p.Subject.ID, p.Reason), nil
			}
		}
	}

	if cur.Pending > 0 {
		return EventQuiet,
			fmt.Sprintf("%d order keys wait until they are quiet; files of the version can be among "+
				"them", cur.Pending), nil
	}

	state, reason = cur.passed(e)
	return state, reason, nil
}

// whyWaiting is why the cursor has not come to an event yet. The first reason that holds is told:
// what a person has done comes before what the system does by itself.
func (s *Store) whyWaiting(c Consumer, cur cursor, e envelope.Event) string {
	place := fmt.Sprintf(
		"the consumer has come to event %d of the partition %s, and this is event %d: ",
		cur.Seq, e.Partition, e.Seq)
	switch {
	case cur.Files != nil && e.Seq == cur.Files.Event.Seq:
		return place + fmt.Sprintf("it has come to file %d of the version", cur.Files.Done)
	case c.Paused:
		return place + "it is paused"
	case c.Rebuild != "":
		return place + "it is being rebuilt: archivist replay show " + c.Rebuild
	case c.Resets > 0:
		return place + "its cursors are being moved, as a person asked; it goes on within some minutes"
	case cur.Stop != nil:
		return place + cur.Stop.explain()
	case cur.Live(s.Now()):
		return place + "it is running"
	case len(cur.Orders) > 0:
		return place + "it handles parked events first"
	case c.Mode == Scheduled:
		return place + "it runs at its times: " + c.Schedule + "; archivist consumer run " + c.Name +
			" lets it run now"
	}
	return place + "it will be woken; lost wake-ups are repeated within a few minutes"
}

// explain says why a cursor does not move.
func (s *Stop) explain() string {
	since := time.UnixMilli(s.Since).UTC().Format(time.RFC3339)
	switch s.Kind {
	case Blocked:
		return fmt.Sprintf(
			"since %s it stops at event %d, which failed: %s. It tries again; or skip the event",
			since, s.Seq, s.Reason)
	case Unreachable:
		return fmt.Sprintf("since %s its target cannot be called: %s. It tries again", since, s.Reason)
	}
	return fmt.Sprintf("since %s it stops: %s", since, s.Reason)
}

// fate is what became of an event that the cursor has passed: it is parked, waits until its key is
// quiet, was skipped, or was handled.
func (s *Store) fate(ctx context.Context, c Consumer, cur cursor,
	e envelope.Event) (state, reason string, err error) {
	k := key(c, e)
	row, err := s.parkedAt(ctx, c.Name, e.Partition, k, e.ID)
	if err != nil {
		return "", "", err
	}

	if row != nil {
		return EventParked, row.event(e.Partition).Reason + "; redrive or discard it", nil
	}

	var p pendingRow
	err = s.Table.Get(ctx, pendingKey(c.Name, e.Partition, k), &p)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return "", "", err
	}

	if slices.ContainsFunc(p.Refs, func(f ref) bool { return f.ID == e.ID }) {
		return EventQuiet, fmt.Sprintf("it waits, together with %d others of its key %s, until %s",
			len(p.Refs)-1, k,
			time.UnixMilli(p.Due).UTC().Format(time.RFC3339)), nil
	}

	state, reason = cur.passed(e)
	return state, reason, nil
}

// passed is why the cursor is behind an event that neither is parked nor waits. Ranges that a
// person skipped are remembered only up to maxSkips, so an old one can count as handled.
func (c *cursor) passed(e envelope.Event) (state, reason string) {
	for _, r := range c.Skips {
		if r.After < e.Seq && e.Seq <= r.To {
			return EventSkipped, "a person moved the cursor past it; see the events of the consumer"
		}
	}

	if e.Seq <= c.Begin {
		return EventSkipped,
			"it was in the log before the consumer started; see the start of its definition"
	}
	return EventHandled,
		fmt.Sprintf("the consumer has handled it; its cursor is at event %d", c.Seq)
}

// parkedAt reads the row of a parked event; nil if it is not parked. Rows of a key have its hash in
// front, so only those of the key are read.
func (s *Store) parkedAt(ctx context.Context, name, partition, key, id string) (*parkedRow, error) {
	rows, err := readAll[parkedRow](ctx, s.Table,
		table.Query{PK: parkedPK(name, partition), Prefix: hash(key) + "#"})
	if err != nil {
		return nil, err
	}

	for i := range rows {
		if rows[i].has(id) {
			return &rows[i], nil
		}
	}
	return nil, nil
}
