package consumer

import (
	"context"
	"errors"
	"time"

	"archivist/pkg/definition"
	"archivist/pkg/envelope"
	"archivist/pkg/fault"
	"archivist/pkg/table"
)

// timer is when a scheduled consumer runs next. Times are milliseconds since 1970.
type timer struct {
	table.Head
	Schedule string `dynamo:"schedule_text"` // for which Next was computed
	Next     int64  `dynamo:"next_ms"`
	Firing   int64  `dynamo:"firing_ms,omitempty"` // the time for which cursors are being woken
}

const scheduleSK = "SCHEDULE"

// fire wakes a scheduled consumer when its time has come. The write that takes the time is
// conditional, so of two clocks one does it; if it dies, the next wakes the rest. Times that
// were missed count as one.
func (r *Runtime) fire(ctx context.Context, c Consumer, partitions []envelope.Partition, at map[string]cursor) error {
	now := r.now().UnixMilli()
	t, err := r.timer(ctx, c)
	if err != nil {
		return err
	}
	if t.Firing == 0 {
		if now < t.Next {
			return nil
		}
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

// timer reads when a consumer runs next. A new consumer, and one whose schedule was changed,
// first runs at the next time from now on.
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

func scheduleText(c Consumer) string { return c.Schedule + " " + c.TimeZone }

// setTimer writes the next time of a consumer, and the one that is firing.
func (r *Runtime) setTimer(ctx context.Context, c Consumer, t *timer, firing int64) error {
	s, err := definition.ParseSchedule(c.Schedule, c.TimeZone)
	if err != nil {
		return err
	}
	after := r.now()
	if s.Every > 0 && firing > 0 { // rates keep their times, although the clock looks a little later
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

// save1 writes one row, on the condition that it was not written since it was read.
func (s *Store) save1(ctx context.Context, t *timer) error {
	tx := s.Table.Begin(s.NewID())
	tx.InsertOrSave(t)
	return tx.Commit(ctx)
}
