package revision

import (
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
// ready.
func (p *pass) cancel(ctx context.Context, id string) error {
	r, err := p.instanceRow(ctx, id)
	if err != nil || r.State != workflow.Awaiting {
		return err
	}
	left, err := p.victims(ctx, &r.Instance)
	if err != nil || left > 0 || p.done.More {
		return err
	}
	_, err = p.change(ctx, id, p.guard(), func(c *change) error {
		if c.in().State != workflow.Awaiting {
			return nil
		}
		late, err := c.late()
		if err == nil && late != 0 {
			return c.overtaken(late)
		}
		if err != nil {
			return err
		}
		return c.to(workflow.Ready, "")
	})
	return err
}

// victims supersedes all that an instance cancels, and returns how many have not ended.
func (p *pass) victims(ctx context.Context, by *Instance) (left int, err error) {
	for _, task := range by.Cancels {
		n, err := p.cancelTask(ctx, by, task)
		if err != nil {
			return left, err
		}
		left += n
	}
	for _, old := range by.Replaces {
		in, err := p.supersede(ctx, old, by)
		if err != nil && !fault.Is(err, fault.NotFound) {
			return left, err
		}
		if err == nil && !in.State.Over() {
			left++
		}
	}
	return left, nil
}

// cancelTask supersedes the instances of a task below a revision, and returns how many have not ended.
func (p *pass) cancelTask(ctx context.Context, by *Instance, task string) (left int, err error) {
	q := table.Query{PK: livePK(by.Archive, task), From: "0", To: before(by.Revision)}
	err = p.owners(ctx, q, func(r lineRow) (bool, error) {
		in, err := p.supersede(ctx, r.Owner, by)
		if err == nil && !in.State.Over() {
			left++
		}
		return !p.over(), err
	})
	return left, err
}

// supersede does to a victim what the rules say.
func (p *pass) supersede(ctx context.Context, id string, by *Instance) (Instance, error) {
	was := ""
	in, err := p.change(ctx, id, p.guard(), func(c *change) error {
		in := c.in()
		was = in.Told
		if in.Force && in.Run > 0 {
			return nil // a person wants just this one: it is waited for
		}
		n, err := c.names()
		if err != nil {
			return err
		}
		v := workflow.Victim{State: in.State, Uninterruptible: in.Fixed, Told: in.Told != "", InRow: n.InRow}
		switch v.Cancel() {
		case workflow.Supersede:
			in.By, in.Root = by.ID, ""
			return c.to(workflow.Superseded, fmt.Sprintf("%s supersedes it", by.ID))
		case workflow.Stop:
			return c.tell(workflow.Superseded, by.ID, fmt.Sprintf("%s supersedes it", by.ID))
		}
		return nil
	})
	if err == nil && was == "" && in.Told != "" {
		p.tell(ctx, &in)
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
	return p.stopRun(ctx, e, in.Reason)
}

// stopRun stops an execution whose instance has ended. One that goes on cannot record anything.
func (s *Store) stopRun(ctx context.Context, e Execution, reason string) error {
	if s.Stop == nil {
		return nil
	}
	err := s.Stop(ctx, e, reason)
	if err != nil {
		s.warn("an execution was not stopped; what it records is refused", "execution", e.Name(), "error", err)
	}
	return nil
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
			in, err := p.clearOne(ctx, r.Owner)
			switch {
			case err != nil:
			case in.State.Over():
				ended++
			default:
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
