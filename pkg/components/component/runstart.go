package component

import (
	"context"
	"fmt"
	"time"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// Start starts a run of a component for a person. If all of its instances are running already, the
// next one is started after them, and one that is running is returned. A Conflict says why there is
// nothing to run. A NotFound means that there is no such component, an Unavailable that the
// execution could not be started: then the run exists, and is given up by the tick.
func (r *Runner) Start(ctx context.Context, component string, by By) (run string, err error) {
	c, err := r.component(ctx, component)
	if err != nil {
		return "", err
	}

	if c.Paused {
		return "", fault.New(fault.Conflict, "component %s is paused; resume it first", component)
	}

	run, err = r.start(ctx, c, by)
	if err != nil {
		return run, err
	}

	if run == "" {
		return "", r.idle(ctx, component)
	}
	return run, nil
}

// idle is the Conflict of a component that has nothing to do, or of which that is not known yet.
func (r *Runner) idle(ctx context.Context, component string) error {
	c, err := r.Store.Get(ctx, component)
	if err != nil {
		return err
	}

	if c.Backfill != nil {
		return fault.New(fault.Conflict, "component %s has nothing to do yet: its definition was changed, and %d of "+
			"%d parts of the list of items were looked at since; try again in a minute", component, c.Backfill.Shard,
			c.Backfill.Of)
	}
	return fault.New(fault.Conflict, "component %s has nothing to do: no item is ready. "+
		"archivist explain ITEM --component %s says which condition does not hold", component, component)
}

// Wake starts a run of a component if that has something to do. It is what Store.Wake is for. A
// paused or deleted component does nothing.
func (r *Runner) Wake(ctx context.Context, component string) error {
	c, err := r.component(ctx, component)
	if fault.Is(err, fault.NotFound) {
		return nil
	}

	if err != nil {
		return err
	}

	if c.Paused {
		return nil
	}
	_, err = r.start(ctx, c, bySystem)
	return err
}

// bySystem is who starts a run because an item is ready. Its runs wait after fruitless ones; those
// of people and of schedules do not.
var bySystem = By{Actor: "system", Reason: "there is something to do"}

// start starts a run, or notes that one is wanted. It returns "" if there is nothing to do, and
// otherwise the run: a new one, or one that is going and will be followed by another.
func (r *Runner) start(ctx context.Context, c *compiled, by By) (run string, err error) {
	err = r.Store.Table.Again(ctx, "component "+c.Name, func() error {
		run, err = r.tryStart(ctx, c, by)
		return err
	})
	return run, err
}

// tryStart makes one try of start. If all that there is to do can be done by the runs that are
// going, one more is wanted after them: an item may have become ready just behind their last look
// at the line.
func (r *Runner) tryStart(ctx context.Context, c *compiled, by By) (string, error) {
	slots, err := r.slots(ctx, c.Name)
	if err != nil {
		return "", err
	}

	free, going := choose(c, slots)
	work, err := r.hasWork(ctx, c, len(going))
	switch {
	case err != nil:
		return "", err
	case work && free != nil && by == bySystem && r.now() < free.Rest:
		return "", nil
	case work && free != nil:
		return r.hold(ctx, c, free, by)
	case len(going) > 0:
		return going[0].Run, r.want(ctx, going[0], true)
	}
	return "", r.want(ctx, free, false)
}

// slots reads the slots of a component that have been used: there are at most MaxInstances, and
// those of a definition that had more.
func (r *Runner) slots(ctx context.Context, component string) (slots []*slotRow, err error) {
	var rows []slotRow
	_, err = r.Store.Table.Page(ctx, table.Query{PK: runsPK, Prefix: "SLOT#" + component + "#"},
		&rows)
	if err != nil {
		return nil, err
	}

	for i := range rows {
		slots = append(slots, &rows[i])
	}
	return slots, nil
}

// choose finds a free slot among those that a component may use, preferably one from which a run is
// wanted, and those of runs that are going. free is nil if there is none.
func choose(c *compiled, slots []*slotRow) (free *slotRow, going []*slotRow) {
	known := map[int]*slotRow{}
	for _, s := range slots {
		known[s.Number] = s
		if s.Run != "" {
			going = append(going, s)
		}
	}

	for n := range c.Instances {
		s := known[n]
		if s == nil {
			s = newSlot(c.Name, n)
		}
		if s.Run == "" && (free == nil || s.Wanted) {
			free = s
		}
	}
	return free, going
}

// hasWork reports whether a component has more to do than those of its runs that are going can do
// at once. It reads no more of the line than it takes to know that.
func (r *Runner) hasWork(ctx context.Context, c *compiled, going int) (bool, error) {
	most := going*c.Concurrency + 1
	n := 0
	for _, q := range r.heads(c.Name, most) {
		var rows []placeRow
		if _, err := r.Store.Table.Page(ctx, q, &rows); err != nil {
			return false, err
		}
		n += len(rows)
		if n >= most {
			return true, nil
		}
	}
	return false, nil
}

// heads are the queries for what a component can do now: items that are ready, items whose run was
// lost, and items that had to wait. $ is the character after #, so the queries end with the items
// whose time is now.
func (r *Runner) heads(component string, most int) []table.Query {
	pk, now := linePK(component), r.now()
	upTo := func(class string) table.Query {
		return table.Query{
			PK:    pk,
			From:  class + "#",
			To:    fmt.Sprintf("%s#%013d$", class, now),
			Limit: most,
		}
	}
	return []table.Query{{PK: pk, Prefix: Ready + "#", Limit: most}, upTo(Running), upTo(Later)}
}

// want notes on a slot that a run is wanted, or that it is not; a nil slot is none. A Stale means
// that the slot has changed.
func (r *Runner) want(ctx context.Context, s *slotRow, wanted bool) error {
	if s == nil || s.Wanted == wanted {
		return nil
	}
	s.Wanted = wanted
	tx := r.Store.Table.Begin(r.Store.NewID())
	put(tx, s, s.Rev)
	return tx.Commit(ctx)
}

// hold gives a slot to a new run, and starts its execution. If that fails, or the process dies in
// between, the tick finds the run when its time is over. A Stale means that another has taken the
// slot.
func (r *Runner) hold(ctx context.Context, c *compiled, s *slotRow, by By) (string, error) {
	now := r.now()
	ref := RunRef{Component: c.Name, Slot: s.Number, Run: r.Store.NewID(), Exec: 1}
	s.Run, s.Exec, s.Due, s.Wanted = ref.Run, ref.Exec, now+startTime.Milliseconds(), false
	s.Fence++
	k := runKey(ref.Run)
	run := &runRow{
		Head: table.Head{
			PK:        k.PK,
			SK:        k.SK,
			ListPK:    runShelf(c.Name),
			ListSK:    ref.Run,
			ExpiresAt: after(now, keepRuns),
		},
		Component:  c.Name,
		Slot:       s.Number,
		State:      RunGoing,
		Definition: c.Version,
		Actor:      by.Actor,
		Reason:     by.Reason,
		Started:    now,
		Until:      now + int64(c.Timeout.Run)*1000,
		MaxItems:   c.MaxItems,
		Exec:       ref.Exec,
	}

	tx := r.Store.Table.Begin(r.Store.NewID())
	tx.Insert(run)
	put(tx, s, s.Rev)
	if err := tx.Commit(ctx); err != nil {
		return "", err
	}
	return ref.Run, r.execute(ctx, ref)
}

// execute starts an execution of a run, unless that was done before: its name is used once
// ("StartExecution" in the Step Functions API reference), so it can be repeated.
func (r *Runner) execute(ctx context.Context, ref RunRef) error {
	err := r.Executions.Start(ctx, ref.execution(), RunInput{Run: ref})
	if err == nil || fault.Is(err, fault.Conflict) {
		return nil
	}
	return fault.New(fault.Unavailable,
		"run %s of component %s: its execution could not be started; the run is given "+
			"up and another one started within %s: %w", ref.Run, ref.Component,
		startTime+time.Minute, err)
}
