package consumer

import (
	"context"
	"time"

	"archivist/pkg/events/envelope"
	"archivist/pkg/kernel/table"
)

// turnWait is after how long a partition asks again whether it is its turn. It is woken before, by
// the last run of the earlier generation; the wait is for a wake-up that was lost.
const turnWait = 5 * time.Minute

// turn reports whether it is this partition's turn: those of earlier generations of the log must
// have been finished, so that the events of a subject are handled in order. If not, it gives the
// lease back and wakes these. Partitions whose events are finished but parked are remembered in
// n.earlier: events of their keys are parked here as well, behind them.
func (n *run) turn(ctx context.Context) (bool, error) {
	if n.part.Generation == 0 {
		return true, nil
	}

	all, err := n.r.Store.Log.Partitions(ctx)
	if err != nil {
		return false, err
	}

	var behind []string
	for _, p := range all {
		if p.Log != n.part.Log || p.Generation >= n.part.Generation {
			continue
		}

		cur, err := n.r.Store.cursor(ctx, n.c.Name, p.Name)
		if err != nil {
			return false, err
		}

		if n.isBehind(cur, p) {
			behind = append(behind, p.Name)
		}

		if cur.Parked > 0 {
			n.earlier = append(n.earlier, p.Name)
		}
	}

	if len(behind) == 0 {
		return true, nil
	}

	_, err = n.move(ctx, leave,
		func(_ *table.Tx, c *cursor) { c.due(n.now().Add(turnWait).UnixMilli()) })
	if err != nil {
		return false, err
	}

	// If a wake-up fails, Tick repeats it, and wakes this partition again when it is due.
	for _, p := range behind {
		if err := n.r.wake(ctx, n.c.Name, p); err != nil {
			return false, err
		}
	}
	return false, nil
}

// isBehind reports whether there is more to do in a partition. A replay has cursors only where
// it has something to do.
func (n *run) isBehind(cur cursor, p envelope.Partition) bool {
	if n.replay != nil {
		return cur.Last > 0 && !cur.finished()
	}
	return cur.Seq < p.Head || cur.Pending > 0
}

// follow wakes the partitions of the next generation, when this one is finished. Of a replay, it
// advances the replay: the run may have been the last.
func (n *run) follow(ctx context.Context) error {
	if n.replay != nil {
		return n.r.advance(ctx, n.replay.ID)
	}

	if !n.part.Closed || n.cur.Seq < n.part.Head || n.cur.Pending > 0 {
		return nil
	}

	all, err := n.r.Store.Log.Partitions(ctx)
	if err != nil {
		return err
	}

	for _, p := range all {
		if comesAfter(p, n.part) {
			if err := n.r.wake(ctx, n.c.Name, p.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

// comesAfter reports whether a partition with events waits for another to be finished.
func comesAfter(p, other envelope.Partition) bool {
	return p.Log == other.Log && p.Generation == other.Generation+1 && p.Head > 0
}
