package revision

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/revisions/workflow"
)

// Bounds of what a round brings into the bucket.
const (
	// Revisions and runs of a round: the archive goes on in between.
	movedAtOnce = 10

	// Until one that has not ended is looked at again, at most.
	moveRetry = 24 * time.Hour
)

// moveAllToBucket brings what has ended long ago into the bucket. What has changed meanwhile is put off to
// the next pass, like what cannot be reached: it is never urgent, and must not keep the pass from
// ending.
func (p *pass) moveAllToBucket(ctx context.Context, _ *archiveRow) (did bool, err error) {
	if p.Bucket == nil {
		return false, nil
	}

	q := table.Query{
		PK:   linePK(p.archive),
		From: toBucket + "#",
		To:   toBucket + "#" + text(p.now()) + last,
	}

	n := 0
	err = p.owners(ctx, q, func(r lineRow) (bool, error) {
		done, err := p.one(r, func(string) error {
			err := p.moveToBucket(ctx, r)
			if fault.Is(err, fault.Stale) && !p.lease.Lost(err) {
				// Or an answer was lost.
				err = fault.New(fault.Unavailable, "it has changed meanwhile: %w", err)
			}
			return err
		})
		did = did || done
		n++
		return n < movedAtOnce && !p.over(), err
	})
	return did, err
}

// moveToBucket brings what a revision has planned, or one run, into the bucket, if it has ended long ago;
// else it is looked at again later. It can be called again after a crash at any point: what has
// ended does not change, the object is written before its rows are removed, and the row of the line
// goes with the last of them.
func (p *pass) moveToBucket(ctx context.Context, line lineRow) error {
	id, err := ParseID(line.Owner)
	if err != nil {
		return err
	}

	r, err := p.revisionRow(ctx, id.Ref, id.N)
	if err != nil {
		return err
	}

	rows, again, err := p.ended(ctx, r, id)
	if err != nil {
		return err
	}

	// It moves to a later place of the line.
	if again > 0 {
		tx := p.Table.Begin(p.NewID())
		tx.Derive(line.Owner, []table.Row{&line}, table.OwnedAt(line.Owner, toBucketKey(line.Owner, again)))
		p.lease.Guard(tx)
		return tx.Commit(ctx)
	}

	err = p.store(ctx, r, id, rows)
	if err != nil {
		return err
	}
	return p.remove(ctx, r, rows, line)
}

// ended reads the instances that are to go into the bucket and are not removed yet, in their order.
// again is when they are looked at again, in milliseconds since 1970, if one has not ended for
// long; 0 if all have. An instance that should be there, and is not, keeps its revision in the
// table: the doctor names it.
func (p *pass) ended(ctx context.Context, r *revisionRow,
	id ID) (rows []*instanceRow, again int64, err error) {
	ids := []string{id.String()}
	if id.Task == "" {
		ids, err = p.plannedIDs(ctx, r)
	}

	if err != nil {
		return nil, 0, err
	}

	later := p.now() + min(moveRetry, p.Times.Keep).Milliseconds()
	for _, one := range ids {
		row, err := p.instanceRow(ctx, one)
		switch {
		case err != nil:
			return nil, 0, err
		// Nothing of the revision is in the bucket, so the row was there and is lost.
		case row.Rev == 0 && id.Task == "" && r.Ends == nil:
			p.warn("an instance of a revision is missing: the revision stays in the table",
				"instance", one)
			return nil, later, nil
		case row.Rev == 0: // it is in the bucket
		case !row.State.Over() || !row.Settled:
			return nil, later, nil
		case row.Over+p.Times.Keep.Milliseconds() > p.now():
			return nil, row.Over + p.Times.Keep.Milliseconds(), nil
		default:
			rows = append(rows, row)
		}
	}

	slices.SortFunc(rows, func(a, b *instanceRow) int { return strings.Compare(a.Order, b.Order) })
	return rows, 0, nil
}

// plannedIDs are the instances that a revision has planned, COMMIT too: as the object in the bucket
// has them, or else as its definition says.
func (p *pass) plannedIDs(ctx context.Context, r *revisionRow) (ids []string, err error) {
	names := slices.Sorted(maps.Keys(r.Ends))
	if len(names) == 0 {
		names, err = p.plannedNames(ctx, r)
	}
	for _, name := range names {
		ids = append(ids, instanceID(r.Archive, r.Revision.Number, name, 0))
	}
	return ids, err
}

// plannedNames are the names of the tasks that a revision has planned, by its definition. One that
// was invalid or skipped has only COMMIT.
func (p *pass) plannedNames(ctx context.Context, r *revisionRow) ([]string, error) {
	names := []string{workflow.Commit}
	if r.State != Committed {
		return names, nil
	}

	def, err := p.Definition(ctx, archiveOf(r.Archive), r.Definition)
	for _, t := range def.Tasks {
		if t.OnCommit {
			names = append(names, t.Name)
		}
	}
	return names, err
}

// store writes the object, and then into the revision's row that it is there. After that the object
// stays as it is: some of the rows can be removed already, so it could not be made again. That the
// object of a run is there is known by its key. A bucket that cannot be reached is an Unavailable.
func (p *pass) store(ctx context.Context, r *revisionRow, id ID, rows []*instanceRow) error {
	// The object is there from a pass that died before it had removed all rows.
	if len(rows) == 0 || id.Task == "" && r.Ends != nil {
		return nil
	}

	k := BucketObject{Revision: r.Revision}
	ends := map[string]string{}
	for _, row := range rows {
		events, err := p.events(ctx, row.ID)
		if err != nil {
			return err
		}
		k.Instances, k.Events = append(k.Instances, row.Instance), append(k.Events, events...)
		ends[row.Task] = string(row.State)
	}

	data, err := json.Marshal(k)
	if err != nil {
		return err
	}

	err = p.Bucket.Write(ctx, BucketKey(id), data)
	if err != nil {
		return fault.New(fault.Unavailable,
			"the object %s cannot be written: %w", BucketKey(id), err)
	}

	if id.Task != "" {
		return nil
	}

	r.Ends = ends
	tx := p.Table.Begin(p.NewID())
	err = saveRevision(tx, r)
	if err != nil {
		return err
	}

	p.lease.Guard(tx)
	return tx.Commit(ctx)
}

// events are all events of an instance, in their order. They are bounded by the attempts of a task.
func (s *Store) events(ctx context.Context, id string) (all []envelope.Event, err error) {
	cursor := ""
	for {
		rows, next, err := event.Page(ctx, s.Table, taskSubject(id), cursor)
		if err != nil {
			return nil, err
		}

		for _, r := range rows {
			e, err := r.Envelope()
			if err != nil {
				return nil, err
			}
			all = append(all, e)
		}

		if next == "" {
			return all, nil
		}

		cursor = next
	}
}

// remove removes the rows of instances that are in the bucket, each only if it is as it was stored,
// and then the row of the line. Each transaction counts at the revision what it removes (InBucket): so
// a reader that misses a row knows that it has to look into the bucket.
func (p *pass) remove(ctx context.Context, r *revisionRow, rows []*instanceRow,
	line lineRow) error {
	for {
		some := rows[:min(len(rows), txRows)]
		rows = rows[len(some):]
		tx := p.Table.Begin(p.NewID())
		if len(some) > 0 {
			tx.Count(r.Key(), map[string]int64{"kept_n": int64(len(some))})
		}

		for _, row := range some {
			tx.Remove(row)
		}

		if len(rows) == 0 {
			tx.RemoveOwned(line.Key(), line.Owner)
		}

		p.lease.Guard(tx)
		err := tx.Commit(ctx)
		if err != nil || len(rows) == 0 {
			return err
		}
	}
}
