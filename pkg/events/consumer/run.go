package consumer

import (
	"context"
	"errors"
	"time"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// Run handles events of one consumer in one partition until there are no more, or until the time is
// over; then more is true, and the caller sends another wake-up. Only one run of a cursor is at
// work; others return at once. A paused or missing consumer does nothing. After a crash at any
// point, the window that was not finished is handled again.
//
// The caller's process must live for Grace longer than until: calls of the target that have begun
// end in the first half of it, and the rest is for the last write. The lease ends with it. An error
// is not one of an event, which would be parked: the run could not go on, and Tick repeats it.
func (r *Runtime) Run(ctx context.Context, consumer, partition string,
	until time.Time) (more bool, err error) {
	more, err = r.runUntil(ctx, consumer, partition, until)
	if errors.Is(err, errLost) {
		return false, nil
	}

	if err != nil {
		r.metric(MetricErrors, 1)
	}
	return more, err
}

// runUntil is Run, with an errLost if the lease has passed to another.
func (r *Runtime) runUntil(ctx context.Context, consumer, partition string,
	until time.Time) (more bool, err error) {
	n, err := r.begin(ctx, consumer, partition, until)
	if n == nil || err != nil {
		return false, err
	}

	ctx, cancel := context.WithTimeout(ctx, until.Sub(r.now())+r.grace())
	defer cancel()
	return n.work(ctx)
}

// begin takes the lease of a cursor. It returns nil if there is nothing to be done by this run:
// another is at work, the consumer may not run, the cursor is stopped, or its epoch is over. After
// the lease is taken, every way out gives it back.
func (r *Runtime) begin(ctx context.Context, consumer, partition string,
	until time.Time) (*run, error) {
	c, replay, err := r.runnable(ctx, consumer)
	if c == nil || err != nil {
		return nil, err
	}

	n := &run{r: r, c: *c, until: until, holder: r.Store.NewID(), replay: replay}
	taken, err := n.take(ctx, partition)
	if !taken || err != nil {
		return nil, err
	}

	// It may have been deleted meanwhile: nobody removes the lease that was taken after that.
	c, n.replay, err = r.runnable(ctx, consumer)
	if c == nil || err != nil {
		return nil, errors.Join(err, n.leave(ctx))
	}

	n.c = *c
	if err = n.compile(); err != nil {
		return nil, errors.Join(err, n.leave(ctx))
	}

	// The head is read under the lease: what is placed afterwards sets the flag.
	n.part, err = n.partition(ctx, partition)
	if err != nil {
		return nil, errors.Join(err, n.giveUp(ctx, err))
	}

	if !n.cur.Started {
		n.cur.Started, n.cur.Epoch = true, n.part.Epoch
	}

	if n.cur.Epoch != n.part.Epoch {
		return nil, n.oldEpoch(ctx)
	}

	deferred, err := n.postpone(ctx)
	if err != nil {
		return nil, errors.Join(err, n.giveUp(ctx, err))
	}

	if deferred {
		return nil, nil
	}
	return n, nil
}

// take takes the lease and clears the flag, in one write: what is placed afterwards sets the flag
// again. It reports false if another run has it, or if the cursor is stopped and not due. A replay
// has cursors only where it reads, so one without a row is not begun.
func (n *run) take(ctx context.Context, partition string) (bool, error) {
	s := n.r.Store
	n.part.Name = partition
	for range changeTries {
		cur, err := s.cursor(ctx, n.c.Name, partition)
		if err != nil {
			return false, err
		}

		if cur.Live(n.r.now()) || cur.resting(n.r.now()) || n.replay != nil && cur.Rev == 0 {
			return false, nil
		}

		if cur.Holder != "" { // that run died
			n.repeats(&cur)
		}

		cur.Take(n.holder, n.r.now(), n.until.Sub(n.r.now())+n.r.grace())
		cur.Woken, cur.Due = 0, 0
		tx := s.Table.Begin(s.NewID())
		cur.Move = tx.ID()
		cur.put(tx)
		err = tx.Commit(ctx)
		if err == nil {
			n.cur = cur
			return true, nil
		}

		if !fault.Is(err, fault.Stale) {
			return false, err
		}
	}
	return false, nil // others are faster: they do the work
}

// oldEpoch stops a cursor that is from before the log was restored from a backup: the same seqs may
// be of other events now. A consumer waits for a person, who decides where it continues; a replay
// just ends.
func (n *run) oldEpoch(ctx context.Context) error {
	if n.replay != nil {
		_, err := n.endPart(ctx,
			n.stop(OldEpoch, n.cur.Seq, "the log was restored from a backup after the replay "+
				"began, and may have other events now; the rest of this part was not handled: begin again"))
		return err
	}

	err := fault.New(fault.Conflict,
		"consumer %s, partition %s: the log was restored from a backup (epoch %d), and "+
			"the cursor is of epoch %d: what it has handled may not be in the log. Decide where it continues: "+
			"archivist consumer reset", n.c.Name, n.part.Name, n.part.Epoch, n.cur.Epoch)

	s := n.stop(OldEpoch, n.cur.Seq, err.Error())
	_, moveErr := n.move(ctx, leave, func(_ *table.Tx, c *cursor) { c.Stop, c.Woken = s, 0 })
	return errors.Join(err, moveErr)
}

// work makes steps until there is nothing to do, or no time. After each step it looks at the
// definition again: a pause, deletion or change takes effect then. With more to do, the flag stays
// set while the lease is given back, since the caller wakes the consumer.
func (n *run) work(ctx context.Context) (more bool, err error) {
	ready, err := n.turn(ctx)
	if err != nil || !ready {
		return false, err
	}

	for n.now().Before(n.until) {
		what, err := n.step(ctx)
		if err != nil {
			return false, errors.Join(err, n.giveUp(ctx, err))
		}

		if what == idle {
			what, err = n.move(ctx, finish, func(_ *table.Tx, c *cursor) { n.ends(c) })
			if err != nil {
				return false, err
			}
		}

		if what == released {
			return false, n.follow(ctx)
		}

		c, _, err := n.r.runnable(ctx, n.c.Name)
		if err != nil {
			return false, errors.Join(err, n.giveUp(ctx, err))
		}

		if c == nil { // it was paused or deleted meanwhile
			return false, n.leave(ctx)
		}

		if c.Version != n.c.Version {
			break
		}
	}

	_, err = n.move(ctx, leave, func(_ *table.Tx, c *cursor) {
		c.Woken = n.now().UnixMilli()
		n.ends(c)
	})
	return true, err
}

// step does the next thing that there is to do. Parked events come before new ones, so that a
// redrive is not overtaken by what waits behind it; then keys that are quiet, and the files of a
// version that was begun.
func (n *run) step(ctx context.Context) (next, error) {
	if len(n.cur.Orders) > 0 {
		return n.order(ctx)
	}

	if n.cur.Pending > 0 {
		if what, err := n.flush(ctx); err != nil || what != idle {
			return what, err
		}
	}

	if n.replay != nil && n.cur.Done {
		return idle, nil
	}

	if n.cur.Files != nil {
		return n.files(ctx)
	}

	if n.replay != nil && n.replay.Rebuild {
		if n.part.Name == prunePart {
			return n.prune(ctx)
		}
		return n.snapshots(ctx)
	}
	return n.window(ctx)
}
