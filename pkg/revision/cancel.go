package revision

import (
	"cmp"
	"context"
	"fmt"

	"archivist/pkg/event"
	"archivist/pkg/fault"
	"archivist/pkg/table"
	"archivist/pkg/workflow"
)

// Told is the detail of task.told.
type Told struct {
	End    workflow.State `json:"end"` // in which the instance is to end
	By     string         `json:"by,omitempty"`
	Reason string         `json:"reason,omitempty"`
	Until  int64          `json:"until"` // it is ended then, whatever it does
}

// cancel supersedes the earlier instances that an awaiting one cancels. When all of them have ended, that one is
// ready. Until then it waits for the end of the first that goes on: so a pass does not look at all that await, however
// many they are. Those that could start meanwhile are superseded instead: see superseder. One that replaces runs is
// looked at in each pass: there is one for each schedule.
func (p *pass) cancel(ctx context.Context, id string) error {
	r, err := p.instanceRow(ctx, id)
	if err != nil || r.State != workflow.Awaiting {
		return err
	}
	left, err := p.victims(ctx, &r.Instance)
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

// awaitEnd lets an instance wait for the end of one that it supersedes. If that has ended meanwhile, the next round
// looks again.
func (c *change) awaitEnd(victim string) error {
	v, err := c.s.instanceRow(c.ctx, victim)
	if err != nil || v.Rev == 0 || v.State.Over() {
		return err
	}
	c.in().Victim = victim
	c.tx.Require(v.Key(), "attribute_exists(pk) AND attribute_not_exists(over_ms)")
	return nil
}

// superseder is an instance that awaits the ends of those before it of this task, "" if there is none: this one is not
// to start.
func (c *change) superseder() (string, error) {
	in := c.in()
	if in.Force && in.Run > 0 {
		return "", nil
	}
	return c.s.first(c.ctx, table.Query{PK: cancelPK(in.Archive, in.Task), From: before(in.Revision + 1),
		To: "9" + last})
}

// victims supersedes all that an instance cancels, and returns the first that has not ended, "" if all have.
func (p *pass) victims(ctx context.Context, by *Instance) (left string, err error) {
	for _, task := range by.Cancels {
		n, err := p.cancelTask(ctx, by, task)
		if err != nil {
			return left, err
		}
		left = cmp.Or(left, n)
	}
	for _, old := range by.Replaces {
		in, err := p.supersede(ctx, old, by)
		if err != nil && !fault.Is(err, fault.NotFound) {
			return left, err
		}
		if err == nil && !in.State.Over() {
			left = cmp.Or(left, old)
		}
	}
	return left, nil
}

// cancelTask supersedes the instances of a task below a revision, and returns the first that has not ended.
func (p *pass) cancelTask(ctx context.Context, by *Instance, task string) (left string, err error) {
	q := table.Query{PK: livePK(by.Archive, task), From: "0", To: before(by.Revision)}
	err = p.owners(ctx, q, func(r lineRow) (bool, error) {
		in, err := p.supersede(ctx, r.Owner, by)
		if err == nil && !in.State.Over() && !in.forced() {
			left = cmp.Or(left, r.Owner)
		}
		return !p.over(), err
	})
	return left, err
}

// forced reports whether an instance is a run with force that has not started. A superseder of its task neither ends it
// nor waits for it: it can wait for its turn of a lock behind an instance that follows the superseder.
func (in *Instance) forced() bool { return in.Force && in.Exec == "" }

// supersede does to a victim what the rules say.
func (p *pass) supersede(ctx context.Context, id string, by *Instance) (Instance, error) {
	was, ended := "", 0
	in, err := p.change(ctx, id, p.guard(), func(c *change) error {
		in := c.in()
		was, ended = in.Told, 0
		if in.Force && in.Run > 0 {
			return nil // a person wants just this one: it is waited for, once it has started
		}
		n, err := c.names()
		if err != nil {
			return err
		}
		v := workflow.Victim{State: in.State, Uninterruptible: in.Fixed, Told: in.Told != "", InRow: n.InRow}
		switch v.Cancel() {
		case workflow.Supersede:
			in.By, in.Root, ended = by.ID, "", 1
			return c.to(workflow.Superseded, fmt.Sprintf("%s supersedes it", by.ID))
		case workflow.Stop:
			return c.tell(workflow.Superseded, by.ID, fmt.Sprintf("%s supersedes it", by.ID))
		}
		return nil
	})
	if err == nil && was == "" && in.Told != "" {
		p.tell(ctx, &in)
	}
	if err == nil {
		p.overtook += ended
	}
	return in, err
}

// tell asks a run to end in a state. From now on it cannot record anything else.
func (c *change) tell(end workflow.State, by, reason string) error {
	in := c.in()
	in.Told, in.By, in.Reason = string(end), by, reason
	in.Until = c.now + c.s.Times.Grace.Milliseconds()
	return c.event("task.told", event.Success, Told{end, by, reason, in.Until})
}

// tell tells the run itself. What is lost is repaired by the end of the grace.
func (s *Store) tell(ctx context.Context, in *Instance) {
	if s.Tell == nil {
		return
	}
	err := s.Tell(ctx, in.Prefix(), in.Reason)
	if err != nil {
		s.warn("a run was not told to end; it is ended after the grace", "instance", in.ID, "error", err)
	}
}

// force ends a run that was told to end and has not. What it does from now on is not recorded.
func (p *pass) force(ctx context.Context, id string) error {
	var e Execution
	in, err := p.change(ctx, id, p.guard(), func(c *change) error {
		in := c.in()
		e = Execution{}
		if in.Told == "" || in.State.Over() || in.Until > c.now {
			return nil
		}
		e = in.execution()
		return c.to(workflow.State(in.Told), in.Reason+"; it did not end by itself")
	})
	if err != nil || e.Exec == "" {
		return err
	}
	p.tell(ctx, &in)
	p.stopRun(ctx, e, in.Reason)
	return nil
}

// stopRun stops an execution whose instance has ended. One that goes on cannot record anything.
func (s *Store) stopRun(ctx context.Context, e Execution, reason string) {
	if s.Stop == nil {
		return
	}
	err := s.Stop(ctx, e, reason)
	if err != nil {
		s.warn("an execution was not stopped; what it records is refused", "execution", e.Name(), "error", err)
	}
}

// Cancel ends an instance by hand: at once if it has not started, else it is told to end.
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
		case in.Told != "":
			return nil
		case in.State.Started():
			told = true
			return c.tell(workflow.Cancelled, by.Actor, by.Reason)
		}
		visible, err := s.visible(ctx, in)
		if err != nil {
			return err
		}
		if !visible {
			return fault.New(fault.Conflict, "the revision %d is being planned; try again in a moment", in.Revision)
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

// visible reports whether the plan of an instance is complete.
func (s *Store) visible(ctx context.Context, in *Instance) (bool, error) {
	r, err := s.revisionRow(ctx, in.Archive, in.Revision)
	return r.Planned > 0, err
}

// clear cancels all instances of an epoch that have not ended, and returns how many ended and how
// many are left.
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

// eachTask calls f with COMMIT and with each task of an epoch.
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

// clearOne cancels an instance, because its archive is deleted or begins anew.
func (p *pass) clearOne(ctx context.Context, id string) (Instance, error) {
	told := false
	in, err := p.change(ctx, id, p.guard(), func(c *change) error {
		in := c.in()
		told = false
		reason := "its archive was deleted or begins anew"
		switch {
		case in.State.Over() || in.Told != "":
			return nil
		case in.State.Started():
			told = true
			return c.tell(workflow.Cancelled, manager, reason)
		}
		in.By = manager
		return c.to(workflow.Cancelled, reason)
	})
	if err == nil && told {
		p.tell(ctx, &in)
	}
	return in, err
}
