// Package eventsim runs the production code of the event log and of consumers against an
// adversary: each call of a producer, relay, consumer or admin may crash, be repeated, get
// lost or arrive late, in an order that a seed decides. Records of the table's stream are
// lost, doubled, out of order and hours late; so are invocations of consumers.
//
// After each commit the checker compares all rows with the rules. Then the faults stop, only
// the sweep and the ticks run, and everything must come to rest.
//
//	go test ./test/eventsim                     100 seeds
//	go test ./test/eventsim -seeds=3000         3,000 seeds
//	go test ./test/eventsim -seeds=1 -seed=N    one seed again, with its history
//
// TestMutants breaks each rule in turn, to show that the checker detects it.
package eventsim

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"archivist/pkg/consumer"
	"archivist/pkg/envelope"
	"archivist/pkg/event"
	"archivist/pkg/eventlog"
	"archivist/pkg/table"
	"archivist/pkg/table/tabletest"
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
	ids         int
	metrics     map[string]float64
	stream      []record
	invocations []record
	target      *target
}

// record is a wake-up under way: of a subject by the stream, or of a consumer's partition by
// an invocation.
type record struct {
	subject             event.Subject
	consumer, partition string
	from                time.Time // when it can arrive
}

func newWorld(seed uint64, m mutant) *world {
	w := &world{World: adversary.New(seed, 3), fake: tabletest.New(), mutant: m, metrics: map[string]float64{}}
	w.s = draw(w.Rng)
	w.Log("%+v", w.s)
	w.began = time.Now()
	w.target = newTarget(w)
	w.check = newChecker(w)
	w.Latency = w.s.latency
	w.Delays = [3]time.Duration{3 * time.Second, relayTime + 10*time.Second, consumerTime + time.Minute}
	w.Reads = []string{"Query", "look"}
	w.Rate = func() int { return w.s.rate }
	w.Failed = func() bool { return w.check.err != nil }
	w.fake.Watch = w.check.commit
	w.fake.Lag = func() int { return w.Rng.IntN(maxLag + 1) }
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
	keyed := a.Client(w.fake, w.throttles)
	keyed.Queries = true
	var client adversary.Client = keyed
	if w.mutant.client != nil {
		client = w.mutant.client(a, client)
	}
	a.table = a.Timed(tabletest.Table(client))
	a.log = &eventlog.Log{Table: a.table, Now: a.Now, NewID: w.newID}
	a.connect()
	return a
}

func (w *world) newID() string { // like ULIDs: unique and rising
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ids++
	return fmt.Sprintf("ID%06d", w.ids)
}

// acting is the actor whose call runs now, nil if the call is late.
func (w *world) acting() *actor { return adversary.Acting[actor](w.World) }

// throttles refuses calls to the partitions that are throttled now.
func (w *world) throttles(partition string) error {
	return w.Throttled(w.s.throttling, partition)
}

// begin starts a function that may run so long.
func (a *actor) begin(most time.Duration) time.Time {
	if a.w.s.cutOff {
		a.Until = time.Now().Add(most)
	}
	return a.Now().Add(most - 15*time.Second)
}

// streams puts the record of a new event into the stream, if the adversary lets it.
func (w *world) streams(s event.Subject) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := record{subject: s, from: time.Now()}
	switch n := w.Rng.IntN(12); {
	case w.Calm || n < 2:
		w.Met("stream record lost")
		return
	case n < 4:
		w.Met("stream record doubled")
		w.stream = append(w.stream, r)
	case n < 5:
		w.Met("stream record hours late")
		r.from = r.from.Add(time.Duration(1+w.Rng.IntN(5)) * time.Hour)
	}
	w.stream = append(w.stream, r)
}

// arrive picks wake-ups that were sent, in any order. Some are delivered again later.
func (w *world) arrive(a *actor, from *[]record, most int) (got []record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for range most {
		var ready []int
		for i, r := range *from {
			if !r.from.After(time.Now()) {
				ready = append(ready, i)
			}
		}
		if len(ready) == 0 {
			return got
		}
		i := ready[a.Rng.IntN(len(ready))]
		got = append(got, (*from)[i])
		if a.Rng.IntN(8) > 0 {
			*from = slices.Delete(*from, i, i+1)
		}
	}
	return got
}

// wake invokes a consumer asynchronously: that is lost, doubled or late.
func (a *actor) wake(_ context.Context, name, partition string) error {
	w := a.w
	return a.Do("wake "+name+" "+partition, func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		r := record{consumer: name, partition: partition, from: time.Now()}
		switch n := w.Rng.IntN(12); {
		case w.Calm && (a.ticks || !w.s.deaf):
		case w.Calm:
			return nil
		case n < 2:
			w.Met("invocation lost")
			return nil
		case n < 4:
			w.Met("invocation doubled")
			w.invocations = append(w.invocations, r)
		case n < 5:
			w.Met("invocation late")
			r.from = r.from.Add(time.Duration(10+w.Rng.IntN(60)) * time.Minute)
		}
		w.invocations = append(w.invocations, r)
		return nil
	})
}

// relay is one invocation of the relay by the stream.
func (a *actor) relay(ctx context.Context) {
	records := a.w.arrive(a, &a.w.stream, 1+a.Rng.IntN(4))
	if len(records) == 0 {
		return
	}
	var subjects []event.Subject
	for _, r := range records {
		subjects = append(subjects, r.subject)
	}
	a.begin(relayTime)
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
	for _, r := range a.w.arrive(a, &a.w.invocations, 1) {
		a.runOne(ctx, r.consumer, r.partition)
	}
}

func (a *actor) runOne(ctx context.Context, name, partition string) {
	more, err := a.run.Run(ctx, name, partition, a.begin(consumerTime))
	a.w.Log("  (%s ran %s in %s: more %v: %v)", a.Name, name, partition, more, err)
}

// tick is the rule of each minute: the sweep, and the consumers that are due.
func (a *actor) tick(ctx context.Context) {
	until := a.begin(relayTime)
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
