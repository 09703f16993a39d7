package passes_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/lease"
	"archivist/pkg/kernel/passes"
	"archivist/pkg/kernel/table/tabletest"
)

// clock is a time that work moves on, and ids.
type clock struct {
	now time.Time
	ids int
}

func (c *clock) Now() time.Time { return c.now }

func (c *clock) NewID() string { c.ids++; return fmt.Sprint("id", c.ids) }

// TestTurns: of 1,000 owners each has its turn before any has its next, although a tick has time for ten; also those
// that come meanwhile, and behind one that takes all of the time. Each tick is another process.
func TestTurns(t *testing.T) {
	c, tb := &clock{now: time.UnixMilli(0)}, tabletest.Open(t)
	owners := []string{"slow"}
	for i := range 999 {
		owners = append(owners, fmt.Sprintf("owner-%03d", i))
	}
	last := map[string]int{} // the tick in which it had its turn
	for tick := 1; tick <= 400; tick++ {
		switch tick {
		case 150:
			owners = append(owners, "new", "zz-new")
		case 160: // the one at which the loop stopped goes, too
			owners = slices.DeleteFunc(owners, func(o string) bool { return last[o] == 159 })
		}
		turns, begun := passes.Turns{Table: tb, NewID: c.NewID, Now: c.Now}, c.now
		err := turns.Each(t.Context(), "loop", owners, begun.Add(100*time.Millisecond), func(owner string) error {
			if prev := last[owner]; prev > 0 && tick-prev > 105 || prev == tick {
				t.Fatalf("%s has its turn in tick %d, before that in %d", owner, tick, prev)
			}
			last[owner] = tick
			c.now = c.now.Add(10 * time.Millisecond)
			if owner == "slow" {
				c.now = c.now.Add(time.Hour)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, o := range owners {
		if last[o] < 290 {
			t.Errorf("%s had its last turn in tick %d", o, last[o])
		}
	}
}

// TestTurnsInTime: with time enough all are called once, whatever fails; nothing is written. Without time nobody is,
// and the next call begins where this one would have.
func TestTurnsInTime(t *testing.T) {
	c, tb := &clock{now: time.UnixMilli(0)}, tabletest.Open(t)
	turns := passes.Turns{Table: tb, NewID: c.NewID, Now: c.Now}
	var called []string
	broken := errors.New("broken")
	each := func(left time.Duration) error {
		called = nil
		return turns.Each(t.Context(), "loop", []string{"b", "a", "c"}, c.now.Add(left), func(owner string) error {
			called = append(called, owner)
			c.now = c.now.Add(time.Second)
			if owner == "b" {
				return broken
			}
			return nil
		})
	}
	if err := each(time.Minute); !errors.Is(err, broken) || fmt.Sprint(called) != "[a b c]" || c.ids > 0 {
		t.Errorf("called %v, %d changes, %v", called, c.ids, err)
	}
	if err := each(time.Second); err != nil || fmt.Sprint(called) != "[a]" {
		t.Errorf("called %v, %v", called, err)
	}
	if err := each(0); err != nil || len(called) > 0 {
		t.Errorf("called %v, %v", called, err)
	}
	if err := each(time.Minute); !errors.Is(err, broken) || fmt.Sprint(called) != "[b c a]" {
		t.Errorf("called %v, %v", called, err)
	}
	if err := turns.Each(t.Context(), "loop", nil, c.now, nil); err != nil {
		t.Error(err)
	}
}

// TestTurnsWithoutRow: if it cannot be read whose turn it is, all have theirs, and the error is told.
func TestTurnsWithoutRow(t *testing.T) {
	c, called := &clock{now: time.UnixMilli(0)}, 0
	broken := errors.New("broken")
	tb := tabletest.Table(&tabletest.Client{DynamoDBAPI: tabletest.New(),
		Do: func(string, func() error) error { return broken }})
	tb.Wait = func(context.Context, time.Duration) error { return nil }
	turns := passes.Turns{Table: tb, NewID: c.NewID, Now: c.Now}
	err := turns.Each(t.Context(), "loop", []string{"a", "b"}, c.now.Add(time.Second), func(string) error {
		called++
		return nil
	})
	if called != 2 || err == nil {
		t.Errorf("%d called, %v", called, err)
	}
}

// TestUnder: one pass at a time works; its lease ends with it, whatever its end was.
func TestUnder(t *testing.T) {
	c, tb := &clock{now: time.UnixMilli(0)}, tabletest.Open(t)
	leases := &lease.Store{Table: tb, Now: c.Now, NewID: c.NewID}
	broken := errors.New("broken")
	under := func(f func(lease.Lease) error) (bool, error) {
		return passes.Under(context.Background(), leases, "maps", time.Minute, f)
	}
	for _, want := range []error{nil, broken, nil} {
		busy, err := under(func(lease.Lease) error {
			if busy, err := under(func(lease.Lease) error { t.Error("two at once"); return nil }); !busy || err != nil {
				t.Errorf("a second one: %t, %v", busy, err)
			}
			return want
		})
		if busy || !errors.Is(err, want) {
			t.Errorf("%t, %v; want %v", busy, err, want)
		}
	}
	busy, err := under(func(l lease.Lease) error {
		c.now = c.now.Add(2 * time.Minute) // it was suspended: another one begins, and is at work
		other, err := leases.Acquire(t.Context(), "maps", time.Minute)
		if err != nil || other.Fence != l.Fence+1 {
			t.Errorf("%+v, %v", other, err)
		}
		return nil
	})
	if busy || err != nil {
		t.Errorf("a pass whose lease has passed to another: %t, %v", busy, err)
	}
	if _, err := leases.Acquire(t.Context(), "maps", time.Minute); !fault.Is(err, fault.Held) {
		t.Errorf("the lease of the other one has ended: %v", err)
	}
}
