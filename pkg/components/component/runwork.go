package component

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"archivist/pkg/events/event"
	"archivist/pkg/kernel/fault"
)

// errPassed: another run works on the item, so this one passes it.
var errPassed = errors.New("another run works on the item")

// WorkLane works on the items of a lane, one after the other, as long as there is time for one
// more. What is left is found again. An error means that the lane cannot go on. The first item is
// begun in any case, so that a lane always makes progress.
func (r *Runner) WorkLane(ctx context.Context, ref RunRef, lane Lane) error {
	began := r.now()
	for i, item := range lane.Items {
		c, err := r.component(ctx, ref.Component)
		if fault.Is(err, fault.NotFound) {
			return nil
		}

		if err != nil {
			return err
		}

		longest := (c.itemTime() + unwind + StoreTime).Milliseconds()
		if i > 0 && r.now()+longest > began+FunctionTime.Milliseconds() {
			return nil
		}

		err = r.Work(ctx, ref, lane.Number, item)
		if errors.Is(err, errOver) {
			return nil
		}

		if err != nil {
			return err
		}
	}
	return nil
}

// Work works on an item: it takes the claim, runs the runnable, and stores the result. An item that
// cannot be worked on, whatever the reason, is no error: it is noted, and the run goes on. An
// errOver means that the run has ended.
func (r *Runner) Work(ctx context.Context, ref RunRef, lane int, item string) error {
	t, err := r.Take(ctx, ref, lane, item)
	if err != nil || t == nil {
		return err
	}
	result, err := r.perform(ctx, t)
	return r.Record(ctx, ref, lane, *t, result, err)
}

// Take takes the claim on an item for a run, if the item is still ready by its newest events. nil
// without an error: it is not worked on, and that is counted. errOver means that the run has ended.
func (r *Runner) Take(ctx context.Context, ref RunRef, lane int, item string) (*Taken, error) {
	l, err := r.lane(ctx, ref, lane)
	if err != nil {
		return nil, err
	}

	if l.Closed {
		return nil, errOver
	}

	var t *Taken
	_, err = r.Store.change(ctx, item, func(c *change) (err error) {
		t, err = r.take(c, ref, lane)
		return err
	})

	switch {
	case errors.Is(err, errPassed):
		return nil, r.pass(ctx, ref, lane, "")
	case fault.Is(err, fault.Unavailable) || errors.Is(err, errOver):
		return nil, err
	case err != nil:
		return nil, r.broken(ctx, ref, lane, item, err)
	case t == nil: // it is not ready any more
		return nil, r.pass(ctx, ref, lane, "")
	case t.Work.Claim == "": // its failure is recorded
		return nil, nil
	}
	return t, nil
}

// take puts the claim into the change of an item. If the item is not ready, its place is corrected
// by the same change, and nil is returned. An item whose workers have ended maxTakes times without
// a result is a failure, which is recorded in place of a claim: then the Taken is empty. Otherwise
// it would be taken, and end a worker, for ever.
func (r *Runner) take(c *change, ref RunRef, lane int) (*Taken, error) {
	d, err := c.defs.of(ref.Component)
	if err != nil || d.Paused {
		return nil, errOver
	}

	it := c.item()
	before, held := it.Claims[d.Name]
	if before.Live(c.now) {
		return nil, errPassed
	}

	delete(it.Claims, d.Name)
	v := d.judge(it)
	if !v.Ready || v.NotBefore > c.now {
		return nil, nil
	}

	claim := Claim{Run: ref.Run, ID: c.s.NewID(), Since: c.now,
		Until:   c.now + d.claimTime().Milliseconds(),
		BasedOn: SeenVersions{Subject: it.Applied, Item: it.Version}, Cause: v.Cause, Takes: 1}

	if held {
		claim.Takes = before.Takes + 1
	}

	t := taken(d, it, ref, claim)
	if claim.Takes > maxTakes {
		why := fmt.Sprintf(
			"the worker ended %d times without a result: out of memory or time, or a defect",
			maxTakes)
		return &Taken{}, r.record(c, ref, lane, t, Result{Outcome: event.Failure, Reason: why})
	}

	if it.Claims == nil {
		it.Claims = map[string]Claim{}
	}

	it.Claims[d.Name] = claim
	// What the subject's events say is known up to this moment.
	if s, ok := subjectOf(it.ID); ok {
		c.tx.Require(event.Key(s, it.Applied+1), "attribute_not_exists(pk)")
	}
	return &t, nil
}

// claimTime is how long a claim lasts: it outlives the work, and the time to store its result, by
// which the work of a worker that is alive is always recorded.
func (d *Definition) claimTime() time.Duration {
	if d.Runnable.Task != nil {
		return d.itemTime() + FunctionTime // for the calls of the function before and after the task
	}
	return d.itemTime() + unwind + StoreTime
}

// answer is what a runnable returned.
type answer struct {
	Result
	err error
}

// perform runs the runnable. A runnable that fails, panics or takes too long is a failure of the
// item; one that cannot be called now is not. What a runnable does after its time is not waited
// for: its goroutine may still run, and its result is not recorded.
func (r *Runner) perform(ctx context.Context, t *Taken) (Result, error) {
	// Only the runnable and its time-out are used of the present definition; the rest is that of
	// the claim.
	d, err := r.component(ctx, t.Work.Component)
	if err != nil {
		return Result{}, fault.New(fault.Unavailable, "the component cannot be read: %w", err)
	}

	o := event.OriginOf(ctx)
	o.Cause = t.Work.Cause
	limit := time.Duration(t.Work.Deadline-r.now()) * time.Millisecond
	ctx, cancel := context.WithTimeout(event.From(ctx, o), limit)
	defer cancel()
	// There is room for the answer, so that a function that returns too late does not stay for
	// ever.
	answers := make(chan answer, 1)
	go func() {
		var a answer
		defer func() {
			if p := recover(); p != nil {
				r.Log.Error("a component's function panicked", "component", d.Name, "item",
					t.Work.Item, "panic", p,
					"stack", string(debug.Stack()))
				a = answer{err: fmt.Errorf("the function panicked: %v", p)}
			}
			answers <- a
		}()

		a.Result, a.err = r.call(ctx, d, t.Work)
	}()

	a, returned := wait(ctx, answers)
	switch {
	case !returned:
		return Result{},
			fmt.Errorf("timed out after %d s; the function did not return", d.Timeout.Item)
	case a.err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return Result{}, fmt.Errorf("timed out after %d s", d.Timeout.Item)
	}
	return a.Result, a.err
}

// wait waits for an answer until ctx ends, and a little longer: a function that notices the end may
// still say why.
func wait(ctx context.Context, answers <-chan answer) (a answer, returned bool) {
	select {
	case a = <-answers:
		return a, true
	case <-ctx.Done():
	}

	late := time.NewTimer(unwind)
	defer late.Stop()
	select {
	case a = <-answers:
		return a, true
	case <-late.C:
		return a, false
	}
}

// call calls the runnable of a component: a Lambda function, or one in this process. A function
// that may not be called, or that this release does not have, is an Unavailable: the item waits for
// a release or a permission. Tasks are started by the state machine.
func (r *Runner) call(ctx context.Context, d *compiled, w Work) (Result, error) {
	if d.Runnable.Lambda != "" {
		result, err := r.Call(ctx, d.Runnable.Lambda, w)
		if fault.Is(err, fault.Denied) {
			err = fault.New(fault.Unavailable, "%w", err)
		}
		return result, err
	}

	f, known := r.Functions[d.Runnable.Function]
	if !known {
		return Result{},
			fault.New(fault.Unavailable, "there is no function %q in this version of the system",
				d.Runnable.Function)
	}
	return f.Run(ctx, w)
}
