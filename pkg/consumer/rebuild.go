package consumer

import (
	"context"
	"fmt"

	"archivist/pkg/envelope"
	"archivist/pkg/fault"
	"archivist/pkg/table"
)

// rebuildParts is into how many parts what is stored is divided for a rebuild; they are read
// at the same time.
const rebuildParts = 16

// rebuildPage is how many snapshots one step handles.
const rebuildPage = 50

// State is what is stored, for rebuilds.
type State interface {
	// Snapshots returns events that say how collections, objects and versions are now: those
	// of one part (0 to parts-1), from a cursor ("" at the beginning), about limit of them.
	// The events of an object are together, and in order. next is "" at the end. An error is one of
	// the storage: the same page is read again later.
	Snapshots(ctx context.Context, part, parts int, cursor string, limit int) (all []Snapshot, next string, err error)
}

// Snapshot is an event that says how something is now.
type Snapshot struct {
	envelope.Event

	// Unreadable says why there is no snapshot of something that is stored, of which the Event has an
	// id and a place: it is a failure of the rebuild. "": the Event is the snapshot.
	Unreadable string
}

// Pruner removes what a handler keeps of things that are not stored: whatever became of the events
// of their deletion.
type Pruner interface {
	// Prune looks at the next page of what is kept, from a cursor ("" at the beginning), and removes
	// what it is right to remove. next is "" at the end. The same page may be looked at again.
	Prune(ctx context.Context, cursor string) (next string, err error)
}

// prunePart is the part of a rebuild in which a Pruner does its work.
const prunePart = "prune"

// rebuildCursors are the cursors of a rebuild, one for each part.
func rebuildCursors(p Replay) (wanted []cursor) {
	parts := []string{}
	for i := range rebuildParts {
		parts = append(parts, fmt.Sprintf("part.%02d", i))
	}
	if p.Into == "" { // a shadow is new, and has nothing to be removed
		parts = append(parts, prunePart)
	}
	for _, part := range parts {
		k := cursorKey(p.run(), part)
		wanted = append(wanted, cursor{Head: table.Head{PK: k.PK, SK: k.SK}, Started: true})
	}
	return wanted
}

// prune removes the next of what the handler keeps and should not.
func (n *run) prune(ctx context.Context) (next, error) {
	if n.cur.Done {
		return idle, nil
	}
	page := ""
	if p := n.r.Pruners[n.c.Target.Handler]; p != nil {
		var err error
		if page, err = p.Prune(ctx, n.cur.Page); err != nil {
			return n.unreadable(ctx, err)
		}
	}
	return n.move(ctx, hold, func(_ *table.Tx, c *cursor) { c.Page, c.Done, c.Stop = page, page == "", nil })
}

// unreadable stops a part of a rebuild, until what it reads can be read again.
func (n *run) unreadable(ctx context.Context, err error) (next, error) {
	if ctx.Err() != nil {
		return again, err
	}
	n.r.metric(MetricErrors, 1)
	s := n.stop(Unreadable, n.cur.Seq, err.Error())
	return n.move(ctx, leave, func(_ *table.Tx, c *cursor) { c.halt(s, n.now()) })
}

// snapshots handles the next page of what is stored. The page is repeated if it could not be
// handled as a whole: snapshots have no ids by which the rest of it could be found again.
func (n *run) snapshots(ctx context.Context) (next, error) {
	if n.cur.Done {
		return idle, nil
	}
	if n.r.State == nil {
		return n.unreadable(ctx, fault.New(fault.Unavailable, "what is stored cannot be read here, for a rebuild"))
	}
	part := 0
	if _, err := fmt.Sscanf(n.part.Name, "part.%d", &part); err != nil {
		return again, fmt.Errorf("consumer: the part %q of a rebuild: %w", n.part.Name, err)
	}
	events, page, err := n.r.State.Snapshots(ctx, part, rebuildParts, n.cur.Page, rebuildPage)
	if err != nil {
		return n.unreadable(ctx, err)
	}
	w, err := n.snapshotWindow(ctx, events)
	if err != nil || w == nil {
		return idle, err
	}
	unfinished := w.stop != nil || w.end.seq < n.cur.Seq+int64(len(events))
	if unfinished {
		w.failed, w.end = nil, n.cur.position() // they fail again
	}
	what, err := n.move(ctx, unless(w.stop), func(tx *table.Tx, c *cursor) {
		w.compose(tx, c)
		if !unfinished {
			c.Page, c.Done = page, page == ""
		} else if !w.partly {
			n.repeats(c)
		}
	})
	if err == nil {
		w.report()
	}
	return what, err
}

// snapshotWindow calls the target with the snapshots of a page that the consumer's filter
// selects, whatever its actions are. Those of an object with parked ones are parked, too.
func (n *run) snapshotWindow(ctx context.Context, events []Snapshot) (*window, error) {
	w := &window{n: n, end: position{seq: n.cur.Seq + int64(len(events))}}
	keys, err := n.parked(ctx)
	if err != nil {
		return nil, err
	}
	var free []seen
	for i, e := range events {
		e.Partition, e.Seq = n.part.Name, n.cur.Seq+int64(i)+1
		if e.Unreadable != "" {
			w.failed = append(w.failed, verdict{unit: unitOf(e.ID, logged(e.Event)), reason: e.Unreadable})
			continue
		}
		if !n.filter.MatchState(e.Event) {
			continue
		}
		k := key(n.c, e.Event)
		if head, ok := keys.heads[hash(k)]; ok {
			w.failed = append(w.failed, verdict{unit: unitOf(k, logged(e.Event)), behind: head})
			continue
		}
		free = append(free, logged(e.Event))
	}
	if len(free) > 0 {
		w.call(ctx, free)
	}
	if room := min(maxSelected, MaxParked-int(n.cur.Parked)); len(w.failed) > room {
		w.stop = n.stop(Full, n.cur.Seq, fmt.Sprintf("%d snapshots of one page failed, the first: %s", len(w.failed),
			w.failed[0].reason))
	}
	return w, nil
}
