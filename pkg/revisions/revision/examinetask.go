package revision

import (
	"context"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/revisions/workflow"
)

// instance checks that an instance is where it should be, waits for what it says, and has what it
// runs with. One that has ended waits for nothing more.
func (x *exam) instance(id string) error {
	in, err := x.instanceRow(x.ctx, id)
	if err != nil || in.Rev == 0 {
		return err
	}

	x.Subject = "task:" + id
	err = x.History(x.ctx, taskSubject(id), in.Number, string(in.State))
	if err != nil {
		return err
	}

	x.listed(in)
	for _, k := range in.places() {
		err = x.needs(&in.Head, in.Archive, id, k)
		if err != nil {
			return err
		}
	}

	err = x.known(in)
	if err != nil || in.State.Over() {
		return err
	}

	x.attempt(in)
	err = x.superseding(in)
	if err != nil {
		return err
	}

	err = x.edges(in)
	if err != nil || in.Lock == "" {
		return err
	}
	return x.locks(in)
}

// listed checks that an instance is listed, and that its row says whether it has ended:
// transactions depend on that (over_ms). When it ended is taken from its state, if it is not known.
func (x *exam) listed(in *instanceRow) {
	// The row as it should be; Head has its places in the indexes.
	right := *in
	right.ListPK, right.ListSK, right.Over = "TASKS#"+in.Archive, in.Order, 0
	if in.State.Over() {
		right.Over = in.Over
		if in.Over == 0 {
			right.Over = in.Since
		}
	}

	if right.Head != in.Head || right.Over != in.Over {
		x.add(rulePlace,
			x.save(archiveOf(in.Archive), func(tx *table.Tx) error { tx.Save(&right); return nil }),
			"it is %s, ended at %d, at %q %q of the index list; it should be at %q %q", in.State,
			in.Over, in.ListPK,
			in.ListSK, right.ListPK, right.ListSK)
	}
}

// superseding checks that the instance for whose end one waits that supersedes it has not ended, or is
// settled later: else nobody tells it. The repair lets it look again.
func (x *exam) superseding(in *instanceRow) error {
	if in.Superseding == "" {
		return nil
	}
	v, found, err := x.awaited(in.Superseding)
	if err != nil {
		return err
	}

	if !found || v.Settled {
		x.add(ruleWaiter,
			x.changing(in.ID, func(c *change) error { c.in().Superseding = ""; return nil }),
			"it waits for the end of %s, which is settled", in.Superseding)
	}
	return nil
}

// attempt checks that an instance that has an attempt has an execution, and that it is looked at
// again: without a time, one whose execution is lost would run for ever.
func (x *exam) attempt(in *instanceRow) {
	switch {
	case in.State.Started() && in.Exec == "":
		x.add(ruleAttempt, nil, "it is %s, and has no execution", in.State)
	case (in.State.Started() || in.State == workflow.Waiting) && in.Until == 0:
		x.add(ruleAttempt, x.changing(in.ID, func(c *change) error {
			c.in().Until = max(c.in().Until, c.now)
			return nil
		}), "it is %s, and nothing looks at it again", in.State)
	}
}

// edges computes from scratch what became of the edges of an instance, and what they make of it.
func (x *exam) edges(in *instanceRow) error {
	// Before COMMIT, which is written with it.
	r, err := x.revisionRow(x.ctx, in.Archive, in.Revision)
	if err != nil {
		return err
	}

	for _, e := range in.Edges {
		if e.ID == "" {
			continue
		}
		err = x.onEdge(in, e, r.Planned > 0)
		if err != nil {
			return err
		}
	}

	// Edges can be right one by one while nothing has acted on them.
	next := in.decided()
	if in.State == workflow.Blocked && next != workflow.Blocked {
		x.add(ruleEdges, x.changing(in.ID, x.recompute),
			"by its edges it should be %s, and it is blocked", next)
	}
	return nil
}

// onEdge checks that what an edge is on exists, and compares them. COMMIT exists when the revision
// is planned; planned was read before.
func (x *exam) onEdge(in *instanceRow, e Awaits, planned bool) error {
	a, found, err := x.awaited(e.ID)
	switch {
	case err != nil:
		return err
	case !found && e.Task == workflow.Commit && !planned:
		return nil
	case !found:
		x.add(ruleRow, nil, "it waits for %s, and there is no such instance", e.ID)
		return nil
	}
	return x.edge(in, e, &a)
}

// decided is what the edges of a blocked instance make of it: as evaluate does, without writing.
func (in *Instance) decided() workflow.State {
	if in.Task == workflow.Commit {
		if Open(in.Edges) > 0 {
			return workflow.Blocked
		}
		return workflow.Success
	}

	next, _ := decide(in.Edges)
	if next == workflow.Ready && in.Filtered {
		return workflow.Blocked // the filter is asked first
	}
	return next
}

// edge compares an edge with what it is on: the verdict with its state, and an open edge with the
// row of its waiter. An edge that is open on one that has ended is right until that one is settled.
func (x *exam) edge(in *instanceRow, e Awaits, a *instanceRow) error {
	var repair func(context.Context) error
	// Only a blocked instance can be decided anew.
	if in.State == workflow.Blocked {
		repair = x.changing(in.ID, x.recompute)
	}

	switch {
	case e.Verdict != workflow.Open && !e.right(a.State):
		x.add(ruleEdges, repair, "its edge on %s is %s, and that is %s", e.ID, e.Verdict, a.State)
		return nil
	case e.Verdict != workflow.Open:
		return nil
	case a.Settled:
		x.add(ruleEdges, repair, "it waits for %s, which is %s and settled", e.ID, a.State)
		return nil
	}

	k := waiterKey(e.ID, in.ID)
	var w lineRow
	err := x.Table.Get(x.ctx, k, &w)
	if !fault.Is(err, fault.NotFound) {
		return err
	}

	x.add(ruleEdges, x.Making(&in.Head, func(tx *table.Tx) {
		tx.Insert(&lineRow{Head: headOf(k), Owner: in.ID})
		tx.Require(a.Key(), "rev = ?", a.Rev)
		x.raise(tx, archiveOf(in.Archive))
	}), "it waits for %s, which does not know it: %s is missing", e.ID, k)

	return nil
}

// recompute decides all edges of a blocked instance from scratch, and lets it go on if they say so.
// One that is not blocked any more stays as it is: what was decided cannot be taken back.
func (x *exam) recompute(c *change) error {
	in := c.in()
	if in.State != workflow.Blocked {
		return nil
	}

	// A repair comes later than the examination, whose context may have ended.
	now := &exam{Store: x.Store, ctx: c.ctx}
	for i := range in.Edges {
		e := &in.Edges[i]
		if e.ID == "" {
			continue
		}

		a, found, err := now.awaited(e.ID)
		if err != nil {
			return err
		}

		if !found {
			continue
		}

		err = x.redecide(c, e, &a)
		if err != nil {
			return err
		}
	}
	return c.evaluate()
}

// redecide decides one edge of an instance from scratch, with the row of its waiter: that is there
// exactly as long as the edge is open.
func (x *exam) redecide(c *change, e *Awaits, a *instanceRow) error {
	k := waiterKey(e.ID, c.in().ID)
	var w lineRow
	err := x.Table.Get(c.ctx, k, &w)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}

	known := err == nil
	switch {
	case !a.State.Over():
		e.Verdict, e.End = workflow.Open, ""
		if !known {
			c.tx.Insert(&lineRow{Head: headOf(k), Owner: c.in().ID})
			c.tx.Require(a.Key(), "rev = ?", a.Rev)
		}
		return nil
	// The edge is decided, so nobody is to look for the row.
	case known:
		c.remove = append(c.remove, k)
	}

	if e.Verdict != workflow.Open && e.right(a.State) {
		return nil
	}
	return c.decided(e, &a.Instance)
}
