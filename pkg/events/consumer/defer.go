package consumer

import (
	"context"
	"errors"
	"slices"
	"time"

	"archivist/pkg/kernel/table"
)

// Deferred is why a cursor does not move in the partitions of a collection whose profile defers the
// consumer, as during a bulk load. Its events wait in the log, in their order; nothing is dropped.
const Deferred = "deferred"

// deferWait is after how long a deferred cursor looks at the profile again, if no wake-up comes
// before: a change of a profile wakes nobody.
const deferWait = 5 * time.Minute

func (c *cursor) deferred() bool { return c.Stop != nil && c.Stop.Kind == Deferred }

// postpone gives the lease back, and reports true, if the consumer is deferred in this partition. A
// replay is not: a person wants it now. A cursor whose consumer is deferred no more loses its stop,
// and goes on with this run.
func (n *run) postpone(ctx context.Context) (bool, error) {
	if n.r.Deferred == nil || n.replay != nil {
		return false, nil
	}

	names, err := n.r.Deferred(ctx, n.part.Log)
	if err != nil {
		return false, err
	}

	if !slices.Contains(names, n.c.Name) {
		if n.cur.deferred() {
			n.cur.Stop = nil
		}
		return false, nil
	}

	s := n.stop(Deferred, 0, "the profile of the collection "+n.part.Log+
		" defers the consumer; take its name out of "+
		"the profile to let it run")

	_, err = n.move(ctx, leave, func(_ *table.Tx, c *cursor) {
		c.Stop, c.Woken, c.Due = s, 0, n.now().Add(deferWait).UnixMilli()
	})
	if err != nil && !errors.Is(err, errLost) {
		return true, err
	}
	return true, nil
}
