package eventlog

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/guregu/dynamo/v2"
	"golang.org/x/sync/errgroup"

	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/schema"
)

// Retention says how long the table keeps what the archive has too. The archive keeps everything,
// so a longer one only makes reading faster.
type Retention struct {
	// Log is the age from which places are read from the archive only. Of ephemeral
	// events, all but the newest of each subject are removed then.
	Log time.Duration

	// Expiring is the age at which the rows of expiring events are removed. Rows of permanent
	// events stay.
	Expiring time.Duration
}

// DefaultRetention is what a deployment has: 14 and 90 days.
var DefaultRetention = Retention{Log: 14 * 24 * time.Hour, Expiring: 90 * 24 * time.Hour}

// Passed returns for each partition the place up to which every required consumer has handled
// all events. ok is false if there is no required consumer. (A method of consumer.Store.)
type Passed func(ctx context.Context, partitions []envelope.Partition) (seqs map[string]int64,
	ok bool, err error)

// Blocked is a partition with events that should have expired, and what they wait for. It is
// reported each time, until somebody sees to it.
type Blocked struct {
	Partition string
	By        string // one of the two below
	Seq       int64  // the first event that waits
	Placed    int64  // when it got its place, in milliseconds since 1970
}

// What can hold back an expiry.
const (
	ByArchive  = "the archive"
	ByConsumer = "a required consumer"
)

// Expired is what a call of Expire has done; also beside an error.
type Expired struct {
	References int // removed from the table; the archive has them
	Events     int // rows of events that were removed, or will be when their time has come
	Blocked    []Blocked
}

// Expire removes from the table what is old and not permanent. It never removes an event, or its
// place, that the archive or a required consumer has not passed: that is reported as Blocked. It
// stops at a time, and continues with the next call. The newest event of each subject stays: it
// shows which version comes next. A failure in one partition does not stop the others. Without an
// archive nothing expires.
func (l *Log) Expire(ctx context.Context, keep Retention, passed Passed,
	until time.Time) (done Expired, err error) {
	if l.Bucket == nil {
		return done, nil
	}

	partitions, err := l.Partitions(ctx)
	if err != nil {
		return done, err
	}

	seqs, ok, err := passed(ctx, partitions)
	if err != nil {
		return done, err
	}

	var errs []error
	for _, p := range partitions {
		most := int64(math.MaxInt64)
		if ok {
			most = seqs[p.Name]
		}
		x := expiry{l, p, keep, ByConsumer, most, &done}
		if err := x.run(ctx, until); err != nil {
			errs = append(errs, fmt.Errorf("eventlog: expire %s: %w", p.Name, err))
		}
	}
	return done, errors.Join(errs...)
}

// expiry removes what has expired of one partition. It is a value for one call of Expire, which
// counts in done.
type expiry struct {
	*Log
	p    envelope.Partition
	keep Retention
	by   string // what is last of those that must have passed an event
	most int64  // the place that it has passed
	done *Expired
}

// run removes what has expired of the partition, page by page. What the archive has is read once,
// and only if something is old, since most calls find nothing.
func (x expiry) run(ctx context.Context, until time.Time) error {
	old := x.Now().Add(-x.keep.Log).UnixMilli()
	for first := true; x.Now().Before(until); first = false {
		var refs []reference
		q := table.Query{PK: partitionKey(x.p.Name), Prefix: seqPrefix, Limit: table.MaxGets}
		if _, err := x.Table.Page(ctx, q, &refs); err != nil {
			return err
		}

		if len(refs) == 0 || refs[0].Placed >= old {
			return nil
		}

		if first {
			f, err := x.newestFile(ctx, x.p.Name)
			if err != nil {
				return err
			}
			if f.Last <= x.most {
				x.by, x.most = ByArchive, f.Last
			}
		}

		some, blocked := expirable(refs, old, x.most)
		if err := x.remove(ctx, some); err != nil {
			return err
		}

		if blocked != nil {
			x.done.Blocked = append(x.done.Blocked, Blocked{
				Partition: x.p.Name,
				By:        x.by,
				Seq:       blocked.seq(),
				Placed:    blocked.Placed,
			})
		}

		if len(some) < len(refs) {
			return nil
		}
	}
	return nil
}

// expirable are the first references that are old and passed. blocked is the next one, if it is old
// too. References are in the order of their places, and so of their times.
func expirable(refs []reference, old, most int64) (some []reference, blocked *reference) {
	for i, r := range refs {
		switch {
		case r.Placed >= old:
			return refs[:i], nil
		case r.seq() > most:
			return refs[:i], &refs[i]
		}
	}
	return refs, nil
}

// remove removes references that have expired. First the rows of events, then readers are told
// to use the archive, then the references: a call that dies in between is done again.
func (x expiry) remove(ctx context.Context, some []reference) error {
	if len(some) == 0 {
		return nil
	}

	if err := x.removeEvents(ctx, some); err != nil {
		return err
	}

	// Readers that find a reference missing ask the head whether the archive has it, so the head is
	// written first.
	last, now := some[len(some)-1].seq(), x.Now().UnixMilli()
	err := x.Table.Change(ctx, headKey(x.p.Name), x.NewID(), func(u *dynamo.Update) {
		u.Set("trimmed_seq", last).Set("trimmed_ms", now)
		u.If("attribute_not_exists(trimmed_seq) OR trimmed_seq < ?", last)
	}, &head{})
	if err != nil && !fault.Is(err, fault.Stale) {
		return err
	}

	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(x.readers())
	for _, r := range some {
		g.Go(func() error { return x.drop(ctx, &r) })
	}

	x.done.References += len(some)
	return g.Wait()
}

// drop removes a row that was read, if it is still there.
func (l *Log) drop(ctx context.Context, row table.Row) error {
	tx := l.Table.Begin(l.NewID())
	tx.Remove(row)
	if err := tx.Commit(ctx); !fault.Is(err, fault.Stale) {
		return err
	}
	return nil
}

// removeEvents removes the rows of the events that come before these of the same subject, as far as
// they are not permanent. These are placed, and stay: so the newest row of a subject does. The row
// of an event goes when the next event of its subject expires.
func (x expiry) removeEvents(ctx context.Context, some []reference) error {
	var keys []table.Key
	for _, r := range some {
		s, err := event.Row{SubjectType: r.SubjectType, SubjectID: r.SubjectID}.Subject()
		if err != nil {
			return err
		}
		if expires[r.SubjectType] && r.Version > 1 {
			keys = append(keys, event.Key(s, r.Version-1))
		}
	}

	if len(keys) == 0 {
		return nil
	}

	rows, err := x.Table.Many(ctx, keys)
	if err != nil {
		return err
	}

	for _, k := range keys {
		raw, there := rows[k]
		if !there {
			continue
		}

		var r event.Row
		if err := raw.Decode(&r); err != nil {
			return err
		}

		if err := x.removeEvent(ctx, &r); err != nil {
			return err
		}
	}
	return nil
}

// removeEvent removes the row of an event by its class: now, or when its time has come, by
// DynamoDB's time to live. One that was placed in another partition stays: what is required may not
// have passed it there.
func (x expiry) removeEvent(ctx context.Context, r *event.Row) error {
	kind, _ := envelope.KindOf(r.Type)
	ends := time.UnixMilli(r.Time).Add(x.keep.Expiring)
	switch {
	case r.Partition != x.p.Name || r.ExpiresAt > 0 || kind.Class == envelope.Permanent:
		return nil
	case kind.Class == envelope.Ephemeral || !x.Now().Before(ends):
		x.done.Events++
		return x.drop(ctx, r)
	}

	x.done.Events++
	tx := x.Table.Begin(x.NewID())
	tx.Amend(r.Key(), "attribute_exists(pk)", map[string]any{schema.TTL: ends.Unix()})
	if err := tx.Commit(ctx); !fault.Is(err, fault.Stale) {
		return err
	}
	return nil
}

// expires has the types of subjects with events that are not permanent. Only of these are rows
// looked at.
var expires = func() map[string]bool {
	m := map[string]bool{}
	for _, k := range envelope.Kinds {
		if k.Class != envelope.Permanent {
			m[k.Subject] = true
		}
	}
	return m
}()
