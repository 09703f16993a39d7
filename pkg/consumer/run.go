package consumer

import (
	"context"
	"errors"
	"time"

	"archivist/pkg/definition"
	"archivist/pkg/envelope"
	"archivist/pkg/fault"
	"archivist/pkg/filter"
	"archivist/pkg/table"
)

// run is one run of a consumer in a partition, under the lease of its cursor.
type run struct {
	r      *Runtime
	c      Consumer
	filter *filter.Filter
	part   envelope.Partition
	cur    cursor
	until  time.Time
	holder string
	keys   *parkedKeys // nil: not read yet

	rows []parkedRow // those of the partition, while parked events are redriven; nil: not read

	replay *repetition // nil: it handles new events
	called bool        // the target was called since the cursor moved

	earlier []string // partitions of earlier generations of the log in which events are parked
}

// errLost ends a run that has lost its lease: a person moved the cursor, or it was too slow.
var errLost = errors.New("consumer: another run, or a person, has moved the cursor")

// next says how a run goes on after a step.
type next int

const (
	again    next = iota // there may be more to do
	idle                 // there was nothing to do; the lease is still held
	released             // the lease was given back with the last write
)

// Run handles events of one consumer in one partition until there are no more, or until the
// time is over; then more is true. Only one run of a cursor is at work; others return at
// once. A paused or missing consumer does nothing. After a crash at any point, the window
// that was not finished is handled again.
func (r *Runtime) Run(ctx context.Context, consumer, partition string, until time.Time) (more bool, err error) {
	n, err := r.begin(ctx, consumer, partition, until)
	if n != nil && err == nil {
		ctx, cancel := context.WithTimeout(ctx, until.Sub(r.now())+r.grace())
		defer cancel()
		more, err = n.work(ctx)
	}
	if errors.Is(err, errLost) {
		return false, nil
	}
	if err != nil {
		r.metric(MetricErrors, 1)
	}
	return more, err
}

// begin takes the lease of a cursor. It returns nil if there is nothing to be done by
// this run.
func (r *Runtime) begin(ctx context.Context, consumer, partition string, until time.Time) (*run, error) {
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

// take takes the lease and clears the flag, in one write: what is placed afterwards sets
// the flag again.
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

// leave gives the lease back.
func (n *run) leave(ctx context.Context) error {
	_, err := n.move(ctx, leave, func(*table.Tx, *cursor) {})
	return err
}

// oldEpoch stops a cursor that is from before the log was restored from a backup.
func (n *run) oldEpoch(ctx context.Context) error {
	if n.replay != nil {
		_, err := n.endPart(ctx, n.stop(OldEpoch, n.cur.Seq, "the log was restored from a backup after the replay "+
			"began, and may have other events now; the rest of this part was not handled: begin again"))
		return err
	}
	err := fault.New(fault.Conflict, "consumer %s, partition %s: the log was restored from a backup (epoch %d), and "+
		"the cursor is of epoch %d: what it has handled may not be in the log. Decide where it continues: "+
		"archivist consumer reset", n.c.Name, n.part.Name, n.part.Epoch, n.cur.Epoch)
	s := n.stop(OldEpoch, n.cur.Seq, err.Error())
	_, moveErr := n.move(ctx, leave, func(_ *table.Tx, c *cursor) { c.Stop, c.Woken = s, 0 })
	return errors.Join(err, moveErr)
}

// work makes steps until there is nothing to do, or no time.
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
			what, err = n.move(ctx, finish, func(*table.Tx, *cursor) {})
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
	_, err = n.move(ctx, leave, func(_ *table.Tx, c *cursor) { c.Woken = n.now().UnixMilli() })
	return true, err
}

// step does the next thing that there is to do.
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

func (n *run) now() time.Time { return n.r.now() }

// after says what becomes of the lease after a write.
type after int

const (
	hold   after = iota // it is kept, and the flag is cleared: the log is read again
	finish              // it is given back, unless the row was changed meanwhile: then there may be more to do
	leave               // it is given back, and the flag stays
)

// move changes the cursor, and the rows that compose puts beside it, in one transaction.
// compose may be called again. An errLost means that the lease has passed to another.
func (n *run) move(ctx context.Context, then after, compose func(tx *table.Tx, c *cursor)) (next, error) {
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
			n.cur = fresh
			return then.next(), nil
		case fresh.Holder != n.holder:
			return again, errLost
		case fresh.Rev == n.cur.Rev: // the condition of another row did not hold
			return again, err
		}
		n.cur = fresh
		if then == finish {
			then = hold
		}
	}
	return again, errLost
}

// unless keeps the lease, unless the cursor is stopped.
func unless(s *Stop) after {
	if s != nil {
		return leave
	}
	return hold
}

func (a after) next() next {
	if a == hold {
		return again
	}
	return released
}

// giveUp gives the lease back after an error, so that the clock repeats the run soon.
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

// stop is why the cursor does not move, from now on or still.
func (n *run) stop(kind string, seq int64, reason string) *Stop {
	s := Stop{Kind: kind, Seq: seq, Reason: definition.Clip(reason, maxStopReason), Since: n.now().UnixMilli()}
	if old := n.cur.Stop; old != nil && old.Kind == kind && old.Seq == seq {
		s.Since, s.Tries = old.Since, min(old.Tries, maxStopTries)
	}
	s.Tries++
	return &s
}

const maxStopReason = 2000 // bytes; it is in a row that is written often

// wait is the time until a stopped cursor is tried again: it doubles from a minute to an hour.
func (s *Stop) wait() time.Duration {
	d := time.Minute
	for range s.Tries - 1 {
		d *= 2
		if d > time.Hour {
			return time.Hour
		}
	}
	return d
}

// resting reports whether the cursor is stopped, and not to be tried again yet.
func (c *cursor) resting(now time.Time) bool { return c.Stop != nil && now.UnixMilli() < c.Due }
