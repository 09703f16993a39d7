package consumer

import (
	"context"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// Each calls f for each event of a batch, in order. After an event fails, later events of
// its order key are not handled: byKey returns the key, nil stands for the subject. Changes
// that f makes have the event as their cause. An error of the kind fault.Unavailable ends the
// batch: no event is to blame.
func Each(ctx context.Context, b Batch, byKey func(Item) string,
	f func(ctx context.Context, it Item) error) ([]Failure, error) {
	if byKey == nil {
		byKey = func(it Item) string { return it.Subject.Type + "/" + it.Subject.ID }
	}

	var failed []Failure
	bad := map[string]bool{}
	for _, it := range b.Events {
		k := byKey(it)
		if bad[k] {
			continue
		}

		err := f(because(ctx, b.Consumer, it.Event), it)
		if fault.Is(err, fault.Unavailable) {
			return nil, err
		}

		if err != nil {
			bad[k] = true
			failed = append(failed, Failure{ID: it.ID, Reason: err.Error()})
		}
	}
	return failed, nil
}

// Ledger remembers which effects a consumer has made, so that each is made once although its event
// is handled again. It is for effects in the table: the entry is in their transaction, so that
// there is never one without the other. Effects elsewhere need a target that knows an id: the
// event's.
type Ledger struct {
	Table    *table.Table
	Consumer string
}

// entry is one effect. DynamoDB removes it when the event can no longer come again.
type entry struct {
	table.Head
}

func (l Ledger) key(event string) table.Key {
	return table.Key{PK: "LEDGER#" + l.Consumer + "#" + event, SK: "LEDGER"}
}

// Done reports whether the effect of an event was made. It only saves work: what decides is Enter,
// in the transaction.
func (l Ledger) Done(ctx context.Context, event string) (bool, error) {
	err := l.Table.Get(ctx, l.key(event), &entry{})
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, nil
}

// Enter puts into tx that the effect of an event is made. The commit is Stale if it was made
// before. until is when the entry may be removed, in seconds since 1970; 0: never. An entry must
// stay as long as the event can come again: from a replay, that is as long as the log keeps it.
func (l Ledger) Enter(tx *table.Tx, event string, until int64) {
	k := l.key(event)
	tx.Insert(&entry{table.Head{PK: k.PK, SK: k.SK, ExpiresAt: until}})
}
