// Package sim runs the ingest queue's production code against an adversary:
// workers, admins and clocks whose every call may crash, be repeated, get lost
// or come late, in an order that a seed decides.
package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/guregu/dynamo/v2/dynamodbiface"

	"archivist/pkg/ingest"
	"archivist/pkg/lease"
	"archivist/pkg/queue"
	"archivist/pkg/table/tabletest"
)

// Faults of one call.
type trouble int

const (
	none trouble = iota
	crashBefore
	crashAfter
	lostAnswer
	repeated
	repeatedLate
	slow
	throttled
	conflicted
)

var (
	errDead = errors.New("sim: this worker is dead")
	errLost = errors.New("sim: the answer was lost")
)

// parked is a call that waits to be let go.
type parked struct {
	actor *actor
	op    string
	goOn  chan trouble
}

// world is everything of one seed.
type world struct {
	rng     *rand.Rand
	fake    *tabletest.Fake
	mutant  mutant
	mu      sync.Mutex
	waiting []*parked
	late    []func() error // repeated calls that have not landed yet
	sent    []queue.Message
	started map[string]bool
	stopped map[string]bool
	store   *store
	check   *checker
	history []string
	calls   int
	ids     int
	calm    bool // faults have stopped
	repairs int

	share     int // of the gates' settings; most seeds have none
	patience  time.Duration
	aging     time.Duration
	completed int // jobs
}

// actor is one process: a worker, an admin or a clock.
type actor struct {
	w    *world
	name string
	dead bool
	rng  *rand.Rand
	q    *queue.Queue
	c    *queue.Clock
}

func (w *world) log(format string, args ...any) {
	w.history = append(w.history, fmt.Sprintf(format, args...))
}

func newWorld(seed uint64, m mutant) *world {
	w := &world{rng: rand.New(rand.NewPCG(seed, 1)), fake: tabletest.New(), mutant: m, started: map[string]bool{}, stopped: map[string]bool{}}
	if w.rng.IntN(4) == 0 {
		w.share = 1
	}
	if w.rng.IntN(3) == 0 {
		w.patience = 10 * time.Minute
	}
	if w.rng.IntN(3) == 0 {
		w.aging = time.Minute
	}
	w.store = &store{w: w, heads: map[string][]string{}}
	w.check = newChecker(w)
	w.fake.Watch = w.check.commit
	w.fake.Lag = func() int { return w.rng.IntN(6) }
	return w
}

// maxInFlight is small, so that jobs wait for slots.
const maxInFlight = 2

var timing = ingest.Timings["production"]

// retention of a completed batch's rows: longer than all that happens before.
const retention = 30 * 24 * time.Hour

func (w *world) newActor(name string) *actor {
	a := &actor{w: w, name: name, rng: rand.New(rand.NewPCG(w.rng.Uint64(), 2))}
	var client dynamodbiface.DynamoDBAPI = &tabletest.Client{DynamoDBAPI: w.fake, Do: a.do}
	if w.mutant.client != nil {
		client = w.mutant.client(client)
	}
	t := tabletest.Table(client)
	t.Wait, t.Jitter = a.wait, a.rng.Float64
	newID := func() string { // ULIDs in shape: unique and rising
		w.mu.Lock()
		defer w.mu.Unlock()
		w.ids++
		return fmt.Sprintf("ID%06d", w.ids)
	}
	a.q = &queue.Queue{Table: t, Now: time.Now, NewID: newID, Executions: a, Poke: func(context.Context) error { return nil },
		Metric: func(name string, _ float64) { w.repairs++ }, Rules: ingest.Rules{Timing: timing, FailedRetention: time.Hour, Retention: retention, Aging: w.aging},
		Clean: func(context.Context, string, time.Time) (bool, error) {
			return w.calm || a.rng.IntN(2) == 0, a.do("clean", func() error { return nil })
		},
		// Failed jobs keep their space with their work files until they are cleaned away.
		Settings: queue.Settings{MaxInFlight: maxInFlight, Space: 100, Reserve: 10, Share: w.share, Patience: w.patience, SweepPage: 50}, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	a.c = &queue.Clock{Queue: a.q, Leases: &lease.Store{Table: t, Now: time.Now, NewID: newID}}
	return a
}

func (a *actor) wait(ctx context.Context, d time.Duration) error {
	if a.dead {
		return errDead
	}
	return a.sleep(d)
}

// sleep lets time pass, and then waits for the scheduler: two actors that wake
// at one instant must not run side by side, or a seed would not replay.
func (a *actor) sleep(d time.Duration) error {
	time.Sleep(d)
	return a.do("awake", func() error { return nil })
}

// do is every call that an actor makes to anything: it waits until the
// scheduler lets it go, and meets what the seed has for it.
func (a *actor) do(op string, call func() error) error {
	if a.dead {
		return errDead
	}
	p := &parked{actor: a, op: op, goOn: make(chan trouble)}
	a.w.mu.Lock()
	a.w.waiting = append(a.w.waiting, p)
	a.w.mu.Unlock()
	switch t := <-p.goOn; t {
	case crashBefore:
		a.dead = true
		return errDead
	case crashAfter:
		err := call()
		a.w.log("  (effect %v)", err)
		a.dead = true
		return errDead
	case lostAnswer:
		_ = call()
		return errLost
	case repeated:
		_ = call()
		return call()
	case repeatedLate:
		a.w.late = append(a.w.late, call)
		return call()
	case slow:
		time.Sleep(timing.Long + timing.Return)
		return a.do(op+" (slow)", call)
	case throttled:
		return tabletest.Throttled()
	case conflicted:
		return tabletest.Conflicted()
	}
	return call()
}

// pick is the fault of the next call.
func (w *world) pick(p *parked) trouble {
	if w.calm || w.rng.IntN(100) >= 12 {
		return none
	}
	if p.op == "awake" {
		return none
	}
	write := p.op != "GetItem" && p.op != "Query"
	switch n := w.rng.IntN(10); {
	case n == 0:
		return crashBefore
	case n == 1:
		return crashAfter
	case n == 2 && write:
		return lostAnswer
	case n == 3 && write:
		return repeated
	case n == 4 && write:
		return repeatedLate
	case n <= 6:
		return slow
	case n == 7:
		return throttled
	case n == 8 && p.op == "TransactWriteItems":
		return conflicted
	}
	return none
}

// run lets calls go one by one until every actor has ended.
func (w *world) run(done *int, actors int) {
	for {
		synctest.Wait()
		if w.check.err != nil {
			w.calm = true
		}
		w.mu.Lock()
		if *done == actors && len(w.waiting) == 0 {
			w.mu.Unlock()
			return
		}
		if len(w.waiting) == 0 {
			w.mu.Unlock()
			time.Sleep(500 * time.Millisecond)
			continue
		}
		if len(w.late) > 0 && w.rng.IntN(4) == 0 {
			call := w.late[0]
			w.late = w.late[1:]
			w.mu.Unlock()
			w.log("a repeated call lands late: %v", call())
			continue
		}
		slices.SortStableFunc(w.waiting, func(a, b *parked) int { return strings.Compare(a.actor.name, b.actor.name) })
		i := w.rng.IntN(len(w.waiting))
		p := w.waiting[i]
		w.waiting = slices.Delete(w.waiting, i, i+1)
		w.mu.Unlock()
		t := w.pick(p)
		w.calls++
		w.log("%s %s %v", p.actor.name, p.op, t)
		p.goOn <- t
	}
}

// Start makes an execution known. Its first message may arrive any time, or never.
func (a *actor) Start(_ context.Context, _, name string, in queue.Message) error {
	return a.do("Start "+name, func() error {
		if !a.w.started[name] {
			a.w.started[name] = true
			a.w.deliver(in)
		}
		return nil
	})
}

// Stop ends an execution; the adversary may deliver what it sent all the same.
func (a *actor) Stop(_ context.Context, _, name, _ string) error {
	return a.do("Stop "+name, func() error { return nil })
}

// StoppedByHand reports the executions that the scenario stopped.
func (a *actor) StoppedByHand(_ context.Context, _, name string) (string, bool, error) {
	stopped := false
	err := a.do("Describe "+name, func() error { stopped = a.w.stopped[name]; return nil })
	return "by the simulation", stopped, err
}

// Answer goes on in an execution. A success for a stage that the job has not
// left is the worst that a worker can say.
func (a *actor) Answer(_ context.Context, token string, ans ingest.Answer, _ string) error {
	return a.do(fmt.Sprintf("Answer %s %s", token, ans), func() error {
		m := untoken(token)
		if ans == ingest.Success {
			a.w.check.success(m)
		}
		switch {
		case ans == ingest.Continue:
			a.w.deliver(m)
		case ans == ingest.Success && m.Job != "" && ingest.State(m.State) != ingest.Notify && ingest.State(m.State) != ingest.Estimating:
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

// arrive takes a message that was sent: it may come again, or be forgotten.
func (w *world) arrive(rng *rand.Rand) (queue.Message, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.sent) == 0 {
		return queue.Message{}, false
	}
	i := rng.IntN(len(w.sent))
	m := w.sent[i]
	if w.calm || rng.IntN(5) > 0 {
		w.sent = slices.Delete(w.sent, i, i+1)
	}
	if !w.calm && rng.IntN(12) == 0 {
		return queue.Message{}, false // lost
	}
	return m, true
}

func (w *world) keep(m queue.Message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent = append(w.sent, m)
}

// handle lets an actor be the worker for one message.
func (a *actor) handle(ctx context.Context, m queue.Message) {
	var stage ingest.Stage
	if m.Batch != "" {
		stage, _ = ingest.StageNamed(m.Step)
	} else {
		stage, _ = ingest.StageOf(ingest.State(m.State))
	}
	step := a.step(stage, m)
	if a.w.mutant.step != nil {
		step = a.w.mutant.step(a, m, step)
	}
	worker := queue.Worker{Queue: a.q, Stage: stage, Step: step, Answers: a}
	keep, err := worker.Handle(ctx, m)
	if keep > 0 || err != nil {
		a.w.keep(m)
	}
}

// tick is one look of the clock.
func (a *actor) tick(ctx context.Context) {
	_ = a.c.Tick(ctx, !a.w.mutant.noSweep)
}

var _ queue.Executions = (*actor)(nil)
var _ queue.Answers = (*actor)(nil)
