package consumer

import (
	"context"
	"fmt"
	"sort"

	"archivist/pkg/events/envelope"
	"archivist/pkg/kernel/table"
)

// cursorsAtOnce is how many cursors one transaction places, of table.MaxActions: so a conflict
// costs little.
const cursorsAtOnce = 50

// placeCursors puts the cursors of a new consumer at its start, in all partitions that
// exist. Partitions that are made later are read from their beginning. An interrupted call
// is repeated as a whole: nobody reads the cursors before the consumer's row exists.
func (s *Store) placeCursors(ctx context.Context, d Definition, now int64) error {
	at, err := parseStart(d.Start)
	if err != nil {
		return err
	}

	partitions, err := s.Log.Partitions(ctx)
	if err != nil {
		return err
	}

	old, err := s.cursors(ctx, d.Name)
	if err != nil {
		return err
	}

	before := map[string]cursor{}
	for _, c := range old { // left by an earlier call
		before[c.partition()] = c
	}

	var all []cursor
	for _, p := range partitions {
		c, err := s.startOf(ctx, d.Name, p, at)
		if err != nil {
			return err
		}
		c.Rev, c.Moved = before[p.Name].Rev, now
		delete(before, p.Name)
		all = append(all, c)
	}

	for _, c := range before {
		all = append(all, cursor{Head: table.Head{PK: c.PK, SK: c.SK, Rev: c.Rev}, Moved: now})
	}

	sort.Slice(all, func(i, j int) bool { return all[i].SK < all[j].SK })
	return s.putCursors(ctx, all)
}

// putCursors writes cursors, some in each transaction, in their order. It stops with a Stale at the
// first that was written by another; what was written before stays.
func (s *Store) putCursors(ctx context.Context, all []cursor) error {
	for len(all) > 0 {
		n := min(len(all), cursorsAtOnce)
		tx := s.Table.Begin(s.NewID())
		for i := range all[:n] {
			all[i].put(tx)
		}
		if err := tx.Commit(ctx); err != nil {
			return err
		}
		all = all[n:]
	}
	return nil
}

// startOf is the cursor of a consumer that starts in a partition: the last event that it does not
// handle, with the time before which events are left out. It is not written.
func (s *Store) startOf(ctx context.Context, name string, p envelope.Partition,
	at start) (cursor, error) {
	k := cursorKey(name, p.Name)
	c := cursor{Head: table.Head{PK: k.PK, SK: k.SK}, Started: true, Epoch: p.Epoch}
	switch {
	case at.latest:
		c.Seq = p.Head
	case at.time > 0:
		seq, err := s.before(ctx, p, at.time-lateEvents)
		if err != nil {
			return c, err
		}
		c.Seq, c.From = seq, at.time
	case at.seq > 0:
		c.Seq = min(at.seq-1, p.Head)
	}

	c.Begin = c.Seq
	return c, nil
}

// lateEvents is how much earlier than its neighbours in the log an event may have happened,
// in milliseconds: it was placed late, because its wake-up was lost. A start by time
// searches that much earlier, and leaves out what is too old.
const lateEvents = 24 * 60 * 60 * 1000

// before is the seq of the last event in a partition that happened before a time, in milliseconds
// since 1970. The search takes the log as ordered by time. It reads about 40 events at most, since
// a seq has at most twelve digits. The result is 0 if there is none.
func (s *Store) before(ctx context.Context, p envelope.Partition, at int64) (int64, error) {
	// low is before it, or the beginning; high is not, or the end.
	low, high := max(p.Horizon-1, 0), p.Head
	for low < high {
		middle := low + (high-low)/2
		facts, err := s.Log.Read(ctx, p.Name, middle, 1)
		if err != nil {
			return 0, err
		}

		switch {
		case len(facts) == 0:
			return 0, fmt.Errorf(
				"consumer: the partition %s has no event after %d, but its head is %d",
				p.Name, middle, p.Head)
		case facts[0].Time < at:
			low = facts[0].Seq
		default:
			high = middle
		}
	}
	return low, nil
}
