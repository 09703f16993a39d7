package consumer

import (
	"context"
	"errors"
	"slices"
	"time"

	"archivist/pkg/events/envelope"
)

// Tick does what is due, and is called every minute: it wakes scheduled consumers, cursors whose
// wake-up was lost or whose run died, those that are behind and those with something due; then it
// finishes resets and deletions that were interrupted; and it puts the metrics. It ends at until;
// the next call does the rest. What fails for one consumer does not stop the others: their errors
// are joined. Each minute another consumer, and another replay, is the first, so that one that takes all the time
// does not keep those behind it for ever.
func (r *Runtime) Tick(ctx context.Context, until time.Time) error {
	rows, err := r.Store.rows(ctx)
	if err != nil {
		return err
	}

	partitions, err := r.Store.Log.Partitions(ctx)
	if err != nil {
		return err
	}

	rows = inTurn(rows, r.now())
	var errs []error
	var all totals
	for i := range rows {
		if !r.now().Before(until) {
			break
		}
		if row := &rows[i]; row.State == active {
			errs = append(errs, r.tick(ctx, row, partitions, &all))
		}
	}

	errs = append(errs, r.advanceReplays(ctx, until), r.finishChanges(ctx, rows, partitions, until))
	r.metric(MetricLag, float64(all.lag))
	r.metric(MetricParked, float64(all.parked))
	r.metric(MetricStopped, float64(all.stopped))
	return errors.Join(errs...)
}

// inTurn are the elements of a list, with another one first each minute.
func inTurn[T any](all []T, now time.Time) []T {
	if len(all) == 0 {
		return nil
	}
	first := now.Unix() / 60 % int64(len(all))
	return slices.Concat(all[first:], all[:first])
}

// totals are the metrics of all consumers: the longest lag in seconds, and counts. One value for
// all costs one metric, however many consumers there are.
type totals struct{ lag, parked, stopped int64 }

// tick does what is due of one consumer. A paused one is only measured. The time of a schedule that
// comes during a reset or rebuild is taken: what it wakes cannot run, and is woken when it can.
func (r *Runtime) tick(ctx context.Context, row *row, partitions []envelope.Partition,
	all *totals) error {
	c, err := row.consumer()
	if err != nil {
		return err
	}

	at, err := r.Store.places(ctx, c.Name)
	if err != nil {
		return err
	}

	var errs []error
	if c.runs() {
		errs = append(errs, r.wakeDue(ctx, c, partitions, at, idleWait))
	}

	if !c.Paused && c.Mode == Scheduled {
		errs = append(errs, r.fire(ctx, c, partitions, at))
	}

	errs = append(errs, r.measure(ctx, c, partitions, at, all))
	return errors.Join(errs...)
}

// finishChanges finishes deletions and resets that were interrupted. It comes last: they can take
// long, and nobody else should wait for them. What it does not finish the next call goes on with.
func (r *Runtime) finishChanges(ctx context.Context, rows []row, partitions []envelope.Partition,
	until time.Time) error {
	var errs []error
	for i := range rows {
		row := &rows[i]
		switch {
		case !r.now().Before(until):
			return errors.Join(errs...)
		case row.State == deleting:
			errs = append(errs, r.Store.finishDelete(ctx, row.Name))
		case row.State == active && len(row.Resets) > 0:
			errs = append(errs, r.finishResets(ctx, row.Name, partitions, until))
		}
	}
	return errors.Join(errs...)
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

// measure adds a consumer's numbers to the metrics. One that may not run, or is dormant, has no
// lag. What is deferred by a profile is not late either.
func (r *Runtime) measure(ctx context.Context, c Consumer, partitions []envelope.Partition,
	at map[string]cursor,
	all *totals) error {
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

		lag, err := r.Store.lag(ctx, p, cur, r.now())
		if err != nil {
			return err
		}

		all.lag = max(all.lag, lag)
	}
	return nil
}
