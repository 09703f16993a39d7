package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"archivist/pkg/events/event"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/fault"
)

// choice is an action that an admin can draw. One with twice the weight is drawn twice as
// often.
type choice struct {
	name   ingest.ActionName
	target ingest.Target
	weight int
}

// jobWeights are the weights of actions on jobs, in states in which they are of use: those
// of ingest.BulkActions.
var jobWeights = map[ingest.ActionName]int{ingest.ActRequeue: 24, ingest.ActFail: 2, ingest.ActHold: 3,
	ingest.ActRelease: 8, ingest.ActDelete: 2, ingest.ActPrioritize: 1, ingest.ActCleanUp: 2}

// batchActions are the actions on batches by the states in which they are of use, with
// their weights.
var batchActions = map[ingest.BatchState]map[ingest.ActionName]int{
	ingest.BatchPending:    {ingest.ActHold: 3, ingest.ActCancel: 1},
	ingest.BatchProcessing: {ingest.ActHold: 3, ingest.ActCancel: 2, ingest.ActRelease: 2},
	ingest.BatchHeld:       {ingest.ActRelease: 12, ingest.ActDelete: 2, ingest.ActCancel: 1},
	ingest.BatchFailed:     {ingest.ActUpdateReport: 12, ingest.ActDelete: 2},
	ingest.BatchCompleted:  {ingest.ActCleanUp: 1},
}

// choices lists the actions that are of use now.
func (w *world) choices() (out []choice) {
	add := func(name ingest.ActionName, kind ingest.TargetKind, id string, weight int) {
		out = append(out, choice{name, ingest.Target{Kind: kind, ID: id}, weight})
	}
	for _, id := range w.check.sorted() {
		j := w.check.jobs[id]
		for _, name := range ingest.Actions[ingest.TargetJob] {
			switch {
			case name == ingest.ActRequeue && j.State == ingest.Failed: // far is rare
				far := slices.Index(ingest.Order, j.LastSuccessful) + 1
				add(name, ingest.TargetJob, id, (1+far)*jobWeights[name])
			case slices.Contains(ingest.BulkActions[name], j.State):
				add(name, ingest.TargetJob, id, jobWeights[name])
			}
		}
	}
	if w.s.plain {
		return slices.DeleteFunc(out, func(c choice) bool {
			return c.name != ingest.ActRequeue && c.name != ingest.ActFail && c.name != ingest.ActPrioritize
		})
	}
	for _, id := range w.check.sortedBatches() {
		weights := batchActions[w.check.batches[id].State]
		for _, name := range ingest.Actions[ingest.TargetBatch] {
			if weights[name] > 0 {
				add(name, ingest.TargetBatch, id, weights[name])
			}
		}
	}
	for i := range collections {
		name := fmt.Sprint("c", i)
		if w.check.stands("collection#" + name) {
			add(ingest.ActRelease, ingest.TargetCollection, name, 10)
		} else {
			add(ingest.ActHold, ingest.TargetCollection, name, 2)
		}
	}
	for _, kind := range []ingest.TargetKind{ingest.TargetQueue, ingest.TargetStorage} {
		if w.check.stands(string(kind)) {
			add(ingest.ActResume, kind, "", 20)
		} else {
			add(ingest.ActPause, kind, "", 2)
		}
	}
	return out
}

// any draws an action that need not be of use.
func (a *actor) any() choice {
	kinds := []ingest.TargetKind{ingest.TargetJob, ingest.TargetBatch, ingest.TargetCollection, ingest.TargetQueue,
		ingest.TargetStorage}
	kind := kinds[a.Rng.IntN(len(kinds))]
	names := ingest.Actions[kind]
	c := choice{name: names[a.Rng.IntN(len(names))], target: ingest.Target{Kind: kind}}
	ids := map[ingest.TargetKind][]string{ingest.TargetJob: append(a.w.check.sorted(), "none-00001"),
		ingest.TargetBatch:      append(a.w.check.sortedBatches(), "none"),
		ingest.TargetCollection: {"c0", "c1", "c2"}}[kind]
	if len(ids) > 0 {
		c.target.ID = ids[a.Rng.IntN(len(ids))]
	}
	return c
}

// useful draws an action that is of use now.
func (a *actor) useful() choice {
	choices := a.w.choices()
	if len(choices) == 0 {
		return a.any()
	}
	return draw1(a.Rng, choices)
}

// draw1 draws one of several by their weights.
func draw1(rng *rand.Rand, choices []choice) choice {
	sum := 0
	for _, c := range choices {
		sum += c.weight
	}
	n := rng.IntN(sum)
	for _, c := range choices {
		n -= c.weight
		if n < 0 {
			return c
		}
	}
	panic("unreachable")
}

// administrate submits, stops executions, and acts.
func (a *actor) administrate(ctx context.Context, submitted *int) {
	a.Begin(timing.Short)
	if *submitted < len(a.w.s.plans) {
		b := ingest.Batch{Collection: a.w.s.plans[*submitted][0].collection, Mode: "add", Note: fmt.Sprint(*submitted),
			StopAfter: a.w.s.stopAfter}
		a.w.s.identify(&b, *submitted)
		a.w.ahead[b.Note] = a.w.check.unread(b.Collection)
		*submitted++
		_, _ = a.q.Submit(ctx, b, fmt.Sprint("key", *submitted), []byte("body"), "sim")
		return
	}
	switch n := a.Rng.IntN(12); {
	case n < 2:
		a.stopOne(ctx)
	case n == 2 && len(a.w.asks) > 0: // the answer was lost, or the function is run again
		_ = a.perform(ctx, a.w.asks[a.Rng.IntN(len(a.w.asks))])
	case n < 5 && !a.w.s.plain:
		a.operate(ctx)
	case n == 5:
		_ = a.perform(ctx, a.ask(a.any()))
	default:
		_ = a.perform(ctx, a.ask(a.useful()))
	}
}

// stopOne stops the execution of a running job in the AWS console.
func (a *actor) stopOne(ctx context.Context) {
	var running []string
	for _, id := range a.w.check.sorted() {
		if j := a.w.check.jobs[id]; j.Running() {
			running = append(running, id)
		}
	}
	if len(running) == 0 {
		return
	}
	id := running[a.Rng.IntN(len(running))]
	exec := a.w.check.jobs[id].Exec
	a.w.stopped[queue.ExecutionName(id, exec)] = true
	_ = a.q.Stopped(ctx, id, exec)
}

// ask makes an action of what was drawn.
func (a *actor) ask(c choice) ingest.Action {
	one := func(n int) bool { return a.Rng.IntN(n) == 0 }
	act := ingest.Action{Name: c.name, Target: c.target, Reason: "the simulation", Actor: a.Name,
		Role: ingest.Administrator, Confirm: !one(4), DryRun: one(16)}
	if one(30) {
		act.Role = ingest.Viewer
	}
	if c.name == ingest.ActPrioritize {
		priority := a.Rng.IntN(100)
		act.Priority = &priority
	}
	if (c.name == ingest.ActHold || c.name == ingest.ActPause) && one(3) {
		act.Until = time.Now().Add(time.Duration(1+a.Rng.IntN(30)) * time.Minute).UnixMilli()
	}
	if one(2) {
		a.w.requests++
		act.Request = fmt.Sprint("request", a.w.requests)
		a.w.asks = append(a.w.asks, act)
	}
	return act
}

// perform does an action, as one invocation of a function, and checks what it answers.
func (a *actor) perform(ctx context.Context, act ingest.Action) error {
	a.acted, a.does = a.w.check.changes, act
	met, wrote := a.Met, a.wrote
	res, err := queue.Admin{Queue: a.q}.Act(ctx, act)
	a.does = ingest.Action{}
	a.w.Log("  (%s %s %s: %s%v)", a.Name, act.Name, act.Target, res.Summary, errorText(err))
	a.w.check.answered(a, act, res, err, a.Met == met && !a.Dead(), a.wrote-wrote)
	return err
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return " refused: " + err.Error()
}

// answered checks the answer to an action. sound is set if it met no fault; wrote is the
// number of its transactions.
func (c *checker) answered(a *actor, act ingest.Action, res ingest.ActionResult, err error, sound bool, wrote int) {
	what := fmt.Sprintf("%s %s", act.Name, act.Target.Kind)
	if err == nil && res.Changed {
		c.w.Met("done: " + what)
	}
	if wrote > 0 && (act.DryRun || act.Role < ingest.Operator) {
		c.fail("%s wrote in a dry run, or as a viewer", what)
	}
	if act.Role < ingest.Operator && err == nil {
		c.fail("a viewer did %s", what)
	}
	if !sound || err == nil || c.w.Throttles() || c.w.s.refuses == refusesRows {
		return
	}
	switch fault.Of(err) {
	case fault.Invalid, fault.Denied, fault.NotFound, fault.Conflict, fault.Held, fault.Unavailable:
	default:
		c.fail("%s of %s was refused without a kind: %v", what, act.Target.ID, err)
	}
}

// once checks that a request acts only once on a subject, however often it is repeated.
func (c *checker) once(e event.Row) {
	if c.w.acting() == nil {
		return
	}
	does := c.w.acting().does
	if e.SubjectType == event.Operation.String() || does.Request == "" || e.Actor != does.Actor {
		return
	}
	key := does.Request + " on " + e.SubjectType + " " + e.SubjectID
	if c.acts[key] {
		c.fail("%s acted twice", key)
	}
	c.acts[key] = true
}
