package revision

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"archivist/pkg/events/event"
	"archivist/pkg/kernel/definition"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/lease"
	"archivist/pkg/kernel/table"
	"archivist/pkg/revisions/workflow"
)

// change is one change of an instance, being composed. A function that is given one decides with
// what it reads through it, and sets fields of the instance; what follows from these (the event,
// places, numbers, the lock) is written by save. It must not keep anything between two calls: after
// a Stale it is called again with what is there then.
type change struct {
	ctx context.Context
	s   *Store
	tx  *table.Tx

	// In milliseconds since 1970; one time for all that the change writes.
	now int64
	by  By

	row *instanceRow
	was Instance

	// What is known of its task; read when it is needed.
	name *nameRow

	// The name row is written: a function has changed it.
	named bool

	// That of its former name; nil: it is not written.
	former *nameRow

	// nil: it needs none, or it was not read yet. If it was read, it is written, too, so that the
	// change fails if the lock or its line has changed meanwhile.
	lock *lockRow

	// What becomes of the holder of the lock; nil: it stays.
	holds *string

	// Rows of which the instance is the owner, and that are not among its places: those of a
	// waiter.
	remove []table.Key

	// Of the pass; nil: another makes the change. Then it raises the archive, so that a pass
	// follows.
	fence *lease.Lease
}

// guard is what a change needs beside the instance: who makes it, and the lease under which a pass
// does. The fence of the lease is checked by the commit, so a pass that was overtaken changes
// nothing.
type guard struct {
	fence *lease.Lease
	by    By
}

// change reads an instance, lets f change it, and writes it with its event, its places and its
// numbers in one transaction. If another change was first, all is done again: f must decide anew
// each time, and may be called often. A change that leaves everything as it was writes nothing, and
// is no error. f gets an instance that there is; one that does not exist is a NotFound.
//
// It returns the instance as it was written. An error of f is returned as it is, with the instance
// as f has left it, which is not stored then. A Stale is returned only if the lease has passed to
// another; an Unavailable means that it met others too often, or that the result of the commit is
// not known.
func (s *Store) change(ctx context.Context, id string, g guard,
	f func(c *change) error) (in Instance, err error) {
	lost := func(err error) bool { return g.fence != nil && g.fence.Lost(err) } // another pass is at work
	err = s.Table.AgainUnless(ctx, "the instance "+definition.Clip(id, 200), lost, func() error {
		in, err = s.tryChange(ctx, id, g, f)
		return err
	})
	return in, err
}

// tryChange makes one try of a change. A Stale means that something that was read has changed
// since.
func (s *Store) tryChange(ctx context.Context, id string, g guard,
	f func(c *change) error) (Instance, error) {
	row, err := s.instanceRow(ctx, id)
	if err != nil {
		return Instance{}, err
	}

	if row.Rev == 0 {
		return Instance{},
			fault.New(fault.NotFound, "there is no instance %s", definition.Clip(id, 200))
	}

	c := &change{
		ctx:   ctx,
		s:     s,
		tx:    s.Table.Begin(s.NewID()),
		now:   s.now(),
		by:    g.by,
		row:   row,
		was:   clone(row.Instance),
		fence: g.fence,
	}

	err = f(c)
	if err != nil {
		return row.Instance, err
	}
	err = c.save()
	return row.Instance, err
}

// clone copies an instance with those parts that a change may alter in place: its edges, and the
// last attempt. Other lists are only replaced as a whole.
func clone(in Instance) Instance {
	in.Edges = slices.Clone(in.Edges)
	if in.Last != nil {
		tried := *in.Last
		in.Last = &tried
	}
	return in
}

// in is the instance. What is set in it is written.
func (c *change) in() *Instance { return &c.row.Instance }

// to lets the instance go to another state, with its event. A state that cannot follow
// (workflow.Follows) is a Conflict.
//
// It also clears what belonged to the state before: whose end it waited for, and the time at which
// it was to be looked at, unless the next state has one (the caller sets Until before) or it was
// told to end, whose grace goes on.
func (c *change) to(state workflow.State, reason string) error {
	in := c.in()
	if !workflow.Follows(in.State, state) {
		return fault.New(fault.Conflict, "the instance %s is %s; it cannot become %s", in.ID,
			in.State, state)
	}

	from := in.State
	in.State, in.Since, in.Reason, in.Superseding = state, c.now, reason, ""
	d := in.moved(from)
	if state != workflow.Waiting && !state.Started() && in.StopRequested == "" {
		in.Until = 0
	}

	if state.Over() {
		err := c.over()
		if err != nil {
			return err
		}
	}

	outcome := event.Success
	if state == workflow.Failure {
		outcome = event.Failure
	}
	return c.event("task.state", outcome, d)
}

// moved is the detail of the event that an instance has gone from a state to the present one.
func (in *Instance) moved(from workflow.State) Moved {
	d := Moved{From: from, To: in.State, Reason: in.Reason, Root: in.Root, By: in.By}
	if in.Attempt > 0 {
		d.Attempt, d.Exec = in.Attempt, in.Exec
	}

	if in.Last != nil && in.Last.Attempt == in.Attempt && from.Started() {
		d.Tried = in.Last
	}

	if from == workflow.Manual {
		d.Parameters = in.Parameters
	}
	return d
}

// over keeps what the end of an instance changes beside it: how often its task was superseded in a
// row, and the revision of its last success. COMMIT is no task that anything is known of.
func (c *change) over() error {
	in := c.in()
	in.Until, in.Parked, in.StopRequested = 0, false, ""
	c.row.Over = c.now
	if in.Task == workflow.Commit {
		return nil
	}

	n, err := c.names()
	if err != nil {
		return err
	}

	switch in.State {
	case workflow.Success:
		n.succeeded(in)
		n.InRow, c.named = 0, true
	case workflow.Superseded:
		n.InRow++
		c.named = true
	}
	return nil
}

// event adds an event about the instance. Its number is the next one of the instance, whose row is
// written in any case: each event comes with a change of a field.
func (c *change) event(eventType, outcome string, detail any) error {
	in := c.in()
	c.row.Number++
	return event.Append(c.tx, taskSubject(in.ID), c.row.Number, event.New{
		Type:      eventType,
		Time:      c.now,
		Outcome:   outcome,
		Detail:    detail,
		Actor:     cmp.Or(c.by.Actor, manager),
		Component: manager,
		Parents:   parents(in.Archive, in.Revision),
	})
}

// names reads what is known of all instances of the task, once in a change. Whoever alters it sets
// named.
func (c *change) names() (_ *nameRow, err error) {
	if c.name == nil {
		c.name, err = c.s.nameRow(c.ctx, c.row.Archive, c.row.Task)
	}
	return c.name, err
}

// locked reads the lock of the instance, once in a change. From then on the change depends on it:
// see saveLock.
func (c *change) locked() (_ *lockRow, err error) {
	if c.lock == nil {
		c.lock, err = c.s.lockRow(c.ctx, c.row.Archive, c.row.Lock)
	}
	return c.lock, err
}

// save commits what has changed. An end is counted at the revision; a change that is not the pass's
// own raises the archive.
func (c *change) save() error {
	in := c.in()
	if same(c.was, *in) && len(c.remove) == 0 {
		return nil
	}

	var err error
	c.row.Text, err = pack(in)
	if err != nil {
		return err
	}

	c.tx.Save(c.row)
	c.tx.Derive(in.ID, c.was.rows(), in.rows())
	for _, k := range c.remove {
		c.tx.RemoveOwned(k, in.ID)
	}

	err = c.saveLock()
	if err != nil {
		return err
	}

	if c.named {
		put(c.tx, c.name, c.name.Rev)
	}

	if c.former != nil {
		put(c.tx, c.former, c.former.Rev)
	}

	if in.State.Over() && !c.was.State.Over() {
		c.tx.Count(revisionSubject(revisionID(in.Archive, in.Revision)).Key(),
			map[string]int64{"over_n": 1})
	}

	if c.fence != nil {
		c.fence.Guard(c.tx)
	} else {
		c.s.raise(c.tx, archiveOf(in.Archive))
	}
	return c.tx.Commit(c.ctx)
}

// saveLock writes the lock when its line or its holder changes, or when what was decided depends on
// it. The line changes when the instance ends. To write the row of the lock raises its rev: so of
// two starts that both have found their turn, one fails.
func (c *change) saveLock() error {
	in := c.in()
	ends := in.State.Over() && !c.was.State.Over()
	if in.Lock == "" || !ends && c.lock == nil {
		return nil
	}

	l, err := c.locked()
	if err != nil {
		return err
	}

	if ends && l.Holder == in.ID {
		l.Holder = ""
	}

	if c.holds != nil {
		l.Holder = *c.holds
	}

	put(c.tx, l, l.Rev)
	return nil
}

// same reports whether two instances are equal as they are stored.
func same(a, b Instance) bool {
	one, _ := json.Marshal(a) // instances have only plain fields
	two, _ := json.Marshal(b)
	return string(one) == string(two)
}
