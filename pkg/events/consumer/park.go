package consumer

import (
	"cmp"
	"context"
	"math"

	"archivist/pkg/kernel/definition"
	"archivist/pkg/kernel/table"
)

// maxSelected is how many events one step handles: each can need a row in the transaction
// of the cursor, which has at most table.MaxActions.
const maxSelected = 90

// MaxParked is how many rows of parked events a consumer can have in one partition. Then it stops:
// a person must look at it. A run reads all of them, to know which keys wait.
const MaxParked = 1000

// fullReason and fullReplay are what people read of a cursor that is stopped because of MaxParked.
const (
	fullReason = "as many events are parked as can be; look at their reasons, then redrive " +
		"or discard them"
	fullReplay = "as many failures of this part are kept as can be, and the rest of it was not " +
		"handled; correct what fails, and begin again"
)

// parkRow is the row of a unit that was not handled, of its events up to end; nil if there are
// none: the cursor stays before them, and they come again. The key begins with the hash of the
// order key and goes on with the place, so that the events of a key are together, oldest first.
func (n *run) parkRow(v verdict, end position) *parkedRow {
	refs := v.unit.refs(end)
	if len(refs) == 0 {
		return nil
	}
	return &parkedRow{
		Head: table.Head{PK: parkedPK(n.c.Name, n.part.Name), SK: hash(v.unit.key) + "#" +
			refs[0].place()},
		OrderKey: v.unit.key,
		Refs:     refs,
		Reason:   definition.Clip(v.reason, maxParkedReason),
		Stack:    v.stack,
		Behind:   v.behind,
		Tries:    v.unit.tries,
		Since:    n.now().UnixMilli(),
		Version:  n.c.Version,
	}
}

// everything is the end of units that are parked as a whole.
var everything = position{seq: math.MaxInt64}

// park puts the rows of units that were not handled into tx, with their events up to end, and
// counts them on the cursor. What the cursor does not pass is not parked: it would be handled
// twice.
func (n *run) park(tx *table.Tx, c *cursor, failed []verdict, end position) {
	for _, v := range failed {
		if row := n.parkRow(v, end); row != nil {
			tx.Insert(row)
			c.Parked++
		}
	}
}

// parkedNow remembers, after the commit, what park has put, and counts what failed. Units that are
// parked only because they are behind another did not fail.
func (n *run) parkedNow(failed []verdict, end position) {
	failures := 0
	for _, v := range failed {
		if !v.unit.before().before(end) {
			continue
		}
		if n.keys != nil {
			n.keys.add(v, end)
		}
		if v.behind == "" {
			failures++
		}
	}

	n.r.metric(MetricFailed, float64(failures))
}

// parked are the keys with parked events: in this partition, and in those of earlier generations of
// the log. They are read once for each run: only this run can add to them, and in an earlier
// partition a redrive of another run only takes away, which the next run sees.
func (n *run) parked(ctx context.Context) (*parkedKeys, error) {
	if n.keys != nil {
		return n.keys, nil
	}

	keys := &parkedKeys{
		heads:  map[string]string{},
		here:   map[string]map[string]bool{},
		before: map[string]bool{},
	}

	for _, p := range n.earlier {
		rows, err := n.parkedRows(ctx, p)
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			keys.put(row.hash(), cmp.Or(row.Behind, row.Refs[0].ID))
			keys.before[row.hash()] = true
		}
	}

	if n.cur.Parked > 0 {
		rows, err := n.parkedRows(ctx, n.part.Name)
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			keys.put(row.hash(), cmp.Or(row.Behind, row.Refs[0].ID), row.Refs...)
		}
	}

	n.keys = keys
	return keys, nil
}

// parkedRows are those of a partition: at most MaxParked.
func (n *run) parkedRows(ctx context.Context, partition string) ([]parkedRow, error) {
	return readAll[parkedRow](ctx, n.r.Store.Table, table.Query{PK: parkedPK(n.c.Name, partition)})
}
