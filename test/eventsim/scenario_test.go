package eventsim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"archivist/pkg/events/consumer"
	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/test/adversary"
)

// scenario is what happens in the run of a seed. It is drawn once, from the seed alone.
type scenario struct {
	rounds      int // of each actor, with faults
	collections int
	subjects    int // of each collection

	rate    int           // percentage of calls with a fault
	skew    time.Duration // at most, of each actor's clock
	latency time.Duration // of a call, at most; mostly calls take no time
	cutOff  bool          // a function is ended at its time-out, as in Lambda
	stormy  int           // rounds of settling in which faults continue
	split   bool          // a log is split in the middle
	quiet   int           // seconds for which a key of the coalescing consumer must be quiet; 0: it need not
	order   string        // key of the ordered consumer
	block   bool          // the ordered consumer blocks instead of parking
	refuses int           // percentage of subjects that a target refuses for a time
	resets  bool          // the admin moves cursors
	deaf    bool          // once the faults have stopped, only ticks wake consumers

	throttling adversary.Throttling
}

// partitions can be throttled.
var partitions = []string{"LOG#", "LOGS", "OBJECT#", "CONSUMER#", "PARKED#", "unplaced#", "due#"}

func draw(rng *rand.Rand) scenario {
	one := func(n int) bool { return rng.IntN(n) == 0 }
	s := scenario{rounds: 7, collections: 1 + rng.IntN(2), subjects: 2 + rng.IntN(3), rate: 10}
	if one(6) {
		s.rounds = 14
	}
	if one(5) {
		s.rate = 25
	}
	if one(3) {
		s.skew = 2 * time.Second
	}
	if one(4) {
		s.latency = time.Second
	}
	s.cutOff = one(3)
	if one(5) {
		s.stormy = 4
	}
	s.split = one(2)
	if one(2) {
		s.quiet = 30 + rng.IntN(120)
	}
	s.block, s.order = one(6), consumer.OrderSubject
	if one(4) {
		s.order = consumer.OrderCollection
	}
	s.refuses = []int{0, 20, 50}[rng.IntN(3)]
	s.resets, s.deaf = one(4), one(2)
	if one(10) {
		s.throttling = adversary.Throttling{Of: partitions[rng.IntN(len(partitions))], From: 30 + rng.IntN(150),
			For: 60}
	}
	return s
}

// thing is the row of a subject.
type thing struct {
	table.Head
	Version int64 `dynamo:"version"`
	Gone    bool  `dynamo:"was_deleted"`
}

// subject draws a subject, and the containers that it is in.
func (w *world) subject(rng *rand.Rand) (event.Subject, []envelope.Ref) {
	if rng.IntN(8) == 0 {
		return event.Subject{Type: event.Batch, ID: fmt.Sprint("b", rng.IntN(2))}, nil
	}
	c := fmt.Sprint("c", rng.IntN(w.s.collections))
	if rng.IntN(12) == 0 {
		return event.Subject{Type: event.Collection, ID: c}, nil
	}
	of := event.Object
	if rng.IntN(4) == 0 {
		of = event.Job
	}
	id := fmt.Sprintf("%s-%d", c, rng.IntN(w.s.subjects))
	return event.Subject{Type: of, ID: id}, []envelope.Ref{{Type: "Collection", ID: c}}
}

// happens draws what happens to a subject.
func happens(rng *rand.Rand, s event.Subject, row *thing) event.New {
	e := event.New{Component: "archive"}
	switch s.Type {
	case event.Object:
		e.Type = "object.modify"
		if row.Version == 0 {
			e.Type = "object.create"
		}
	case event.Job:
		e.Type = "job.state"
	case event.Batch:
		e.Type = "batch.state"
	default:
		e.Type = "collection.profile"
	}
	state := "Changed"
	if row.Version > 1 && rng.IntN(6) == 0 {
		state = "Deleted"
	}
	e.After = map[string]string{"state": state}
	return e
}

// produce makes one change of a few subjects.
func (a *actor) produce(ctx context.Context) {
	tx := a.table.Begin(a.w.NewID())
	seen := map[event.Subject]bool{}
	for range 1 + a.Rng.IntN(3) {
		s, parents := a.w.subject(a.Rng)
		if seen[s] {
			continue
		}
		seen[s] = true
		k := s.Key()
		row := &thing{Head: table.Head{PK: k.PK, SK: k.SK}}
		if err := a.table.Get(ctx, k, row); err != nil && !fault.Is(err, fault.NotFound) {
			return
		}
		e := happens(a.Rng, s, row)
		e.Time, e.Parents = a.Now().UnixMilli(), parents
		row.Version++
		if row.Version == 1 {
			tx.Insert(row)
		} else {
			tx.Save(row)
		}
		if err := event.Append(tx, s, row.Version, e); err != nil {
			a.w.check.fail("append: %v", err)
			return
		}
	}
	if a.Rng.IntN(10) == 0 { // that consumer has asked for it, and ignores it
		o := event.OriginOf(ctx)
		o.Cause = envelope.Cause{Event: "x.0", Root: "x.0", Depth: 1, Components: []string{"archive", ordered}}
		ctx = event.From(ctx, o)
	}
	err := tx.Commit(ctx)
	a.w.Log("  (%s changed %d subjects: %v)", a.Name, len(seen), err)
}
