package revision

import (
	"context"
	"fmt"
	"time"

	"archivist/pkg/definition"
	"archivist/pkg/fault"
	"archivist/pkg/runner"
	"archivist/pkg/workflow"
)

// Metrics of the revision queue, in numbers.
const (
	MetricResent     = "TasksResent"
	MetricLost       = "TasksLost"
	MetricUnreadable = "RevisionsUnreadable"
)

// startsKept is how often an execution that ended before it began is started again.
const startsKept = 5

// execution is the execution of the attempt that goes on.
func (in *Instance) execution() Execution { return Execution{in.ID, in.Attempt, in.Exec} }

// Prefix begins the keys of the attempt that goes on: what it logs and leaves. No two attempts have the same.
func (in *Instance) Prefix() string {
	return fmt.Sprintf("%s%s/%06d-%s/", runner.Prefix, in.ID, in.Attempt, in.Exec)
}

// start starts an instance that is ready, if it is its turn of its lock.
func (p *pass) start(ctx context.Context, id string) (started bool, err error) {
	var e Execution
	_, err = p.change(ctx, id, p.guard(), func(c *change) error {
		in := c.in()
		e = Execution{}
		if in.State != workflow.Ready || in.Parked {
			return nil
		}
		needless, err := c.needless()
		if err != nil || needless {
			return err
		}
		turn, err := c.turn()
		if err != nil || !turn {
			in.Parked = err == nil
			return err
		}
		err = c.dispatch()
		e = in.execution()
		return err
	})
	if err != nil || e.Exec == "" {
		return false, err
	}
	err = p.Start(ctx, e)
	if err != nil { // it is started again when it is due
		p.warn("an execution was not started; it is started again", "instance", id, "error", err)
	}
	return true, nil
}

// needless ends an instance that is not to start, because of a higher revision. It reports whether it did.
func (c *change) needless() (bool, error) {
	in := c.in()
	over, err := c.overtaken()
	if err != nil || over {
		return over, err
	}
	by, err := c.superseder()
	if err != nil || by == "" {
		return false, err
	}
	in.By, in.Root = by, ""
	return true, c.to(workflow.Superseded, fmt.Sprintf("%s supersedes it", by))
}

// turn reports whether it is the instance's turn of its lock. The change then depends on the lock: it fails if its
// line has changed meanwhile.
func (c *change) turn() (bool, error) {
	in := c.in()
	if in.Lock == "" {
		return true, nil
	}
	l, err := c.locked()
	if err != nil || l.Holder != "" {
		return err == nil && l.Holder == in.ID, err // it keeps the lock between its attempts, whoever comes meanwhile
	}
	head, err := c.s.head(c.ctx, in.Archive, in.Lock)
	return head == in.ID, err
}

// dispatch gives the instance an attempt.
func (c *change) dispatch() error {
	in, t := c.in(), c.s.Times
	if in.Lock != "" {
		c.holds = &in.ID
	}
	if in.Secret == "" {
		in.Secret = c.s.Secret()
	}
	in.Attempt++
	in.Exec = c.tx.ID()
	in.Until, in.Latest = c.now+t.Resend.Milliseconds(), c.now+t.Begin.Milliseconds()
	in.Base = in.Revision - 1
	err := c.starts()
	if err != nil {
		return err
	}
	if in.LatestOnly && c.name.Succeeded < in.Revision {
		in.Base = c.name.Succeeded
	}
	return c.to(workflow.Dispatched, "")
}

// starts keeps for the task, and for its former name, that the instance has started: from now on, no older one of which
// only the latest is wanted does. An instance of which each is wanted counts, too: the definition may have changed.
func (c *change) starts() error {
	in := c.in()
	n, err := c.names()
	if err != nil {
		return err
	}
	c.named = n.started(in) || c.named
	if in.Was == "" {
		return nil
	}
	former, err := c.s.nameRow(c.ctx, in.Archive, in.Was)
	if err == nil && former.started(in) {
		c.former = former
	}
	return err
}

// Begin is what an execution calls first. It returns the instance as it is now, and whether the execution is to go
// on: if not, another has taken its place, or the instance was told to end. A repeated call is answered again.
func (s *Store) Begin(ctx context.Context, e Execution) (in Instance, task *workflow.Task, proceed bool, err error) {
	r, err := s.instanceRow(ctx, e.Instance)
	if err != nil || r.Rev == 0 {
		return in, nil, false, err
	}
	def, err := s.Definition(ctx, archiveOf(r.Archive), r.Definition)
	if err != nil {
		return in, nil, false, err
	}
	task = def.Task(r.Task)
	in, err = s.change(ctx, e.Instance, guard{}, func(c *change) error {
		in := c.in()
		proceed = in.Exec == e.Exec && in.State.Started()
		if !proceed || in.State == workflow.Running && in.Told == "" {
			return nil
		}
		if in.Told != "" {
			proceed = false
			return c.to(workflow.State(in.Told), in.Reason)
		}
		span := task.Timeout + s.Times.Margin + runner.Margin
		if task.Image != "" {
			span += runner.Pulling + runner.Stopping
		}
		in.Until = c.now + span.Milliseconds()
		return c.to(workflow.Running, "")
	})
	return in, task, proceed, err
}

// End records the result of an attempt: once, and only if the execution is the one that may. It returns false if it
// may not: the result is late, and changes nothing.
func (s *Store) End(ctx context.Context, e Execution, res runner.Result) (in Instance, recorded bool, err error) {
	in, err = s.change(ctx, e.Instance, guard{}, func(c *change) error {
		in := c.in()
		recorded = in.Exec == e.Exec && in.State.Started()
		if !recorded {
			return nil
		}
		return c.end(tried(in.Attempt, res))
	})
	if fault.Is(err, fault.NotFound) {
		return in, false, nil
	}
	if err == nil && recorded {
		s.wake(ctx, archiveOf(in.Archive))
	}
	return in, recorded, err
}

// tried is what is kept of a result.
func tried(attempt int, res runner.Result) *Tried {
	t := &Tried{Attempt: attempt, End: res.End, Exit: res.Exit, Reason: definition.Clip(res.Reason, keptText),
		Kept: len(res.Outputs)}
	if !res.Started.IsZero() {
		t.Started, t.Ended = millis(res.Started), millis(res.Ended)
	}
	size := 0
	for _, o := range res.Outputs[:min(len(res.Outputs), outputsKept)] {
		size += sizeOf(o)
		if size > listKept {
			break
		}
		t.Outputs = append(t.Outputs, Output{o.Path, o.Size, o.SHA256})
	}
	return t
}

// end ends the attempt that goes on. One that was told to end has ended as it was told, whatever it has done: the
// completion came second.
func (c *change) end(t *Tried) error {
	in := c.in()
	in.Last = t
	if in.Told != "" {
		reason := in.Reason
		if t.End == runner.Succeeded {
			reason += "; it succeeded after that"
		}
		return c.to(workflow.State(in.Told), reason)
	}
	if t.End == runner.Succeeded {
		return c.to(workflow.Success, "")
	}
	reason := cause(t)
	def, err := c.s.Definition(c.ctx, archiveOf(in.Archive), in.Definition)
	if err != nil {
		return err
	}
	retries := def.Task(in.Task).Retries
	if in.Attempt >= retries.Attempts || in.State == workflow.Dispatched && t.End == runner.Broken {
		return c.to(workflow.Failure, reason)
	}
	in.Until, err = c.again(retries)
	if err != nil {
		return err
	}
	return c.to(workflow.Waiting, reason)
}

// again is when another attempt is made. An instance that is superseded then needs not wait for that.
func (c *change) again(r workflow.Retries) (int64, error) {
	by, err := c.superseder()
	if err != nil || by != "" {
		return c.now, err
	}
	return c.now + r.Wait(c.in().Attempt).Milliseconds(), nil
}

// cause is why an attempt did not succeed.
func cause(t *Tried) string {
	if t.Reason != "" {
		return t.Reason
	}
	switch t.End {
	case runner.Failed:
		return fmt.Sprintf("exit code %d", t.Exit)
	case runner.TimedOut:
		return "it took longer than its time-out"
	}
	return t.End
}

// due does what is to be done with an instance at a time that has come.
func (p *pass) due(ctx context.Context, id string) error {
	r, err := p.instanceRow(ctx, id)
	if err != nil || r.Until == 0 || r.Until > p.now() {
		return err
	}
	switch {
	case r.Told != "":
		return p.force(ctx, id)
	case r.State == workflow.Waiting:
		return p.retry(ctx, id)
	case r.State == workflow.Dispatched:
		return p.resend(ctx, &r.Instance)
	case r.State == workflow.Running:
		return p.lost(ctx, id)
	}
	return nil
}

// retry lets an instance start again whose attempt has failed.
func (p *pass) retry(ctx context.Context, id string) error {
	_, err := p.change(ctx, id, p.guard(), func(c *change) error {
		in := c.in()
		if in.State != workflow.Waiting || in.Until > c.now {
			return nil
		}
		over, err := c.overtaken()
		if err != nil || over {
			return err
		}
		return c.to(workflow.Ready, "")
	})
	return err
}

// resend starts an execution again that has not begun: the same one, which does nothing if it goes on, or another
// if it has ended or took too long.
func (p *pass) resend(ctx context.Context, in *Instance) error {
	p.count(MetricResent, 1)
	err := p.Start(ctx, in.execution())
	ended := fault.Is(err, fault.Conflict)
	if err != nil && !ended {
		p.warn("an execution was not started; it is started again", "instance", in.ID, "error", err)
	}
	exec := in.Exec
	_, err = p.change(ctx, in.ID, p.guard(), func(c *change) error {
		in := c.in()
		switch {
		case in.State != workflow.Dispatched || in.Exec != exec || in.Told != "":
			return nil
		case !ended && c.now < in.Latest:
			in.Until = c.now + c.s.Times.Resend.Milliseconds()
			return nil
		case in.Starts >= startsKept:
			return c.to(workflow.Failure, fmt.Sprintf("%d executions of it ended before they began", in.Starts+1))
		}
		in.Starts++
		in.Attempt-- // it was none
		return c.to(workflow.Ready, "its execution ended before it began")
	})
	return err
}

// lost ends an attempt whose execution has ended without a result.
func (p *pass) lost(ctx context.Context, id string) error {
	var e Execution
	in, err := p.change(ctx, id, p.guard(), func(c *change) error {
		in := c.in()
		e = Execution{}
		if in.State != workflow.Running || in.Until > c.now || in.Told != "" {
			return nil
		}
		e = in.execution()
		return c.end(&Tried{Attempt: in.Attempt, End: runner.Broken, Exit: -1,
			Reason: "its execution ended without a result"})
	})
	if err != nil || e.Exec == "" {
		return err
	}
	p.count(MetricLost, 1)
	lost := in
	lost.Attempt, lost.Exec, lost.Reason = e.Attempt, e.Exec, "its time is over"
	p.tell(ctx, &lost)
	p.stopRun(ctx, e, lost.Reason)
	return nil
}

// Job is what the runner of an attempt gets. checkout is the key of the files of the revision, deadline when the run
// has ended at the latest.
func (in *Instance) Job(task *workflow.Task, bucket, checkout string, deadline time.Time) runner.Job {
	return runner.Job{ID: fmt.Sprintf("%s/%d", in.ID, in.Attempt), Archive: archiveOf(in.Archive),
		Revision: in.Revision, Base: in.Base, Attempt: in.Attempt, Task: *task, Bucket: bucket, Prefix: in.Prefix(),
		Checkout: checkout, Token: in.token(), Deadline: deadline}
}
