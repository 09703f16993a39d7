package consumer

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/guregu/dynamo/v2"

	"archivist/pkg/definition"
	"archivist/pkg/envelope"
	"archivist/pkg/fault"
	"archivist/pkg/table"
)

// maxReplayRuns is how many partitions of one replay are read at once.
const maxReplayRuns = 8

// repetition is a replay as a run knows it.
type repetition struct {
	Replay
	until int64 // later events are not selected; 0: all are
}

// compile compiles what a run selects.
func (n *run) compile() (err error) {
	if n.filter, err = n.r.filter(n.c.Filter); err != nil || n.replay == nil || n.replay.Range.Filter == "" {
		return err
	}
	also, err := n.r.filter(n.replay.Range.Filter)
	if err == nil {
		n.filter = n.filter.And(also)
	}
	return err
}

// runnable reads the consumer that a run is of; nil if it does not run now. For the run of a
// replay it is the consumer as the replay runs it, under the replay's own name.
func (r *Runtime) runnable(ctx context.Context, name string) (*Consumer, *repetition, error) {
	id, is := replayOf(name)
	if !is {
		c, err := r.Store.runnable(ctx, name)
		return c, nil, err
	}
	_, p, err := r.Store.replayRow(ctx, id)
	if fault.Is(err, fault.NotFound) || err == nil && p.State != ReplayRunning {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	c, err := r.Store.replayed(ctx, &p)
	if c == nil || err != nil {
		return nil, nil, err
	}
	rep := &repetition{Replay: p}
	if !p.Rebuild {
		until, err := parseStart(p.Range.Until)
		if err != nil {
			return nil, nil, err
		}
		rep.until = until.time
	}
	return c, rep, nil
}

// replayed reads the consumer of a replay; nil if the replay must wait, because it is paused,
// or end. Failures are parked, in any case, and keys do not wait until they are quiet.
func (s *Store) replayed(ctx context.Context, p *Replay) (*Consumer, error) {
	r, err := s.row(ctx, p.Consumer)
	if err != nil {
		return nil, err
	}
	c, why, err := r.replayable(p)
	if err != nil || why != "" || c.Paused && p.Into == "" {
		return nil, err
	}
	c.Name, c.Mode, c.OnFailure = p.run(), Async, Park
	if c.Coalesce != nil {
		c.Coalesce = &Merge{Cancel: c.Coalesce.Cancel}
	}
	return &c, nil
}

// partition reads the partition of a run. Those of a rebuild are parts of what is stored.
func (n *run) partition(ctx context.Context, name string) (envelope.Partition, error) {
	if n.replay != nil && n.replay.Rebuild {
		return envelope.Partition{Name: name}, nil
	}
	return n.r.Store.Log.Partition(ctx, name)
}

// endPart ends a replay in the partition of the run, before its end. The reason is in its result.
func (n *run) endPart(ctx context.Context, why *Stop) (next, error) {
	return n.move(ctx, leave, func(_ *table.Tx, c *cursor) { c.Stop, c.Done = why, true })
}

// decide returns why the run does not handle an event, "" if it does.
func (n *run) decide(e envelope.Event) string {
	if n.replay == nil {
		return decide(n.c, n.filter, e, n.cur.From)
	}
	c := n.c
	c.Name = n.replay.Consumer
	switch skip := decide(c, n.filter, e, n.cur.From); {
	case skip == skipDepth:
		return skipFilter // the alarm was when it was new
	case skip != "":
		return skip
	case n.replay.until > 0 && e.Time > n.replay.until:
		return skipFilter
	}
	return ""
}

// repeats notes that the step of a replay is begun again.
func (n *run) repeats(c *cursor) {
	if n.replay != nil {
		c.Repeats++
	}
}

// batch is a call without its events.
func (n *run) batch() Batch {
	b := Batch{Consumer: n.c.Name, Version: n.c.Version}
	if n.replay != nil {
		b.Consumer, b.Replay = n.replay.Consumer, true
		if n.replay.Into != "" {
			b.Consumer = n.replay.Into
		}
	}
	return b
}

// advanceReplays does what is due of all replays.
func (r *Runtime) advanceReplays(ctx context.Context, until time.Time) error {
	open, err := r.Store.openReplays(ctx)
	errs := []error{err}
	for _, p := range open {
		if r.now().Before(until) {
			errs = append(errs, r.advance(ctx, p.ID))
		}
	}
	return errors.Join(errs...)
}

// advance does the next things that a replay needs: it places its cursors, wakes them, and,
// when all have come to their ends, writes the result and removes its rows. It can be
// repeated from any point of a crash, and by several callers at once.
func (r *Runtime) advance(ctx context.Context, id string) error {
	s := r.Store
	for range 2 * changeTries {
		saved, p, err := s.replayRow(ctx, id)
		if err != nil || !p.open() {
			return lostReplay(err)
		}
		gone, err := s.gone(ctx, p)
		switch {
		case err != nil:
		case gone != "":
			p.State, p.Cancelled, p.Ends = ReplayEnding, true, gone
			err = s.saveReplay(ctx, saved, p)
		case p.State == ReplayPreparing:
			err = s.prepareReplay(ctx, saved, p)
		case p.State == ReplayRunning:
			var done bool
			if done, err = r.driveReplay(ctx, p); err == nil && !done {
				return nil
			}
			if err == nil {
				err = s.sumReplay(ctx, saved, p)
			}
		case !p.Summed:
			err = s.sumReplay(ctx, saved, p)
		default:
			err = s.finishReplay(ctx, saved, p)
		}
		if err != nil && !fault.Is(err, fault.Stale) {
			return err
		}
	}
	return nil // others are at work on it; the clock looks again
}

func lostReplay(err error) error {
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	return err
}

// gone returns why a replay must end before its end, "" if it need not.
func (s *Store) gone(ctx context.Context, p Replay) (string, error) {
	r, err := s.row(ctx, p.Consumer)
	if err != nil || p.State == ReplayEnding {
		return "", err
	}
	_, why, err := r.replayable(&p)
	return why, err
}

// replayable reads the consumer of a replay, and returns why the replay must not go on, "" if it may.
func (r *row) replayable(p *Replay) (c Consumer, why string, err error) {
	if r.State != active {
		return c, "consumer " + p.Consumer + " was deleted", nil
	}
	if r.Created != p.ConsumerCreated {
		return c, "consumer " + p.Consumer + " was deleted, and another of its name was made", nil
	}
	c, err = r.consumer()
	if err == nil && c.IgnoreReplays {
		why = "consumer " + p.Consumer + " is not replayed any more (ignoreReplays in its definition)"
	}
	return c, why, err
}

// saveReplay writes the row of a replay.
func (s *Store) saveReplay(ctx context.Context, saved replayRow, p Replay) error {
	if err := saved.set(p); err != nil {
		return err
	}
	tx := s.Table.Begin(s.NewID())
	tx.Save(&saved)
	return tx.Commit(ctx)
}

// prepareReplay places the cursors of a replay. Its range ends at the newest events of now.
func (s *Store) prepareReplay(ctx context.Context, saved replayRow, p Replay) error {
	var wanted []cursor
	var err error
	if p.Rebuild {
		if p.Into == "" { // first its cursors are moved to the newest events
			err = s.finishResets(ctx, p.Consumer)
		}
		wanted = rebuildCursors(p)
	} else {
		wanted, err = s.replayCursors(ctx, p)
	}
	if err != nil {
		return err
	}
	old, err := s.places(ctx, p.run())
	if err != nil {
		return err
	}
	wanted = slices.DeleteFunc(wanted, func(c cursor) bool { return old[c.partition()].Rev > 0 })
	if err := s.putCursors(ctx, wanted); err != nil {
		return err
	}
	p.State = ReplayRunning
	return s.saveReplay(ctx, saved, p)
}

// replayCursors are the cursors of a replay of the log.
func (s *Store) replayCursors(ctx context.Context, p Replay) (wanted []cursor, err error) {
	from, err := parseStart(p.Range.From)
	if err != nil {
		return nil, err
	}
	until, err := parseStart(p.Range.Until)
	if err != nil {
		return nil, err
	}
	partitions, err := s.Log.Partitions(ctx)
	if err != nil {
		return nil, err
	}
	for _, part := range partitions {
		if p.Range.Partition != "" && part.Name != p.Range.Partition {
			continue
		}
		c, err := s.startOf(ctx, p.run(), part, from)
		if err != nil {
			return nil, err
		}
		if c.Last, err = s.lastOf(ctx, part, until); err != nil {
			return nil, err
		}
		c.Seq = max(c.Seq, part.Horizon-1)
		c.Begin = c.Seq
		if c.Seq < c.Last {
			wanted = append(wanted, c)
		}
	}
	return wanted, nil
}

// lastOf is the seq with which a replay ends in a partition.
func (s *Store) lastOf(ctx context.Context, p envelope.Partition, until start) (int64, error) {
	switch {
	case until.seq > 0:
		return min(until.seq, p.Head), nil
	case until.time > 0:
		return s.before(ctx, p, until.time+lateEvents+1)
	}
	return p.Head, nil
}

// driveReplay wakes cursors of a replay, some at once, and reports whether all are at their
// ends.
func (r *Runtime) driveReplay(ctx context.Context, p Replay) (done bool, err error) {
	c, err := r.Store.replayed(ctx, &p)
	if err != nil {
		return false, err
	}
	cursors, err := r.Store.cursors(ctx, p.run())
	if err != nil {
		return false, err
	}
	cursors = slices.DeleteFunc(cursors, func(cur cursor) bool { return cur.finished() })
	if c == nil || len(cursors) == 0 {
		return len(cursors) == 0, nil
	}
	running, most := 0, min(maxReplayRuns, c.Concurrency) // the target need not bear more calls at once
	var errs []error
	for _, cur := range cursors {
		due := r.owed(*c, envelope.Partition{Head: math.MaxInt64}, cur, 0)
		if due && running < most {
			errs = append(errs, r.wakeReplay(ctx, p, cur.partition()))
		}
		if due || cur.Live(r.now()) || cur.Woken > 0 {
			running++
		}
	}
	return false, errors.Join(errs...)
}

// wakeReplay is wake for a replay, whose cursors may have been removed.
func (r *Runtime) wakeReplay(ctx context.Context, p Replay, partition string) error {
	now := r.now().UnixMilli()
	var c cursor
	err := r.Store.Table.Change(ctx, cursorKey(p.run(), partition), r.Store.NewID(), func(u *dynamo.Update) {
		u.Set("woken_ms", now).If("attribute_exists(pk) AND (attribute_not_exists(woken_ms) OR woken_ms <= ?)",
			now-lostWake.Milliseconds())
	}, &c)
	if err != nil || r.Wake == nil {
		return lostRace(err)
	}
	return r.Wake(ctx, p.run(), partition)
}

// sumReplay writes what failed into the row of a replay that ends: first what ended it, or parts of
// it, too early.
func (s *Store) sumReplay(ctx context.Context, saved replayRow, p Replay) error {
	cursors, err := s.cursors(ctx, p.run())
	if err != nil {
		return err
	}
	p.State, p.Summed, p.Failed, p.Failures, p.Repeats = ReplayEnding, true, 0, nil, 0
	if p.Ends != "" {
		p.fail(Failure{ID: p.Consumer, Reason: p.Ends})
	}
	for _, cur := range cursors {
		p.Repeats += cur.Repeats
		if cur.Done && cur.Stop != nil {
			p.fail(Failure{ID: cur.partition(), Reason: cur.Stop.Reason})
		}
	}
	for _, cur := range cursors {
		if cur.Parked == 0 {
			continue
		}
		rows, err := readAll[parkedRow](ctx, s.Table, table.Query{PK: parkedPK(p.run(), cur.partition())})
		if err != nil {
			return err
		}
		for _, row := range rows {
			e := row.event(cur.partition())
			p.fail(Failure{ID: e.ID, Reason: e.Reason})
		}
	}
	return s.saveReplay(ctx, saved, p)
}

// fail adds a failure to the result of a replay.
func (p *Replay) fail(f Failure) {
	p.Failed++
	if len(p.Failures) < maxReplayFailure {
		f.Reason = definition.Clip(f.Reason, maxReason)
		p.Failures = append(p.Failures, f)
	}
}

// finishReplay removes the cursors of a replay, and ends it with the consumer's event.
func (s *Store) finishReplay(ctx context.Context, saved replayRow, p Replay) error {
	cursors, err := s.cursors(ctx, p.run())
	if err != nil {
		return err
	}
	for i := range cursors {
		if err := s.removeCursor(ctx, p.run(), &cursors[i]); err != nil {
			return err
		}
	}
	p.State, p.Ended = ReplayDone, s.Now().UnixMilli()
	end := func(tx *table.Tx, r *row) (string, change, error) {
		if r.Created != p.ConsumerCreated {
			return "", change{}, missing(p.Consumer)
		}
		if r.Rebuild == p.ID {
			r.Rebuild = ""
		}
		again := saved
		err := again.set(p)
		tx.Save(&again)
		return "consumer.replay-done", change{Replay: p.ID, Failed: p.Failed}, err
	}
	err = s.act(ctx, p.Consumer, By{Actor: p.Actor, Reason: p.Reason}, end)
	if fault.Is(err, fault.NotFound) { // the consumer was deleted
		return s.saveReplay(ctx, saved, p)
	}
	return err
}
