package ingest

import (
	"fmt"
	"time"

	"archivist/pkg/kernel/fault"
)

// Hold is why something does not continue: a hold of a job, a batch or a collection, or a
// pause of the queue or the storage. Times are milliseconds since 1970.
type Hold struct {
	Scope  TargetKind `dynamo:"hold_scope"` // what is held, or paused
	Reason string     `dynamo:"hold_reason"`
	Actor  string     `dynamo:"hold_actor"`
	Since  int64      `dynamo:"hold_since"`
	Until  int64      `dynamo:"hold_until,omitempty"` // when it ends by itself; 0 = never
}

// Ended reports whether the end of the hold has passed.
func (h *Hold) Ended(now time.Time) bool { return h.Until != 0 && h.Until <= now.UnixMilli() }

// Description describes the hold in a part of a sentence: since when, by whom, why, until when.
func (h *Hold) Description() string {
	text := fmt.Sprintf("since %s by %s: %s", Timestamp(h.Since), h.Actor, h.Reason)
	if h.Until != 0 {
		text += fmt.Sprintf(" (until %s)", Timestamp(h.Until))
	}
	return text
}

// MaxHold is the longest time for which a hold or a pause can have an end.
const MaxHold = 10 * 366 * 24 * time.Hour

// CheckUntil returns an Invalid if a hold cannot end at a time, in milliseconds since 1970; 0 is
// a hold without an end.
func CheckUntil(until int64, now time.Time) error {
	switch {
	case until == 0:
		return nil
	case until <= now.UnixMilli():
		return fault.New(fault.Invalid, "until: %s is in the past", Timestamp(until))
	case until > now.Add(MaxHold).UnixMilli():
		return fault.New(fault.Invalid,
			"until: expected a time within 10 years; give none for a hold without an end")
	}
	return nil
}

// NeedsStorage reports whether a parked job would write to the storage next.
func (j *Job) NeedsStorage() bool { return j.State == Storing || j.Waits == WaitsForStorage }

// Held is a Pending job that a hold stops. Any other job has started, and continues. For these the
// error is a Conflict.
func (r Rules) Held(j Job, h Hold, now time.Time) (Job, error) {
	if err := CheckJob(j.State, Held); err != nil {
		return j, err
	}
	j = r.enter(j, Held, now)
	return r.HeldBy(j, h), nil
}

// HeldBy is a Held job that another hold stops from now on. Its due time is the end of the hold, 0
// if that has none.
func (r Rules) HeldBy(j Job, h Hold) Job {
	j.Hold, j.Due = &h, h.Until
	return j
}

// Released is a Held job that waits again. It enters gate 1 with a new time, so it is behind those
// of its priority that waited meanwhile. A job that is not Held is a Conflict.
func (r Rules) Released(j Job, now time.Time) (Job, error) {
	if j.State != Held {
		return j, fault.New(fault.Conflict, "job %s is %s; only a Held job can be released; %s",
			j.ID, j.State,
			j.State.Becomes())
	}
	return r.enter(j, Pending, now), nil
}

// HeldBatch is a Pending batch without jobs that a hold stops.
func (r Rules) HeldBatch(b Batch, h Hold, now time.Time) Batch {
	b = r.EnterBatch(b, BatchHeld, now)
	return r.BatchHeldBy(b, h)
}

// BatchHeldBy is a Held batch that another hold stops from now on.
func (r Rules) BatchHeldBy(b Batch, h Hold) Batch {
	b.Hold, b.Due = &h, h.Until
	return b
}
