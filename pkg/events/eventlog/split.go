package eventlog

import (
	"context"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// MaxParts is the largest number of parts of a log. One transaction closes the heads of a
// generation and opens those of the next, and has at most table.MaxActions.
const MaxParts = 32

// splitTries limits how often a split is tried that conflicts with others: other splits, or the
// first placement.
const splitTries = 5

// Split begins a new generation of a log with a number of parts. The partitions before it get no
// more events. Split is for logs that get more events than one partition takes, about 500 per
// second; parts = 1 makes one partition of a split log again. A number of parts that is not
// possible is an Invalid. The parts are another generation even if their number is the same.
func (l *Log) Split(ctx context.Context, log string, parts int) error {
	if parts < 1 || parts > MaxParts {
		return fault.New(fault.Invalid, "parts: %d: expected 1 to %d", parts, MaxParts)
	}
	for try := 1; ; try++ {
		err := l.splitOnce(ctx, log, parts)
		if !fault.Is(err, fault.Stale) || try == splitTries {
			return err
		}
		if err := l.Table.Wait(ctx, waits.Delay(try, l.Table.Jitter)); err != nil {
			return err
		}
	}
}

// splitOnce makes one try. A Stale means that another split, or the first placement, was in
// between.
func (l *Log) splitOnce(ctx context.Context, log string, parts int) error {
	k := splitKey(log)
	now := split{Head: table.Head{PK: k.PK, SK: k.SK}, Log: log, Parts: 1}
	err := l.Table.Get(ctx, k, &now)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}

	tx := l.Table.Begin(l.NewID())
	next := now
	next.Generation, next.Parts = now.Generation+1, parts
	tx.InsertOrSave(&next)
	if err := l.closeHeads(ctx, tx, now); err != nil {
		return err
	}

	for part := range parts {
		tx.Insert(newHead(log, next.Generation, part))
	}

	if err := tx.Commit(ctx); err != nil {
		return err
	}
	return l.learn(ctx, log)
}

// closeHeads puts into tx that a generation gets no more events. That raises the revisions of its
// heads, so that a placement that has read one fails. They need not be read: busy heads change all
// the time. The head of a log that has no event yet does not exist: it is made closed, so that no
// placement can make it open.
func (l *Log) closeHeads(ctx context.Context, tx *table.Tx, of split) error {
	if of.Generation == 0 { // its head is made by the first placement
		h := newHead(of.Log, 0, 0)
		err := l.Table.Get(ctx, h.Key(), h)
		if fault.Is(err, fault.NotFound) {
			h.Closed = 1
			tx.Insert(h)
			return nil
		}
		if err != nil {
			return err
		}
	}

	for part := range of.Parts {
		tx.Count(headKey(name(of.Log, of.Generation, part)), map[string]int64{"closed_count": 1})
	}
	return nil
}

func newHead(log string, generation, part int) *head {
	k := headKey(name(log, generation, part))
	return &head{Head: table.Head{PK: k.PK, SK: k.SK}, Log: log, Generation: generation, Part: part}
}
