// Package revisionsim runs the production code of the revision queue against an adversary: each call of a
// hook, a pass, an execution or a person may crash, be repeated, get lost or arrive late, in an order that a
// seed decides. Archives in memory get random definitions. Executions begin never, twice and late, die, record
// late results, and commit to their archive. Several passes are at one archive.
//
// After each commit the checker compares all rows with the rules, by a reference of its own: what each revision
// plans, what each instance waits for, who supersedes whom, whose turn of a lock it is. Then the faults stop, only
// the schedule starts passes, and everything must come to rest.
//
//	go test ./test/revisionsim                     seeds for some seconds
//	go test ./test/revisionsim -for=1m -seed=N     for a minute, beginning with seed N
//	go test ./test/revisionsim -seeds=1 -seed=N    one seed again, with its history
//	go test ./test/revisionsim -mutants=all        with the mutants
//
// TestMutants breaks each rule in turn, to show that the checker detects it.
package revisionsim

import (
	"context"
	"errors"
	"time"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/lease"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/pkg/revisions/archive"
	"archivist/pkg/revisions/revision"
	"archivist/test/adversary"
)

// times of the simulation, shorter than those of a deployment.
var times = revision.Times{Pass: 90 * time.Second, Resend: time.Minute, Begin: 5 * time.Minute, Margin: time.Minute,
	Grace: time.Minute, Gap: time.Minute, Reconcile: 10 * time.Minute, Keep: 15 * time.Minute}

// functionTime is the time-out of a function. It starts nothing new in its last part.
const functionTime = time.Minute

// world is the state of one seed's run.
type world struct {
	healed int // reruns when all had come to rest
	*adversary.World
	s      scenario
	fake   *tabletest.Fake
	mutant mutant
	check  *checker
	repos  map[string]*repository

	open  map[string]bool   // executions by name: they go on
	known map[string]bool   // likewise: they were started
	told  map[string]string // by prefix, why a run is to end
	kept  map[string][]byte // objects by key

	hooks   *adversary.Inbox[hook]
	wakes   *adversary.Inbox[string]
	starts  *adversary.Inbox[revision.Execution]
	results *adversary.Inbox[result]
}

// hook says that a revision was committed.
type hook struct {
	archive string
	revision.Notice
}

func newWorld(seed uint64, m mutant) *world {
	w := &world{World: adversary.New(seed, 15), fake: tabletest.New(), mutant: m, repos: map[string]*repository{},
		open: map[string]bool{}, known: map[string]bool{}, told: map[string]string{}, kept: map[string][]byte{}}
	w.s = draw(w.Rng)
	w.check = newChecker(w)
	w.Latency, w.CutOff, w.Throttling = w.s.latency, w.s.cutOff, w.s.throttling
	w.Delays = [3]time.Duration{3 * time.Second, functionTime + 10*time.Second, 3 * time.Minute}
	w.Reads = []string{"Query", "archive"}
	w.Rate = func() int { return w.s.rate }
	w.Faults = func(op string) ([]adversary.Fault, bool) {
		return []adversary.Fault{adversary.Slow}, w.s.slow && op == "TransactWriteItems"
	}
	w.Failed = func() bool { return w.check.err != nil }
	w.fake.Watch = w.check.commit
	if w.s.lag {
		w.fake.Lag = func() int { return w.Rng.IntN(6) }
	}
	w.hooks = &adversary.Inbox[hook]{World: w.World, Name: "hook", Late: 20 * time.Minute}
	w.wakes = &adversary.Inbox[string]{World: w.World, Name: "wake-up", Late: 20 * time.Minute}
	w.starts = &adversary.Inbox[revision.Execution]{World: w.World, Name: "execution", Late: 8 * time.Minute}
	w.results = &adversary.Inbox[result]{World: w.World, Name: "result", Late: 10 * time.Minute}
	return w
}

// actor is one process.
type actor struct {
	*adversary.Actor
	w     *world
	store *revision.Store

	passes bool                // it is in a pass
	ending *revision.Execution // whose result it records
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
	tab := a.Timed(tabletest.Table(client))
	a.store = &revision.Store{Table: tab, Leases: &lease.Store{Table: tab, Now: a.Now, NewID: w.NewID}, Now: a.Now,
		NewID: w.NewID, Secret: func() string { return "secret" + w.NewID() }, Times: times, Open: a.open,
		Start: a.start, Stop: a.stop, Tell: a.tell, Wake: a.wake, Bucket: a,
		Metric: func(name string, n float64) { w.Met("metric " + name) }}
	return a
}

// acting is the actor whose call runs now, nil if the call is late.
func (w *world) acting() *actor { return adversary.Acting[actor](w.World) }

// by is who acts, and why.
func (a *actor) by() revision.By { return revision.By{Actor: a.Name, Reason: "the simulation"} }

// wake asks for a pass.
func (a *actor) wake(_ context.Context, archive string) error {
	return a.Do("wake "+archive, func() error {
		a.w.wakes.Send(archive)
		return nil
	})
}

// pass is one invocation of the function that makes passes: it was woken, or the schedule starts it.
func (a *actor) pass(ctx context.Context) {
	names := []string{}
	if a.Rng.IntN(3) == 0 {
		due, err := a.store.Waiting(ctx, 10)
		a.w.Log("  (%s: the schedule finds %v: %v)", a.Name, due, err)
		names = due
	} else if name, ok := a.w.wakes.Arrive(a.Rng); ok {
		names = append(names, name)
	}
	for _, name := range names {
		a.passIn(ctx, name)
	}
}

func (a *actor) passIn(ctx context.Context, name string) {
	a.passes = true
	did, err := a.store.Pass(ctx, name, a.Begin(functionTime))
	a.passes, a.Until = false, time.Time{}
	a.w.Log("  (%s passed %s: %+v: %v)", a.Name, name, did, err)
	if did.Busy {
		a.w.Met("pass: busy")
	}
	if did.More {
		a.w.Met("pass: more")
	}
	if err == nil || a.Dead() {
		return
	}
	kind := fault.Of(err)
	a.w.Met("pass: error " + string(kind))
	if a.w.Calm || kind != fault.Stale && kind != fault.Unavailable && !errors.Is(err, adversary.ErrDead) {
		a.w.check.fail("a pass in %s fails: %v", name, err)
	}
}

// open opens an archive: as it is now, whatever is committed while it is read.
func (a *actor) open(_ context.Context, l archive.Location) (src archive.Source, err error) {
	err = a.Do("archive open "+l.URL, func() error {
		r := a.w.repos[l.URL]
		if r.broken > 0 && !a.w.Calm {
			r.broken--
			a.w.Met("archive cannot be read")
			return fault.New(fault.Unavailable, "sim: the archive does not answer")
		}
		src = &snapshot{a, l.URL, append([]*commit{}, r.commits...)}
		return nil
	})
	return src, unavailable(err)
}
