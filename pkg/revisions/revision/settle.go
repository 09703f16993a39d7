package revision

import (
	"cmp"
	"context"
	"fmt"

	"archivist/pkg/kernel/definition"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/revisions/workflow"
)

// settle lets those go on that wait for an instance that has ended, and the next one in the line of
// its lock. Each of them is a change of its own, which removes the row of the waiter: so it can be
// called again after a crash, and goes on with those that are left. When none is, the instance is
// settled, and leaves the line.
//
// If the time of the pass is over before that, it stays in the line. What one of them cannot reach
// (an Unavailable) puts off all.
func (p *pass) settle(ctx context.Context, id string) error {
	r, err := p.instanceRow(ctx, id)
	if err != nil || !r.State.Over() || r.Settled {
		return err
	}

	ended := r.Instance
	err = p.owners(ctx, table.Query{PK: r.PK, Prefix: "WAITER#"}, func(w lineRow) (bool, error) {
		_, err := p.change(ctx, w.Owner, p.guard(),
			func(c *change) error { return c.judge(&ended) })
		// A waiter that has ended before, of a revision that is in the bucket.
		if fault.Is(err, fault.NotFound) {
			err = p.forget(ctx, w)
		}
		return !p.over(), err
	})
	if err != nil {
		return err
	}

	if ended.Lock != "" {
		err = p.unpark(ctx, ended.Archive, ended.Lock)
		if err != nil {
			return err
		}
	}

	if p.done.More {
		return nil
	}

	left, err := p.proceed(ctx, &ended)
	if err != nil {
		return err
	}

	_, err = p.change(ctx, id, p.guard(), func(c *change) error {
		c.in().Settled, c.in().Left = true, left
		return nil
	})
	return err
}

// forget removes the row of a waiter that is not in the table any more.
func (p *pass) forget(ctx context.Context, w lineRow) error {
	tx := p.Table.Begin(p.NewID())
	tx.RemoveOwned(w.Key(), w.Owner)
	p.lease.Guard(tx)
	return tx.Commit(ctx)
}

// unpark lets the instance start whose turn of a lock it is, if anybody waits. If it is not ready
// yet, this changes nothing: it asks for its turn when it is.
func (p *pass) unpark(ctx context.Context, ref, lock string) error {
	head, err := p.head(ctx, ref, lock)
	if err != nil || head == "" {
		return err
	}
	_, err = p.change(ctx, head, p.guard(), func(c *change) error {
		c.in().Parked = false
		return nil
	})
	return err
}

// judge decides the edges of the instance on one that has ended, and lets it go on if that was the
// last. It also is how a superseder hears of the end of what it waits for: then it looks
// at all that it supersedes again. An instance that has ended itself only loses its row.
func (c *change) judge(ended *Instance) error {
	in := c.in()
	if in.Superseding == ended.ID {
		in.Superseding = "" // the row of the waiter goes with it: it is one of its places
		return nil
	}

	c.remove = append(c.remove, waiterKey(ended.ID, in.ID))
	if in.State.Over() {
		return nil
	}

	for i := range in.Edges {
		e := &in.Edges[i]
		if e.ID != ended.ID || e.Verdict != workflow.Open {
			continue
		}
		err := c.decided(e, ended)
		if err != nil || in.State.Over() {
			return err
		}
	}
	return c.evaluate()
}

// decided decides an edge on an instance that has ended. If that was superseded, and the instance
// follows (follow: true), the edge moves to the superseder; else the instance will be superseded,
// too.
func (c *change) decided(e *Awaits, ended *Instance) error {
	e.judge(ended.ID, ended.State)
	if e.Verdict == workflow.Overtaken && c.in().Follow {
		by, err := c.follow(e, ended)
		if err != nil {
			return err
		}
		ended = by
	}
	return c.blame(e, ended)
}

// blame remembers the first cause of an edge that can no longer be satisfied: that of the instance
// that has ended, if it has one, so that people are led to the first failure and not along the
// chain. COMMIT goes on whatever has ended: it has no cause.
func (c *change) blame(e *Awaits, ended *Instance) error {
	in := c.in()
	if in.Task == workflow.Commit || in.Root != "" {
		return nil
	}

	switch e.Verdict {
	case workflow.Impossible, workflow.Overtaken:
		in.Root = ended.ID
		if ended.Root != "" {
			in.Root = ended.Root
		}
		if e.Verdict == workflow.Overtaken {
			in.By = ended.By
		}
	}
	return nil
}

// follow moves an edge from an instance that was superseded to its superseder, if the instance
// follows. If that was superseded, too, its own superseder is taken, and so on; one that has ended
// decides the edge. The edge stays overtaken if there is no such instance of the same task, which
// may have got another name since. It returns the instance whose end the edge is decided on.
//
// A superseder has no open edges, so no cycle of waits comes from this; and one that waits for a
// lock is not followed: those behind it could wait for the follower.
func (c *change) follow(e *Awaits, ended *Instance) (*Instance, error) {
	by, task := ended.By, ended.Task
	for range maxFollow {
		s, err := c.s.found(c.ctx, by)
		if err != nil || s.State == "" || s.Task != task && s.Was != task {
			return ended, err
		}

		if s.State == workflow.Superseded {
			by, task = s.By, s.Task
			continue
		}

		if s.State.Over() {
			e.judge(s.ID, s.State)
			return &s.Instance, nil
		}

		if s.Lock != "" && !s.State.Started() {
			return ended, nil
		}

		// From now on it waits for the superseder, as if it had depended on that; which must not
		// end unseen.
		e.ID, e.Verdict, e.End = s.ID, workflow.Open, ""
		c.tx.Insert(&lineRow{Head: headOf(waiterKey(s.ID, c.in().ID)), Owner: c.in().ID})
		c.tx.Require(taskSubject(s.ID).Key(),
			"attribute_exists(pk) AND attribute_not_exists(over_ms)")
		return ended, nil
	}
	return ended, nil
}

// maxFollow bounds the superseders of superseders that are followed in one step: each is a read.
// Behind that the instance is superseded.
const maxFollow = 50

// evaluate lets a blocked instance go on, if its edges say so; in any other state it does nothing.
// One whose edges are satisfied, but whose filter of paths was not asked yet, stays blocked, and is
// in the line of the filters then.
func (c *change) evaluate() error {
	in := c.in()
	if in.State != workflow.Blocked {
		return nil
	}

	if in.Task == workflow.Commit { // it never wedges an archive
		if Open(in.Edges) == 0 {
			return c.to(workflow.Success, "")
		}
		return nil
	}

	next, e := decide(in.Edges)
	// The edge was decided when the instance was planned, so nobody has set the cause.
	if next.Over() && in.Root == "" {
		ended, err := c.s.found(c.ctx, e.ID)
		if err != nil {
			return err
		}
		in.Root = cmp.Or(ended.Root, e.ID)
	}

	switch next {
	case workflow.Skipped:
		return c.to(workflow.Skipped,
			fmt.Sprintf("%s needs %s to be %s, and it is %s", in.Task, e.ID, e.On, e.End))
	case workflow.Superseded:
		return c.to(workflow.Superseded, fmt.Sprintf("%s was superseded", e.ID))
	case workflow.Ready:
		if in.Filtered {
			return nil // the filter is asked first
		}
		return c.release("")
	}
	return nil
}

// decide says what edges mean for their instance: blocked, ready, or its end (skipped or
// superseded) and the edge that decided it. Until COMMIT has ended, the plan is not visible:
// nothing is decided. Then the first edge that can no longer be satisfied decides, without waiting
// for the others.
func decide(edges []Awaits) (workflow.State, Awaits) {
	open := false
	for _, e := range edges {
		if e.Task == workflow.Commit && !e.Prev && e.Verdict == workflow.Open {
			return workflow.Blocked, e
		}
		open = open || e.Verdict == workflow.Open
	}

	for _, e := range edges {
		switch e.Verdict {
		case workflow.Impossible:
			return workflow.Skipped, e
		case workflow.Overtaken:
			return workflow.Superseded, e
		}
	}

	if open {
		return workflow.Blocked, Awaits{}
	}
	return workflow.Ready, Awaits{}
}

// release lets an instance go on whose edges are satisfied, and whose filter has let it through: to
// manual, if a person is to start it, to awaiting, if it supersedes others, else to ready. A
// latest-only one that a newer one has overtaken ends here.
func (c *change) release(reason string) error {
	in := c.in()
	over, err := c.overtaken()
	if err != nil || over {
		return err
	}

	if in.gated() {
		return c.to(workflow.Manual, "")
	}

	if len(in.Cancels)+len(in.Replaces) > 0 {
		return c.to(workflow.Awaiting, reason)
	}
	return c.to(workflow.Ready, reason)
}

// filter asks the filter of paths of an instance whose edges are satisfied. The archive is read
// outside of the change, because that takes long; the instance is changed only if it is as before.
// An archive that cannot be read is an Unavailable.
func (p *pass) filter(ctx context.Context, id string) error {
	r, err := p.instanceRow(ctx, id)
	if err != nil || r.State != workflow.Blocked || !r.Filtered {
		return err
	}

	in := r.Instance
	base, err := p.base(ctx, &in)
	if err != nil {
		return err
	}

	a, err := p.archiveRow(ctx, archiveOf(in.Archive))
	if err != nil || a.Archive.Mode == Deleted {
		return err // if it was deleted, another pass has cancelled the instance meanwhile
	}

	unwanted, err := p.unwanted(ctx, a, base, &in)
	if err != nil {
		return err
	}

	_, err = p.change(ctx, id, p.guard(), func(c *change) error {
		in := c.in()
		if in.State != workflow.Blocked || !in.Filtered {
			return nil
		}
		in.Filtered, in.Base = false, base
		if unwanted != "" {
			return c.to(workflow.Skipped, unwanted)
		}
		return c.release("")
	})
	return err
}

// unwanted asks the filter of an instance, and says why it is skipped, "" if it is not. What will
// never be known (the revision is another by now, or is gone) is a reason, too: else the instance
// would wait for ever.
func (p *pass) unwanted(ctx context.Context, a *archiveRow, base int64,
	in *Instance) (string, error) {
	def, err := p.Definition(ctx, a.Name, in.Definition)
	if err != nil {
		return "", err
	}

	paths, err := p.changed(ctx, a, base, in)
	switch {
	case fault.Is(err, fault.Conflict) || fault.Is(err, fault.NotFound): // it will never be known
		return "its filter of paths cannot be asked: " + definition.Clip(err.Error(), keptText), nil
	case err != nil || def.Task(in.Task).Matches(paths):
		return "", err
	}
	return fmt.Sprintf("no path that its filter selects changed after revision %d", base), nil
}

// base is the revision after which changes count for an instance: the one before; for a task of
// which only the latest is wanted, that in which it last succeeded, since it is to take all changes
// since then. 0 is the empty archive.
func (s *Store) base(ctx context.Context, in *Instance) (int64, error) {
	if !in.LatestOnly {
		return in.Revision - 1, nil
	}
	n, err := s.nameRow(ctx, in.Archive, in.Task)
	if err != nil || n.Succeeded >= in.Revision {
		return in.Revision - 1, err // a run by hand of an old revision
	}
	return n.Succeeded, nil
}

// changed are the paths that differ between a revision and that of an instance, sorted. Whatever
// keeps the archive from being read, it is tried again (an Unavailable), and the rest of the pass
// goes on; unless the revision is another now (a Conflict), or gone (a NotFound).
func (p *pass) changed(ctx context.Context, a *archiveRow, base int64,
	in *Instance) (paths []string, err error) {
	n := in.Revision
	paths, err = p.changedAt(ctx, a, in.Archive, base, n)
	if err != nil && !fault.Is(err, fault.Conflict) && !fault.Is(err, fault.NotFound) {
		return nil, fault.New(fault.Unavailable,
			"what changed from revision %d to %d of %s is not known: %w", base, n,
			a.Name, err)
	}
	return paths, err
}

// changedAt reads the paths that differ between two revisions, of which the later is planned.
func (p *pass) changedAt(ctx context.Context, a *archiveRow, ref string,
	base, n int64) ([]string, error) {
	src, err := p.plannedAt(ctx, a, ref, n)
	if err != nil {
		return nil, err
	}
	return src.Changed(ctx, base, n)
}
