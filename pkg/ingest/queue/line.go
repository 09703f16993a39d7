package queue

import (
	"context"
	"slices"

	"github.com/oklog/ulid/v2"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/objects/inventory"
)

// lineKey is the key of a job's place in the line for a lock. Job ids rise with the
// submissions, so the line is in their order.
func lineKey(name, job string) table.Key {
	return table.Key{PK: LockKey(name).PK, SK: linePrefix + job}
}

// linePrefix begins the sort keys of places in line: behind that of the lock, which is LOCK.
const linePrefix = "WAITS#"

// joinLines gives a new batch the places in line of its only job. They are in its
// transaction, so that jobs for one object run in the order in which their submissions were
// accepted, by whatever of its identifiers they name it. The batch's id is greater than those
// that are in these lines already: the clocks of two processes may differ.
//
// A batch of many objects names none of them: its jobs enter their lines when it is unpacked.
// Until then it is in the line of its depositor's manifests, and jobs behind it wait: see
// ingest.Job.AwaitsManifests.
func (q *Queue) joinLines(ctx context.Context, b *ingest.Batch) error {
	own := b.First()
	lines := lines{q: q, batch: b, own: own.LockKeys()}
	if err := lines.manifests(ctx, &own); err != nil {
		return err
	}

	if len(lines.own) == 0 {
		b.AsManifest, b.ID = b.MayList(), idAfter(b.ID, lines.newest)
		return nil
	}

	if err := lines.ofObject(ctx); err != nil {
		return err
	}

	// The list grows while it is read: each line may name other identifiers, whose lines count as
	// well.
	for next := 0; next < lines.len(); next++ {
		if err := lines.follow(ctx, lines.at(next)); err != nil {
			return err
		}
	}

	b.InLine, b.Related, b.ID = true, lines.related, idAfter(b.ID, lines.newest)
	return nil
}

// lines are the lines that a new batch joins: those of the identifiers that it names, and
// those of the same object's other identifiers.
type lines struct {
	q       *Queue
	batch   *ingest.Batch
	own     []string // lock keys
	related []string // lock keys, MaxRelated at most
	newest  string   // the last batch that is in one of them
}

func (l *lines) len() int { return len(l.own) + len(l.related) }

// at is the ith lock key, the batch's own ones first.
func (l *lines) at(i int) string {
	if i < len(l.own) {
		return l.own[i]
	}
	return l.related[i-len(l.own)]
}

// add adds lock keys of the object.
func (l *lines) add(keys ...string) {
	for _, k := range keys {
		if len(l.related) < ingest.MaxRelated && !slices.Contains(l.own, k) && !slices.Contains(l.related, k) {
			l.related = append(l.related, k)
		}
	}
}

// ofObject adds the identifiers of the object that is on record.
func (l *lines) ofObject(ctx context.Context) error {
	first := l.batch.First()
	ark, err := l.q.arkOf(ctx, &first)
	if err != nil || ark == "" {
		return err
	}

	l.add(ingest.ARKLock(ark))
	o, err := inventory.Store{Table: l.q.Table}.Object(ctx, ark)
	if fault.Is(err, fault.NotFound) {
		return nil
	}

	if err != nil {
		return err
	}

	// Local ids are those of a collection. An object of another one is refused later.
	if o.Collection == l.batch.Collection {
		for _, id := range o.LocalIDs {
			l.add(ingest.LocalLock(o.Collection, id))
		}
	}
	return nil
}

// manifests notes whether the depositor has manifests in the collection that are not read yet.
func (l *lines) manifests(ctx context.Context, own *ingest.Job) error {
	var rows []Reservation
	query := table.Query{PK: LockKey(own.ManifestLine()).PK, Prefix: linePrefix, Desc: true, Limit: 1}
	if _, err := l.q.Table.Page(ctx, query, &rows); err != nil {
		return err
	}

	for _, row := range rows {
		l.batch.Behind = true
		l.newest = ingest.BatchOf(row.Owner)
	}
	return nil
}

// follow adds the identifiers of the jobs that are last in a line: they are of the same
// object, which may not be on record yet. Each of them has those before it already. The last ones
// are also those with the greatest ids.
func (l *lines) follow(ctx context.Context, key string) error {
	const last = 10
	var rows []Reservation
	query := table.Query{PK: LockKey(key).PK, Prefix: linePrefix, Desc: true, Limit: last}
	if _, err := l.q.Table.Page(ctx, query, &rows); err != nil {
		return err
	}

	for _, row := range rows {
		batch := ingest.BatchOf(row.Owner)
		l.newest = max(l.newest, batch)
		l.add(row.Related...)
	}
	return nil
}

// idAfter is a new id, or if that is not after another, one that is. Ids that are no ULIDs are
// of tests, which have one clock.
func idAfter(id, other string) string {
	if id > other {
		return id
	}

	next, err := ulid.Parse(id)
	last, err2 := ulid.Parse(other)
	// A millisecond later than the other: its random part does not matter then.
	if err != nil || err2 != nil || next.SetTime(last.Time()+1) != nil {
		return id
	}
	return next.String()
}
