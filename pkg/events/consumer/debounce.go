package consumer

import (
	"context"
	"fmt"
	"time"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// Limits of one flush: its transaction removes a row of each key, and may park one.
const (
	// maxFlushed is how many keys one flush handles: with two actions each, and the cursor, they
	// stay below table.MaxActions. maxFlushedEvents bounds how many events are read for it.
	maxFlushed       = 40
	maxFlushedEvents = 400
)

// flush handles keys that have been quiet for long enough, some in each step. idle means that none
// is due now; then the cursor's Due in memory is when the next one is, and the next write stores
// it.
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
	return n.c.Coalesce == nil || n.c.Coalesce.Debounce == 0 || n.part.Closed &&
		n.cur.Seq >= n.part.Head
}

// dueKeys reads the rows of keys to be handled now: those that the index finds, or, with all, the
// first of the partition. The index is read with a lag, so each row is read again before it counts.
func (n *run) dueKeys(ctx context.Context, all bool, now int64) (rows []*pendingRow, err error) {
	q := table.Query{
		Index: "work",
		PK:    debouncePlace(n.c.Name, n.part.Name),
		From:  dueText(0),
		To:    dueText(now),
		Limit: maxFlushed,
	}

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
		if fault.Is(err, fault.NotFound) {
			continue // the index lags
		}

		if err != nil {
			return nil, err
		}

		if p.Due > now && !all {
			continue // the index lags
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

// earliest is when the next key is due, in milliseconds since 1970. If the index knows of none, it
// is asked again after indexLag, since keys wait that it does not have yet.
func (n *run) earliest(ctx context.Context, now int64) (int64, error) {
	var first []table.Head
	q := table.Query{
		Index: "work",
		PK:    debouncePlace(n.c.Name, n.part.Name),
		From:  dueText(now + 1),
		To:    "9",
		Limit: 1,
	}

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

// flushRows handles the events of keys, and removes their rows, or parks what failed, in the
// transaction of the cursor. Keys that could not be tried stay, with their tries. No more keys are
// taken than could be parked.
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
	if err != nil {
		return what, err
	}
	n.parkedNow(o.failed, everything)
	return what, nil
}

// unitsOf reads the events of keys, and makes one unit of each key. A key whose events cancel out
// has no unit; its row is removed with those that are handled.
func (n *run) unitsOf(ctx context.Context,
	rows []*pendingRow) (units []*unit, of map[string]*pendingRow, err error) {
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
		units = coalesced(n.c, units)
	}
	return units, of, nil
}
