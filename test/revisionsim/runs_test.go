package revisionsim

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/revisions/revision"
	"archivist/pkg/revisions/runner"
)

// result is what an execution has to say at its end.
type result struct {
	revision.Execution
	runner.Result
}

// start starts an execution, if the adversary lets it.
func (a *actor) start(_ context.Context, e revision.Execution) error {
	return a.Do("start execution "+e.Name()+" "+e.Instance, func() error {
		w := a.w
		w.check.started(e)
		switch {
		case w.open[e.Name()]:
			w.Met("execution: it runs already")
		case w.known[e.Name()]:
			w.Met("execution: it has ended already")
			return fault.New(fault.Conflict, "sim: the execution %s has ended", e.Name())
		default:
			w.known[e.Name()], w.open[e.Name()] = true, true
			w.starts.Send(e)
		}
		return nil
	})
}

// stop stops an execution. What it does already goes on.
func (a *actor) stop(_ context.Context, e revision.Execution, _ string) error {
	return a.Do("stop execution "+e.Name(), func() error {
		delete(a.w.open, e.Name())
		return nil
	})
}

// tell tells a run to end. Some do not hear it.
func (a *actor) tell(_ context.Context, prefix, reason string) error {
	return a.Do("tell "+prefix, func() error {
		if a.w.Rng.IntN(4) == 0 {
			a.w.Met("cancel flag lost")
			return nil
		}
		a.w.told[prefix] = reason
		return nil
	})
}

// execute is a part of an execution of the state machine: it begins, works, and says what came of it.
func (a *actor) execute(ctx context.Context) {
	if a.Rng.IntN(2) == 0 {
		a.record(ctx)
	}
	if a.Rng.IntN(20) == 0 {
		a.kill()
	}
	e, ok := a.w.starts.Arrive(a.Rng)
	if !ok {
		return
	}
	if a.Rng.IntN(15) == 0 { // it ends before its first step
		a.w.Met("execution: broken before it began")
		a.w.results.Send(result{e, runner.Result{End: runner.Broken, Reason: "sim: it could not be prepared"}})
		return
	}
	in, ok := a.begins(ctx, e)
	if !ok {
		return
	}
	a.works(ctx, e, in)
}

// begins lets an execution begin. It is tried again, or is lost.
func (a *actor) begins(ctx context.Context, e revision.Execution) (revision.Instance, bool) {
	a.Begin(functionTime)
	in, _, proceed, err := a.store.Begin(ctx, e)
	a.w.Log("  (%s: %s begins %s: %t, %v)", a.Name, e.Name(), e.Instance, proceed, err)
	a.Until = time.Time{}
	switch {
	case err != nil && a.Rng.IntN(2) == 0:
		a.w.starts.Send(e)
	case err == nil && !proceed:
		a.w.Met("execution: it may not begin")
		delete(a.w.open, e.Name())
	}
	return in, err == nil && proceed
}

// works does what a task does: it takes its time, commits perhaps, and ends, perhaps because it was told so.
func (a *actor) works(ctx context.Context, e revision.Execution, in revision.Instance) {
	w := a.w
	if !w.Calm && a.Rng.IntN(2) == 0 {
		err := a.Sleep(time.Duration(a.Rng.Int64N(int64(5 * time.Minute))))
		if err != nil {
			return
		}
	}
	r := w.repos[archiveOf(in.Archive)]
	if a.Rng.IntN(100) < w.s.commits && r.byTask < 3 && !w.Calm {
		r.byTask++
		token := in.ID + ":" + in.Secret
		n := r.add(w, a.Rng, token)
		w.Met("execution: commits")
		h := hook{archive: archiveOf(in.Archive), Notice: revision.Notice{Revision: n}}
		if a.Rng.IntN(2) == 0 {
			h.Token, h.Transaction = token, r.commits[n-1].id
		}
		w.hooks.Send(h)
	}
	res := runner.Result{End: runner.Succeeded, Started: time.Now(), Ended: time.Now()}
	if a.Rng.IntN(100) < w.s.fails && !w.Calm {
		res.End, res.Exit = []string{runner.Failed, runner.Failed, runner.TimedOut, runner.Broken}[a.Rng.IntN(4)], 1
		res.Unstarted = res.End == runner.Broken
	}
	in.Attempt, in.Exec = e.Attempt, e.Exec
	if w.told[in.Prefix()] != "" {
		res.End = runner.Cancelled
		w.Met("execution: it was told, and ends")
	}
	w.results.Send(result{e, res})
	if w.Calm {
		a.record(ctx)
	}
}

// record records a result that has arrived.
func (a *actor) record(ctx context.Context) {
	r, ok := a.w.results.Arrive(a.Rng)
	if !ok {
		return
	}
	a.Begin(functionTime)
	a.ending = &r.Execution
	in, recorded, err := a.store.End(ctx, r.Execution, r.Result)
	a.ending, a.Until = nil, time.Time{}
	a.w.Log("  (%s: %s of %s ends %s: %t, %s, %v)", a.Name, r.Name(), r.Instance, r.End, recorded, in.State, err)
	switch {
	case err != nil && fault.Of(err) != fault.Unavailable && !a.Dead():
		a.w.check.fail("a result of %s is refused: %v", r.Instance, err)
	case err != nil && a.Rng.IntN(2) == 0:
		a.w.results.Send(r)
		return
	case err == nil && !recorded:
		a.w.Met("result: too late")
	case err == nil && in.StopRequested == "" && r.End == runner.Succeeded && in.State != "succeeded":
		a.w.Met("result: success after it was told to end")
	}
	delete(a.w.open, r.Name())
}

// kill lets an execution die that goes on.
func (a *actor) kill() {
	names := slices.Sorted(maps.Keys(a.w.open))
	if len(names) > 0 {
		a.w.Met("execution: dies")
		delete(a.w.open, names[a.Rng.IntN(len(names))])
	}
}

// archiveOf is the archive of a ref or of an id.
func archiveOf(ref string) string {
	name, _, _ := strings.Cut(ref, "/")
	name, _, _ = strings.Cut(name, "@")
	return name
}
