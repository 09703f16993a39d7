package adversary

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
)

// Actor is one process. Once it has died, each of its calls fails without an effect.
type Actor struct {
	World *World
	Name  string
	Rng   *rand.Rand
	Skew  time.Duration // of its clock
	Until time.Time     // when its function is ended; zero: never
	Met   int           // faults so far
	Owner any           // the simulation's own actor

	dead atomic.Bool // its calls may run at the same time
}

// Process returns a: a simulation's own actor embeds it.
func (a *Actor) Process() *Actor { return a }

// NewActor starts a process. Its clock differs from the bubble's by less than skew.
func (w *World) NewActor(name string, skew time.Duration) *Actor {
	a := &Actor{World: w, Name: name, Rng: rand.New(rand.NewPCG(w.Rng.Uint64(), 2))}
	if skew > 0 {
		a.Skew = time.Duration(a.Rng.Int64N(int64(2*skew))) - skew
	}
	return a
}

// Now is the time by the actor's clock.
func (a *Actor) Now() time.Time { return time.Now().Add(a.Skew) }

// Dead reports whether the process has died.
func (a *Actor) Dead() bool { return a.dead.Load() }

// Begin starts a function with that time-out, and returns until when it begins something.
func (a *Actor) Begin(most time.Duration) time.Time {
	if a.World.CutOff {
		a.Until = time.Now().Add(most)
	}
	return a.Now().Add(most - 15*time.Second)
}

// awake is the call of an actor that a timer has woken.
const awake = "awake"

// Acting is the simulation's own actor whose call runs now, nil if the call is late.
func Acting[A any](w *World) *A {
	if w.Acting == nil {
		return nil
	}
	return w.Acting.Owner.(*A)
}

// Do makes a call: every call of an actor goes through it. It waits for its turn, and gets
// the fault that the seed has for it.
func (a *Actor) Do(op string, call func() error) error {
	if a.over() {
		return ErrDead
	}
	if a.World.Latency > 0 && !a.World.Calm && op != awake {
		a.World.Sleep(a.latency(op))
	}
	t := a.turn(op)
	if a.over() {
		return ErrDead
	}
	if t != None {
		a.Met++
		a.World.Met(t.String())
		if a.World.Hit != nil {
			a.World.Hit(a)
		}
	}
	return a.meet(t, op, call)
}

// turn waits until the seed picks the call, and returns its fault.
func (a *Actor) turn(op string) Fault {
	p := &parked{actor: a, op: op, goOn: make(chan Fault)}
	a.World.mu.Lock()
	a.World.waiting = append(a.World.waiting, p)
	a.World.mu.Unlock()
	a.World.signal()
	return <-p.goOn
}

// latency of a call. It follows from the call alone, so that calls of one actor at the same
// time replay.
func (a *Actor) latency(op string) time.Duration {
	h := fnv.New64a()
	fmt.Fprintln(h, a.Name, op, time.Now().UnixNano())
	return time.Duration(h.Sum64() % uint64(a.World.Latency))
}

// over reports whether the process has died, or its time has ended. After a violation all calls fail: what is broken
// might never come to an end.
func (a *Actor) over() bool {
	late := !a.Until.IsZero() && !time.Now().Before(a.Until)
	if late && a.dead.CompareAndSwap(false, true) {
		a.World.Met("cut off at its time-out")
	}
	return a.dead.Load() || a.World.Failed()
}

// Wait sleeps like a client of the table that waits between its tries.
func (a *Actor) Wait(ctx context.Context, d time.Duration) error {
	if a.dead.Load() {
		return ErrDead
	}
	if end, ok := ctx.Deadline(); ok && time.Until(end) <= d {
		_ = a.Sleep(time.Until(end))
		return context.DeadlineExceeded
	}
	return a.Sleep(d)
}

// Sleep lets time pass, and then waits for its turn: two actors that wake at one instant must
// not run side by side, or a seed would not replay.
func (a *Actor) Sleep(d time.Duration) error {
	a.pass(d)
	return a.Do(awake, func() error { return nil })
}

// pass lets time pass. An actor whose time ends meanwhile waits for its turn to end, too.
func (a *Actor) pass(d time.Duration) {
	a.World.Sleep(d)
	if a.over() {
		a.turn(awake)
	}
}

// Client is the actor's client of a table. refuse, if set, is asked for each partition of a
// request.
func (a *Actor) Client(fake *tabletest.Fake, refuse func(partition string) error) Keyed {
	return Keyed{Client: &tabletest.Client{DynamoDBAPI: fake, Do: a.Do, Refuse: refuse}}
}

// Timed makes the waits of a table those of the actor.
func (a *Actor) Timed(t *table.Table) *table.Table {
	t.Wait, t.Jitter = a.Wait, a.Rng.Float64
	return t
}

// Keyed names the row in each read: an actor may read several at the same time, and they
// need an order to replay.
type Keyed struct {
	*tabletest.Client
	Queries bool // names the partition in each query, too
}

// named is the client for one call with that name.
func (k Keyed) named(rest string) *tabletest.Client {
	named := *k.Client
	named.Do = func(op string, call func() error) error { return k.Do(op+rest, call) }
	return &named
}

// GetItem reads a row.
func (k Keyed) GetItem(ctx context.Context, in *dynamodb.GetItemInput,
	o ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return k.named(" "+Text(in.Key, "pk")+" "+Text(in.Key, "sk")).GetItem(ctx, in, o...)
}

// Query reads rows.
func (k Keyed) Query(ctx context.Context, in *dynamodb.QueryInput, o ...func(*dynamodb.Options)) (*dynamodb.QueryOutput,
	error) {
	name := ""
	for _, attribute := range slices.Sorted(maps.Keys(in.KeyConditions)) {
		for _, v := range in.KeyConditions[attribute].AttributeValueList {
			if s, is := v.(*types.AttributeValueMemberS); is && k.Queries {
				name += " " + s.Value
			}
		}
	}
	return k.named(name).Query(ctx, in, o...)
}

// BatchGetItem reads rows.
func (k Keyed) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput,
	o ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	name := ""
	for _, of := range in.RequestItems {
		for _, key := range of.Keys {
			name += " " + Text(key, "pk") + " " + Text(key, "sk")
		}
	}
	return k.named(name).BatchGetItem(ctx, in, o...)
}

// Crowd is actors that act in rounds until they have ended.
type Crowd[A interface{ Process() *Actor }] struct {
	World   *World
	New     func(name string) A // starts a process
	Between time.Duration       // rounds, at most

	actors, done int
}

// Spawn starts an actor. One that dies gets a successor for its next round.
func (c *Crowd[A]) Spawn(name string, rounds int, f func(a A)) {
	c.actors++
	a := c.New(name)
	go func() {
		for range rounds {
			a = c.revive(a)
			f(a)
			c.World.Sleep(time.Duration(a.Process().Rng.Int64N(int64(c.Between))))
		}
		c.revive(a)
		c.World.leaves(&c.done)
	}()
	synctest.Wait()
}

// revive replaces a process that died or was ended by a new one.
func (c *Crowd[A]) revive(is A) A {
	a := is.Process()
	died := a.dead.Swap(false)
	a.Until = time.Time{}
	_ = a.Sleep(0)
	if died {
		return c.New(a.Name)
	}
	return is
}

// Run runs the actors' calls one by one until all have ended.
func (c *Crowd[A]) Run() { c.World.run(&c.done, c.actors) }

// Alone runs one actor, which acts once.
func (c *Crowd[A]) Alone(name string, f func(a A)) {
	c.Spawn(name, 1, f)
	c.Run()
}
