// Package eventsim runs the production code of the event log and of consumers against an
// adversary: each call of a producer, relay, consumer or admin may crash, be repeated, get
// lost or arrive late, in an order that a seed decides. Records of the table's stream are
// lost, doubled, out of order and hours late; so are invocations of consumers.
//
// After each commit the checker compares all rows with the rules. Then the faults stop, only
// the sweep and the ticks run, and everything must come to rest.
//
//	go test ./test/eventsim                     seeds for some seconds
//	go test ./test/eventsim -for=1m -seed=N     for a minute, beginning with seed N
//	go test ./test/eventsim -seeds=1 -seed=N    one seed again, with its history
//	go test ./test/eventsim -mutants=all        with the mutants
//
// TestMutants breaks each rule in turn, to show that the checker detects it.
package eventsim

import (
	"context"
	"sync"
	"time"

	"archivist/pkg/events/consumer"
	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/events/eventlog"
	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/test/adversary"
)

// Time-outs of the functions, as they are deployed.
const (
	relayTime    = time.Minute
	consumerTime = 5 * time.Minute
)

// maxLag is the number of changed rows by which the indexes may lag.
const maxLag = 5

// world is the state of one seed's run.
type world struct {
	*adversary.World
	s      scenario
	fake   *tabletest.Fake
	mutant mutant
	check  *checker
	began  time.Time

	mu          sync.Mutex // of what the actors share
	metrics     map[string]float64
	stream      *adversary.Inbox[event.Subject]
	invocations *adversary.Inbox[wakeUp]
	target      *target
}

// wakeUp is an invocation of a consumer for a partition.
type wakeUp struct{ consumer, partition string }

func newWorld(seed uint64, m mutant) *world {
	w := &world{World: adversary.New(seed, 3), fake: tabletest.New(), mutant: m, metrics: map[string]float64{}}
	w.s = draw(w.Rng)
	w.Log("%+v", w.s)
	w.began = time.Now()
	w.target = newTarget(w)
	w.check = newChecker(w)
	w.Latency, w.CutOff, w.Throttling = w.s.latency, w.s.cutOff, w.s.throttling
	w.Delays = [3]time.Duration{3 * time.Second, relayTime + 10*time.Second, consumerTime + time.Minute}
	w.Reads = []string{"Query", "look"}
	w.Rate = func() int { return w.s.rate }
	w.Failed = func() bool { return w.check.err != nil }
	w.fake.Watch = w.check.commit
	w.fake.Lag = func() int { return w.Rng.IntN(maxLag + 1) }
	w.stream = &adversary.Inbox[event.Subject]{World: w.World, Name: "stream record", Late: 5 * time.Hour}
	w.invocations = &adversary.Inbox[wakeUp]{World: w.World, Name: "invocation", Late: 70 * time.Minute}
	return w
}

// actor is one process.
type actor struct {
	*adversary.Actor
	w     *world
	table *table.Table
	log   *eventlog.Log
	run   *consumer.Runtime

	skips bool // its call is part of an admin's action that moves cursors
	ticks bool // or of a tick
}

func (w *world) newActor(name string) *actor {
	a := &actor{Actor: w.NewActor(name, w.s.skew), w: w}
	a.Owner = a
	keyed := a.Client(w.fake, w.Throttle)
	keyed.Queries = true
	var client adversary.Client = keyed
	if w.mutant.client != nil {
		client = w.mutant.client(a, client)
	}
	a.table = a.Timed(tabletest.Table(client))
	a.log = &eventlog.Log{Table: a.table, Now: a.Now, NewID: w.NewID}
	a.connect()
	return a
}

// acting is the actor whose call runs now, nil if the call is late.
func (w *world) acting() *actor { return adversary.Acting[actor](w.World) }

// wake invokes a consumer asynchronously: that is lost, doubled or late.
func (a *actor) wake(_ context.Context, name, partition string) error {
	return a.Do("wake "+name+" "+partition, func() error {
		if !a.w.Calm || a.ticks || !a.w.s.deaf {
			a.w.invocations.Send(wakeUp{name, partition})
		}
		return nil
	})
}

// relay is one invocation of the relay by the stream.
func (a *actor) relay(ctx context.Context) {
	var subjects []event.Subject
	for range 1 + a.Rng.IntN(4) {
		if s, ok := a.w.stream.Arrive(a.Rng); ok {
			subjects = append(subjects, s)
		}
	}
	if len(subjects) == 0 {
		return
	}
	a.Begin(relayTime)
	placed, err := a.log.Place(ctx, subjects)
	a.relayed(ctx, placed, err)
}

// relayed tells the consumers what was placed.
func (a *actor) relayed(ctx context.Context, placed []envelope.Event, err error) {
	a.w.Log("  (%s placed %d: %v)", a.Name, len(placed), err)
	if len(placed) > 0 {
		err := a.run.Placed(ctx, placed)
		a.w.Log("  (%s placed, wake-ups: %v)", a.Name, err)
	}
}

// consume is one invocation of a consumer.
func (a *actor) consume(ctx context.Context) {
	if r, ok := a.w.invocations.Arrive(a.Rng); ok {
		a.runOne(ctx, r.consumer, r.partition)
	}
}

func (a *actor) runOne(ctx context.Context, name, partition string) {
	more, err := a.run.Run(ctx, name, partition, a.Begin(consumerTime))
	a.w.Log("  (%s ran %s in %s: more %v: %v)", a.Name, name, partition, more, err)
}

// tick is the rule of each minute: the sweep, and the consumers that are due.
func (a *actor) tick(ctx context.Context) {
	until := a.Begin(relayTime)
	placed, err := a.log.Sweep(ctx, until)
	a.relayed(ctx, placed, err)
	if a.w.mutant.unticked {
		return
	}
	a.ticks = true
	err = a.run.Tick(ctx, until)
	a.ticks = false
	a.w.Log("  (%s tick: %v)", a.Name, err)
}
