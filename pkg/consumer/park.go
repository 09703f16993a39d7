package consumer

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"strings"

	"archivist/pkg/definition"
	"archivist/pkg/table"
)

// Limits of what a parked event's row has: up to maxSelected of them are in one transaction.
const (
	maxParkedReason = 2000 // bytes
	maxStack        = 4000
)

// parkedRow is a parked event, or several of a key that were handled as one. Those of a key
// are next to each other, in the order of the log. Only a run writes these rows, under the
// lease of the cursor. Times are milliseconds since 1970.
type parkedRow struct {
	table.Head
	OrderKey string `dynamo:"order_key"`
	Refs     []ref  `dynamo:"refs"`
	Reason   string `dynamo:"why"`
	Stack    string `dynamo:"stack,omitempty"`
	Behind   string `dynamo:"behind,omitempty"` // the event that failed; "": this one
	Tries    int    `dynamo:"tries"`
	Since    int64  `dynamo:"since_ms"`
	Version  int    `dynamo:"consumer_version"`
	Tried    string `dynamo:"order_id,omitempty"` // the last redrive that ran it
}

func parkedPK(consumer, partition string) string { return "PARKED#" + consumer + "#" + partition }

// hash is a key in the form in which it is part of a row's key.
func hash(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:16])
}

func seqText(seq int64) string { return fmt.Sprintf("%012d", seq) }

// parkRow is the row of a unit that was not handled, of its events up to end; nil if there
// are none.
func (n *run) parkRow(v verdict, end position) *parkedRow {
	refs := v.unit.refs(end)
	if len(refs) == 0 {
		return nil
	}
	return &parkedRow{
		Head:     table.Head{PK: parkedPK(n.c.Name, n.part.Name), SK: hash(v.unit.key) + "#" + refs[0].place()},
		OrderKey: v.unit.key, Refs: refs,
		Reason: definition.Clip(v.reason, maxParkedReason), Stack: v.stack, Behind: v.behind,
		Tries: v.unit.tries, Since: n.now().UnixMilli(), Version: n.c.Version,
	}
}

// everything is the end of units that are parked as a whole.
var everything = position{seq: math.MaxInt64}

// park puts the rows of units that were not handled into tx, with their events up to end.
func (n *run) park(tx *table.Tx, c *cursor, failed []verdict, end position) {
	for _, v := range failed {
		if row := n.parkRow(v, end); row != nil {
			tx.Insert(row)
			c.Parked++
		}
	}
}

// parkedNow remembers, after the commit, what park has put, and counts what failed.
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

// parkedKeys are the keys with parked events, by hash.
type parkedKeys struct {
	heads map[string]string          // the id of the event at the head of each
	here  map[string]map[string]bool // places of the events that are parked in this partition

	before map[string]bool // parked in a partition of an earlier generation
}

func (k *parkedKeys) has(key string, f ref) bool { return k.here[hash(key)][f.place()] }

func (k *parkedKeys) put(h, head string, refs ...ref) {
	if _, ok := k.heads[h]; !ok {
		k.heads[h] = head
		k.here[h] = map[string]bool{}
	}
	for _, f := range refs {
		k.here[h][f.place()] = true
	}
}

// add takes over what was parked, up to end.
func (k *parkedKeys) add(v verdict, end position) {
	k.put(hash(v.unit.key), cmp.Or(v.behind, v.unit.id()), v.unit.refs(end)...)
}

// hash of the key of a row.
func (row *parkedRow) hash() string {
	h, _, _ := strings.Cut(row.SK, "#")
	return h
}

// parked are the keys with parked events: in this partition, and in those of earlier
// generations of the log.
func (n *run) parked(ctx context.Context) (*parkedKeys, error) {
	if n.keys != nil {
		return n.keys, nil
	}
	keys := &parkedKeys{heads: map[string]string{}, here: map[string]map[string]bool{},
		before: map[string]bool{}}
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
