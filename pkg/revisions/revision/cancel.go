package revision

import (
	"cmp"
	"context"
	"fmt"

	"archivist/pkg/events/event"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/revisions/workflow"
)

// cancel supersedes the earlier instances that an awaiting one cancels. When all of them have
// ended, that one is ready. Until then it waits for the end of the first that goes on: so a pass
// does not look at all that await, however many they are. Those that could start meanwhile are
// superseded instead: see superseder. One that replaces runs is looked at in each pass: there is
// one for each schedule.
//
// If the time of the pass ends before all of these were looked at, the instance stays as it is: it
// must not become ready while one that was not seen goes on.
func (p *pass) cancel(ctx context.Context, id string) error {
	r, err := p.instanceRow(ctx, id)
	if err != nil || r.State != workflow.Awaiting {
		return err
	}

	left, err := p.supersedeAll(ctx, &r.Instance)
	// While a run that it replaces goes on, it stays in the line, and is looked at in each pass.
	if err != nil || p.done.More || left != "" && len(r.Replaces) > 0 {
		return err
	}

	_, err = p.change(ctx, id, p.guard(), func(c *change) error {
		if c.in().State != workflow.Awaiting {
			return nil
		}

		if left != "" {
			return c.awaitEnd(left)
		}

		over, err := c.overtaken()
		if err != nil || over {
			return err
		}
		return c.to(workflow.Ready, "")
	})
	return err
}

// awaitEnd lets an instance wait for the end of one that it supersedes. The transaction requires
// that this one has not ended: else its end would not find the row of the waiter. If it has ended
// meanwhile, nothing changes, and the next round looks again.
func (c *change) awaitEnd(id string) error {
	v, err := c.s.instanceRow(c.ctx, id)
	if err != nil || v.Rev == 0 || v.State.Over() {
		return err
	}
	c.in().Superseding = id
	c.tx.Require(v.Key(), "attribute_exists(pk) AND attribute_not_exists(over_ms)")
	return nil
}

// superseder is an instance that awaits the ends of those before it of this task, "" if there is
// none. If there is, this one is not to start: it would be started only to be stopped, and
// superseders would have to look for more to supersede all the time. A run with force is exempt. A
// person can start a superseder between this look and the commit: then it finds this one, too.
func (c *change) superseder() (string, error) {
	in := c.in()
	if in.Force && in.Run > 0 {
		return "", nil
	}
	return c.s.first(c.ctx, table.Query{
		PK:   cancelPK(in.Archive, in.Task),
		From: before(in.Revision + 1),
		To:   "9" + last,
	})
}

// overtaken ends an instance of which only the latest is wanted, if a newer one has started. It
// reports whether it did. It is asked before each step towards a start, because a back-fill or a
// person can plan an older instance at any time.
func (c *change) overtaken() (bool, error) {
	in := c.in()
	if !in.LatestOnly || in.Force {
		return false, nil
	}

	n, err := c.names()
	// What has started in the same revision is itself, or another run, which overtakes nothing.
	if err != nil || n.Started <= in.Revision {
		return false, err
	}

	in.By = n.Starter
	return true, c.to(workflow.Superseded,
		fmt.Sprintf("%s has started, and only the latest is wanted", n.Starter))
}

// supersedeAll supersedes all that an instance cancels, and returns the first that has not ended, "" if
// all have. Runs that it replaces and that are in the bucket by now (a NotFound) have ended.
func (p *pass) supersedeAll(ctx context.Context, by *Instance) (left string, err error) {
	for _, task := range by.Cancels {
		n, err := p.cancelTask(ctx, by, task)
		if err != nil {
			return left, err
		}
		left = cmp.Or(left, n)
	}

	for _, old := range by.Replaces {
		in, err := p.supersede(ctx, old, by)
		if fault.Is(err, fault.NotFound) {
			continue
		}

		if err != nil {
			return left, err
		}

		if !in.State.Over() {
			left = cmp.Or(left, old)
		}
	}
	return left, nil
}

// cancelTask supersedes the instances of a task in revisions below that of an instance, and returns
// the first that has not ended. Newer ones are never touched.
func (p *pass) cancelTask(ctx context.Context, by *Instance, task string) (left string, err error) {
	q := table.Query{PK: livePK(by.Archive, task), From: "0", To: before(by.Revision)}
	err = p.owners(ctx, q, func(r lineRow) (bool, error) {
		in, err := p.supersede(ctx, r.Owner, by)
		if err != nil {
			return false, err
		}

		if !in.State.Over() && !in.forced() {
			left = cmp.Or(left, r.Owner)
		}
		return !p.over(), nil
	})
	return left, err
}

// forced reports whether an instance is a run with force that has not started. A superseder of its
// task neither ends it nor waits for it: it can wait for its turn of a lock behind an instance that
// follows the superseder. Then none of the three would go on.
func (in *Instance) forced() bool { return in.Force && in.Exec == "" }

// supersede does to an earlier instance what the rules say (workflow.CancelTarget): one that has not started ends at
// once, one that runs is told to end, and one that is not to be interrupted is left alone. It
// returns that instance as it is then. Completion wins a race: whichever of the two changes is
// committed first decides, and the other finds it decided.
func (p *pass) supersede(ctx context.Context, id string, by *Instance) (Instance, error) {
	was, ended := "", 0
	in, err := p.change(ctx, id, p.guard(), func(c *change) error {
		in := c.in()
		was, ended = in.StopRequested, 0
		if in.Force && in.Run > 0 {
			return nil // a person wants just this one: it is waited for, once it has started
		}

		n, err := c.names()
		if err != nil {
			return err
		}

		v := workflow.CancelTarget{
			State:           in.State,
			Uninterruptible: in.Uninterruptible,
			StopRequested:   in.StopRequested != "",
			InRow:           n.InRow,
		}

		switch v.Cancel() {
		case workflow.Supersede:
			in.By, in.Root, ended = by.ID, "", 1
			return c.to(workflow.Superseded, fmt.Sprintf("%s supersedes it", by.ID))
		case workflow.Stop:
			return c.tell(workflow.Superseded, by.ID, fmt.Sprintf("%s supersedes it", by.ID))
		}
		return nil
	})
	if err != nil {
		return in, err
	}

	if was == "" && in.StopRequested != "" {
		p.tell(ctx, &in)
	}

	p.overtook += ended
	return in, nil
}

// tell asks a run to end in a state. From now on it cannot record anything else: its result only
// ends it as it was told. It has until the end of the grace to end by itself.
func (c *change) tell(end workflow.State, by, reason string) error {
	in := c.in()
	in.StopRequested, in.By, in.Reason = string(end), by, reason
	in.Until = c.now + c.s.Times.Grace.Milliseconds()
	return c.event("task.told", event.Success, StopRequest{end, by, reason, in.Until})
}

// tell tells the run itself, after the commit. What is lost is repaired by the end of the grace.
func (s *Store) tell(ctx context.Context, in *Instance) {
	if s.Tell == nil {
		return
	}
	err := s.Tell(ctx, in.Prefix(), in.Reason)
	if err != nil {
		s.warn(
			"a run was not asked to stop; it is ended after the grace",
			"instance", in.ID, "error", err)
	}
}

// force ends a run that was told to end and has not, when its grace is over. What it does from now
// on is not recorded: its row names its execution no more as one that runs. It is told once more,
// in case the first time was lost, and its execution is stopped.
func (p *pass) force(ctx context.Context, id string) error {
	var e Execution
	in, err := p.change(ctx, id, p.guard(), func(c *change) error {
		in := c.in()
		e = Execution{}
		if in.StopRequested == "" || in.State.Over() || in.Until > c.now {
			return nil
		}
		e = in.execution()
		return c.to(workflow.State(in.StopRequested), in.Reason+"; it did not end by itself")
	})
	if err != nil || e.Exec == "" {
		return err
	}

	p.tell(ctx, &in)
	p.stopRun(ctx, e, in.Reason)
	return nil
}

// stopRun stops an execution whose instance has ended: of a container, that ends the container,
// too. One that goes on cannot record anything, so a failure is only logged.
func (s *Store) stopRun(ctx context.Context, e Execution, reason string) {
	if s.Stop == nil {
		return
	}
	err := s.Stop(ctx, e, reason)
	if err != nil {
		s.warn("an execution was not stopped; what it records is refused", "execution", e.Name(),
			"error", err)
	}
}

// Cancel ends an instance by hand: at once if it has not started, else it is told to end. One that
// was told already stays as it is. A Conflict means that it has ended, is COMMIT, or is of a
// revision that is being planned: others wait for what that will become. One that does not exist is a
// NotFound.
func (s *Store) Cancel(ctx context.Context, id string, by By) (Instance, error) {
	err := checkReason(by)
	if err != nil {
		return Instance{}, err
	}

	told := false
	in, err := s.change(ctx, id, guard{by: by}, func(c *change) error {
		in := c.in()
		told = false
		switch {
		case in.Task == workflow.Commit:
			return fault.New(fault.Conflict, "COMMIT cannot be cancelled; skip the revision")
		case in.State.Over():
			return fault.New(fault.Conflict, "the instance %s has ended: %s", id, in.State)
		case in.StopRequested != "":
			return nil
		case in.State.Started():
			// The run is told after the commit, and only by the try that has succeeded.
			told = true
			return c.tell(workflow.Cancelled, by.Actor, by.Reason)
		}

		visible, err := s.visible(ctx, in)
		if err != nil {
			return err
		}

		if !visible {
			return fault.New(fault.Conflict,
				"the revision %d is being planned; try again in a moment", in.Revision)
		}

		in.By = by.Actor
		return c.to(workflow.Cancelled, by.Reason)
	})
	if fault.Is(err, fault.NotFound) {
		kept, gone := s.Instance(ctx, id)
		if gone == nil {
			err = fault.New(fault.Conflict, "the instance %s has ended: %s", id, kept.State)
		}
	}

	if err != nil {
		return in, err
	}

	if told {
		s.tell(ctx, &in)
	}

	s.wake(ctx, archiveOf(in.Archive))
	return in, nil
}

// visible reports whether the plan of an instance is complete: its revision says when it was.
func (s *Store) visible(ctx context.Context, in *Instance) (bool, error) {
	r, err := s.revisionRow(ctx, in.Archive, in.Revision)
	return r.Planned > 0, err
}

// clear cancels all instances of an epoch that have not ended, and returns how many ended and how
// many are left: those that run, and those that could not be looked at. The time of the pass can
// end before all are seen: then the numbers say nothing.
func (p *pass) clear(ctx context.Context, ref string) (ended, left int, err error) {
	err = p.eachTask(ctx, ref, func(task string) error {
		return p.owners(ctx, table.Query{PK: livePK(ref, task)}, func(r lineRow) (bool, error) {
			over := false
			_, err := p.one(r, func(id string) error {
				in, err := p.clearOne(ctx, id)
				over = err == nil && in.State.Over()
				return err
			})

			if over {
				ended++
			} else {
				left++
			}
			return !p.over(), err
		})
	})
	return ended, left, err
}

// eachTask calls f with COMMIT and with each task of an epoch that was ever planned or run, until f
// fails.
func (s *Store) eachTask(ctx context.Context, ref string, f func(task string) error) error {
	err := f(workflow.Commit)
	if err != nil {
		return err
	}

	q := table.Query{PK: nameKey(ref, "").PK}
	for {
		var rows []nameRow
		next, err := s.Table.Page(ctx, q, &rows)
		if err != nil {
			return err
		}

		for _, r := range rows {
			err = f(r.SK)
			if err != nil {
				return err
			}
		}

		if next == "" {
			return nil
		}

		q.Cursor = next
	}
}

// clearOne cancels an instance, because its archive is deleted or begins anew. Unlike Cancel, it
// may be COMMIT, or be of a plan that is not complete and never will be.
func (p *pass) clearOne(ctx context.Context, id string) (Instance, error) {
	told := false
	in, err := p.change(ctx, id, p.guard(), func(c *change) error {
		in := c.in()
		told = false
		reason := "its archive was deleted or begins anew"
		switch {
		case in.State.Over() || in.StopRequested != "":
			return nil
		case in.State.Started():
			told = true
			return c.tell(workflow.Cancelled, manager, reason)
		}

		in.By = manager
		return c.to(workflow.Cancelled, reason)
	})
	if err != nil {
		return in, err
	}

	if told {
		p.tell(ctx, &in)
	}
	return in, nil
}
