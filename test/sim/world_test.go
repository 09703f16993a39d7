// Package sim runs the ingest queue's production code against an adversary: each call of a
// worker, admin or scheduler may crash, be repeated, get lost or arrive late, in an order
// that a seed decides.
//
// Every actor is a goroutine in a bubble (testing/synctest) with a time of its own. Each
// call of an actor waits, and the seed picks the next call and its fault. After each commit
// the checker compares all rows with the rules. Then the faults stop, and everything must
// come to rest.
//
//	go test ./test/sim                     seeds for some seconds
//	go test ./test/sim -for=1m -seed=N     for a minute, beginning with seed N
//	go test ./test/sim -seeds=1 -seed=N    one seed again, with its history
//	go test ./test/sim -mutants=all        with the mutants
//
// TestMutants breaks each rule in turn, to show that the checker detects it.
package sim

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/bucket/buckettest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/lease"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/test/adversary"
)

// world is the state of one seed's run.
type world struct {
	*adversary.World
	s        scenario
	fake     *tabletest.Fake
	mutant   mutant
	mu       sync.Mutex // of what the actors share
	sent     []queue.Message
	started  map[string]bool
	stopped  map[string]bool // by the scenario
	ended    map[string]bool // executions that were stopped
	store    *store
	twin     *buckettest.Twin // of the work bucket
	check    *checker
	began    time.Time
	calmed   time.Time // when the faults stopped
	wakes    int
	asked    map[string][]time.Time // until when the sources of jobs asked to wait
	ahead    map[string][]string    // note of a batch → manifests that were unread before it was submitted
	refused  map[string]bool        // jobs and batches that a dependency has refused since then
	metrics  map[string]float64
	mailed   map[string]int            // mail and recipient → how often it was sent
	reported map[string]tabletest.Item // rows of jobs, for the mutant of reports

	asks     []ingest.Action // that have an id of their request: the admins may repeat them
	bulks    []bulkAsk
	requests int
}

// actor is one process: a worker, an admin or a scheduler.
type actor struct {
	*adversary.Actor
	w *world

	does    ingest.Action // that its call is part of, or zero
	acted   int           // changes of rows when that action began
	wrote   int           // transactions so far
	ticks   bool          // its call is part of a tick
	reports bool          // or of a report
	q       *queue.Queue
	c       *queue.Scheduler
}

// acting is the actor whose call runs now, nil if the call is late.
func (w *world) acting() *actor { return adversary.Acting[actor](w.World) }

// acted is when the action began of which a call is running: changes of rows. 0: it is not
// known, because the call is late.
func (w *world) acted() int {
	if w.Acting == nil {
		return 0
	}
	return w.acting().acted
}

// count adds to a metric.
func (w *world) count(name string, n float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.metrics[name] += n
	if name == "Repairs" && n > 0 {
		w.Met("repair")
	}
}

func newWorld(seed uint64, m mutant) *world {
	w := &world{World: adversary.New(seed, 1), fake: tabletest.New(), mutant: m, started: map[string]bool{},
		stopped: map[string]bool{}, ended: map[string]bool{}, metrics: map[string]float64{}, mailed: map[string]int{},
		reported: map[string]tabletest.Item{},
		asked:    map[string][]time.Time{}, refused: map[string]bool{}, ahead: map[string][]string{}}
	w.s = draw(w.Rng)
	w.Log("%+v", w.s)
	w.began = time.Now()
	w.store = &store{w: w, heads: map[string][]string{}, ids: map[string]string{}, files: map[string]bool{},
		rows: map[string]bool{}}
	w.twin = buckettest.New("")
	w.twin.Small = 1 << 20 // nothing on disk
	w.check = newChecker(w)
	w.troubles()
	w.fake.Watch = w.check.commit
	w.fake.Lag = func() int { return w.Rng.IntN(maxLag + 1) }
	return w
}

// maxLag is the number of changed rows by which the indexes may lag.
const maxLag = 5

var timing = ingest.Timings["production"]

func (w *world) newActor(name string) *actor {
	a := &actor{Actor: w.NewActor(name, w.s.skew), w: w}
	a.Owner = a
	var client adversary.Client = a.Client(w.fake, w.throttles)
	if w.mutant.client != nil {
		client = w.mutant.client(a, client)
	}
	t := a.Timed(tabletest.Table(client))
	a.q = &queue.Queue{Table: t, Now: a.Now, NewID: w.NewID, Executions: a, Wake: a.wake, Stored: a.stored,
		Clean:  a.clean,
		Record: a.recordObject,
		Metric: w.count,
		Rules:  ingest.Rules{Timing: timing, FailedRetention: w.s.keepFailed, Retention: retention, Aging: w.s.aging},
		// Failed jobs keep their space and work files until they are cleaned up.
		Settings: queue.Settings{MaxInFlight: w.s.slots, Space: capacity, Reserve: reserve, Share: w.s.share,
			Patience: w.s.patience, FailedKeep: day, SweepPage: 50},
		Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	if w.s.mails {
		a.q.Compose = a.compose
	}
	a.c = &queue.Scheduler{Queue: a.q, Leases: &lease.Store{Table: t, Now: a.Now, NewID: w.NewID}}
	return a
}

// wake asks the scheduler to run the gates. It may get lost.
func (a *actor) wake(context.Context) error {
	if !a.Dead() && (a.w.Calm || a.Rng.IntN(4) > 0) {
		a.w.wakes++
	}
	return nil
}

// refusesNow reports whether a dependency that refuses for a time refuses now.
func (w *world) refusesNow(r refusal) bool {
	return w.s.refuses == r && time.Since(w.began) < refusing
}

// Start records an execution. Its first message may arrive at any time, or never.
func (a *actor) Start(_ context.Context, machine, name string, in queue.Message) error {
	if a.w.refusesNow(refusesStart) && machine == queue.MachineJob {
		return errRefused
	}
	return a.Do("Start "+name, func() error {
		if !a.w.started[name] {
			a.w.started[name] = true
			a.w.deliver(in)
		}
		return nil
	})
}

// Stop ends an execution; the adversary may still deliver what it sent.
func (a *actor) Stop(_ context.Context, _, name, _ string) error {
	return a.Do("Stop "+name, func() error { a.w.ended[name] = true; return nil })
}

// StoppedByHand reports the executions that the scenario stopped.
func (a *actor) StoppedByHand(_ context.Context, _, name string) (string, bool, error) {
	if a.w.refusesNow(refusesDescribe) {
		return "", false, errRefused
	}
	stopped := false
	err := a.Do("Describe "+name, func() error { stopped = a.w.stopped[name]; return nil })
	return "by the simulation", stopped, err
}

// Problem returns a text for explain; nothing else may depend on it.
func (a *actor) Problem(_ context.Context, _, name string) (string, error) {
	if a.w.refusesNow(refusesDescribe) {
		return "", errRefused
	}
	return "could not send a message of " + name, nil
}

// Answer continues an execution. A success for a stage that the job has not left is the worst
// answer that a worker can give.
func (a *actor) Answer(_ context.Context, token string, ans ingest.Answer, _ string) error {
	return a.Do(fmt.Sprintf("Answer %s %s", token, ans), func() error {
		m := untoken(token)
		if ans == ingest.Success {
			a.w.check.success(m)
		}
		switch {
		case ans == ingest.Continue:
			a.w.deliver(m)
		case ans == ingest.Success && m.Job != "" && ingest.State(m.State) != ingest.Notify &&
			ingest.State(m.State) != ingest.Estimating:
			m.State = string(ingest.After(ingest.State(m.State)))
			a.w.deliver(m)
		}
		return nil
	})
}

func (w *world) deliver(m queue.Message) {
	m.Token = fmt.Sprintf("%s|%s|%d|%s|%s", m.Job, m.Batch, m.Exec, m.State, m.Step)
	w.sent = append(w.sent, m)
}

func untoken(t string) queue.Message {
	f := strings.Split(t, "|")
	m := queue.Message{Job: f[0], Batch: f[1], State: f[3], Step: f[4], Token: t}
	fmt.Sscan(f[2], &m.Exec)
	return m
}

// arrive picks a message that was sent: it may be delivered again, or get lost.
func (w *world) arrive(rng *rand.Rand) (queue.Message, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.sent) == 0 {
		return queue.Message{}, false
	}
	i := rng.IntN(len(w.sent))
	m := w.sent[i]
	if w.Calm || rng.IntN(5) > 0 {
		w.sent = slices.Delete(w.sent, i, i+1)
	}
	if !w.Calm && rng.IntN(12) == 0 {
		return queue.Message{}, false // lost
	}
	return m, true
}

func (w *world) keep(m queue.Message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent = append(w.sent, m)
}

// handle makes an actor the worker for one message. It returns whether the message is kept
// for later.
func (a *actor) handle(ctx context.Context, m queue.Message) bool {
	if m.Operation != "" {
		keep := a.runPages(ctx, m)
		if keep {
			a.w.keep(m)
		}
		return keep
	}
	stage, _ := ingest.StageNamed(m.Step)
	if m.Batch == "" {
		stage, _ = ingest.StageOf(ingest.State(m.State))
	}
	step := a.step(stage)
	if a.w.mutant.step != nil {
		step = a.w.mutant.step(a, m, step)
	}
	a.Begin(timing.Times(stage).Timeout)
	worker := queue.Worker{Queue: a.q, Stage: stage, Step: step, Answers: a}
	met, from := a.Met, a.w.check.changes
	keep, err := worker.Handle(ctx, m)
	if keep == 0 && err == nil && a.Met == met {
		a.w.check.handled(a, from)
	}
	if keep > 0 || err != nil {
		a.w.keep(m)
		return true
	}
	return false
}

// tick is one tick of the scheduler.
func (a *actor) tick(ctx context.Context, sweep bool) {
	a.Begin(timing.Scheduler)
	met := a.Met
	a.ticks = true
	defer func() { a.ticks = false }()
	if err := a.c.Tick(ctx, sweep); err == nil && a.Met == met {
		a.w.check.ticked()
	} else if fault.Is(err, fault.Held) {
		a.w.Met("met another tick")
	} else if fault.Is(err, fault.Stale) {
		a.w.Met("lease lost")
	}
}

var _ queue.Executions = (*actor)(nil)
var _ queue.Answers = (*actor)(nil)
