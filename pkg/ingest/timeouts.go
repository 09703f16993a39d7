package ingest

import (
	"fmt"
	"time"
)

// Timing is the chain of times, as settings. Each is the reason of the next:
// a lease outlives its function, a message comes back just after the lease, a
// queue outlasts all deliveries, a state outlasts its queue, and the sweep
// comes last.
type Timing struct {
	Short, Long time.Duration // time-outs of functions
	Margin      time.Duration // lease = time-out + Margin
	Return      time.Duration // visibility = time-out + Return
	Sweep       time.Duration // grace = visibility + Sweep
	MaxBackoff  time.Duration // of repeated repairs
	Scheduler   time.Duration // time-out of the scheduler function
	Pause       time.Duration // a long step's time budget ends this long before its function's time-out
}

// Timings by name: production; quick for local tests; slow, with a time budget
// of 20 s for long steps. The same chain holds.
var Timings = map[string]Timing{
	"production": {Short: 60 * time.Second, Long: 5 * time.Minute, Margin: 5 * time.Second, Return: 30 * time.Second,
		Sweep: 2 * time.Minute, MaxBackoff: time.Hour, Scheduler: 50 * time.Second, Pause: time.Minute},
	"quick": {Short: 6 * time.Second, Long: 10 * time.Second, Margin: time.Second, Return: 3 * time.Second,
		Sweep: 4 * time.Second, MaxBackoff: 20 * time.Second, Scheduler: 20 * time.Second, Pause: 2 * time.Second},
	"slow": {Short: 20 * time.Second, Long: 30 * time.Second, Margin: time.Second, Return: 3 * time.Second,
		Sweep: 4 * time.Second, MaxBackoff: 20 * time.Second, Scheduler: 20 * time.Second, Pause: 10 * time.Second},
}

// Times are the lengths that hold for one stage.
type Times struct {
	Timeout    time.Duration // L, of the function
	Lease      time.Duration // L + margin
	Visibility time.Duration // V, of the queue
	Receives   int           // deliveries of a message, all in vain, after which it is a dead letter
	Retention  time.Duration // Q, of the queue; SQS takes 60 s at least
	State      time.Duration // X, of the state
	DeadLetter time.Duration // retention of the dead-letter queue; SQS takes 14 days at most
	Grace      time.Duration // after which the sweep looks
	Budget     time.Duration // a long step stops itself after this
}

// Deliveries before a message is a dead letter. A stage's message comes again for each try
// that failed, for the one that gives up, and for whoever meets another's lease or is
// throttled; the scheduler's comes again when it meets another tick. Lambda's guide wants
// five at least ("Creating and configuring an Amazon SQS event source mapping").
const (
	leastReceives = 5
	stageReceives = 15
	wakeReceives  = 10
)

// Wake derives what holds for the queue that wakes the scheduler: only what a queue has.
func (t Timing) Wake() Times {
	v := t.Scheduler + t.Return
	return Times{Timeout: t.Scheduler, Visibility: v, Receives: wakeReceives, Retention: (wakeReceives + 1) * v,
		DeadLetter: deadLetters}
}

// deadLetters are kept as long as SQS can.
const deadLetters = 14 * 24 * time.Hour

// Times derives the chain for a stage.
func (t Timing) Times(s Stage) Times {
	l, budget := t.Short, t.Short*3/4
	if s.Long {
		l, budget = t.Long, t.Long-t.Pause
	}
	v := l + t.Return
	q := max((stageReceives+1)*v, time.Minute)
	return Times{Timeout: l, Lease: l + t.Margin, Visibility: v, Receives: stageReceives, Retention: q,
		State:      q + l + t.Margin + time.Second,
		DeadLetter: deadLetters, Grace: v + t.Sweep, Budget: budget}
}

// Redrives reports whether a message that crashes its function becomes a dead letter
// before it expires. SQS counts its age from when it was sent, and moves it when it would
// be received once more; one time-out is left for waiting to be received at all.
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
