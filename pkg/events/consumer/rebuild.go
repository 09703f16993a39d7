package consumer

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// rebuildParts is into how many parts what is stored is divided for a rebuild; they are read at the
// same time. State divides by it: another number would spoil a rebuild that is at work.
const rebuildParts = 16

// rebuildPage is how many snapshots one step handles, about: an object's are not divided.
const rebuildPage = 50

// prunePart is the part of a rebuild in which a Pruner does its work.
const prunePart = "prune"

// rebuildCursors are the cursors of a rebuild, one for each part. Their partitions are names of
// parts, not of the log.
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

// prune removes the next of what the handler keeps and should not. A handler without a Pruner is
// done at once.
func (n *run) prune(ctx context.Context) (next, error) {
	page := ""
	if p := n.r.Pruners[n.c.Target.Handler]; p != nil {
		var err error
		if page, err = p.Prune(ctx, n.cur.Page); err != nil {
			return n.unreadable(ctx, err)
		}
	}
	return n.move(ctx, hold,
		func(_ *table.Tx, c *cursor) { c.Page, c.Done, c.Stop = page, page == "", nil })
}

// unreadable stops a part of a rebuild, until what it reads can be read again. The end of the run's
// own time is not such a stop: it is returned as the error that it is.
func (n *run) unreadable(ctx context.Context, err error) (next, error) {
	if ctx.Err() != nil {
		return again, err
	}
	n.r.metric(MetricErrors, 1)
	s := n.stop(Unreadable, n.cur.Seq, err.Error())
	return n.move(ctx, leave, func(_ *table.Tx, c *cursor) { c.halt(s, n.now()) })
}

// snapshots handles the next of what is stored: those of a page that are not handled yet, up to the
// first that is to be tried again. A crash repeats the page from the first one that is not known to
// be handled.
func (n *run) snapshots(ctx context.Context) (next, error) {
	if n.r.State == nil {
		return n.unreadable(ctx,
			fault.New(fault.Unavailable, "what is stored cannot be read here, for a rebuild"))
	}

	part := 0
	if _, err := fmt.Sscanf(n.part.Name, "part.%d", &part); err != nil {
		return again, fmt.Errorf("consumer: the part %q of a rebuild: %w", n.part.Name, err)
	}

	all, page, err := n.r.State.Snapshots(ctx, part, rebuildParts, n.cur.Page, rebuildPage)
	if err != nil {
		return n.unreadable(ctx, err)
	}

	all = n.cur.unhandled(all)
	w, err := n.snapshotWindow(ctx, all)
	if err != nil {
		return again, err
	}

	what, err := n.move(ctx, unless(w.stop), func(tx *table.Tx, c *cursor) {
		handled := w.end.seq - n.cur.Seq
		w.compose(tx, c)
		switch {
		case handled == int64(len(all)):
			c.Page, c.After, c.Done = page, "", page == ""
		case handled > 0:
			c.After = subjectOf(all[handled-1])
		}
		c.Done = c.Done || w.stop != nil && w.stop.Kind == Full
	})
	if err != nil {
		return what, err
	}
	w.report()
	return what, nil
}

func subjectOf(s Snapshot) string { return s.Subject.Type + "/" + s.Subject.ID }

// unhandled are the snapshots of a page after the one that was handled last; all, if it is not
// there any more. Subjects tell which one it was: ids do not, since they change with what is
// stored.
func (c *cursor) unhandled(all []Snapshot) []Snapshot {
	i := slices.IndexFunc(all, func(s Snapshot) bool { return subjectOf(s) == c.After })
	return all[i+1:]
}

// snapshotWindow calls the target with the snapshots that the consumer's filter selects, whatever
// its actions are, as many as can be parked in one transaction. Those of an object with parked ones
// are parked, too. Snapshots have no place in the log: their seq counts those of the part, so that
// the cursor can be moved and parked rows be sorted as usual.
func (n *run) snapshotWindow(ctx context.Context, all []Snapshot) (*window, error) {
	w := &window{n: n, end: position{seq: n.cur.Seq + int64(len(all))}}
	keys, err := n.parked(ctx)
	if err != nil {
		return nil, err
	}

	var free []seen
	for i, e := range all {
		if len(free)+len(w.failed) == maxSelected {
			w.end.seq = n.cur.Seq + int64(i)
			break
		}

		e.Partition, e.Seq = n.part.Name, n.cur.Seq+int64(i)+1
		if e.Unreadable != "" {
			w.failed = append(w.failed,
				verdict{unit: unitOf(e.ID, logged(e.Event)), reason: e.Unreadable})
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

	w.limit()
	return w, nil
}

// limit ends the part before the first failure that cannot be kept: a rebuild with so many failures
// is of no use.
func (w *window) limit() {
	room := MaxParked - int(w.n.cur.Parked)
	if len(w.failed) <= room {
		return
	}
	slices.SortFunc(w.failed,
		func(a, b verdict) int { return cmp.Compare(a.unit.before().seq, b.unit.before().seq) })
	if first := w.failed[room].unit; first.before().before(w.end) {
		w.end = first.before()
		w.stop = w.n.stop(Full, first.events[0].Seq, fullReplay)
	}
}
