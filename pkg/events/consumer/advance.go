package consumer

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/guregu/dynamo/v2"

	"archivist/pkg/events/envelope"
	"archivist/pkg/kernel/definition"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/registry"
	"archivist/pkg/kernel/table"
)

// maxReplayRuns is how many partitions of one replay are read at once, at most. Each is an
// invocation of a function, and new events should not wait for those.
const maxReplayRuns = 8

// advanceReplays does what is due of all replays, until the time is over. What fails for one does
// not stop the others: their errors are joined.
func (r *Runtime) advanceReplays(ctx context.Context, until time.Time) error {
	open, err := r.Store.openReplays(ctx)
	var ids []string
	for _, p := range open {
		ids = append(ids, p.ID)
	}
	return errors.Join(err, r.turns().Each(ctx, "replays", ids, until,
		func(id string) error { return r.advance(ctx, id) }))
}

// advance does the next things that a replay needs: it places its cursors, wakes them, and, when
// all have come to their ends, writes the result and removes its rows. Each step is one write of
// the replay's row, on the condition that it is as it was read, or rows that are the same the
// second time. So it can be repeated from any point of a crash, and by several callers at once. A
// replay that is not there (any more) is not an error.
func (r *Runtime) advance(ctx context.Context, id string) error {
	s := r.Store
	for range 2 * changeTries {
		saved, p, err := s.replayRow(ctx, id)
		if err != nil || !p.open() {
			return lostReplay(err)
		}

		waits, err := r.advanceOnce(ctx, saved, p)
		if waits || err != nil && !fault.Is(err, fault.Stale) {
			return err
		}
	}
	return nil // others are at work on it; the clock looks again
}

// advanceOnce does the next step of a replay, from its row as it was read, and reports whether the
// replay now waits for its runs. A Stale means that another has changed the row: the step is
// decided again.
func (r *Runtime) advanceOnce(ctx context.Context, saved replayRow, p Replay) (waits bool,
	err error) {
	s := r.Store
	gone, err := s.gone(ctx, p)
	if err != nil {
		return false, err
	}

	switch {
	case gone != "":
		p.State, p.Cancelled, p.Ends = ReplayEnding, true, gone
		return false, s.saveReplay(ctx, saved, p)
	case p.State == ReplayPreparing:
		return false, s.prepareReplay(ctx, saved, p)
	case p.State == ReplayRunning:
		done, err := r.driveReplay(ctx, p)
		if err != nil {
			return false, err
		}
		if !done {
			return true, nil
		}
		return false, s.sumReplay(ctx, saved, p)
	case !p.Summed:
		return false, s.sumReplay(ctx, saved, p)
	}
	return false, s.finishReplay(ctx, saved, p)
}

// lostReplay is nil for the error of a replay that is not there: it was listed by an index that
// lags, or its row has expired.
func lostReplay(err error) error {
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	return err
}

// gone returns why a replay must end before its end, "" if it need not: its consumer was deleted,
// or is not to be replayed any more. One that is ending already just ends.
func (s *Store) gone(ctx context.Context, p Replay) (string, error) {
	r, err := s.row(ctx, p.Consumer)
	if err != nil || p.State == ReplayEnding {
		return "", err
	}
	_, why, err := r.replayable(&p)
	return why, err
}

// saveReplay writes the row of a replay on the condition that it is as saved was read; otherwise it
// is a Stale. saved is a copy: the caller reads the row again to go on.
func (s *Store) saveReplay(ctx context.Context, saved replayRow, p Replay) error {
	if err := saved.set(p); err != nil {
		return err
	}
	tx := s.Table.Begin(s.NewID())
	tx.Save(&saved)
	return tx.Commit(ctx)
}

// prepareReplay places the cursors of a replay. Its range ends at the newest events of now. Cursors
// that an interrupted call has placed stay: their ends are of that time, and a run may have begun
// with them.
func (s *Store) prepareReplay(ctx context.Context, saved replayRow, p Replay) error {
	old, err := s.places(ctx, p.run())
	if err != nil {
		return err
	}

	place := s.placeReplay
	if p.Rebuild {
		place = s.placeRebuild
	}
	if err := place(ctx, p, old); err != nil {
		return err
	}

	p.State = ReplayRunning
	return s.saveReplay(ctx, saved, p)
}

// placeRebuild places the cursors of a rebuild that are not in old. Before a rebuild of the consumer
// itself its own cursors are moved to the newest events: what happens from then on is handled after
// the snapshots, and so is newer than they.
func (s *Store) placeRebuild(ctx context.Context, p Replay, old map[string]cursor) error {
	if p.Into == "" {
		if err := s.finishResets(ctx, p.Consumer); err != nil {
			return err
		}
	}
	return s.putCursors(ctx, slices.DeleteFunc(rebuildCursors(p),
		func(c cursor) bool { return old[c.partition()].Rev > 0 }))
}

// placeReplay places the cursors of a replay of the log that are not in old, some at a time: where a
// range by time begins has to be searched for, and what was found stays if the call ends. The range
// ends, too, at what is there now: a replay of an open end would compete with the consumer.
func (s *Store) placeReplay(ctx context.Context, p Replay, old map[string]cursor) error {
	partitions, err := s.Log.Partitions(ctx)
	if err != nil {
		return err
	}

	left := slices.DeleteFunc(partitions, func(part envelope.Partition) bool {
		other := p.Range.Partition != "" && part.Name != p.Range.Partition
		return other || old[part.Name].Rev > 0
	})

	for some := range slices.Chunk(left, cursorsAtOnce) {
		var wanted []cursor
		for _, part := range some {
			c, err := s.replayCursor(ctx, p, part)
			if err != nil {
				return err
			}
			wanted = append(wanted, c)
		}
		if err := s.putCursors(ctx, wanted); err != nil {
			return err
		}
	}
	return nil
}

// replayCursor is the cursor of a replay in a partition. One in which its range has no events is
// done from the beginning.
func (s *Store) replayCursor(ctx context.Context, p Replay, part envelope.Partition) (cursor, error) {
	from, err := parseStart(p.Range.From)
	if err != nil {
		return cursor{}, err
	}

	until, err := parseStart(p.Range.Until)
	if err != nil {
		return cursor{}, err
	}

	c, err := s.startOf(ctx, p.run(), part, from)
	if err != nil {
		return cursor{}, err
	}

	if c.Last, err = s.lastOf(ctx, part, until); err != nil {
		return cursor{}, err
	}

	c.Seq = max(c.Seq, part.Horizon-1)
	c.Begin = c.Seq
	c.Done = c.Seq >= c.Last
	return c, nil
}

// lastOf is the seq with which a replay ends in a partition. An end by time is searched for
// lateEvents later, since events may have been placed that late; the run leaves out what happened
// after the end.
func (s *Store) lastOf(ctx context.Context, p envelope.Partition, until start) (int64, error) {
	switch {
	case until.seq > 0:
		return min(until.seq, p.Head), nil
	case until.time > 0:
		return s.before(ctx, p, until.time+lateEvents+1)
	}
	return p.Head, nil
}

// driveReplay wakes cursors of a replay, some at once, and reports whether all are at their ends.
// It wakes nothing while the replay has to wait for its consumer, which is paused.
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

	// The target need not bear more calls at once than the definition says.
	running, most := 0, min(maxReplayRuns, c.Concurrency)
	var errs []error
	for _, cur := range cursors {
		// The end of a replay is on the cursor, so any head that is beyond it will do.
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

// wakeReplay is wake for a replay, whose cursors may have been removed. An update of DynamoDB makes
// the row that it does not find, so the condition asks for it; a cursor without a replay would
// never be removed.
func (r *Runtime) wakeReplay(ctx context.Context, p Replay, partition string) error {
	now := r.now().UnixMilli()
	var c cursor
	err := r.Store.Table.Change(ctx, cursorKey(p.run(), partition), r.Store.NewID(),
		func(u *dynamo.Update) {
			u.Set("woken_ms",
				now).If("attribute_exists(pk) AND (attribute_not_exists(woken_ms) OR woken_ms <= ?)",
				now-r.lost().Milliseconds())
		}, &c)
	if err != nil || r.Wake == nil {
		return lostRace(err)
	}
	return r.Wake(ctx, p.run(), partition)
}

// sumReplay writes what failed into the row of a replay that ends: first what ended it, or parts of
// it, too early. It must come before the cursors and parked rows are removed, since it counts
// these; a repetition counts them anew.
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

		rows, err := readAll[parkedRow](ctx, s.Table,
			table.Query{PK: parkedPK(p.run(), cur.partition())})
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

// fail adds a failure to the result of a replay. All are counted, the first maxReplayFailure are
// kept.
func (p *Replay) fail(f Failure) {
	p.Failed++
	if len(p.Failures) < maxReplayFailure {
		f.Reason = definition.Clip(f.Reason, registry.MaxReason)
		p.Failures = append(p.Failures, f)
	}
}

// finishReplay removes the cursors of a replay, and ends it with the consumer's event. The last
// write lets the consumer run again after a rebuild. If the consumer was deleted, or is another of
// the same name, only the replay's row is written.
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
		again := saved // end may be called several times, and Save changes the revision
		if err := again.set(p); err != nil {
			return "", change{}, err
		}
		tx.Save(&again)
		return "consumer.replay-done", change{Replay: p.ID, Failed: p.Failed}, nil
	}

	err = s.act(ctx, p.Consumer, By{Actor: p.Actor, Reason: p.Reason}, end)
	if fault.Is(err, fault.NotFound) { // the consumer was deleted
		return s.saveReplay(ctx, saved, p)
	}
	return err
}
