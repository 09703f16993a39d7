package component

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"archivist/pkg/events/event"
	"archivist/pkg/kernel/table"
)

// MetricReconciled counts what Reconcile repaired. It is 0 unless a release is wrong, or rows were
// changed by hand or lost.
const MetricReconciled = "ComponentLineRepairs"

// sweep is how far a reconciliation is: first the items, in parts, then the rows of the lines.
type sweep struct {
	walk

	// Of the part of the items: the revisions that its counts had at the beginning, what was
	// counted, and what was counted before, if that was not what the rows say.
	Revs   map[string]int64  `json:"r,omitempty"`
	Sums   map[string]Counts `json:"n,omitempty"`
	Before map[string]Counts `json:"b,omitempty"`

	// Not all items of the part were counted, so its counts cannot be compared.
	Partial bool `json:"p,omitempty"`

	Line string `json:"l,omitempty"` // the component whose line is next
	At   string `json:"a,omitempty"` // the cursor in it
}

// Reconcile compares the lines with the items, and the items with the definitions, and repairs any
// difference. It goes on from a cursor, "" for the beginning, until all is done (next is "") or the
// time is over. Work can go on meanwhile: nothing is repaired that changes at that moment. An error
// is of the page at next, which is the place to go on at; what was found by then is in out.
func (s *Store) Reconcile(ctx context.Context, cursor string,
	until time.Time) (out Reconciled, next string,
	err error) {
	var at sweep
	if err := decodeCursor(cursor, &at); err != nil {
		return out, "", err
	}

	for more := true; more; more = !s.Now().After(until) {
		defs, err := s.load(ctx)
		if err != nil {
			return out, cursor, err
		}

		done := false
		if at.Shard < shards {
			err = s.sweepItems(ctx, defs, &at, &out)
		} else {
			done, err = s.sweepLine(ctx, defs, &at, &out)
		}

		switch {
		case err != nil:
			return out, cursor, err
		case done:
			s.repaired(&out)
			return out, "", nil
		}

		cursor = encodeCursor(at)
	}

	s.repaired(&out)
	return out, cursor, nil
}

// lineQuery reads the rows of a line, without its counts.
func lineQuery(component, cursor string) table.Query {
	return table.Query{PK: linePK(component), From: Failed, To: Running + "~", Cursor: cursor}
}

// after is the cursor in the line of a component, "" if it is the first page.
func (at *sweep) after(component string) string {
	if at.Line != component {
		return ""
	}
	return at.At
}

// pass goes on in the line of a component, or after it. Names are compared, so lines can come and
// go meanwhile.
func (at *sweep) pass(component, next string) {
	at.Line, at.At = component, next
	if next == "" {
		at.Line = component + "\x00" // the least name after it
	}
}

// repaired is the metric of what was repaired.
func (s *Store) repaired(out *Reconciled) {
	if n := out.repairs(); n > 0 && s.Metric != nil {
		s.Metric(MetricReconciled, float64(n))
	}
}

// sweepItems looks at the next page of the items, and counts them by class for the comparison at
// the end of the part.
func (s *Store) sweepItems(ctx context.Context, defs *definitions, at *sweep,
	out *Reconciled) error {
	part := uint32(at.Shard)
	if at.Revs == nil {
		rows, err := s.countRows(ctx, defs, part)
		if err != nil {
			return err
		}
		at.Revs, at.Sums = map[string]int64{}, map[string]Counts{}
		for name, r := range rows {
			at.Revs[name] = r.Rev
		}
	}

	ids, next, err := s.items(ctx, part, at.Cursor, table.MaxGets)
	if err != nil {
		return err
	}

	rows, err := s.rows(ctx, ids)
	if err != nil {
		return err
	}

	if err := s.examine(ctx, defs, rows, out); err != nil {
		return err
	}

	for i := range rows {
		if rows[i].lost {
			at.Partial = true
		}
		for j := range defs.all {
			d := &defs.all[j]
			sum := at.Sums[d.Name]
			sum.add(classOf(rows[i].placeIn(d)), 1)
			at.Sums[d.Name] = sum
		}
	}

	if next == "" {
		return s.compareCounts(ctx, defs, at, out)
	}

	at.Cursor = next
	return nil
}

// examine compares items with the rows of the lines, with the definitions and with their subjects.
func (s *Store) examine(ctx context.Context, defs *definitions, rows []listed,
	out *Reconciled) error {
	out.Items += len(rows)
	var keys []table.Key
	for i := range rows {
		keys = append(keys, rows[i].belongings(defs)...)
	}

	found, err := s.Table.Many(ctx, keys)
	if err != nil {
		return err
	}

	there := func(k table.Key) bool { _, ok := found[k]; return ok }
	for i := range rows {
		r := &rows[i]
		switch {
		case r.damaged:
			out.find(&out.Damaged, "%s: its row cannot be read", r.id)
		case !r.sound(defs, there):
			if err := s.repair(ctx, r.id, out); err != nil {
				return err
			}
		}
	}
	return nil
}

// belongings are the keys of what belongs to an item: its rows in the lines, and the next event of
// its subject, if there is one.
func (r *itemRow) belongings(defs *definitions) (keys []table.Key) {
	for i := range defs.all {
		if place := r.placeIn(&defs.all[i]); stands(place) {
			keys = append(keys, placeKey(defs.all[i].Name, place))
		}
	}
	if k, ok := r.following(); ok {
		keys = append(keys, k)
	}
	return keys
}

// sound reports whether an item is at the places where it should be, and knows its subject.
func (r *itemRow) sound(defs *definitions, there func(table.Key) bool) bool {
	for i := range defs.all {
		d := &defs.all[i]
		place := r.placeIn(d)
		if place != d.place(&r.it) || stands(place) && !there(placeKey(d.Name, place)) {
			return false
		}
	}
	k, ok := r.following()
	return !ok || !there(k)
}

// repair brings one item, and its rows in the lines, to where they should be. If another changes
// the item meanwhile, it is left to the next reconciliation.
func (s *Store) repair(ctx context.Context, id string, out *Reconciled) error {
	defs, err := s.load(ctx)
	if err != nil {
		return err
	}

	// Before the item: a back-fill that ends meanwhile has decided an item that was read later.
	fill, err := s.backfillState(ctx)
	if err != nil {
		return err
	}

	row, err := s.row(ctx, id)
	if err != nil || row.Rev == 0 {
		return readable(err, out, id)
	}

	if err := s.restore(ctx, defs, row, out); err != nil {
		return lostRace(err)
	}

	for _, wrong := range row.misplaced(defs, &fill) {
		out.find(&out.Places, "%s: %s", id, wrong)
	}

	before := row.it.Applied
	it, err := s.Sync(ctx, id)
	if err != nil {
		return readable(err, out, id)
	}

	if it.Applied > before {
		out.Behind++
	}
	return nil
}

// misplaced says where an item is not where it should be, for each component. What a back-fill has
// yet to decide is not wrong, nor is what was decided by newer definitions than these.
func (r *itemRow) misplaced(defs *definitions, fill *backfillRow) (wrong []string) {
	if r.Epoch < fill.Want && fill.Done < fill.Want || r.Epoch > defs.epoch {
		return nil
	}

	for i := range defs.all {
		d := &defs.all[i]
		if is, should := r.placeIn(d), d.place(&r.it); is != should {
			wrong = append(wrong,
				fmt.Sprintf("it is at %q in the line of %s; by its events it should be at %q", is,
					d.Name, should))
		}
	}
	return wrong
}

// restore makes the rows of the lines that should be there and are not. The item is saved too: its
// revision says that they are still missing.
func (s *Store) restore(ctx context.Context, defs *definitions, row *itemRow,
	out *Reconciled) error {
	tx := s.Table.Begin(s.NewID())
	tx.Save(row)
	var missing []string
	for i := range defs.all {
		name, place := defs.all[i].Name, row.placeIn(&defs.all[i])
		if !stands(place) {
			continue
		}

		k := placeKey(name, place)
		var there placeRow
		if err := optional(s.Table.Get(ctx, k, &there)); err != nil {
			return err
		}

		if there.Rev > 0 {
			continue
		}

		tx.Insert(&placeRow{
			Head:  table.Head{PK: k.PK, SK: k.SK},
			Item:  row.it.ID,
			Owner: row.it.ID,
		})

		// The line of a component that is deleted meanwhile does not come back: its counts are
		// removed first.
		tx.Require(countKey(name, defs.all[i].born, shard(row.it.ID)), "attribute_exists(pk)")
		missing = append(missing, k.String())
	}

	if len(missing) == 0 {
		return nil
	}

	if err := tx.Commit(ctx); err != nil {
		return err
	}

	for _, k := range missing {
		out.find(&out.Missing, "%s: the row %s was missing", row.it.ID, k)
	}
	return nil
}

// countRows reads the counts of a part of all components. A row that is not there has the rev 0.
func (s *Store) countRows(ctx context.Context, defs *definitions,
	part uint32) (map[string]countRow, error) {
	rows := map[string]countRow{}
	for i := range defs.all {
		d := &defs.all[i]
		k := countKey(d.Name, d.born, part)
		r := countRow{Head: table.Head{PK: k.PK, SK: k.SK}}
		if err := optional(s.Table.Get(ctx, k, &r)); err != nil {
			return nil, err
		}
		rows[d.Name] = r
	}
	return rows, nil
}

// listTime is the time after which a new item is in the list of items.
const listTime = 5 * time.Second

// compareCounts compares the counts of a part with the items that were counted, at the end of the
// part, and goes on to the next part. A count whose row has the revision of the beginning has not
// changed, and no item of the part has moved in the line. If it differs, the part is counted once
// more: the list of items may have been behind.
func (s *Store) compareCounts(ctx context.Context, defs *definitions, at *sweep,
	out *Reconciled) error {
	if at.Partial {
		out.Moving += len(defs.all)
		*at = sweep{walk: walk{Shard: at.Shard + 1}}
		return nil
	}

	rows, err := s.countRows(ctx, defs, uint32(at.Shard))
	if err != nil {
		return err
	}

	wrong := map[string]Counts{}
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		r, sum := rows[name], at.Sums[name]
		var is Counts
		is.addRow(&r)
		if began, ok := at.Revs[name]; !ok || began != r.Rev {
			out.Moving++
			continue
		}

		if is == sum && r.Rev > 0 {
			continue
		}

		if before, ok := at.Before[name]; ok && before == sum {
			if err := s.setCounts(ctx, &r, sum, out); err != nil {
				return err
			}
			continue
		}

		wrong[name] = sum
	}

	if len(wrong) > 0 && at.Before == nil {
		*at = sweep{walk: walk{Shard: at.Shard}, Before: wrong}
		return s.Table.Wait(ctx, listTime)
	}

	*at = sweep{walk: walk{Shard: at.Shard + 1}}
	return nil
}

// setCounts corrects a row of counts, unless it was changed: then items have moved, and the next
// reconciliation compares.
func (s *Store) setCounts(ctx context.Context, r *countRow, sum Counts, out *Reconciled) error {
	was, _ := json.Marshal(Counts{
		Ready:   r.Ready,
		Later:   r.Later,
		Running: r.Running,
		Failed:  r.Failed,
		Done:    r.Done,
	})

	r.Ready, r.Later, r.Running, r.Failed, r.Done = sum.Ready, sum.Later, sum.Running, sum.Failed,
		sum.Done
	tx := s.Table.Begin(s.NewID())
	put(tx, r, r.Rev)
	if err := tx.Commit(ctx); err != nil {
		return lostRace(err)
	}

	is, _ := json.Marshal(sum)
	out.find(&out.Counts, "%s: the counts were %s; there are %s", r.Key(), was, is)
	return nil
}

// sweepLine looks at the next rows of the lines; done is true after the last.
func (s *Store) sweepLine(ctx context.Context, defs *definitions, at *sweep,
	out *Reconciled) (done bool, err error) {
	d := defs.from(at.Line)
	if d == nil {
		return true, nil
	}

	var page []placeRow
	next, err := s.Table.Page(ctx, lineQuery(d.Name, at.after(d.Name)), &page)
	if err != nil {
		return false, err
	}

	if err := s.sift(ctx, d, page, out); err != nil {
		return false, err
	}

	at.pass(d.Name, next)
	return false, nil
}

// following is the key of the next event of the item's subject; ok is false for a custom item.
func (r *itemRow) following() (k table.Key, ok bool) {
	subject, ok := subjectOf(r.it.ID)
	if ok {
		k = event.Key(subject, r.it.Applied+1)
	}
	return k, ok
}
