package consumer

import (
	"context"
	"slices"

	"archivist/pkg/events/filter"
	"archivist/pkg/kernel/definition"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// maxRedriven is how many parked rows one step of a redrive handles: each can need two
// actions of its transaction.
const maxRedriven = 40

// order does the next part of the oldest order: it finds its keys, runs the next rows, or removes
// the order when no row is left for it. Rows are read once and kept for the parts that follow,
// since only this run changes them.
func (n *run) order(ctx context.Context) (next, error) {
	o := n.cur.Orders[0]
	if n.rows == nil {
		var err error
		if n.rows, err = n.parkedRows(ctx, n.part.Name); err != nil {
			return again, err
		}
	}

	n.keys = nil // what is parked changes
	if !o.Known {
		return n.resolve(ctx, o, n.rows)
	}

	if _, err := n.parked(ctx); err != nil {
		return again, err
	}

	chunk := n.redrivable(o, n.rows)
	if len(chunk) == 0 {
		n.rows = nil
		return n.move(ctx, hold,
			func(_ *table.Tx, c *cursor) { c.Orders = without(c.Orders, o.ID) })
	}
	return n.redrive(ctx, o, chunk)
}

// resolve finds the keys of an order, and discards what it discards, at most maxSelected rows in
// one transaction. While rows remain to be discarded, the order is not Known, and the next step
// goes on.
func (n *run) resolve(ctx context.Context, o order, rows []parkedRow) (next, error) {
	matching, err := n.selected(ctx, o.Select, rows)
	if err != nil {
		return again, err
	}

	var remove []parkedRow
	for _, row := range matching {
		if o.Discard && len(remove) < maxSelected {
			remove = append(remove, row)
		}
		if !slices.Contains(o.Keys, row.hash()) {
			o.Keys = append(o.Keys, row.hash())
		}
	}

	o.Known = len(remove) == 0 || len(remove) == len(matching)
	n.rows = nil
	return n.move(ctx, hold, func(tx *table.Tx, c *cursor) {
		for i := range remove {
			tx.Remove(&remove[i])
			c.Parked--
		}
		c.Orders = slices.Clone(c.Orders)
		for i := range c.Orders {
			if c.Orders[i].ID == o.ID {
				c.Orders[i] = o
			}
		}
	})
}

// selected are the rows that a selection names. A filter needs the events themselves; rows whose
// events are not kept any more are selected by none.
func (n *run) selected(ctx context.Context, sel Selection,
	rows []parkedRow) (matching []parkedRow, err error) {
	var f *filter.Filter
	if sel.Filter != "" {
		if f, err = n.r.filter(sel.Filter); err != nil {
			return nil, err
		}
	}

	for _, row := range rows {
		is := sel.All
		switch {
		case sel.Event != "":
			is = row.has(sel.Event)
		case f != nil:
			var err error
			if is, err = n.matches(ctx, f, row); err != nil {
				return nil, err
			}
		}

		if is {
			matching = append(matching, row)
		}
	}
	return matching, nil
}

// matches reports whether a filter selects one of the events of a parked row. It selects none that
// are not kept any more.
func (n *run) matches(ctx context.Context, f *filter.Filter, row parkedRow) (bool, error) {
	u, err := n.load(ctx, row.OrderKey, row.Refs)
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}

	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(u.events, func(e seen) bool { return f.Match(e.Event) }), nil
}

// redrivable are the next rows that an order runs: the oldest of its keys that it has not tried
// yet, and that wait for nothing in an earlier generation of the log. Behind a row of a key that
// the order has tried in vain, no other of the key is run. rows are in the order of their keys, and
// of a key in that of the log.
func (n *run) redrivable(o order, rows []parkedRow) (chunk []*parkedRow) {
	tried := map[string]bool{}
	for i := range rows {
		row := &rows[i]
		h := row.hash()
		if row.Tried == o.ID || n.keys.before[h] {
			tried[h] = true
		}
		if !tried[h] && slices.Contains(o.Keys, h) && len(chunk) < maxRedriven {
			chunk = append(chunk, row)
		}
	}
	return chunk
}

// redrive handles parked rows. Those that are handled are removed; the first of a key that fails
// again stays at its head. A row with an event that is not kept any more fails, and holds those
// behind it: a person can only discard it.
func (n *run) redrive(ctx context.Context, o order, rows []*parkedRow) (next, error) {
	var all []*unit
	of := map[*unit]*parkedRow{}
	gone := map[string]bool{} // keys with an event that cannot be read any more
	var out outcome
	for _, row := range rows {
		if gone[row.OrderKey] {
			continue
		}

		u, err := n.load(ctx, row.OrderKey, row.Refs)
		switch {
		case err == nil:
			u.again = true
			all = append(all, u)
		case fault.Is(err, fault.NotFound):
			gone[row.OrderKey] = true
			u = &unit{key: row.OrderKey}
			out.failed = append(out.failed, verdict{unit: u, reason: err.Error()})
		default:
			return again, err
		}

		of[u] = row
	}

	if len(all) > 0 {
		out.join(n.callAll(ctx, all, n.until))
	}
	return n.settleRedrive(ctx, o, of, out)
}

// settleRedrive writes what a redrive came to, of all of its rows in one transaction. A row that
// failed keeps its place, with the new reason and the order that has tried it; one that was not
// tried stays as it is, for the next step.
func (n *run) settleRedrive(ctx context.Context, o order, of map[*unit]*parkedRow,
	out outcome) (next, error) {
	failed := map[*parkedRow]verdict{}
	left := map[*parkedRow]bool{}
	for _, v := range out.failed {
		left[of[v.unit]] = true
		if v.behind == "" {
			failed[of[v.unit]] = v
		}
	}

	for _, u := range out.undone {
		left[of[u]] = true
	}

	var stop *Stop
	if out.broken != nil {
		stop = n.stop(Unreachable, n.cur.Seq, out.broken.Error())
	}

	for row, v := range failed {
		row.Reason, row.Stack, row.Behind = definition.Clip(v.reason, maxParkedReason), v.stack, ""
		row.Tries, row.Tried, row.Version = row.Tries+v.unit.tries, o.ID, n.c.Version
	}

	rows := n.rows
	n.keys, n.rows = nil, nil // they are read again after an error
	what, err := n.move(ctx, unless(stop), func(tx *table.Tx, c *cursor) {
		c.halt(stop, n.now())
		for _, row := range of {
			switch {
			case row.Tried == o.ID:
				tx.Save(row)
			case !left[row]:
				tx.Remove(row)
				c.Parked--
			}
		}
	})
	if err != nil {
		return what, err
	}

	n.r.metric(MetricFailed, float64(len(failed)))
	handled := map[table.Key]bool{}
	for _, row := range of {
		handled[row.Key()] = !left[row]
	}

	n.rows = slices.DeleteFunc(rows, func(row parkedRow) bool { return handled[row.Key()] })
	return what, nil
}
