package revision

import (
	"context"
	"fmt"
	"time"

	"archivist/pkg/kernel/definition"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/revisions/runner"
	"archivist/pkg/revisions/workflow"
)

// Metrics of the revision queue, in numbers.
const (
	// Executions that were started again because they had not begun in time.
	MetricResent = "TasksResent"

	// Attempts whose execution ended without a result.
	MetricLost = "TasksLost"

	// Tries to read a revision or the head of an archive that failed.
	MetricUnreadable = "RevisionsUnreadable"
)

// startsKept is how often an execution is started again that ended before anything of the task began.
// It is a fault of the system then, not of the task, so it takes none of the task's attempts; but it
// must end. startsApart is the wait before the first; it doubles.
const (
	startsKept  = 5
	startsApart = 30 * time.Second
)

// start starts an instance that is ready, if it is its turn of its lock; else it is parked. It
// reports whether it has given it an attempt. The execution is started after the commit: if that
// fails, or is lost by a crash, resend starts the same one again.
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
		if err != nil {
			return err
		}

		if !turn {
			in.Parked = true
			return nil
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

// needless ends an instance that is not to start, because of a higher revision: one that has
// started (overtaken), or one that supersedes it and waits. It reports whether it did.
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

// turn reports whether it is the instance's turn of its lock. The change then depends on the lock:
// it fails if its line has changed meanwhile. Who has had the lock keeps it between its attempts,
// whoever comes meanwhile: instances of one lock run strictly in their order.
func (c *change) turn() (bool, error) {
	in := c.in()
	if in.Lock == "" {
		return true, nil
	}
	l, err := c.locked()
	if err != nil {
		return false, err
	}

	if l.Holder != "" {
		return l.Holder == in.ID, nil
	}

	head, err := c.s.head(c.ctx, in.Archive, in.Lock)
	return head == in.ID, err
}

// dispatch gives the instance an attempt. Its Exec is the id of the transaction, which is unique:
// so a change that is made again has another one, and what was started for a try that failed cannot
// record. The token's secret is made once, and used by all attempts.
func (c *change) dispatch() error {
	in, t := c.in(), c.s.Times
	if in.Lock != "" {
		c.holds = &in.ID
	}

	if in.Secret == "" {
		in.Secret = c.s.Secret()
		in.handEdges()
	}

	in.Attempt++
	in.Exec = c.tx.ID()
	// Until the execution begins, it is started again after Resend, and given up after Begin.
	in.Until, in.Latest = c.now+t.Resend.Milliseconds(), c.now+t.Begin.Milliseconds()
	in.Base = in.Revision - 1
	err := c.starts()
	if err != nil {
		return err
	}

	// starts has read what is known of the task.
	if in.LatestOnly && c.name.Succeeded < in.Revision {
		in.Base = c.name.Succeeded
	}
	return c.to(workflow.Dispatched, "")
}

// starts keeps for the task, and for its former name, that the instance has started: from now on,
// no older one of which only the latest is wanted does. An instance of which each is wanted counts,
// too: the definition may have changed.
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
	if err != nil {
		return err
	}

	if former.started(in) {
		c.former = former
	}
	return nil
}

// Begin is what an execution calls first, when all that its runner needs is there. It returns the
// instance as it is now, its task, and whether the execution is to go on: if not, another has taken
// its place, or the instance was told to end. A repeated call is answered again. An instance that
// there is not, since it went into the bucket, is nothing to go on with.
//
// From then on the attempt has a time (Until) by which it has ended, or is lost: the time-out, what
// a runner takes to begin and to end, and for a container what it takes to be placed and stopped.
func (s *Store) Begin(ctx context.Context,
	e Execution) (in Instance, task *workflow.Task, proceed bool, err error) {
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
		if !proceed || in.State == workflow.Running && in.StopRequested == "" {
			return nil
		}

		if in.StopRequested != "" {
			proceed = false
			return c.to(workflow.State(in.StopRequested), in.Reason)
		}

		// By then the attempt has ended in any case, or its execution is lost.
		span := task.Timeout + s.Times.Margin + runner.Margin
		if task.Image != "" {
			span += runner.Pulling + runner.Stopping
		}

		in.Until = c.now + span.Milliseconds()
		return c.to(workflow.Running, "")
	})
	return in, task, proceed, err
}

// End records the result of an attempt: once, and only if the execution is the one that may. It
// returns false if it may not: the result is late, and changes nothing. It may be repeated: the
// second call finds that the attempt has ended.
func (s *Store) End(ctx context.Context, e Execution,
	res runner.Result) (in Instance, recorded bool, err error) {
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

	if err != nil {
		return in, recorded, err
	}

	if recorded {
		s.wake(ctx, archiveOf(in.Archive))
	}
	return in, recorded, nil
}

// tried is what is kept of a result: texts that a task wrote are cut, and only the first outputs
// are named, so that the row and the event stay within their limits. All is in the Result in the
// bucket.
func tried(attempt int, res runner.Result) *Tried {
	t := &Tried{
		Attempt:     attempt,
		End:         res.End,
		Exit:        res.Exit,
		Reason:      definition.Clip(res.Reason, keptText),
		OutputCount: len(res.Outputs),

		Unstarted: res.Unstarted,
	}

	if t.OutputCount > 0 {
		t.List = runner.ListDigest(res.Outputs)
	}

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

// end ends the attempt that goes on. One that was told to end has ended as it was told, whatever it
// has done: the completion came second. Else a success ends the instance, and anything else is
// tried again as its task's retries say. An attempt that was broken before it had begun (its files
// cannot be read) is not: that would be so again. One of which nothing was begun, for no fault of the
// task, does not count as one of its attempts.
func (c *change) end(t *Tried) error {
	in := c.in()
	in.Last = t
	if in.StopRequested != "" {
		reason := in.Reason
		if t.End == runner.Succeeded {
			reason += "; it succeeded after that"
		}
		return c.to(workflow.State(in.StopRequested), reason)
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
	switch {
	case t.Unstarted:
		return c.unstarted(t)
	// Dispatched and broken: it could not begin, and will not.
	case in.Attempt >= retries.Attempts || in.State == workflow.Dispatched && t.End == runner.Broken:
		return c.to(workflow.Failure, reason)
	}

	in.Until, err = c.again(retries.Wait(in.Attempt))
	if err != nil {
		return err
	}
	return c.to(workflow.Waiting, reason)
}

// unstarted ends an attempt of which nothing was begun: it was none.
func (c *change) unstarted(t *Tried) (err error) {
	in := c.in()
	if in.Starts >= startsKept {
		return c.to(workflow.Failure,
			fmt.Sprintf("%d executions of it ended before anything was begun: %s", in.Starts+1, cause(t)))
	}

	in.Starts++
	in.Until, err = c.again(workflow.Retries{Backoff: startsApart}.Wait(in.Starts))
	if err != nil {
		return err
	}

	err = c.to(workflow.Waiting, cause(t)) // the event is about the attempt that it would have been
	in.Attempt--
	t.Attempt = in.Attempt
	return err
}

// again is when another attempt is made, after a wait. An instance that is superseded then needs not wait for
// that. The time is in milliseconds since 1970.
func (c *change) again(wait time.Duration) (int64, error) {
	by, err := c.superseder()
	if err != nil || by != "" {
		return c.now, err
	}
	return c.now + wait.Milliseconds(), nil
}

// cause is why an attempt did not succeed, for people: what the runner says, or what its end means.
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

// due does what is to be done with an instance at a time that has come (Until), by its state: it
// ends a run whose grace is over, lets another attempt be made, starts an execution again that has
// not begun, or ends an attempt of which nothing was heard. A row of a time that has changed
// meanwhile is left alone.
func (p *pass) due(ctx context.Context, id string) error {
	r, err := p.instanceRow(ctx, id)
	if err != nil || r.Until == 0 || r.Until > p.now() {
		return err
	}

	switch {
	case r.StopRequested != "":
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

// retry lets an instance start again whose attempt has failed, when the wait is over. It keeps its
// lock, and its place before those that are behind it.
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

// resend starts an execution again that has not begun: the same one, which does nothing if it goes
// on, or another if it has ended or took too long (Times.Begin). Another one is made by letting the
// instance be ready again: that is no attempt of the task. The old execution can still begin later;
// its Begin is answered with that it is to stop.
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
		case in.State != workflow.Dispatched || in.Exec != exec || in.StopRequested != "":
			return nil
		case !ended && c.now < in.Latest:
			in.Until = c.now + c.s.Times.Resend.Milliseconds()
			return nil
		case in.Starts >= startsKept:
			return c.to(workflow.Failure,
				fmt.Sprintf("%d executions of it ended before they began", in.Starts+1))
		}

		in.Starts++
		in.Attempt-- // it was none
		return c.to(workflow.Ready, "its execution ended before it began")
	})
	return err
}

// lost ends an attempt whose execution has ended without a result: its time is over, with all
// margins. It counts as one that is broken, and is tried again as the task's retries say. What may
// still run is told to end, and its execution is stopped; a result that comes later is not
// recorded.
func (p *pass) lost(ctx context.Context, id string) error {
	var e Execution
	in, err := p.change(ctx, id, p.guard(), func(c *change) error {
		in := c.in()
		e = Execution{}
		if in.State != workflow.Running || in.Until > c.now || in.StopRequested != "" {
			return nil
		}

		e = in.execution()
		return c.end(&Tried{
			Attempt: in.Attempt,
			End:     runner.Broken,
			Exit:    -1,
			Reason:  "its execution ended without a result",
		})
	})
	if err != nil || e.Exec == "" {
		return err
	}

	p.count(MetricLost, 1)
	// What is told and stopped is the attempt that was lost: the instance may be ready for another.
	lost := in
	lost.Attempt, lost.Exec, lost.Reason = e.Attempt, e.Exec, "its time is over"
	p.tell(ctx, &lost)
	p.stopRun(ctx, e, lost.Reason)
	return nil
}
