package component

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"archivist/pkg/kernel/definition"
	"archivist/pkg/kernel/passes"
	"archivist/pkg/kernel/table"
)

// timeRow is when a component runs next by its schedule.
type timeRow struct {
	table.Head

	// Schedule is the text with its time zone; another one begins anew, from now on. Next is in
	// milliseconds since 1970.
	Schedule string `dynamo:"schedule_text"`
	Next     int64  `dynamo:"next_ms"`
}

func timeKey(component string) table.Key { return table.Key{PK: runsPK, SK: "TIME#" + component} }

// Tick does what is due, and is called every minute: it gives up runs that were lost, starts what
// is due by a schedule or wanted, and what has an item ready and was not woken. Then it goes on
// with the back-fill and the reconciliation. It ends at until; the next call does the rest. What
// fails for one component does not stop the others: their errors are joined. What another was
// faster with is no error.
func (r *Runner) Tick(ctx context.Context, until time.Time) error {
	rows, err := r.allSlots(ctx)
	if err != nil {
		return err
	}

	defs, err := r.Store.load(ctx)
	if err != nil {
		return err
	}

	var errs []error
	for _, s := range rows {
		if s.Run != "" && s.Due <= r.now() && r.Store.Now().Before(until) {
			errs = append(errs, lostRace(r.repair(ctx, s)))
		}
	}

	byName := map[string]*compiled{}
	for i := range defs.all {
		if c := &defs.all[i]; !c.Paused {
			byName[c.Name] = c
		}
	}

	turns := passes.Turns{Table: r.Store.Table, NewID: r.Store.NewID, Now: r.Store.Now}
	ticked := turns.Each(ctx, "components", slices.Collect(maps.Keys(byName)), until, func(name string) error {
		return lostRace(r.tick(ctx, byName[name], rows))
	})
	errs = append(errs, ticked, r.Store.Keep(ctx, until))
	return errors.Join(errs...)
}

// allSlots reads the slots of all components.
func (r *Runner) allSlots(ctx context.Context) (slots []*slotRow, err error) {
	q := table.Query{PK: runsPK, Prefix: "SLOT#"}
	for {
		var rows []slotRow
		if q.Cursor, err = r.Store.Table.Page(ctx, q, &rows); err != nil {
			return nil, err
		}
		for i := range rows {
			slots = append(slots, &rows[i])
		}
		if q.Cursor == "" {
			return slots, nil
		}
	}
}

// tick starts a run of a component if one is due, wanted, or owed to an item. Of the reasons, a
// schedule's is the one that the run is shown with.
func (r *Runner) tick(ctx context.Context, c *compiled, all []*slotRow) error {
	by := By{}
	if c.Wake {
		by = bySystem
	}

	for _, s := range all {
		if s.Component == c.Name && s.Run == "" && s.Wanted {
			by = bySystem
		}
	}

	if c.Schedule != "" {
		due, err := r.due(ctx, c)
		if err != nil {
			return err
		}
		if due {
			by = By{Actor: "schedule", Reason: c.Schedule}
		}
	}

	if by.Actor == "" {
		return nil
	}

	_, err := r.start(ctx, c, by)
	return err
}

// due reports whether the schedule of a component says that it runs now. In the transaction that
// moves the time on, a run is wanted, so it is not lost if this process dies. Times that were
// missed are one.
func (r *Runner) due(ctx context.Context, c *compiled) (bool, error) {
	k, now := timeKey(c.Name), r.Store.Now()
	row := &timeRow{Head: table.Head{PK: k.PK, SK: k.SK}}
	if err := optional(r.Store.Table.Get(ctx, k, row)); err != nil {
		return false, err
	}

	schedule := strings.TrimSpace(c.Schedule + " " + c.TimeZone)
	// A schedule that is new, or was changed, is not due at once: its first time is the next one
	// from now on.
	due := row.Schedule == schedule && row.Next <= millis(now)
	if row.Schedule == schedule && !due {
		return false, nil
	}

	next, err := definition.NextTime(c.Schedule, c.TimeZone, now)
	if err != nil {
		return false, fmt.Errorf("component %s: %w", c.Name, err)
	}

	row.Schedule, row.Next = schedule, millis(next)
	tx := r.Store.Table.Begin(r.Store.NewID())
	put(tx, row, row.Rev)
	if due {
		if err := r.wantFirst(ctx, tx, c.Name); err != nil {
			return false, err
		}
	}
	return due, tx.Commit(ctx)
}

// wantFirst puts into tx that a run of a component is wanted.
func (r *Runner) wantFirst(ctx context.Context, tx *table.Tx, component string) error {
	s := newSlot(component, 0)
	if err := optional(r.Store.Table.Get(ctx, s.Key(), s)); err != nil {
		return err
	}
	s.Wanted = true
	put(tx, s, s.Rev)
	return nil
}
