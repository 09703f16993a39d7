package eventlog

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/table"
)

// Pages of a subject's events. Usually one event, or few, has no place.
const (
	// A first page of newest events is small, since it mostly suffices; if not, whole pages follow.
	newest   = 4
	pageRows = 100
)

// settled is the age after which a missing version before an event is no longer waited for. A
// transaction's rows become readable one by one, within moments.
const settled = 10 * time.Minute

// backlog is the events of one subject that have no place, as far as they were read: at most
// pageRows of them are in memory, however many there are.
type backlog struct {
	subject event.Subject
	entries []entry // the next ones, in order of their versions, without gaps
	next    int64   // the version to read on from; 0: not known
	read    bool    // all were read

	// err is why no more of it can be placed.
	err error
}

// backlogs are those of the subjects, each once.
func (l *Log) backlogs(subjects []event.Subject) []*backlog {
	seen := map[event.Subject]bool{}
	var all []*backlog
	for _, s := range subjects {
		if !seen[s] {
			seen[s] = true
			all = append(all, &backlog{subject: s})
		}
	}
	return all
}

// first are the next events that are in the same log. The others follow in a later round: so the
// events of a subject are placed in their order, whatever log each is in.
func (b *backlog) first() []entry {
	for i, e := range b.entries {
		if e.log != b.entries[0].log {
			return b.entries[:i]
		}
	}
	return b.entries
}

// placed takes the events out that were placed. events can be of several subjects.
func (b *backlog) placed(events []envelope.Event) {
	for _, e := range events {
		if len(b.entries) > 0 && e.Subject == b.entries[0].event.Subject &&
			e.Version == b.entries[0].event.Version {
			b.entries = b.entries[1:]
		}
	}
}

// stale forgets what was read: another has placed some of it.
func (b *backlog) stale() {
	if len(b.entries) > 0 {
		b.entries, b.next, b.read = nil, 0, false
	}
}

// fill reads the next events of those subjects of which none is known, several at once. An error
// stays with its subject.
func (l *Log) fill(ctx context.Context, all []*backlog) {
	var g errgroup.Group
	g.SetLimit(l.readers())
	for _, b := range all {
		if len(b.entries) == 0 && !b.read && b.err == nil {
			g.Go(func() error {
				if err := l.fillOne(ctx, b); err != nil {
					b.err = fmt.Errorf("eventlog: the events of %s: %w", b.subject.Key().PK, err)
				}
				return nil
			})
		}
	}

	_ = g.Wait() // the errors are in the backlogs
}

// fillOne reads the next events of a subject. One that this release cannot read is an error, after
// those before it are placed.
func (l *Log) fillOne(ctx context.Context, b *backlog) error {
	rows, known, err := l.following(ctx, b)
	if err != nil {
		return err
	}

	if !known {
		if rows, err = l.unplaced(ctx, b); err != nil {
			return err
		}
	}

	// A time that lies before that of an earlier event of the subject does not put it before that
	// one.
	var rank int64
	for _, r := range rows {
		e, err := newEntry(r)
		if err != nil {
			if len(b.entries) > 0 { // those before it are placed first
				b.read = false
				return nil
			}
			return err
		}

		rank = max(rank, r.Time)
		e.rank = rank
		b.entries = append(b.entries, e)
		b.next = r.Version + 1
	}
	return nil
}

// unplaced finds the first event without a place, from the newest one downwards, and returns it
// with those that follow it. Events of a subject are placed in order, so before one that has a
// place all have.
func (l *Log) unplaced(ctx context.Context, b *backlog) ([]event.Row, error) {
	var found []event.Row // from the newest downwards
	q := table.Query{PK: b.subject.Key().PK, Prefix: event.Prefix, Desc: true, Limit: newest}
	before, whole := int64(0), true
	for more := true; more; {
		var rows []event.Row
		next, err := l.Table.Page(ctx, q, &rows)
		if err != nil {
			return nil, err
		}

		q.Cursor, q.Limit, more = next, pageRows, next != ""
		for _, r := range rows {
			if r.Seq > 0 {
				before, more = r.Version, false
				break
			}
			found = append(found, r)
		}

		// Newer ones are read again, when these are placed.
		if over := len(found) - pageRows; over > 0 {
			found, whole = slices.Delete(found, 0, over), false
		}
	}

	slices.Reverse(found)
	found, cut := l.contiguous(found, before)
	b.read = whole || cut
	return found, nil
}

// following reads the events from the next version on, if that is known and nobody else has
// placed it.
func (l *Log) following(ctx context.Context, b *backlog) (rows []event.Row, known bool, err error) {
	if b.next == 0 {
		return nil, false, nil
	}

	from := event.Key(b.subject, b.next)
	q := table.Query{PK: from.PK, From: from.SK, To: event.Prefix + "~", Limit: pageRows}
	next, err := l.Table.Page(ctx, q, &rows)
	if err != nil || len(rows) > 0 && rows[0].Seq > 0 {
		return nil, false, err
	}

	rows, cut := l.contiguous(rows, b.next-1)
	b.read = next == "" || cut
	return rows, true, nil
}

// contiguous is the events that follow a version without a gap, and whether that leaves some
// out. A transaction's rows become readable one by one: a missing version may still appear, so
// what is behind it waits. A version that has been missing for long was never written here (an
// object that was restored from storage begins again), or has expired.
func (l *Log) contiguous(rows []event.Row, before int64) (some []event.Row, cut bool) {
	old := l.Now().Add(-settled).UnixMilli()
	for i, r := range rows {
		if r.Version != before+1 && r.Time > old {
			return rows[:i], true
		}
		before = r.Version
	}
	return rows, false
}
