package ingest

import (
	"fmt"
	"time"
)

// Timing is the chain of times, as settings. Each time follows from the one before: a lease
// lasts longer than its function, a message becomes visible again just after the lease, a
// queue keeps a message longer than all of its deliveries, a state waits longer than its
// queue keeps a message, and the sweep comes last.
type Timing struct {
	Short, Long time.Duration // time-outs of functions
	Margin      time.Duration // lease = time-out + Margin
	Return      time.Duration // visibility = time-out + Return
	Sweep       time.Duration // grace = visibility + Sweep
	MaxBackoff  time.Duration // of repeated repairs
	Scheduler   time.Duration // time-out of the scheduler function
	Pause       time.Duration // a long step's time budget ends this long before its function's time-out
	Lost        time.Duration // after it, a wake-up of a consumer of events counts as lost
}

// Timings by name: production; quick for local tests; slow, with a time budget of 20 s for
// long steps. The chain holds for each.
var Timings = map[string]Timing{
	"production": {
		Short:      60 * time.Second,
		Long:       5 * time.Minute,
		Margin:     5 * time.Second,
		Return:     30 * time.Second,
		Sweep:      2 * time.Minute,
		MaxBackoff: time.Hour,
		Scheduler:  50 * time.Second,
		Pause:      time.Minute,
		Lost:       time.Minute,
	},
	"quick": {
		Short:      6 * time.Second,
		Long:       10 * time.Second,
		Margin:     time.Second,
		Return:     3 * time.Second,
		Sweep:      4 * time.Second,
		MaxBackoff: 20 * time.Second,
		Scheduler:  20 * time.Second,
		Pause:      2 * time.Second,
		Lost:       5 * time.Second,
	},
	"slow": {
		Short:      20 * time.Second,
		Long:       30 * time.Second,
		Margin:     time.Second,
		Return:     3 * time.Second,
		Sweep:      4 * time.Second,
		MaxBackoff: 20 * time.Second,
		Scheduler:  20 * time.Second,
		Pause:      10 * time.Second,
		Lost:       5 * time.Second,
	},
}

// Times are the times of one stage.
type Times struct {
	Timeout    time.Duration // L, of the function
	Lease      time.Duration // L + margin
	Visibility time.Duration // V, of the queue
	Receives   int           // failed deliveries of a message after which it is a dead letter
	Retention  time.Duration // Q, of the queue; at least 60 s in SQS
	State      time.Duration // X, of the state
	DeadLetter time.Duration // retention of the dead-letter queue; at most 14 days in SQS
	Grace      time.Duration // after which the sweep repairs an item
	Budget     time.Duration // after which a long step stops by itself
}

// Deliveries before a message is a dead letter. A stage's message is delivered again for
// each failed try, for the try that gives up, and when a worker finds the lease held or is
// throttled. The scheduler's message is delivered again when another tick is running.
// Lambda's guide recommends at least five ("Creating and configuring an Amazon SQS event
// source mapping").
const (
	leastReceives = 5
	stageReceives = 15
	wakeReceives  = 10

	// Two hours without the table: what researchers report then is delivered until it can be stored.
	researchReceives = 100
)

// Wake derives the times of the queue that wakes the scheduler: only those of a queue.
func (t Timing) Wake() Times {
	v := t.Scheduler + t.Return
	return Times{
		Timeout:    t.Scheduler,
		Visibility: v,
		Receives:   wakeReceives,
		Retention:  (wakeReceives + 1) * v,
		DeadLetter: deadLetters,
	}
}

// Research derives the times of the queues of research and of the functions that they feed: only those of
// a queue, and a time budget. What curators and researchers say is kept there for days, because it cannot
// be had again.
func (t Timing) Research() Times {
	return Times{
		Timeout:    t.Scheduler,
		Visibility: t.Scheduler + t.Return,
		Receives:   researchReceives,
		Retention:  4 * 24 * time.Hour,
		DeadLetter: deadLetters,
		Budget:     t.Scheduler * 9 / 10,
	}
}

// Admin derives the times of the function admin-action, whose state machine waits for it. A
// page of an operation ends with the budget. Only these times have a meaning for it: it is called
// without a queue.
func (t Timing) Admin() Times {
	return Times{Timeout: t.Long, State: t.Long + t.Return, Budget: t.Long - t.Pause}
}

// EventTimes are the times of the functions that bring events to their consumers.
type EventTimes struct {
	Relay          time.Duration // time-out of the relay
	RelayBudget    time.Duration // after which the relay stops by itself
	Consumer       time.Duration // time-out of the function in which consumers run
	ConsumerBudget time.Duration // after which a consumer's run begins nothing more
	Call           time.Duration // of a target, at most: it ends within the function's time-out
	Lease          time.Duration // of a consumer in a partition: it outlives the function
	Lost           time.Duration // after it, a wake-up that was sent counts as lost
}

// Events derives the times of the functions that bring events to their consumers. A run stops early
// enough to save how far it came.
func (t Timing) Events() EventTimes {
	return EventTimes{
		Relay:          t.Scheduler,
		RelayBudget:    t.Scheduler * 9 / 10,
		Consumer:       t.Long,
		ConsumerBudget: t.Long - t.Pause,
		Call:           t.Pause * 3 / 4,
		Lease:          t.Long + t.Margin,
		Lost:           t.Lost,
	}
}

// deadLetters are kept as long as SQS can.
const deadLetters = 14 * 24 * time.Hour

// Times derives the chain for a stage. In production, time-out, lease, visibility, retention, state
// and grace of a short stage are 60, 65, 90, 1,440, 1,506 and 210 s; those of a long one are 300,
// 305, 330, 5,280, 5,586 and 450 s.
func (t Timing) Times(s Stage) Times {
	l, budget := t.Short, t.Short*3/4
	if s.Long {
		l, budget = t.Long, t.Long-t.Pause
	}

	v := l + t.Return
	// One visibility time-out more than there are deliveries: see Redrives.
	q := max((stageReceives+1)*v, time.Minute)
	return Times{
		Timeout:    l,
		Lease:      l + t.Margin,
		Visibility: v,
		Receives:   stageReceives,
		Retention:  q,
		State:      q + l + t.Margin + time.Second,
		DeadLetter: deadLetters,
		Grace:      v + t.Sweep,
		Budget:     budget,
	}
}

// Redrives reports whether a message that crashes its function becomes a dead letter before
// it expires. SQS counts its age from when it was sent, and moves it when it would be
// received once more. One visibility time-out is left for the wait until the first
// delivery.
func (c Times) Redrives() bool {
	return c.Receives >= leastReceives && time.Duration(c.Receives+1)*c.Visibility <= c.Retention
}

// Check returns an error naming the first link of the chain that does not hold.
func (c Times) Check() error {
	for _, link := range []struct {
		ok   bool
		rule string
	}{
		{c.Lease > c.Timeout, "the lease must outlive the function"},
		{c.Visibility > c.Lease, "a message must come back after the lease"},
		{c.Retention > 3*c.Visibility, "a queue must outlast three deliveries"},
		{c.Retention >= time.Minute, "SQS retains for 60 s at least"},
		{c.Redrives(), "a message must become a dead letter before it expires"},
		{c.State > c.Retention+c.Lease, "a state must outlast its queue and the last lease"},
		{c.DeadLetter > c.Retention, "a dead letter must outlast its queue"},
		{c.Grace > c.Visibility, "the sweep must come after the message's return"},
		{c.Budget > 0 && c.Budget < c.Timeout, "the time budget must end within the time-out"},
	} {
		if !link.ok {
			return fmt.Errorf("ingest: times %+v: %s", c, link.rule)
		}
	}
	return nil
}
