package adversary

import (
	"testing/synctest"
	"time"
)

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
