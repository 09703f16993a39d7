package consumer

import (
	"context"

	"archivist/pkg/events/envelope"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// compile compiles what a run selects: the consumer's filter, and in a replay what its range
// selects besides.
func (n *run) compile() error {
	own, err := n.r.filter(n.c.Filter)
	if err != nil {
		return err
	}

	n.filter = own
	if n.replay == nil || n.replay.Range.Filter == "" {
		return nil
	}

	also, err := n.r.filter(n.replay.Range.Filter)
	if err != nil {
		return err
	}
	n.filter = own.And(also)
	return nil
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
	if fault.Is(err, fault.NotFound) {
		return nil, nil, nil
	}

	if err != nil {
		return nil, nil, err
	}

	if p.State != ReplayRunning {
		return nil, nil, nil
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

// partition reads the partition of a run. Those of a rebuild are parts of what is stored: they have
// a name only, and the epoch 0, as their cursors do.
func (n *run) partition(ctx context.Context, name string) (envelope.Partition, error) {
	if n.replay != nil && n.replay.Rebuild {
		return envelope.Partition{Name: name}, nil
	}
	return n.r.Store.Log.Partition(ctx, name)
}

// endPart ends a replay in the partition of the run, before its end. The reason is in its result;
// the other partitions go on.
func (n *run) endPart(ctx context.Context, why *Stop) (next, error) {
	return n.move(ctx, leave, func(_ *table.Tx, c *cursor) { c.Stop, c.Done = why, true })
}

// decide returns why the run does not handle an event, "" if it does. In a replay the name of the
// consumer is that of the run, so that its own events are recognized by the name in the replay.
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

// batch is a call without its events. The name that a target reads is that of the consumer, or of
// the shadow of a replay, never that of the run.
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
