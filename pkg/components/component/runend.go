package component

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// End ends a run and gives its slot back. If another run is wanted, or there is more to do for a
// component that runs as soon as an item is ready, the next one is started. It can be repeated: a
// run that has ended stays as it is, and only its successor may be started. An execution that
// another has followed does nothing.
func (r *Runner) End(ctx context.Context, ref RunRef) error {
	c, err := r.component(ctx, ref.Component)
	if optional(err) != nil {
		return err
	}

	slot, run, err := r.held(ctx, ref)
	switch {
	case errors.Is(err, errOver): // ended before; whether it started its successor is not known
		slot = newSlot(ref.Component, ref.Slot)
		if err := r.Store.Table.Get(ctx, slot.Key(), slot); err != nil || slot.Run != "" {
			return optional(err)
		}
	case err != nil:
		return err
	case slot.Exec > ref.Exec:
		return nil
	default:
		why := ""
		if c == nil {
			why = "the component was deleted"
		} else {
			lanes, err := r.lanes(ctx, ref.Run)
			if err != nil {
				return err
			}
			why = r.over(c, run, sum(lanes))
		}
		if err := r.close(ctx, slot, run, RunEnded, why, By{}); err != nil {
			return err
		}
	}
	return r.successor(ctx, c, slot)
}

// successor starts the next run of a component whose slot is free, if one is wanted, or if the
// component runs as soon as an item is ready.
func (r *Runner) successor(ctx context.Context, c *compiled, s *slotRow) error {
	if c == nil || c.Paused || !s.Wanted && !c.Wake {
		return nil
	}
	_, err := r.start(ctx, c, bySystem)
	return err
}

// close ends a run: its slot is free, and its lanes are closed, so that no worker stores a result
// any more. All of it is one transaction: there is no moment in which another run has the slot and
// these workers can still store. A run that the system gives up is wanted again. A Stale means that
// the slot or the run has changed; if only a lane has, it is repeated.
func (r *Runner) close(ctx context.Context, s *slotRow, run *runRow, state RunState, why string,
	by By) error {
	for range changeTries {
		lanes, err := r.lanes(ctx, s.Run)
		if err != nil {
			return err
		}

		// The slot that was read is kept, for another try.
		free := *s
		free.free(r.now(), sum(lanes).RunCounts)
		free.Wanted = s.Wanted || state == RunInterrupted && by.Actor == ""
		if by.Actor != "" { // that it could do nothing was a person's will
			free.Fruitless, free.Rest = s.Fruitless, s.Rest
		}
		run.State, run.Why, run.Ended = state, why, r.now()
		if by.Actor != "" {
			run.Why = fmt.Sprintf("%s: %s", by.Actor, by.Reason)
		}

		tx := r.Store.Table.Begin(r.Store.NewID())
		tx.Save(&free)
		tx.Save(run)
		for i := range lanes {
			lanes[i].Closed = true
			tx.Save(&lanes[i])
		}

		err = tx.Commit(ctx)
		if err == nil {
			*s = free
			return nil
		}

		// A worker may have stored a result meanwhile: then its lane is another.
		if !laneChanged(err) {
			return err
		}
	}
	return fault.New(fault.Unavailable,
		"the lanes of run %s keep changing; try again in a moment", s.Run)
}

// laneChanged reports whether a commit was refused only because lanes were changed.
func laneChanged(err error) bool {
	var ce *table.ConditionError
	return errors.As(err, &ce) && !slices.ContainsFunc(ce.Keys,
		func(k table.Key) bool { return !strings.HasPrefix(k.SK, "LANE#") })
}

// repair gives up a run whose execution was lost. Its claims end by themselves; then their items
// are found by the next run.
func (r *Runner) repair(ctx context.Context, s *slotRow) error {
	run := &runRow{}
	if err := r.Store.Table.Get(ctx, runKey(s.Run), run); err != nil {
		return err
	}

	ref := RunRef{Component: s.Component, Slot: s.Number, Run: s.Run, Exec: s.Exec}
	err := r.close(ctx, s, run, RunInterrupted,
		"its execution was lost, or it did not go on in time", By{})
	if err != nil {
		return err
	}

	r.Log.Warn("a run was lost", "component", ref.Component, "run", ref.Run, "exec", ref.Exec)
	r.metric(MetricRepairs, 1)
	return r.Executions.Stop(ctx, ref.execution(), "the run was given up")
}

// Interrupt ends the runs of a component by hand, and returns them. What their workers still do is
// not stored; their claims on items end by themselves, or are released. A Conflict means that no
// run is going. What was interrupted before an error is returned with it. An Invalid means that
// there is no reason.
func (r *Runner) Interrupt(ctx context.Context, component string,
	by By) (runs []string, err error) {
	if by.Actor == "" || strings.TrimSpace(by.Reason) == "" {
		return nil, fault.New(fault.Invalid,
			"reason: none is given; say why the run is interrupted")
	}

	slots, err := r.slots(ctx, component)
	if err != nil {
		return nil, err
	}

	for _, s := range slots {
		if s.Run == "" {
			continue
		}

		run := &runRow{}
		if err := r.Store.Table.Get(ctx, runKey(s.Run), run); err != nil {
			return runs, err
		}

		ref := RunRef{Run: s.Run, Exec: s.Exec}
		if err := r.close(ctx, s, run, RunInterrupted, "", by); err != nil {
			return runs, err
		}

		runs = append(runs, ref.Run)
		// It ends by itself at its next step, if this fails.
		if err := r.Executions.Stop(ctx, ref.execution(), "interrupted: "+by.Reason); err != nil {
			r.Log.Warn("an execution could not be stopped", "execution", ref.execution(), "error", err)
		}
	}

	if len(runs) == 0 {
		return nil, fault.New(fault.Conflict, "component %s is not running", component)
	}
	return runs, nil
}

// RunStatus shows a run of a component and a page of its items, the newest first. The items of a
// run are kept for 30 days, and the run for a year. cursor is that of the page before, "" at the
// beginning; limit 0 is 100. A NotFound means that the component has no such run.
func (r *Runner) RunStatus(ctx context.Context, component, run, cursor string,
	limit int) (Run, string, error) {
	row := &runRow{}
	err := optional(r.Store.Table.Get(ctx, runKey(run), row))
	if err != nil {
		return Run{}, "", err
	}

	if row.Rev == 0 || row.Component != component {
		return Run{}, "", fault.New(fault.NotFound, "component %s has no run %q", component, run)
	}

	out, err := r.show(ctx, row)
	if err != nil {
		return out, "", err
	}

	var items []runItem
	next, err := r.Store.Table.Page(ctx, table.Query{
		PK:     runKey(run).PK,
		Prefix: "ITEM#",
		Desc:   true,
		Cursor: cursor,
		Limit:  cmp.Or(limit, 100),
	}, &items)
	if err != nil {
		return out, next, err
	}

	for _, i := range items {
		out.Items = append(out.Items, RunItem{
			Item:    i.Item,
			State:   i.State,
			Reason:  i.Reason,
			Event:   i.Event,
			Started: i.Started,
			Ended:   i.Ended,
		})
	}
	return out, next, nil
}

// show is a run with what was done in its lanes so far.
func (r *Runner) show(ctx context.Context, row *runRow) (Run, error) {
	lanes, err := r.lanes(ctx, strings.TrimPrefix(row.PK, "RUN#"))
	t := sum(lanes)
	return Run{
		ID:         strings.TrimPrefix(row.PK, "RUN#"),
		Component:  row.Component,
		Definition: row.Definition,
		Slot:       row.Slot,
		State:      row.State,
		Why:        row.Why,
		Actor:      row.Actor,
		Reason:     row.Reason,
		Started:    row.Started,
		Ended:      row.Ended,
		Until:      row.Until,
		MaxItems:   row.MaxItems,
		Executions: row.Exec,
		Counts:     t.RunCounts,
		Broken:     t.broken,
	}, err
}

// Runs lists the runs of a component, the newest first, without their items. The index lags: one
// that has just begun may be missing. limit 0 is 20.
func (r *Runner) Runs(ctx context.Context, component, cursor string,
	limit int) (runs []Run, next string, err error) {
	var rows []runRow
	next, err = r.Store.Table.Page(ctx, table.Query{
		Index:  "list",
		PK:     runShelf(component),
		Desc:   true,
		Cursor: cursor,
		Limit:  cmp.Or(limit, 20),
	}, &rows)
	if err != nil {
		return nil, next, err
	}

	for i := range rows {
		// The index has only the keys.
		if err := r.Store.Table.Get(ctx, rows[i].Key(), &rows[i]); err != nil {
			return nil, "", err
		}
		run, err := r.show(ctx, &rows[i])
		if err != nil {
			return nil, "", err
		}
		runs = append(runs, run)
	}
	return runs, next, nil
}
