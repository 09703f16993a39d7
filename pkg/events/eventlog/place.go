package eventlog

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/backoff"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// Limits of one placing transaction. Each event takes two actions, the head one.
const (
	// maxBytes is below the limit, because the sizes are estimates.
	maxPlaced = (table.MaxActions - 1) / 2
	maxBytes  = table.MaxTxBytes - table.MaxTxBytes/8
)

// maxTries limits how often a placement that others overtake is tried without progress. Together
// the waits are some seconds; then the events are left to those who were faster, or to the sweep.
const maxTries = 12

// waits are short: who was first has placed within milliseconds.
var waits = backoff.Policy{First: 20 * time.Millisecond, Most: time.Second}

// Grace is the age from which the sweep places an event: until then the relay is expected to. Both
// at once would only conflict.
const Grace = 30 * time.Second

// Place gives all events of these subjects that have no place one, and returns those that it
// placed, without payload, in the order of the log for each partition. It may be called again, or
// by several at once, for the same subjects. An error names the subjects that could not be placed
// completely; the events of the others are placed and returned all the same. If all tries are used
// up without progress, the error is an Unavailable: a later call, or the sweep, places the rest.
func (l *Log) Place(ctx context.Context,
	subjects []event.Subject) (placed []envelope.Event, err error) {
	backlogs := l.backlogs(subjects)
	var errs []error
	for tries := 1; ; {
		l.fill(ctx, backlogs)
		backlogs, errs = open(backlogs, errs)
		if len(backlogs) == 0 {
			return placed, errors.Join(errs...)
		}

		got, err := l.round(ctx, backlogs)
		placed = append(placed, got...)
		switch {
		case err != nil:
			return placed, errors.Join(append(errs, err)...)
		case len(got) > 0:
			tries = 1
		case tries == maxTries:
			return placed, errors.Join(append(errs, fault.New(fault.Unavailable,
				"eventlog: others have placed events at the same time %d times: %s and others",
				tries,
				backlogs[0].subject.Key().PK))...)
		default:
			if err := l.Table.Wait(ctx, waits.Delay(tries, l.Table.Jitter)); err != nil {
				return placed, errors.Join(append(errs, err)...)
			}
			tries++
		}
	}
}

// open are the subjects that have events to be placed, and errs with the errors of those that
// cannot be placed: an event that this release cannot read keeps later ones of its subject from
// being placed, and no others.
func open(all []*backlog, errs []error) ([]*backlog, []error) {
	var left []*backlog
	for _, b := range all {
		if b.err != nil {
			errs = append(errs, b.err)
		} else if len(b.entries) > 0 {
			left = append(left, b)
		}
	}
	return left, errs
}

// round places the next events of each subject, as far as they are in one partition: those of one
// subject can be of several logs. It returns what it placed. A subject that others placed events of
// is to be read again.
func (l *Log) round(ctx context.Context, backlogs []*backlog) (placed []envelope.Event, err error) {
	type group struct {
		log      string
		part     int
		of       []*backlog
		together []entry
	}

	groups := map[string]*group{}
	var names []string
	for _, b := range backlogs {
		log := b.entries[0].log
		s := l.splitOf(log)
		part := s.partOf(b.subject.Key().PK)
		partition := name(log, s.Generation, part)
		g := groups[partition]
		if g == nil {
			g = &group{log: log, part: part}
			groups[partition], names = g, append(names, partition)
		}

		g.of = append(g.of, b)
		g.together = append(g.together, b.first()...)
	}

	slices.Sort(names)
	for _, partition := range names {
		g := groups[partition]
		slices.SortStableFunc(g.together,
			func(a, b entry) int { return cmp.Compare(a.rank, b.rank) })
		got, err := l.append(ctx, g.log, g.part, partition, g.together)
		placed = append(placed, got...)
		for _, b := range g.of {
			b.placed(got)
		}

		if fault.Is(err, fault.Stale) {
			for _, b := range g.of {
				b.stale()
			}
		} else if err != nil {
			return placed, err
		}
	}
	return placed, nil
}

// append places events in a partition, in transactions of as many as fit. If another relay was
// first in the partition, only the head is read again. A Stale means that another was first with
// one of these events, or that the log was split. What was placed before an error is returned with
// it.
func (l *Log) append(ctx context.Context, log string, part int, partition string,
	all []entry) (placed []envelope.Event,
	err error) {
	h, err := l.head(ctx, log, part, partition)
	if err != nil {
		return nil, err
	}

	for tries := 1; len(all) > 0; {
		n := fitting(all)
		got, err := l.commit(ctx, &h, partition, all[:n])
		if err == nil {
			placed, all, tries = append(placed, got...), all[n:], 1
			continue
		}

		if !overtaken(err, all[:n]) || tries >= maxTries {
			return placed, err
		}

		if err := l.Table.Wait(ctx, waits.Delay(tries, l.Table.Jitter)); err != nil {
			return placed, err
		}

		if h, err = l.head(ctx, log, part, partition); err != nil {
			return placed, err
		}
		tries++
	}
	return placed, nil
}

// overtaken reports whether a placement failed although none of its events has a place: then only
// the head has moved.
func overtaken(err error, some []entry) bool {
	var failed *table.ConditionError
	if !errors.As(err, &failed) {
		return false
	}
	return !slices.ContainsFunc(some, func(e entry) bool { return failed.Failed(e.row.Key()) })
}

// head reads the head of a partition; that of one without events has the rev 0. If the log was
// split meanwhile, it learns that, and returns a Stale: the events belong into another partition.
func (l *Log) head(ctx context.Context, log string, part int, partition string) (head, error) {
	k := headKey(partition)
	h := head{Head: table.Head{PK: k.PK, SK: k.SK}, Log: log}
	err := l.Table.Get(ctx, k, &h)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return h, err
	}

	if h.Closed == 0 {
		return h, nil
	}

	if err := l.learn(ctx, log); err != nil {
		return h, err
	}
	return h, fault.New(fault.Stale, "eventlog: the log %s was split", log)
}

// fitting is how many of the events one transaction can place, by number and by bytes: DynamoDB
// counts the whole row of an event, although only its place is written. Any one event fits.
func fitting(all []entry) int {
	n, size := 0, 0
	for n < len(all) && n < maxPlaced {
		size += table.Size(&all[n].row) + len(all[n].facts) + 1<<10
		if n > 0 && size > maxBytes {
			break
		}
		n++
	}
	return n
}

// commit places some events, and moves h on. Its proof is the first reference, which no other
// transaction can write later: so a commit without a response is settled truthfully. The head would
// be no proof, since others write it.
func (l *Log) commit(ctx context.Context, h *head, partition string,
	some []entry) ([]envelope.Event, error) {
	tx := l.Table.Begin(l.NewID())
	next := *h
	next.Placed = max(h.Placed, l.Now().UnixMilli())
	placed := make([]envelope.Event, len(some))
	for i, e := range some {
		next.Last++
		placed[i] = facts(e.event, partition, next.Last)
		ref := e.reference(partition, next.Last, next.Placed)
		tx.Insert(ref)
		event.SetPlace(tx, e.row.Key(), partition, next.Last)
		if i == 0 {
			tx.Prove(ref.Key())
		}
	}

	tx.InsertOrSave(&next)
	if err := tx.Commit(ctx); err != nil {
		return nil, err
	}

	*h = next
	return placed, nil
}
