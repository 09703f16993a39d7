package consumer

import (
	"context"
	"fmt"
	"time"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// pendingRow is an order key whose events wait until there are no more for a while. Only a run
// writes it, under the lease of the cursor. Refs are at most maxCoalesced, oldest first. Began is when
// the first was added; from then on Coalesce.MaxWait counts. Times are milliseconds since 1970.
type pendingRow struct {
	table.Head
	OrderKey string `dynamo:"order_key"`
	Refs     []ref  `dynamo:"refs"`
	Began    int64  `dynamo:"began_ms"`
	Due      int64  `dynamo:"due_ms"`

	// Tries counts those in runs whose time was over before the last.
	Tries int `dynamo:"tries,omitempty"`
}

// pendingKey is the key of the row of an order key. Its PK is that of all keys that wait in the
// partition.
func pendingKey(consumer, partition, key string) table.Key {
	return table.Key{PK: "PENDING#" + consumer + "#" + partition, SK: hash(key)}
}

// debouncePlace is where the rows of a cursor are in the index "work", by due time.
func debouncePlace(consumer, partition string) string { return "quiet#" + consumer + "#" + partition }

// dueText is a time in milliseconds as a text that sorts as times do.
func dueText(ms int64) string { return fmt.Sprintf("%013d", ms) }

func (p *pendingRow) put(tx *table.Tx) {
	tx.InsertOrSave(p)
}

// add takes over an event. It is looked at when its key is quiet, when its oldest event has waited
// long enough, or when there are as many as can be. One that is there already is not added again.
func (p *pendingRow) add(f ref, m *Coalesce, now time.Time) {
	for _, old := range p.Refs {
		if old.place() == f.place() {
			return // the cursor was put back
		}
	}

	if p.Began == 0 {
		p.Began = now.UnixMilli()
	}

	p.Refs = append(p.Refs, f)
	p.Due = min(now.Add(time.Duration(m.Debounce)*time.Second).UnixMilli(), p.Began+int64(m.MaxWait)*1000)
	if p.full() {
		p.Due = now.UnixMilli()
	}

	p.WorkSK = dueText(p.Due)
}

func (p *pendingRow) full() bool { return len(p.Refs) >= maxCoalesced }

// pending reads the row of a key; a new one has the rev 0. While the cursor counts none, there is
// none to be read.
func (n *run) pending(ctx context.Context, key string) (*pendingRow, error) {
	k := pendingKey(n.c.Name, n.part.Name, key)
	p := &pendingRow{Head: table.Head{
		PK:     k.PK,
		SK:     k.SK,
		WorkPK: debouncePlace(n.c.Name, n.part.Name),
	}, OrderKey: key}

	if n.cur.Pending == 0 {
		return p, nil
	}

	if err := n.r.Store.Table.Get(ctx, k, p); err != nil && !fault.Is(err, fault.NotFound) {
		return p, err
	}
	return p, nil
}
