package consumer

import (
	"context"
	"fmt"
	"time"

	"archivist/pkg/fault"
	"archivist/pkg/table"
)

// pendingRow is an order key whose events wait until there are no more for a while. Only a
// run writes it, under the lease of the cursor. Times are milliseconds since 1970.
type pendingRow struct {
	table.Head
	OrderKey string `dynamo:"order_key"`
	Refs     []ref  `dynamo:"refs"`
	Began    int64  `dynamo:"began_ms"`
	Due      int64  `dynamo:"due_ms"`
	Tries    int    `dynamo:"tries,omitempty"` // in runs whose time was over
}

func pendingKey(consumer, partition, key string) table.Key {
	return table.Key{PK: "PENDING#" + consumer + "#" + partition, SK: hash(key)}
}

// quietPlace is where the rows of a cursor are in the index "work", by due time.
func quietPlace(consumer, partition string) string { return "quiet#" + consumer + "#" + partition }

func (p *pendingRow) put(tx *table.Tx) {
	tx.InsertOrSave(p)
}

// add takes over an event. It is looked at when its key is quiet, when its oldest event
// has waited long enough, or when there are as many as can be.
func (p *pendingRow) add(f ref, m *Merge, now time.Time) {
	for _, old := range p.Refs {
		if old.place() == f.place() {
			return // the cursor was put back
		}
	}
	if p.Began == 0 {
		p.Began = now.UnixMilli()
	}
	p.Refs = append(p.Refs, f)
	p.Due = min(now.Add(time.Duration(m.Quiet)*time.Second).UnixMilli(), p.Began+int64(m.Most)*1000)
	if p.full() {
		p.Due = now.UnixMilli()
	}
	p.WorkSK = dueText(p.Due)
}

func (p *pendingRow) full() bool { return len(p.Refs) >= maxMerged }

func dueText(ms int64) string { return fmt.Sprintf("%013d", ms) }

// wait puts events aside until their keys are quiet. A key that can have no more events is
// handled first: then the step ends before its next event.
func (n *run) wait(ctx context.Context, w *window, facts []seen) error {
	byKey := map[string]*pendingRow{}
	for _, e := range facts {
		k := key(n.c, e.Event)
		p := byKey[k]
		if p == nil {
			var err error
			if p, err = n.pending(ctx, k); err != nil {
				return err
			}
		}
		if p.full() {
			w.end = e.ref.before()
			if p.Rev > 0 && byKey[k] == nil {
				w.crowded = p
			}
			return nil
		}
		if byKey[k] == nil {
			byKey[k] = p
			w.waiting = append(w.waiting, p)
		}
		p.add(e.ref, n.c.Coalesce, n.now())
	}
	return nil
}

// pending reads the row of a key; a new one has the rev 0.
func (n *run) pending(ctx context.Context, key string) (*pendingRow, error) {
	k := pendingKey(n.c.Name, n.part.Name, key)
	p := &pendingRow{Head: table.Head{PK: k.PK, SK: k.SK, WorkPK: quietPlace(n.c.Name, n.part.Name)}, OrderKey: key}
	if n.cur.Pending == 0 {
		return p, nil
	}
	err := n.r.Store.Table.Get(ctx, k, p)
	if fault.Is(err, fault.NotFound) {
		err = nil
	}
	return p, err
}

// Limits of one flush: its transaction removes a row of each key, and may park one.
const (
	maxFlushed       = 40
	maxFlushedEvents = 400
)

// flush handles keys that have been quiet for long enough.
func (n *run) flush(ctx context.Context) (next, error) {
	now := n.now().UnixMilli()
	all := n.flushAll()
	if !all && n.cur.Due > now {
		return idle, nil
	}
	rows, err := n.dueKeys(ctx, all, now)
	if err != nil {
		return again, err
	}
	if len(rows) == 0 {
		n.cur.Due, err = n.earliest(ctx, now)
		return idle, err
	}
	return n.flushRows(ctx, rows)
}

// flushAll reports whether keys wait no longer: the partition gets no more events, or the
// definition does not let them wait any more.
func (n *run) flushAll() bool {
	return n.c.Coalesce == nil || n.c.Coalesce.Quiet == 0 || n.part.Closed && n.cur.Seq >= n.part.Head
}

// dueKeys reads the rows of keys to be handled now.
func (n *run) dueKeys(ctx context.Context, all bool, now int64) (rows []*pendingRow, err error) {
	q := table.Query{Index: "work", PK: quietPlace(n.c.Name, n.part.Name), From: dueText(0), To: dueText(now),
		Limit: maxFlushed}
	if all {
		q = table.Query{PK: pendingKey(n.c.Name, n.part.Name, "").PK, Limit: maxFlushed}
	}
	var found []table.Head
	if _, err := n.r.Store.Table.Page(ctx, q, &found); err != nil {
		return nil, err
	}
	events := 0
	for _, h := range found {
		var p pendingRow
		err := n.r.Store.Table.Get(ctx, h.Key(), &p)
		switch {
		case fault.Is(err, fault.NotFound) || err == nil && p.Due > now && !all:
			continue // the index lags
		case err != nil:
			return nil, err
		}
		events += len(p.Refs)
		if events > maxFlushedEvents && len(rows) > 0 {
			break
		}
		rows = append(rows, &p)
	}
	return rows, nil
}

// indexLag is after how long keys are looked for again that the index does not have yet.
const indexLag = 10 * time.Second

// earliest is when the next key is due, in milliseconds since 1970.
func (n *run) earliest(ctx context.Context, now int64) (int64, error) {
	var first []table.Head
	q := table.Query{Index: "work", PK: quietPlace(n.c.Name, n.part.Name), From: dueText(now + 1), To: "9", Limit: 1}
	if _, err := n.r.Store.Table.Page(ctx, q, &first); err != nil {
		return 0, err
	}
	at := now + indexLag.Milliseconds()
	if len(first) > 0 {
		var due int64
		if _, err := fmt.Sscanf(first[0].WorkSK, "%d", &due); err == nil {
			at = due
		}
	}
	return at, nil
}

// flushRows handles the events of keys, and removes their rows.
func (n *run) flushRows(ctx context.Context, rows []*pendingRow) (next, error) {
	room := MaxParked - int(n.cur.Parked)
	if room <= 0 {
		s := n.stop(Full, n.cur.Seq, fullReason)
		return n.move(ctx, leave, func(_ *table.Tx, c *cursor) { c.halt(s, n.now()) })
	}
	rows = rows[:min(len(rows), room)]
	units, of, err := n.unitsOf(ctx, rows)
	if err != nil {
		return again, err
	}
	o := n.callAll(ctx, units, n.until)
	left := map[*pendingRow]bool{}
	for _, u := range o.undone {
		p := of[u.key]
		left[p], p.Tries = true, u.tries
	}
	var stop *Stop
	if o.broken != nil {
		stop = n.stop(Unreachable, n.cur.Seq, o.broken.Error())
	}
	what, err := n.move(ctx, unless(stop), func(tx *table.Tx, c *cursor) {
		c.halt(stop, n.now())
		for _, p := range rows {
			switch {
			case !left[p]:
				tx.Remove(p)
				c.Pending--
			case p.Tries > 0:
				tx.Save(p)
			}
		}
		n.park(tx, c, o.failed, everything)
	})
	if err == nil {
		n.parkedNow(o.failed, everything)
	}
	return what, err
}

// unitsOf reads the events of keys, and makes one unit of each key.
func (n *run) unitsOf(ctx context.Context, rows []*pendingRow) (units []*unit, of map[string]*pendingRow, err error) {
	of = map[string]*pendingRow{}
	for _, p := range rows {
		of[p.OrderKey] = p
		u, err := n.load(ctx, p.OrderKey, p.Refs)
		if err != nil {
			return nil, nil, err
		}
		u.tries = p.Tries
		units = append(units, u)
	}
	if n.c.Coalesce != nil {
		units = merged(n.c, units)
	}
	return units, of, nil
}

// load reads the events of a unit.
func (n *run) load(ctx context.Context, key string, refs []ref) (*unit, error) {
	events, err := n.read(ctx, refs)
	if err != nil {
		return nil, err
	}
	return &unit{key: key, events: events, item: itemOf(events)}, nil
}
