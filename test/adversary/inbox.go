package adversary

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Inbox is wake-ups of one kind that are under way. Each arrives never, once or twice, at once or
// late, and in any order.
type Inbox[R any] struct {
	World *World
	Name  string        // in what a run reports, e.g. "stream record"
	Late  time.Duration // how late one can be, at most

	mu   sync.Mutex
	sent []sent[R]
}

type sent[R any] struct {
	what R
	from time.Time // when it can arrive
}

// Send puts a wake-up under way. Once the faults have stopped, it arrives once.
func (b *Inbox[R]) Send(what R) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := sent[R]{what: what, from: time.Now()}
	switch n := b.World.Rng.IntN(12); {
	case b.World.Calm:
	case n < 2:
		b.World.Met(b.Name + " lost")
		return
	case n < 4:
		b.World.Met(b.Name + " doubled")
		b.sent = append(b.sent, s)
	case n < 5:
		b.World.Met(b.Name + " late")
		s.from = s.from.Add(time.Duration(b.World.Rng.Int64N(int64(b.Late))))
	}
	b.sent = append(b.sent, s)
}

// Arrive picks one of the wake-ups that can arrive. Some are delivered again later.
func (b *Inbox[R]) Arrive(rng *rand.Rand) (what R, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var ready []int
	for i, s := range b.sent {
		if !s.from.After(time.Now()) {
			ready = append(ready, i)
		}
	}
	if len(ready) == 0 {
		return what, false
	}
	i := ready[rng.IntN(len(ready))]
	what = b.sent[i].what
	if rng.IntN(8) > 0 {
		b.sent = slices.Delete(b.sent, i, i+1)
	}
	return what, true
}

// Take takes all that is under way, each once, in the order in which it was sent.
func (b *Inbox[R]) Take() (all []R) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.sent {
		all = append(all, s.what)
	}
	b.sent = nil
	return all
}
