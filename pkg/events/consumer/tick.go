package consumer

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"archivist/pkg/events/envelope"
	"archivist/pkg/kernel/passes"
)

// Tick does what is due, and is called every minute: it wakes scheduled consumers, cursors whose
// wake-up was lost or whose run died, those that are behind and those with something due; then it
// finishes resets and deletions that were interrupted; and it puts the metrics, and keeps the numbers
// that Counted shows. It ends at until;
// the next call does the rest. What fails for one consumer does not stop the others: their errors
// are joined. Consumers and replays take turns: a minute goes on where the one before stopped.
func (r *Runtime) Tick(ctx context.Context, until time.Time) error {
	rows, err := r.Store.rows(ctx)
	if err != nil {
		return err
	}

	partitions, err := r.Store.Log.Partitions(ctx)
	if err != nil {
		return err
	}

	byName := map[string]*row{}
	for i := range rows {
		byName[rows[i].Name] = &rows[i]
	}

	var all totals
	var seen sighted
	names := slices.Collect(maps.Keys(byName))
	ticked := r.turns().Each(ctx, "consumers", names, until, func(name string) error {
		if byName[name].State != active {
			return nil
		}
		return r.tick(ctx, byName[name], partitions, &seen)
	})
	measured := r.measureAll(ctx, rows, partitions, &seen, until, &all)

	advanced := r.advanceReplays(ctx, until)
	finished := r.turns().Each(ctx, "consumer-changes", names, until, func(name string) error {
		return r.finishChange(ctx, byName[name], partitions, until)
	})
	r.metric(MetricLag, float64(all.lag))
	r.metric(MetricParked, float64(all.parked))
	r.metric(MetricStopped, float64(all.stopped))
	return errors.Join(ticked, measured, advanced, finished)
}

// turns are those of the loops of a tick.
func (r *Runtime) turns() passes.Turns {
	return passes.Turns{Table: r.Store.Table, NewID: r.Store.NewID, Now: r.now}
}

// totals are the metrics of all consumers: the longest lag in seconds, and counts. One value for
// all costs one metric, however many consumers there are.
type totals struct{ lag, parked, stopped int64 }

// tick does what is due of one consumer. A paused one is only looked at. The time of a schedule that
// comes during a reset or rebuild is taken: what it wakes cannot run, and is woken when it can.
func (r *Runtime) tick(ctx context.Context, row *row, partitions []envelope.Partition,
	seen *sighted) error {
	c, err := row.consumer()
	if err != nil {
		return err
	}

	at, err := r.Store.places(ctx, c.Name)
	if err != nil {
		return err
	}

	seen.list, seen.at = append(seen.list, c), append(seen.at, at)
	var errs []error
	if c.runs() {
		errs = append(errs, r.wakeDue(ctx, c, partitions, at, idleWait))
	}

	if !c.Paused && c.Mode == Scheduled {
		errs = append(errs, r.fire(ctx, c, partitions, at))
	}
	return errors.Join(errs...)
}

// finishChange finishes a deletion or a reset that was interrupted. It comes last: it can take long, and nobody else
// should wait for it. What it does not finish the next call goes on with.
func (r *Runtime) finishChange(ctx context.Context, row *row, partitions []envelope.Partition, until time.Time) error {
	switch {
	case row.State == deleting:
		return r.Store.finishDelete(ctx, row.Name)
	case row.State == active && len(row.Resets) > 0:
		return r.finishResets(ctx, row.Name, partitions, until)
	}
	return nil
}

// finishResets moves the cursors of a consumer, and wakes it if that is done in time.
func (r *Runtime) finishResets(ctx context.Context, name string, partitions []envelope.Partition,
	until time.Time) error {
	err := r.Store.advanceResets(ctx, name, until)
	if errors.Is(err, errUnfinished) {
		return nil
	}

	if err != nil {
		return err
	}

	c, err := r.Store.runnable(ctx, name)
	if err != nil || c == nil {
		return err
	}

	at, err := r.Store.places(ctx, name)
	if err != nil {
		return err
	}
	return r.wakeDue(ctx, *c, partitions, at, idleWait)
}

// measureAll puts the numbers of the consumers that were looked at into the metrics, and keeps them
// for people. Events are read once for all. Where that fails, each consumer is measured by itself.
func (r *Runtime) measureAll(ctx context.Context, rows []row, partitions []envelope.Partition,
	seen *sighted, until time.Time, all *totals) error {
	n, err := r.Store.excerpts(ctx, behindIn(partitions, seen, anyone), 0, allReads)
	errs := []error{err}
	if err == nil {
		errs = append(errs, r.Store.count(ctx, rows, partitions, seen, n))
	} else {
		n = &excerpts{missed: map[string]bool{}}
	}
	for i, c := range seen.list {
		if !r.now().Before(until) {
			break
		}
		errs = append(errs, r.measure(ctx, c, partitions, seen.at[i], n, all))
	}
	return errors.Join(errs...)
}

// measure adds a consumer's numbers to the metrics. One that may not run, or is dormant, has no
// lag. What is deferred by a profile is not late either.
func (r *Runtime) measure(ctx context.Context, c Consumer, partitions []envelope.Partition,
	at map[string]cursor, n *excerpts, all *totals) error {
	for _, p := range partitions {
		cur := at[p.Name]
		all.parked += cur.Parked
		if !c.runs() || cur.deferred() {
			continue
		}

		if cur.Stop != nil {
			all.stopped++
		}

		if c.Mode == Scheduled && cur.Stop == nil {
			continue
		}

		lag, err := r.lag(ctx, p, cur, n)
		if err != nil {
			return err
		}

		all.lag = max(all.lag, lag)
	}
	return nil
}

// lag is for how many seconds the next event of a cursor has been waiting, since it happened; 0 if
// there is none. It is read, unless it was read with those of others.
func (r *Runtime) lag(ctx context.Context, p envelope.Partition, cur cursor,
	n *excerpts) (int64, error) {
	if cur.Seq >= p.Head {
		return 0, nil
	}
	facts, known := n.after(p, cur.Seq)
	if !known || len(facts) == 0 {
		var err error
		facts, err = r.Store.Log.Read(ctx, p.Name, cur.Seq, 1)
		if err != nil {
			return 0, err
		}
	}
	if len(facts) == 0 {
		return 0, nil
	}
	return lagOf(facts[0].Time, r.now()), nil
}
