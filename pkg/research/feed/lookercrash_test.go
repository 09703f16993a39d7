package feed

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestTroubledTable: when the table fails in the middle of a look, its row says so. What was done is not
// done again, and the rest is done by the next look.
func TestTroubledTable(t *testing.T) {
	s := newStudio(t)
	s.publish(item("1", "one", "1.mp3", ""), item("3", "three", "3.mp3", ""))
	s.tick()
	s.pass(time.Hour)
	s.publish(item("1", "one", "1.mp3", ""), item("2", "two", "2.mp3", ""), item("2b", "two", "2.mp3", ""),
		item("3", "three", "3.mp3", ""))
	s.calls.once = true
	s.Table.Wait = func(context.Context, time.Duration) error { return errKilled } // it gives up at once
	failed := false
	for at := int64(5); !failed; at++ { // the call of the first new entry, whatever it is
		s.calls.n.Store(0)
		s.calls.at.Store(at)
		err := s.Tick(t.Context(), s.Now().Add(Budget))
		s.calls.at.Store(0)
		state := s.state()
		failed = state.Problem != ""
		if err == nil && !failed {
			t.Fatal("no look failed in the middle")
		}
		if failed && (state.Left != 2 || !strings.HasPrefix(state.Problem, `entry "2": `) ||
			state.Next != s.Now().Add(firstWait).UnixMilli()) {
			t.Errorf("%+v", state)
		}
		s.pass(Claim)
	}
	state := s.tick()
	if state.Problem != "" || state.Left != 0 {
		t.Errorf("%+v", state)
	}
	for _, id := range []string{"1", "2", "2b", "3"} {
		if got := s.events(id); got != "episode.curated" {
			t.Errorf("%s: %s", id, got)
		}
	}
}

// calls counts the calls of the table, and lets the process die at one of them: with its effect, or
// without. once: only that call fails.
type calls struct {
	n, at  atomic.Int64 // at 0: it does not die
	effect bool
	once   bool
}

var errKilled = errors.New("died")

func (c *calls) do(_ string, call func() error) error {
	n, at := c.n.Add(1), c.at.Load()
	switch {
	case at == 0 || n < at || c.once && n > at:
		return call()
	case n == at && c.effect:
		_ = call()
	}
	return errKilled
}

// TestDiesAtEachCall: a process dies at each of its calls. In the end, each entry is an episode, and
// nothing is looked at more often than it should be.
func TestDiesAtEachCall(t *testing.T) {
	deaths := 0
	for at := int64(1); ; at++ {
		alive := 0
		for _, effect := range []bool{false, true} {
			s := newStudio(t)
			s.publish(item("1", "one", "1.mp3", ""), item("2", "two", "2.mp3", ""))
			s.calls.effect = effect
			s.calls.n.Store(0)
			s.calls.at.Store(at)
			err := s.process(s.Table).Tick(t.Context(), s.Now().Add(Budget))
			s.calls.at.Store(0)
			if err == nil && s.calls.n.Load() < at {
				alive++
			}
			deaths++
			s.pass(Claim)
			s.Looker = s.process(s.Table)
			s.tick()
			s.pass(time.Hour)
			state := s.tick()
			history := s.events("1") + ", " + s.events("2")
			curated := strings.HasPrefix(history, "episode.curated") && strings.Contains(history, ", episode.curated")
			if state.Entries != 2 || state.Left != 0 || state.Problem != "" || state.LookingBy != "" || s.asked > 4 ||
				!curated {
				t.Fatalf("it died at call %d (effect: %v): %+v; %s", at, effect, state, history)
			}
		}
		if alive == 2 {
			break
		}
	}
	t.Logf("%d deaths", deaths)
}

// TestCallsOfALook: a tick with a look at a feed that has not changed costs seven calls, however many entries there
// are: one for whose turn it is, two for each project, two for the look. A change of one entry costs only that entry.
func TestCallsOfALook(t *testing.T) {
	for _, n := range []int{10, 200} {
		s := newStudio(t)
		var items []string
		for i := range n {
			items = append(items, item(fmt.Sprint(i), "t", "a.mp3", ""))
		}
		s.publish(items...)
		s.tick()
		count := func() int64 {
			s.pass(time.Hour)
			s.calls.n.Store(0)
			err := s.Tick(t.Context(), s.Now().Add(Budget))
			if err != nil {
				t.Fatal(err)
			}
			return s.calls.n.Load()
		}
		unchanged := count()
		s.publish(append(items[1:], item("0", "another", "a.mp3", ""))...)
		one := count()
		t.Logf("%d entries: unchanged %d calls, one changed %d", n, unchanged, one)
		if unchanged != 7 || one > 13 {
			t.Errorf("%d entries: unchanged %d calls, one changed %d", n, unchanged, one)
		}
	}
}
