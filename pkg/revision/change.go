package revision

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"archivist/pkg/definition"
	"archivist/pkg/envelope"
	"archivist/pkg/event"
	"archivist/pkg/fault"
	"archivist/pkg/lease"
	"archivist/pkg/table"
	"archivist/pkg/workflow"
)

// change is one change of an instance, being composed.
type change struct {
	ctx context.Context
	s   *Store
	tx  *table.Tx
	now int64
	by  By

	row    *instanceRow
	was    Instance
	name   *nameRow // of its task; read when it is needed
	named  bool     // the name row is written
	former *nameRow // of its former name; nil: it is not written
	lock   *lockRow // nil: it needs none, or it was not read yet
	holds  *string  // what becomes of the holder of the lock; nil: it stays
	remove []table.Key
	fence  *lease.Lease // of the pass; nil: another makes the change
}

// apart is how much longer a change may wait before each further try. The second try is made at once.
const apart = 10 * time.Millisecond

// guard is what a change needs beside the instance.
type guard struct {
	fence *lease.Lease
	by    By
}

// change reads an instance, lets f change it, and writes it with its event, its places and its numbers in one
// transaction. If another change was first, all is done again. A change that leaves everything as it was writes
// nothing. f gets an instance that there is; one that there is not is a NotFound.
func (s *Store) change(ctx context.Context, id string, g guard, f func(c *change) error) (Instance, error) {
	var err error
	for n := range maxTries {
		var in Instance
		in, err = s.tryChange(ctx, id, g, f)
		if !fault.Is(err, fault.Stale) {
			return in, err
		}
		if g.fence != nil && g.fence.Lost(err) {
			return in, err // another pass is at work
		}
		err = cmp.Or(s.Table.Wait(ctx, time.Duration(s.Table.Jitter()*float64(apart)*float64(n))), err)
	}
	return Instance{}, fault.New(fault.Unavailable, "the instance %s keeps changing; try again in a moment (%v)",
		definition.Clip(id, 200), err)
}

func (s *Store) tryChange(ctx context.Context, id string, g guard, f func(c *change) error) (Instance, error) {
	row, err := s.instanceRow(ctx, id)
	if err != nil {
		return Instance{}, err
	}
	if row.Rev == 0 {
		return Instance{}, fault.New(fault.NotFound, "there is no instance %s", definition.Clip(id, 200))
	}
	c := &change{ctx: ctx, s: s, tx: s.Table.Begin(s.NewID()), now: s.now(), by: g.by, row: row,
		was: clone(row.Instance), fence: g.fence}
	err = f(c)
	if err == nil {
		err = c.save()
	}
	return row.Instance, err
}

// clone copies an instance with what it refers to.
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

// Moved is the detail of task.state.
type Moved struct {
	From    workflow.State `json:"from,omitempty"`
	To      workflow.State `json:"to"`
	Reason  string         `json:"reason,omitempty"`
	Root    string         `json:"root,omitempty"` // the instance whose end is the cause
	By      string         `json:"by,omitempty"`   // who superseded or cancelled it
	Attempt int            `json:"attempt,omitempty"`
	Exec    string         `json:"exec,omitempty"`
	Tried   *Tried         `json:"tried,omitempty"` // the attempt that ended
}

// to lets the instance go to another state.
func (c *change) to(state workflow.State, reason string) error {
	in := c.in()
	if !workflow.Follows(in.State, state) {
		return fault.New(fault.Conflict, "the instance %s is %s; it cannot become %s", in.ID, in.State, state)
	}
	from := in.State
	in.State, in.Since, in.Reason, in.Victim = state, c.now, reason, ""
	d := Moved{From: from, To: state, Reason: reason, Root: in.Root, By: in.By}
	if in.Attempt > 0 {
		d.Attempt, d.Exec = in.Attempt, in.Exec
	}
	if in.Last != nil && in.Last.Attempt == in.Attempt && from.Started() {
		d.Tried = in.Last
	}
	if state != workflow.Waiting && !state.Started() && in.Told == "" {
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

// over keeps what the end of an instance changes beside it.
func (c *change) over() error {
	in := c.in()
	in.Until, in.Parked, in.Told = 0, false, ""
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
		n.Succeeded, n.InRow = max(n.Succeeded, in.Revision), 0
		c.named = true
	case workflow.Superseded:
		n.InRow++
		c.named = true
	}
	return nil
}

// event adds an event about the instance.
func (c *change) event(eventType, outcome string, detail any) error {
	in := c.in()
	c.row.Number++
	return event.Append(c.tx, taskSubject(in.ID), c.row.Number, event.New{Type: eventType, Time: c.now,
		Outcome: outcome, Detail: detail, Actor: cmp.Or(c.by.Actor, manager), Component: manager,
		Parents: parents(in.Archive, in.Revision)})
}

// manager is who makes changes that nobody asked for.
const manager = "revision-queue"

// parents are the containers of an instance.
func parents(ref string, n int64) []envelope.Ref {
	return []envelope.Ref{{Type: event.Archive.String(), ID: archiveOf(ref)},
		{Type: event.Revision.String(), ID: revisionID(ref, n)}}
}

// names reads what is known of all instances of the task.
func (c *change) names() (_ *nameRow, err error) {
	if c.name == nil {
		c.name, err = c.s.nameRow(c.ctx, c.row.Archive, c.row.Task)
	}
	return c.name, err
}

// locked reads the lock of the instance.
func (c *change) locked() (_ *lockRow, err error) {
	if c.lock == nil {
		c.lock, err = c.s.lockRow(c.ctx, c.row.Archive, c.row.Lock)
	}
	return c.lock, err
}

// save commits what has changed.
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
	moveLines(c.tx, in.ID, c.was.places(), in.places())
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
		c.tx.Count(revisionSubject(revisionID(in.Archive, in.Revision)).Key(), map[string]int64{"over_n": 1})
	}
	if c.fence != nil {
		c.fence.Guard(c.tx)
	} else {
		c.s.raise(c.tx, archiveOf(in.Archive))
	}
	return c.tx.Commit(c.ctx)
}

// saveLock writes the lock when its line or its holder changes, or when what was decided depends on it.
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
