package api

import (
	"context"
	"net/url"
	"slices"
	"strconv"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/events/envelope"
)

// newestEvents are the events of a collection, newest first. The log of a collection can have several
// partitions: then it is merged by time. Those of a generation come after all of those before it. It
// ends as partitionEvents does: when it has enough events, or its time is over, and at the beginning of
// what the log keeps.
func (a *API) newestEvents(ctx context.Context, in *EventQuery, picks selection) (
	out v1.EventPage, err error) {
	m, err := a.newestFirst(ctx, in.Collection, in.Cursor)
	if err != nil {
		return out, err
	}

	var found []envelope.Event
	for until := a.Queue.Now().Add(searchFor); len(found) < enough; {
		e, more, err := m.next(ctx)
		if err != nil {
			return out, err
		}

		if !more {
			break
		}

		if picks.has(e) {
			found = append(found, e)
		}

		if !a.Queue.Now().Before(until) {
			break
		}
	}

	out.Cursor = m.cursor()
	out.Items, err = a.whole(ctx, found, picks)
	return out, err
}

// merge reads partitions of a log backwards. It reads a partition only when all events that it has of
// it were returned, so memory is bounded by the number of partitions.
type merge struct {
	a      *API
	parts  []*backwards // of later generations first
	placed int64        // when the newest event got its place, in milliseconds since 1970, if all logs are merged
}

// backwards is a partition that is read from its end.
type backwards struct {
	envelope.Partition
	left []envelope.Event // read, in the order of the log
	last int64            // the place up to which events are still to be returned
}

// newestFirst begins at the end of a log, or where a cursor says. The cursor is a URL query: for each
// partition, the place up to which events are still to be returned. A partition that the cursor does
// not name was made after the first page, and is left out: a list of what was newest at its beginning
// stays that. Heads that grow meanwhile change nothing, because the cursor has the places. An Invalid
// refuses a cursor that names no partition of the log, or a place that is no number.
func (a *API) newestFirst(ctx context.Context, log, cursor string) (*merge, error) {
	at, err := url.ParseQuery(cursor)
	if err != nil {
		return nil, badCursor(cursor)
	}

	all, err := a.EventLog.Partitions(ctx)
	if err != nil {
		return nil, err
	}

	m := &merge{a: a}
	known := cursor == ""
	for _, p := range all {
		if p.Log != log {
			continue
		}

		b := &backwards{Partition: p, last: p.Head}
		if cursor != "" { // a partition that is not in it is newer than the first page
			b.last = 0
		}

		if at.Has(p.Name) {
			last, err := strconv.ParseInt(at.Get(p.Name), 10, 64)
			if err != nil || last < 0 {
				return nil, badCursor(cursor)
			}
			b.last, known = min(last, p.Head), true
		}

		m.parts = append(m.parts, b)
	}

	if !known && len(m.parts) > 0 {
		return nil, badCursor(cursor)
	}

	m.order()
	return m, nil
}

// order puts the partitions of later generations first.
func (m *merge) order() {
	slices.SortStableFunc(m.parts, func(x, y *backwards) int { return y.Generation - x.Generation })
}

// next is the newest event that was not returned yet. more is false at the end.
func (m *merge) next(ctx context.Context) (e envelope.Event, more bool, err error) {
	p, err := m.newest(ctx)
	if err != nil || p == nil {
		return e, false, err
	}
	return p.take(), true, nil
}

// newest is the partition with the newest event that was not returned yet, nil at the end. Only partitions of the
// latest generation that still has events are compared: all events of a generation are after those of the one before
// it, whatever the clocks of their writers said.
func (m *merge) newest(ctx context.Context) (newest *backwards, err error) {
	for _, p := range m.parts {
		if newest != nil && p.Generation != newest.Generation {
			break
		}
		if err := p.read(ctx, m.a); err != nil {
			return nil, err
		}
		if len(p.left) > 0 && (newest == nil || p.time() > newest.time()) {
			newest = p
		}
	}
	return newest, nil
}

// reads reports whether newest has to read.
func (m *merge) reads() bool {
	generation := -1 // that of what is left
	for _, p := range m.parts {
		switch {
		case generation >= 0 && p.Generation != generation:
			return false
		case len(p.left) > 0:
			generation = p.Generation
		case p.last >= max(p.Horizon, 1):
			return true
		}
	}
	return false
}

// time is that of the newest event that is left.
func (p *backwards) time() int64 { return p.left[len(p.left)-1].Time }

// take takes the newest event that is left.
func (p *backwards) take() envelope.Event {
	end := len(p.left) - 1
	e := p.left[end]
	p.left, p.last = p.left[:end], e.Seq-1
	return e
}

// read reads the events before the last place, if none are left. Reading is forwards only, so a piece
// of enough places before the last is read to its end. A piece that has nothing (the events were
// removed meanwhile) is passed.
func (p *backwards) read(ctx context.Context, a *API) (err error) {
	for len(p.left) == 0 && p.last >= max(p.Horizon, 1) {
		from := max(p.last-enough, p.Horizon-1, 0)
		for after := from; after < p.last; {
			some, err := a.EventLog.Read(ctx, p.Name, after, int(p.last-after))
			if err != nil {
				return err
			}
			if len(some) == 0 {
				break
			}
			p.left, after = append(p.left, some...), some[len(some)-1].Seq
		}

		if len(p.left) == 0 {
			p.last = from
		}
	}
	return nil
}

// cursor is where the merge has come, "" at the end. It names all partitions, also those that are read
// to their beginning: one that is missing in it would count as new.
func (m *merge) cursor() string {
	at, more := url.Values{}, false
	for _, p := range m.parts {
		at.Set(p.Name, strconv.FormatInt(p.last, 10))
		more = more || p.last >= max(p.Horizon, 1)
	}
	if !more {
		return ""
	}
	return at.Encode()
}
