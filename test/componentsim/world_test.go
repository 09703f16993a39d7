// Package componentsim runs the production code of components against an adversary: each call of a
// producer, relay, scheduler, worker or person may crash, be repeated, get lost or arrive late, in an
// order that a seed decides. Executions of the state machine are lost, started twice and late; their
// workers are invoked again, and outlive their leases.
//
// After each commit the checker compares all rows with the rules, by a fold and a judgement of its
// own. Then the faults stop, only the ticks run, and everything must come to rest.
//
//	go test ./test/componentsim                     seeds for some seconds
//	go test ./test/componentsim -for=1m -seed=N     for a minute, beginning with seed N
//	go test ./test/componentsim -seeds=1 -seed=N    one seed again, with its history
//	go test ./test/componentsim -mutants=all        with the mutants
//
// TestMutants breaks each rule in turn, to show that the checker detects it.
package componentsim

import (
	"sync"
	"sync/atomic"
	"time"

	"archivist/pkg/components/component"
	"archivist/pkg/events/consumer"
	"archivist/pkg/events/event"
	"archivist/pkg/events/eventlog"
	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/test/adversary"
)

// Time-outs of the functions, and of the components.
const (
	relayTime = time.Minute
	itemTime  = 40 * time.Second
	runTime   = 10 * time.Minute
)

// maxLag is the number of changed rows by which the indexes may lag, for lagTime at most: counts that differ from the
// list of items are corrected if they still differ after five seconds, and with a list that is behind for longer until
// the next reconciliation (seed 191935203800046).
const (
	maxLag  = 5
	lagTime = 4 * time.Second
)

// world is the state of one seed's run.
type world struct {
	*adversary.World
	s      scenario
	fake   *tabletest.Fake
	mutant mutant
	check  *checker

	mu      sync.Mutex // of what the actors share
	metrics map[string]float64

	stream     *adversary.Inbox[event.Subject]
	consumers  *adversary.Inbox[wakeUp]
	executions *adversary.Inbox[component.RunRef]
	lanes      *adversary.Inbox[lanes]
	answers    *adversary.Inbox[answer]
	wakes      *adversary.Inbox[string]
}

// wakeUp is one of a consumer in a partition of the log.
type wakeUp struct{ consumer, partition string }

func newWorld(seed uint64, m mutant) *world {
	w := &world{World: adversary.New(seed, 4), fake: tabletest.New(), mutant: m, metrics: map[string]float64{}}
	w.s = draw(w.Rng)
	w.Log("%+v", w.s)
	w.check = newChecker(w)
	w.Latency, w.CutOff, w.Throttling = w.s.latency, w.s.cutOff, w.s.throttling
	w.Delays = [3]time.Duration{3 * time.Second, relayTime + 10*time.Second, 3 * time.Minute}
	w.Reads = []string{"Query", "begin"}
	w.Rate = func() int { return w.s.rate }
	w.Failed = func() bool { return w.check.err != nil }
	var written time.Time
	w.fake.Watch = func(changes []tabletest.Change) {
		written = time.Now()
		w.check.commit(changes)
	}
	if w.s.lag {
		w.fake.Lag = func() int {
			lag := w.Rng.IntN(maxLag + 1)
			if time.Since(written) > lagTime {
				lag = 0
			}
			return lag
		}
	}
	w.stream = &adversary.Inbox[event.Subject]{World: w.World, Name: "stream record", Late: 5 * time.Hour}
	w.consumers = &adversary.Inbox[wakeUp]{World: w.World, Name: "invocation", Late: time.Hour}
	w.executions = &adversary.Inbox[component.RunRef]{World: w.World, Name: "execution", Late: time.Hour}
	w.lanes = &adversary.Inbox[lanes]{World: w.World, Name: "work", Late: 10 * time.Minute}
	w.answers = &adversary.Inbox[answer]{World: w.World, Name: "answer", Late: 30 * time.Minute}
	w.wakes = &adversary.Inbox[string]{World: w.World, Name: "wake-up", Late: time.Hour}
	return w
}

// actor is one process.
type actor struct {
	*adversary.Actor
	w     *world
	table *table.Table
	log   *eventlog.Log
	run   *consumer.Runtime
	store *component.Store

	runner *component.Runner

	made    map[string]bool  // ids
	saw     map[string]int64 // item → how many events its subject had when the actor began to work
	ticks   bool             // it is in the tick of the components
	begun   *work            // what it works on
	labours string           // the component for which it works on a lane
	inside  atomic.Int32     // functions that have not returned
}

func (w *world) newActor(name string) *actor {
	a := &actor{Actor: w.NewActor(name, w.s.skew), w: w, made: map[string]bool{}, saw: map[string]int64{}}
	a.Owner = a
	keyed := a.Client(w.fake, w.Throttle)
	keyed.Queries = true
	var client adversary.Client = keyed
	if w.mutant.client != nil {
		client = w.mutant.client(a, client)
	}
	a.table = a.Timed(tabletest.Table(client))
	a.log = &eventlog.Log{Table: a.table, Now: a.Now, NewID: a.newID}
	a.connect()
	return a
}

// newID makes an id, and remembers who made it.
func (a *actor) newID() string {
	id := a.w.NewID()
	a.w.mu.Lock()
	defer a.w.mu.Unlock()
	a.made[id] = true
	return id
}

func (w *world) count(name string, n float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.metrics[name] += n
}

// acting is the actor whose call runs now, nil if the call is late.
func (w *world) acting() *actor { return adversary.Acting[actor](w.World) }
