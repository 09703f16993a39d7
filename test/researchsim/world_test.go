// Package researchsim tests research as a whole.
//
// TestSimulation runs the production code against an adversary: each call of an assigner, curator,
// researcher or person may crash, be repeated, get lost or arrive late, in an order that a seed decides.
// Messages on all queues are lost, doubled and late. Researchers hang, die, end early, and send their final
// report before the others. After each commit the checker compares all rows with the rules. Then the faults
// stop, and each pair must become researched. In the end the doctor reads all rows.
//
//	go test ./test/researchsim                     seeds for some seconds
//	go test ./test/researchsim -for=1m -seed=N     for a minute, beginning with seed N
//	go test ./test/researchsim -seeds=1 -seed=N    one seed again, with its history
//	go test ./test/researchsim -mutants=all        with the mutants
//
// TestMutants breaks each rule in turn, to show that the checker detects it. TestRandomHistories compares
// each work item with a reference that looks through all episodes and clips. TestCrashes lets each action die
// at each of its calls.
package researchsim

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"archivist/pkg/kernel/table/tabletest"
	"archivist/pkg/research"
	"archivist/test/adversary"
)

// times of the simulation, shorter than those of a deployment.
var times = research.Times{Lease: 20 * time.Minute, Queue: 8 * time.Minute, Extension: 5 * time.Minute,
	Most: time.Hour, Presence: 4 * time.Minute, Renewal: 90 * time.Second, Pass: 90 * time.Second}

// functionTime is the time-out of a function.
const functionTime = time.Minute

// scenario is what happens in the run of a seed. It is drawn once, from the seed alone.
type scenario struct {
	rounds  int           // of each actor, with faults
	rate    int           // percentage of calls with a fault
	skew    time.Duration // at most, of each actor's clock
	latency time.Duration // of a call, at most; mostly calls take no time
	cutOff  bool          // a function is ended at its time-out, as in Lambda
	maxWork int           // clips of a work item
	slow    bool          // transactions often take minutes
	quorum  int           // researchers that have to agree
	review  bool          // a person accepts or rejects what is found
	sound   bool          // researchers say how recordings sound

	throttling adversary.Throttling
}

// partitions can be throttled.
var partitions = []string{"RESEARCHLINE#", "EPISODE#", "CLIPS#", "RESEARCHPROJECT#", "RESEARCHLEASE#", "LEASE#"}

func draw(rng *rand.Rand) scenario {
	one := func(n int) bool { return rng.IntN(n) == 0 }
	s := scenario{rounds: 6, rate: 6, maxWork: 1 + rng.IntN(3), cutOff: one(3)}
	if one(6) {
		s.rounds = 12
	}
	if one(5) {
		s.rate = 15
	}
	if one(3) {
		s.skew = 2 * time.Second
	}
	if one(4) {
		s.latency = time.Second
	}
	s.slow = one(3)
	if one(3) {
		s.quorum = 2 + rng.IntN(2)
	}
	if one(10) {
		s.throttling = adversary.Throttling{Of: partitions[rng.IntN(len(partitions))], From: 60 + rng.IntN(300),
			For: 80}
	}
	return s
}

// world is the state of one seed's run.
type world struct {
	*adversary.World
	s      scenario
	fake   *tabletest.Fake
	mutant mutant
	check  *checker

	mu      sync.Mutex // of what the actors share
	version int        // of the analysis
	said    map[string][]research.Curated

	pending *adversary.Inbox[research.Message]
	curated *inbox[research.Curated]
	reports *inbox[research.Report]
	wakes   *adversary.Inbox[string]
}

// inbox is a queue whose messages come again until they are dealt with.
type inbox[R any] struct {
	*adversary.Inbox[R]
	back []R
}

// arrive takes a message.
func (q *inbox[R]) arrive(rng *rand.Rand) (R, bool) {
	if n := len(q.back); n > 0 && rng.IntN(2) == 0 {
		m := q.back[n-1]
		q.back = q.back[:n-1]
		return m, true
	}
	return q.Arrive(rng)
}

func newWorld(seed uint64, m mutant) *world {
	w := &world{World: adversary.New(seed, 14), fake: tabletest.New(), mutant: m, said: map[string][]research.Curated{}}
	w.s = draw(w.Rng)
	w.s.review = seed%3 == 1 // not drawn, so that the histories of other seeds stay as they are
	w.s.sound = seed%5 == 1
	w.Log("%+v", w.s)
	w.check = newChecker(time.Now)
	w.check.revisions, w.check.met = m.revisions, w.Met
	w.Latency, w.CutOff, w.Throttling = w.s.latency, w.s.cutOff, w.s.throttling
	w.Delays = [3]time.Duration{3 * time.Second, functionTime + 10*time.Second, 3 * time.Minute}
	w.Reads = []string{"Query"}
	w.Rate = func() int { return w.s.rate }
	w.Faults = func(op string) ([]adversary.Fault, bool) {
		return []adversary.Fault{adversary.Slow}, w.s.slow && op == "TransactWriteItems"
	}
	w.Failed = func() bool { return w.check.err != nil }
	w.fake.Watch = func(changes []tabletest.Change) {
		was := w.check.err
		w.check.commit(changes)
		if w.check.err != was {
			w.Log("VIOLATION %v", w.check.err)
		}
	}
	w.pending = &adversary.Inbox[research.Message]{World: w.World, Name: "work item", Late: 20 * time.Minute}
	w.curated = &inbox[research.Curated]{Inbox: &adversary.Inbox[research.Curated]{World: w.World, Name: "record",
		Late: time.Hour}}
	w.reports = &inbox[research.Report]{Inbox: &adversary.Inbox[research.Report]{World: w.World, Name: "report",
		Late: 30 * time.Minute}}
	w.wakes = &adversary.Inbox[string]{World: w.World, Name: "wake-up", Late: time.Hour}
	return w
}

// actor is one process.
type actor struct {
	*adversary.Actor
	w     *world
	store *research.Store
	made  map[string]bool // ids
	doing string          // the function that it runs
	work  []*work         // of a researcher
}

func (w *world) newActor(name string) *actor {
	a := &actor{Actor: w.NewActor(name, w.s.skew), w: w, made: map[string]bool{}}
	a.Owner = a
	keyed := a.Client(w.fake, w.Throttle)
	keyed.Queries = true
	keyed.Order = func(keys []tabletest.Item) { // others write between the reads of a batch
		a.Rng.Shuffle(len(keys), func(i, k int) { keys[i], keys[k] = keys[k], keys[i] })
	}
	var client adversary.Client = keyed
	if w.mutant.client != nil {
		client = w.mutant.client(a, client)
	}
	a.store = newStore(a.Timed(tabletest.Table(client)), a.Now, a.newID)
	a.store.Times, a.store.Send, a.store.Wake = times, a.send, a.wake
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

// begin starts a function, and returns until when it starts something.
func (a *actor) begin(name string) time.Time {
	a.doing = name
	return a.Begin(functionTime)
}

// send puts a work item on the queue.
func (a *actor) send(_ context.Context, m research.Message) error {
	return a.Do("send work item", func() error {
		a.w.pending.Send(m)
		return nil
	})
}

// wake starts the assigner.
func (a *actor) wake(_ context.Context, project string) error {
	return a.Do("wake", func() error {
		a.w.wakes.Send(project)
		return nil
	})
}
