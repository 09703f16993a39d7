package consumer

import (
	"context"
	"errors"
	"time"

	"archivist/pkg/events/envelope"
	"archivist/pkg/kernel/definition"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// timer is when a scheduled consumer runs next. The row is beside the consumer's cursors. Times are
// milliseconds since 1970.
type timer struct {
	table.Head

	// Schedule is the text with its zone for which Next was computed: a changed one is computed
	// anew.
	Schedule string `dynamo:"schedule_text"`
	Next     int64  `dynamo:"next_ms"`

	// Firing is the time for which cursors are being woken; 0: none is. If the process dies
	// meanwhile, the next clock sees it and wakes the rest.
	Firing int64 `dynamo:"firing_ms,omitempty"`
}

// scheduleSK is the sort key of the timer, in the consumer's own partition.
const scheduleSK = "SCHEDULE"

// fire wakes a scheduled consumer when its time has come. The write that takes the time is
// conditional, so of two clocks one does it; if it dies, the next wakes the rest. Times that
// were missed count as one.
func (r *Runtime) fire(ctx context.Context, c Consumer, partitions []envelope.Partition,
	at map[string]cursor) error {
	now := r.now().UnixMilli()
	t, err := r.timer(ctx, c)
	if err != nil {
		return err
	}

	if t.Firing == 0 {
		if now < t.Next {
			return nil
		}
		// The next time is written before anything is woken: of two clocks one comes to the waking.
		firing := t.Next
		if err := r.setTimer(ctx, c, &t, firing); err != nil {
			return lostRace(err)
		}
	}

	var errs []error
	for _, p := range partitions {
		cur := at[p.Name]
		if cur.Seq < p.Head || cur.Pending > 0 || len(cur.Orders) > 0 {
			errs = append(errs, r.wake(ctx, c.Name, p.Name))
		}
	}

	if err := errors.Join(errs...); err != nil {
		return err
	}

	t.Firing = 0
	return lostRace(r.Store.save1(ctx, &t))
}

// RunNow lets a scheduled consumer run within a minute, as if its time had come; a rate then begins anew. One that
// is about to run changes nothing. A consumer that has no schedule runs by itself: an Invalid. One that is paused
// would not run: a Conflict.
func (s *Store) RunNow(ctx context.Context, name string, by By) error {
	return s.act(ctx, name, by, func(tx *table.Tx, r *row) (string, change, error) {
		c, err := r.consumer()
		switch {
		case err != nil:
			return "", change{}, err
		case c.Mode != Scheduled:
			return "", change{}, fault.New(fault.Invalid, "%s has no schedule: it runs when there are events", name)
		case c.Paused:
			return "", change{}, fault.New(fault.Conflict, "%s is paused; resume it first", name)
		}

		t := timer{Head: table.Head{PK: own(name), SK: scheduleSK}}
		err = s.Table.Get(ctx, t.Key(), &t)
		if err != nil && !fault.Is(err, fault.NotFound) {
			return "", change{}, err
		}

		now := s.Now().UnixMilli()
		if t.Schedule == scheduleText(c) && (t.Firing > 0 || t.Next <= now) {
			return "", change{}, errUnchanged
		}

		t.Schedule, t.Next, t.Firing = scheduleText(c), now, 0
		tx.InsertOrSave(&t)
		return "consumer.run", change{}, nil
	})
}

// timer reads when a consumer runs next. A new consumer, and one whose schedule was changed, first
// runs at the next time from now on. If another clock was first to write it, its row counts.
func (r *Runtime) timer(ctx context.Context, c Consumer) (timer, error) {
	t := timer{Head: table.Head{PK: own(c.Name), SK: scheduleSK}}
	err := r.Store.Table.Get(ctx, t.Key(), &t)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return t, err
	}

	if t.Schedule == scheduleText(c) {
		return t, nil
	}

	err = r.setTimer(ctx, c, &t, 0)
	if fault.Is(err, fault.Stale) {
		err = r.Store.Table.Get(ctx, t.Key(), &t)
	}
	return t, err
}

// scheduleText is what the next time depends on.
func scheduleText(c Consumer) string { return c.Schedule + " " + c.TimeZone }

// setTimer writes the next time of a consumer, and the one that is firing. The row t is as it was
// read; a Stale means that another clock was first.
func (r *Runtime) setTimer(ctx context.Context, c Consumer, t *timer, firing int64) error {
	s, err := definition.ParseSchedule(c.Schedule, c.TimeZone)
	if err != nil {
		return err
	}

	after := r.now()
	// Rates keep their times, although the clock looks a little later.
	if s.Every > 0 && firing > 0 {
		missed := after.Sub(time.UnixMilli(firing)) / s.Every
		after = time.UnixMilli(firing).Add(missed * s.Every)
	}

	next, err := s.Next(after)
	if err != nil {
		return err
	}

	t.Schedule, t.Next, t.Firing = scheduleText(c), next.UnixMilli(), firing
	return r.Store.save1(ctx, t)
}

// save1 writes one row, on the condition that it was not written since it was read, or does not
// exist if it was not.
func (s *Store) save1(ctx context.Context, t *timer) error {
	tx := s.Table.Begin(s.NewID())
	tx.InsertOrSave(t)
	return tx.Commit(ctx)
}
