package eventsim

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"archivist/pkg/events/consumer"
)

// target is what the consumers' targets do: they make the effects of events, and refuse the
// events of some keys for a time.
type target struct {
	w       *world
	refused map[string]time.Time // consumer and subject → until when
	ids     map[string]bool      // consumer and event → whether that event is refused until it is redriven
}

var (
	errThrown  = errors.New("sim: the target throws an error")
	refusal    = "sim: the target refuses this"
	notReached = "sim: an earlier event of its key failed"
)

func newTarget(w *world) *target {
	return &target{w: w, refused: map[string]time.Time{}, ids: map[string]bool{}}
}

// refuses reports whether a consumer's target refuses an event now. Which keys and events it
// refuses, it draws when it sees them first.
func (t *target) refuses(of *consumed, item consumer.Item) bool {
	if t.w.Calm {
		return false
	}
	key := of.name + " " + item.Subject.ID
	if _, known := t.refused[key]; !known {
		t.refused[key] = time.Time{}
		if t.w.Rng.IntN(100) < t.w.s.refuses {
			t.refused[key] = time.Now().Add(time.Duration(1+t.w.Rng.IntN(30)) * time.Minute)
			t.w.Met("target refuses a key for a time")
		}
	}
	id := of.name + " " + item.ID
	if _, known := t.ids[id]; !known {
		t.ids[id] = t.w.s.refuses > 0 && t.w.Rng.IntN(20) == 0
		if t.ids[id] {
			t.w.Met("target refuses an event")
		}
	}
	return t.ids[id] || time.Now().Before(t.refused[key])
}

// handler is the target of one consumer as the process a calls it.
func (a *actor) handler(of *consumed) consumer.Handler {
	return consumer.HandlerFunc(func(_ context.Context, b consumer.Batch) ([]consumer.Failure, error) {
		var failed []consumer.Failure
		err := a.Do("handle "+named(b), func() (err error) {
			failed, err = a.w.target.handle(of, b)
			return err
		})
		if err != nil {
			return nil, err
		}
		for _, item := range b.Events {
			if !slices.ContainsFunc(failed, func(f consumer.Failure) bool { return f.ID == item.ID }) {
				of.handled(a, item)
			}
		}
		return failed, nil
	})
}

// named is the name of a call: calls at the same time need an order to replay.
func named(b consumer.Batch) string {
	var ids []string
	for _, item := range b.Events {
		ids = append(ids, item.ID)
	}
	return b.Consumer + " " + strings.Join(ids, " ")
}

// handle makes the effects of a batch. After one that is refused, later ones of its subject
// are not handled.
func (t *target) handle(of *consumed, b consumer.Batch) (failed []consumer.Failure, err error) {
	if !t.w.Calm && t.w.s.refuses > 0 && t.w.Rng.IntN(30) == 0 {
		t.w.Met("target throws")
		return nil, errThrown
	}
	stopped := map[string]bool{}
	for _, item := range b.Events {
		key := of.key(item)
		switch {
		case stopped[key] && of.order != consumer.OrderNone:
			failed = append(failed, consumer.Failure{ID: item.ID, Reason: notReached})
		case t.refuses(of, item):
			stopped[key] = true
			failed = append(failed, consumer.Failure{ID: item.ID, Reason: refusal})
		default:
			of.effect(item)
		}
	}
	return failed, nil
}

// key is the order key of an item.
func (of *consumed) key(item consumer.Item) string {
	if of.order == consumer.OrderCollection {
		return item.Log()
	}
	return item.Subject.Type + " " + item.Subject.ID
}

// heal ends all refusals.
func (t *target) heal() {
	clear(t.refused)
	clear(t.ids)
	t.w.s.refuses = 0
}
