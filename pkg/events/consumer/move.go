package consumer

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"archivist/pkg/events/envelope"
	"archivist/pkg/events/filter"
	"archivist/pkg/kernel/definition"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// run is one run of a consumer in a partition, under the lease of its cursor. It has no state that
// matters after a crash: everything it knows is read again from the table.
type run struct {
	r      *Runtime
	c      Consumer
	filter *filter.Filter
	part   envelope.Partition

	// cur is the cursor as this run last read or wrote it, and until when steps begin. holder is
	// the id of this run in the cursor's lease.
	cur    cursor
	until  time.Time
	holder string

	// A call was answered, or the end of the run has ended one.
	handled, over atomic.Bool

	// keys are the order keys with parked events; nil: not read yet. They change only by this run.
	keys *parkedKeys

	// rows are those of the partition, while parked events are redriven; nil: not read.
	rows []parkedRow

	// replay nil: it handles new events.
	replay *repetition

	// called: the target was called since the cursor moved, so a replay that is interrupted now
	// repeats that.
	called bool

	// placed: since the head of the partition was read, the flag was set and cleared again, so the log
	// is longer than that.
	placed bool

	// earlier has the partitions of earlier generations of the log in which events are parked.
	earlier []string
}

// repetition is a replay as a run knows it.
type repetition struct {
	Replay

	// until: later events are not selected, in milliseconds since 1970; 0: all are.
	until int64
}

func (n *run) now() time.Time { return n.r.now() }

// errLost ends a run that has lost its lease: a person moved the cursor, or it was too slow. It is
// not a failure: whoever has the lease goes on.
var errLost = errors.New("consumer: another run, or a person, has moved the cursor")

// move changes the cursor, and the rows that compose puts beside it, in one transaction. compose
// may be called again, with a fresh cursor.
//
// A Stale has three causes, which the row tells apart by reading it again. The transaction was
// made, its answer was lost, and then the flag Woken was set: it is done. The flag was set before:
// it is repeated on the fresh row, and a finish becomes a hold, since there are events that this
// run has not seen. The lease has passed to another: errLost. A row beside the cursor that has
// changed is the Stale itself.
func (n *run) move(ctx context.Context, then after,
	compose func(tx *table.Tx, c *cursor)) (next, error) {
	s := n.r.Store
	for range 2 * changeTries {
		cur := n.cur
		tx := s.Table.Begin(s.NewID())
		cur.Move, cur.Moved = tx.ID(), n.now().UnixMilli()
		if then != leave {
			cur.Woken = 0
		}

		compose(tx, &cur)
		if then != hold {
			cur.Release()
		}

		cur.put(tx)
		err := tx.Commit(ctx)
		if err == nil {
			n.cur, n.called = cur, false
			return then.next(), nil
		}

		if !fault.Is(err, fault.Stale) {
			return again, err
		}

		fresh, readErr := s.cursor(ctx, n.c.Name, n.part.Name)
		switch {
		case readErr != nil:
			return again, readErr
		case fresh.Move == tx.ID(): // it was made, and then the flag was set
			n.cur, n.placed = fresh, true
			return then.next(), nil
		case fresh.Holder != n.holder:
			return again, errLost
		case fresh.Rev == n.cur.Rev: // the condition of another row did not hold
			return again, err
		}

		n.cur, n.placed = fresh, true
		if then == finish {
			then = hold
		}
	}
	return again, errLost
}

// unless keeps the lease for the next step, unless the cursor is stopped: then another run tries
// again later.
func unless(s *Stop) after {
	if s != nil {
		return leave
	}
	return hold
}

// leave gives the lease back before the run has looked at what waits. That was due, and is again: a
// consumer that was paused meanwhile goes on with it when it is resumed.
func (n *run) leave(ctx context.Context) error {
	_, err := n.move(ctx, leave, func(_ *table.Tx, c *cursor) {
		if c.Pending > 0 || len(c.Orders) > 0 {
			c.due(n.now().UnixMilli())
		}
	})
	return err
}

// giveUp gives the lease back after an error, so that the clock repeats the run soon: the flag says
// that a wake-up is on its way, and counts as lost after a minute. cause is the error; a run that
// has lost its lease has none to give back.
func (n *run) giveUp(ctx context.Context, cause error) error {
	if errors.Is(cause, errLost) {
		return nil
	}

	called := n.called
	_, err := n.move(ctx, leave, func(_ *table.Tx, c *cursor) {
		c.Woken = n.now().UnixMilli()
		if called {
			n.repeats(c)
		}
	})
	if errors.Is(err, errLost) {
		return nil
	}
	return err
}

// stop is why the cursor does not move, from now on or still. The same reason at the same event
// goes on counting, so that the waits grow; at another event they begin anew.
func (n *run) stop(kind string, seq int64, reason string) *Stop {
	s := Stop{
		Kind:   kind,
		Seq:    seq,
		Reason: definition.Clip(reason, maxStopReason),
		Since:  n.now().UnixMilli(),
	}

	if old := n.cur.Stop; old != nil && old.Kind == kind && old.Seq == seq {
		s.Since, s.Tries = old.Since, min(old.Tries, maxStopTries)
	}

	s.Tries++
	return &s
}

// maxStopReason is in bytes; it is in a row that is written often.
const maxStopReason = 2000

// repeats notes that the step of a replay is begun again. People see the count: a replay into
// something that counts events may then be wrong.
func (n *run) repeats(c *cursor) {
	if n.replay != nil {
		c.Repeats++
	}
}
