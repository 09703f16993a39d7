package api

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/events/envelope"
	"archivist/pkg/kernel/terminal"
)

// The bounds of the newest events of all logs, of which there can be thousands.
const (
	mostLogs  = 100 // the logs that got an event last
	mostParts = 300 // the partitions of these, since a cursor has the place in each
	readAhead = 200 // events that are read of them at once, of each as many as of the others
	// Reads of a log, once all that was read ahead of it was returned; and until a first event is known.
	mostReads  = 4
	mostSought = 20
	mostLooked = 1000 // events that a filter looks at
)

// newestOfAll are the newest events of the logs that got an event last, by their times, newest first: a page. It is
// short if more would have to be read, and if the filter selects few. What is shown of these logs has no gap, over all
// pages. The cursor has the place in each of them, so what is placed meanwhile changes nothing; a log that gets its
// first event after the first page is not in the list. It has no more logs, since a cursor cannot have the places in
// thousands: the others have a list each.
func (a *API) newestOfAll(ctx context.Context, cursor string, picks selection) (out v1.EventPage, err error) {
	all, err := a.logs(ctx, cursor)
	if err != nil {
		return out, err
	}

	var found []envelope.Event
	until, looked := a.Queue.Now().Add(searchFor), 0
	for len(found) < enough && looked < mostLooked && a.Queue.Now().Before(until) {
		e, more, err := all.next(ctx, looked > 0)
		if err != nil {
			return out, err
		}
		if !more {
			break
		}
		looked++
		if picks.has(e) {
			found = append(found, e)
		}
	}

	out.Others = all.others
	rest := all.cursor()
	switch {
	case looked > 0:
		out.Cursor = rest
	case rest != "": // nothing can be said of the newest of these, and the next page would read the same
		out.Incomplete = all.tooMany()
	}
	out.Items, err = a.whole(ctx, found, picks)
	return out, err
}

// logs are some logs, read backwards.
type logs struct {
	all    []*merge
	others int // logs that are not among them
	reads  int
}

// logs reads the ends of the logs that got an event last; those before the places that a cursor has.
func (a *API) logs(ctx context.Context, cursor string) (*logs, error) {
	at, err := placesOf(cursor)
	if err != nil {
		return nil, err
	}
	parts, err := a.EventLog.Partitions(ctx)
	if err != nil {
		return nil, err
	}

	l := logs{others: at.others}
	of := map[string]*merge{}
	for _, p := range parts {
		last := p.Head
		if cursor != "" {
			last = min(last, at.last[hashOf(p.Name)]) // 0: nothing of it is left, or it was not in the first page
		}
		if last < max(p.Horizon, 1) {
			continue
		}
		m, known := of[p.Log]
		if !known {
			m = &merge{a: a}
			of[p.Log] = m
			l.all = append(l.all, m)
		}
		m.placed = max(m.placed, p.Placed)
		m.parts = append(m.parts, &backwards{Partition: p, last: last})
	}
	slices.SortStableFunc(l.all, func(x, y *merge) int { return cmp.Compare(y.placed, x.placed) })
	if cursor == "" {
		n := logsInList(l.all)
		l.all, l.others = l.all[:n], len(l.all)-n
	}
	return &l, a.ahead(ctx, l.all)
}

// logsInList is how many of some logs are in the list, the first: a cursor has the places of no more.
func logsInList(all []*merge) (n int) {
	for parts := 0; n < min(len(all), mostLogs); n++ {
		parts += len(all[n].parts)
		if n > 0 && parts > mostParts {
			break
		}
	}
	return n
}

// logPlaces are what a cursor says.
type logPlaces struct {
	others int
	last   map[nameHash]int64 // the place up to which events are still to be returned, by partition
}

// nameHash stands for the name of a partition in a cursor: a hundred names could be too long for an address.
type nameHash [6]byte

func hashOf(name string) (h nameHash) {
	sum := sha256.Sum256([]byte(name))
	copy(h[:], sum[:])
	return h
}

// cursor is where the logs have been read to, "" at the end: the number of the others, then for each partition that has
// more its hash and its place.
func (l *logs) cursor() string {
	text := binary.AppendUvarint(nil, uint64(l.others))
	begin := len(text)
	for _, m := range l.all {
		for _, p := range m.parts {
			if p.last >= max(p.Horizon, 1) {
				h := hashOf(p.Name)
				text = binary.AppendUvarint(append(text, h[:]...), uint64(p.last))
			}
		}
	}
	if len(text) == begin {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// placesOf reads a cursor; an Invalid refuses one that is malformed.
func placesOf(cursor string) (at logPlaces, err error) {
	at.last = map[nameHash]int64{}
	if cursor == "" {
		return at, nil
	}
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	others, n := binary.Uvarint(text)
	if err != nil || n <= 0 || others > math.MaxInt32 {
		return at, badCursor(cursor)
	}
	at.others = int(others)
	for text = text[n:]; len(text) > 0; text = text[n:] {
		var h nameHash
		if copy(h[:], text) < len(h) {
			return at, badCursor(cursor)
		}
		text = text[len(h):]
		last, size := binary.Uvarint(text)
		if size <= 0 || last > math.MaxInt64 {
			return at, badCursor(cursor)
		}
		at.last[h], n = int64(last), size
	}
	return at, nil
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

// tooMany says why the list ends where too much would have to be read to find the first event of a
// page: of each log that was read, this was the first read.
func (l *logs) tooMany() string {
	n := l.reads
	for _, m := range l.all {
		if m.reads() {
			n++
		}
	}
	return fmt.Sprintf("the next events of %s are no longer in the table, only in the archive of "+
		"the log, and a page reads %d collections there; the list of each collection goes on",
		terminal.Count(n, "collection"), mostSought)
}

// next is the newest event that was not returned yet. more is false at the end, and where too much would have to be
// read; some events were returned before, so another page can go on there.
func (l *logs) next(ctx context.Context, some bool) (e envelope.Event, more bool, err error) {
	var newest *backwards
	for _, m := range l.all {
		if m.reads() {
			if some && l.reads >= mostReads || l.reads >= mostSought {
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
