package api

import (
	"cmp"
	"context"
	"slices"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/events/envelope"
)

// The bounds of the newest events of all logs, of which there can be thousands.
const (
	mostLogs  = 100 // the logs that got an event last
	readAhead = 200 // events that are read of them at once, of each as many as of the others
	// Reads of a log, once all that was read ahead of it was returned: while something was found, and at all.
	mostReads  = 4
	mostSought = 20
	mostLooked = 1000 // events that a filter looks at
)

// newestOfAll are the newest events of the logs that got an event last, by their times, newest first: one page. It is
// short if more would have to be read, and if the filter selects few. What is shown of these logs has no gap.
func (a *API) newestOfAll(ctx context.Context, picks selection) (out v1.EventPage, err error) {
	all, err := a.logs(ctx)
	if err != nil {
		return out, err
	}

	var found []envelope.Event
	until := a.Queue.Now().Add(searchFor)
	for looked := 0; len(found) < enough && looked < mostLooked && a.Queue.Now().Before(until); looked++ {
		e, more, err := all.next(ctx, len(found) > 0)
		if err != nil {
			return out, err
		}
		if !more {
			break
		}
		if picks.has(e) {
			found = append(found, e)
		}
	}

	out.Items, err = a.whole(ctx, found, picks)
	return out, err
}

// logs are some logs, read backwards.
type logs struct {
	all   []*merge
	reads int
}

// logs reads the ends of the logs that got an event last.
func (a *API) logs(ctx context.Context) (*logs, error) {
	parts, err := a.EventLog.Partitions(ctx)
	if err != nil {
		return nil, err
	}

	var l logs
	of := map[string]*merge{}
	for _, p := range parts {
		m, known := of[p.Log]
		if !known {
			m = &merge{a: a}
			of[p.Log] = m
			l.all = append(l.all, m)
		}
		m.placed = max(m.placed, p.Placed)
		m.parts = append(m.parts, &backwards{Partition: p, last: p.Head})
	}
	slices.SortStableFunc(l.all, func(x, y *merge) int { return cmp.Compare(y.placed, x.placed) })
	l.all = l.all[:min(len(l.all), mostLogs)]
	return &l, a.ahead(ctx, l.all)
}

// ahead reads the ends of logs at once.
func (a *API) ahead(ctx context.Context, all []*merge) error {
	var newest []*backwards // of each log the partitions that are written to
	for _, m := range all {
		m.order()
		for _, p := range m.parts {
			if p.Generation == m.parts[0].Generation {
				newest = append(newest, p)
			}
		}
	}
	of := int64(max(1, min(enough, readAhead/max(1, len(newest)))))

	var places []envelope.Place
	for _, p := range newest {
		for seq := p.last; seq > p.last-of && seq >= max(p.Horizon, 1); seq-- {
			places = append(places, envelope.Place{Partition: p.Name, Seq: seq})
		}
	}
	found, err := a.EventLog.At(ctx, places)
	for _, p := range newest {
		for seq := p.last; err == nil; seq-- {
			e, there := found[envelope.Place{Partition: p.Name, Seq: seq}]
			if !there {
				break
			}
			p.left = append(p.left, e)
		}
		slices.Reverse(p.left)
	}
	return err
}

// next is the newest event that was not returned yet. more is false at the end, and where too much would have to be
// read.
func (l *logs) next(ctx context.Context, found bool) (e envelope.Event, more bool, err error) {
	var newest *backwards
	for _, m := range l.all {
		if m.reads() {
			if found && l.reads >= mostReads || l.reads >= mostSought {
				return e, false, nil
			}
			l.reads++
		}
		p, err := m.newest(ctx)
		if err != nil {
			return e, false, err
		}
		if p != nil && (newest == nil || p.time() > newest.time()) {
			newest = p
		}
	}
	if newest == nil {
		return e, false, nil
	}
	return newest.take(), true, nil
}
