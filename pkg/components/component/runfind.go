package component

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

const (
	// mostFound bounds the items of a round. With ids of 400 bytes they are 40 KB: an execution's
	// data may have 256 KB.
	mostFound = 100
	// mostRounds bounds the rounds of an execution. It may have 25,000 events ("Step Functions
	// service quotas"). A lane has 9, and 22 of a task; four more for each call that is repeated.
	// So 40 lanes have less than 1,600 in a round.
	mostRounds = 15
	// mostEmpty bounds the rounds in a row in which nothing was done.
	mostEmpty = 3
	// mostBroken bounds the items of a run that cannot be read or saved.
	mostBroken = 50
)

// errOver: the run does not have its slot any more, or goes on in another execution.
var errOver = errors.New("the run is over")

// Find finds the next items of a run. It can be repeated: the round that the execution did not hear
// of is counted, and its items are found again. A run that is over is not an error.
func (r *Runner) Find(ctx context.Context, ref RunRef) (p Page, err error) {
	err = r.Store.Table.Again(ctx, "run "+ref.Run, func() error {
		p, err = r.find(ctx, ref)
		return err
	})
	if errors.Is(err, errOver) {
		return Page{Run: ref, Next: NextNone, Lanes: []Lane{}}, nil
	}
	return p, err
}

// held reads a run and its slot; errOver if the slot is another's, or free.
func (r *Runner) held(ctx context.Context, ref RunRef) (*slotRow, *runRow, error) {
	s, run := newSlot(ref.Component, ref.Slot), &runRow{}
	if err := optional(r.Store.Table.Get(ctx, s.Key(), s)); err != nil {
		return nil, nil, err
	}

	if s.Rev == 0 || s.Run != ref.Run {
		return nil, nil, errOver
	}

	err := r.Store.Table.Get(ctx, runKey(ref.Run), run)
	if fault.Is(err, fault.NotFound) {
		return nil, nil, errOver
	}

	if err != nil {
		return nil, nil, err
	}
	return s, run, nil
}

// find makes one try of Find. A Stale means that the run or its slot was changed by another.
func (r *Runner) find(ctx context.Context, ref RunRef) (Page, error) {
	s, run, err := r.held(ctx, ref)
	if err != nil {
		return Page{}, err
	}

	end := Page{Run: ref, Next: NextEnd, Lanes: []Lane{}}
	switch {
	case s.Exec > ref.Exec: // it may have died before it started its successor
		ref.Exec = s.Exec
		return Page{}, cmp.Or(r.execute(ctx, ref), errOver)
	case run.Rounds >= mostRounds:
		return Page{}, r.goOn(ctx, ref, s, run)
	}

	c, err := r.component(ctx, ref.Component)
	if fault.Is(err, fault.NotFound) {
		return end, nil
	}

	if err != nil {
		return Page{}, err
	}

	lanes, err := r.lanes(ctx, ref.Run)
	if err != nil {
		return Page{}, err
	}

	if r.over(c, run, sum(lanes)) != "" {
		return end, nil
	}

	items, err := r.next(ctx, c, s, run, sum(lanes))
	if err != nil || len(items) == 0 {
		return end, err
	}

	p := Page{Run: ref, Next: NextWork, Lanes: deal(items, c.Concurrency)}
	if c.Runnable.Task != nil {
		p.Next, p.Seconds = NextTask, c.Timeout.Item
		p.Task = &PageTask{Task: *c.Runnable.Task,
			Groups: append([]string{}, c.Runnable.Task.Groups...)}
	}
	return p, r.round(ctx, c, s, run, len(p.Lanes), sum(lanes).taken())
}

// over says why a run ends although there is more to do; "" if it does not. The text is shown with
// the run.
func (r *Runner) over(c *compiled, run *runRow, done totals) string {
	switch {
	case c.Paused:
		return "the component was paused"
	case r.now() >= run.Until:
		return fmt.Sprintf("it was ended after %d s (timeout.runSeconds)",
			(run.Until-run.Started)/1000)
	case done.taken() >= int64(run.MaxItems):
		return fmt.Sprintf("it has worked on %d items (maxItems)", done.taken())
	case len(done.broken) >= mostBroken:
		return fmt.Sprintf("%d items cannot be read or saved", len(done.broken))
	case run.Empty >= mostEmpty && done.taken() == run.Seen:
		return fmt.Sprintf("nothing was done in %d rounds", run.Empty)
	}
	return ""
}

// page is how many items a round has. All lanes together can be done within the time of a function,
// even if each item takes as long as it may; of a task each lane has one.
func (c *compiled) page(run *runRow, done totals) int {
	each := max(1, int(laneTime.Seconds())/c.Timeout.Item)
	if c.Runnable.Task != nil {
		each = 1
	}
	return min(mostFound, c.Concurrency*each, run.MaxItems-int(done.taken()))
}

// next lists the items of a round: those that are ready, in their order. Of those whose run was
// lost, and of those that had to wait, there are some in each round, or if a round has few items,
// in every fourth; and more if there is room. So no item starves, and none that answers "not yet"
// comes before other work each time.
func (r *Runner) next(ctx context.Context, c *compiled, s *slotRow, run *runRow,
	done totals) ([]string, error) {
	var found [3][]string
	most := c.page(run, done)
	for i, q := range r.heads(c.Name, most*c.Instances+len(done.broken)) {
		rows, err := r.head(ctx, c, q, run.Rounds > 0 && done.taken() == run.Seen)
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			if !slices.Contains(done.broken, row.Item) {
				found[i] = append(found[i], row.Item)
			}
		}
		found[i] = c.own(found[i], s.Number)
	}

	part := most / 4
	if part == 0 && (s.Fence+int64(run.Rounds))%4 == 0 { // a run can be of one round
		part = 1
	}

	// Room that one of the three does not need goes to the others; ready items come first.
	ready, lost, later := found[0], found[1], found[2]
	room := most - min(part, len(lost)) - min(part, len(later))
	items := slices.Concat(first(ready, max(0, room)), first(lost, part), first(later, part))
	items = slices.Concat(items, rest(lost, part), rest(later, part))
	return first(items, most), nil
}

// head reads the head of a part of a line. After a round in which nothing was done (sift), it
// removes rows that are not where their items are: else these would be found again and again.
func (r *Runner) head(ctx context.Context, c *compiled, q table.Query,
	sift bool) (rows []placeRow, err error) {
	_, err = r.Store.Table.Page(ctx, q, &rows)
	if err != nil || !sift || len(rows) == 0 {
		return rows, err
	}

	var out Reconciled
	err = r.Store.sift(ctx, c, rows, &out)
	r.Store.repaired(&out)
	for _, f := range out.Findings {
		r.Store.log("a line of components was repaired", f)
	}

	if err != nil || out.Foreign == 0 {
		return rows, err
	}

	rows = nil
	_, err = r.Store.Table.Page(ctx, q, &rows)
	return rows, err
}

// round writes that a round begins, and when the run is taken for lost if no other follows. The
// rows of lanes are made here, so that a worker finds its lane, or knows that the run is over.
func (r *Runner) round(ctx context.Context, c *compiled, s *slotRow, run *runRow, lanes int,
	done int64) error {
	now := r.now()
	longest := FunctionTime
	if c.Runnable.Task != nil {
		longest += c.itemTime() + StoreTime
	}

	s.Due = now + (longest + startTime).Milliseconds()
	if done == run.Seen {
		run.Empty++
	} else {
		run.Empty = 1 // the one that begins
	}

	run.Seen = done
	run.Rounds++
	tx := r.Store.Table.Begin(r.Store.NewID())
	tx.Save(s)
	for ; run.Lanes < lanes; run.Lanes++ {
		k := laneKey(s.Run, run.Lanes)
		tx.Insert(&laneRow{Head: table.Head{PK: k.PK, SK: k.SK, ExpiresAt: after(now, keepRuns)}})
	}

	tx.Save(run)
	return tx.Commit(ctx)
}

// goOn goes on with a run in another execution. It returns an error in any case, errOver if that is
// started: this execution ends then.
func (r *Runner) goOn(ctx context.Context, ref RunRef, s *slotRow, run *runRow) error {
	ref.Exec++
	s.Exec, s.Due = ref.Exec, r.now()+startTime.Milliseconds()
	run.Exec, run.Rounds = ref.Exec, 0
	tx := r.Store.Table.Begin(r.Store.NewID())
	tx.Save(s)
	tx.Save(run)
	if err := tx.Commit(ctx); err != nil {
		return err
	}
	return cmp.Or(r.execute(ctx, ref), errOver)
}

// lanes reads the lanes of a run: at most MaxConcurrency.
func (r *Runner) lanes(ctx context.Context, run string) (lanes []laneRow, err error) {
	_, err = r.Store.Table.Page(ctx, table.Query{PK: runKey(run).PK, Prefix: "LANE#"}, &lanes)
	return lanes, err
}
