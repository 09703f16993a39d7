package revision

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"archivist/pkg/bucket"
	"archivist/pkg/envelope"
	"archivist/pkg/event"
	"archivist/pkg/fault"
	"archivist/pkg/table"
	"archivist/pkg/workflow"
)

// What has ended for long goes into a bucket: what a revision has planned when all of it has ended, and each run by
// hand or by schedule by itself. An object is complete before the rows of its instances are removed, and is never
// removed. The row of the revision stays, and says how its instances have ended; so do definitions and all events.
//
//	revisions/{ref}/{n}.json               a revision, and the instances that it has planned
//	revisions/{ref}/{n}/{task}/{run}.json  a run

// KeptPrefix begins the keys of revisions and runs in the bucket.
const KeptPrefix = "revisions/"

const (
	keptAtOnce = 10             // revisions and runs of a round: the archive goes on in between
	keptRetry  = 24 * time.Hour // until one that has not ended is looked at again, at most
)

// Objects is where revisions and runs go that have ended for long.
type Objects interface {
	Write(ctx context.Context, key string, data []byte) error
	Read(ctx context.Context, key string) ([]byte, error) // a missing one is a NotFound
	// List lists keys below a prefix behind one ("": from the first on), and whether there are more.
	List(ctx context.Context, prefix, after string) (keys []string, more bool, err error)
}

// InBucket are Objects in a bucket, which must not expire.
type InBucket struct{ Bucket bucket.Bucket }

// Write writes an object.
func (b InBucket) Write(ctx context.Context, key string, data []byte) error {
	return b.Bucket.Put(ctx, key, data, bucket.Condition{})
}

// Read reads an object.
func (b InBucket) Read(ctx context.Context, key string) ([]byte, error) {
	data, _, err := b.Bucket.Read(ctx, key)
	return data, err
}

// List lists keys.
func (b InBucket) List(ctx context.Context, prefix, after string) (keys []string, more bool, err error) {
	page, next, err := b.Bucket.ListAfter(ctx, prefix, after)
	for _, o := range page {
		keys = append(keys, o.Key)
	}
	return keys, next != "", err
}

// Kept is the content of an object.
type Kept struct {
	Revision  Revision         `json:"revision"`
	Instances []Instance       `json:"instances"` // in their order
	Events    []envelope.Event `json:"events"`    // of each, in their order
}

// keptRuns begins the keys of the runs of a revision.
func keptRuns(ref string, n int64) string { return KeptPrefix + revisionID(ref, n) + "/" }

// KeptKey is the key of what a revision has planned, or of a run.
func KeptKey(id ID) string {
	if id.Run == 0 {
		return KeptPrefix + revisionID(id.Ref, id.N) + ".json"
	}
	return fmt.Sprintf("%s%s/%09d.json", keptRuns(id.Ref, id.N), id.Task, id.Run)
}

// toKeepKey is the row that says when a revision or a run is to go into the bucket, if it has ended.
func toKeepKey(id string, at int64) table.Key {
	return table.Key{PK: linePK(archiveOf(id)), SK: fmt.Sprintf("%s#%s#%s", toKeep, text(at), id)}
}

// keepSoon puts that row into the transaction that writes a plan or a run.
func (s *Store) keepSoon(tx *table.Tx, id string) {
	tx.Insert(&lineRow{Head: headOf(toKeepKey(id, s.now()+s.Times.Keep.Milliseconds())), Owner: id})
}

// keepAll brings what has ended for long into the bucket.
func (p *pass) keepAll(ctx context.Context, _ *archiveRow) (did bool, err error) {
	if p.Kept == nil {
		return false, nil
	}
	q := table.Query{PK: linePK(p.archive), From: toKeep + "#", To: toKeep + "#" + text(p.now()) + last}
	n := 0
	err = p.owners(ctx, q, func(r lineRow) (bool, error) {
		done, err := p.one(r, func(string) error {
			err := p.keep(ctx, r)
			if fault.Is(err, fault.Stale) && !p.lease.Lost(err) {
				err = fault.New(fault.Unavailable, "it has changed meanwhile: %w", err) // or an answer was lost
			}
			return err
		})
		did = did || done
		n++
		return n < keptAtOnce && !p.over(), err
	})
	return did, err
}

// keep brings what a revision has planned, or one run, into the bucket, if it has ended for long; else it is looked at
// again. It can be called again after a crash at any point: what has ended does not change.
func (p *pass) keep(ctx context.Context, line lineRow) error {
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
	if again > 0 {
		tx := p.Table.Begin(p.NewID())
		moveLines(tx, line.Owner, []table.Key{line.Key()}, []table.Key{toKeepKey(line.Owner, again)})
		p.lease.Guard(tx)
		return tx.Commit(ctx)
	}
	err = p.store(ctx, r, id, rows)
	if err != nil {
		return err
	}
	return p.remove(ctx, r, rows, line)
}

// ended reads the instances that are to go into the bucket and are not removed yet. again is when they are looked at
// again, if one has not ended for long.
func (p *pass) ended(ctx context.Context, r *revisionRow, id ID) (rows []*instanceRow, again int64, err error) {
	ids := []string{id.String()}
	if id.Task == "" {
		ids, err = p.plannedIDs(ctx, r)
	}
	if err != nil {
		return nil, 0, err
	}
	later := p.now() + min(keptRetry, p.Times.Keep).Milliseconds()
	for _, one := range ids {
		row, err := p.instanceRow(ctx, one)
		switch {
		case err != nil:
			return nil, 0, err
		case row.Rev == 0 && id.Task == "" && r.Ends == nil:
			p.warn("an instance of a revision is missing: the revision stays in the table", "instance", one)
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

// plannedIDs are the instances that a revision has planned.
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

// store writes the object, and then into the revision's row that it is there. After that the object stays as it is:
// some of the rows can be removed already.
func (p *pass) store(ctx context.Context, r *revisionRow, id ID, rows []*instanceRow) error {
	if len(rows) == 0 || id.Task == "" && r.Ends != nil {
		return nil
	}
	k := Kept{Revision: r.Revision}
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
	err = p.Kept.Write(ctx, KeptKey(id), data)
	if err != nil {
		return fault.New(fault.Unavailable, "the object %s cannot be written: %w", KeptKey(id), err)
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

// events are all events of an instance.
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

// remove removes the rows of instances that are in the bucket, each only if it is as it was stored, and then the row
// of the line.
func (p *pass) remove(ctx context.Context, r *revisionRow, rows []*instanceRow, line lineRow) error {
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
