package component

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"archivist/pkg/events/event"
	"archivist/pkg/kernel/fault"
)

// TestViews: the numbers of a line, its items in the order of the work, and why an item is where it is.
func TestViews(t *testing.T) {
	s, ctx := newStore(t), t.Context()
	d := checker("check", "Checked")
	d.Retry = &Retry{Max: 1, Backoff: 60}
	define(t, s, d, checker("next", "Next"))
	ids := received(t, s, 5)
	ran := func(outcome string) func(c *change) error {
		return func(c *change) error {
			return c.append("component.ran", outcome, "check", By{}, Ran{Component: "check", Event: "Checked"})
		}
	}
	for i, f := range []func(c *change) error{
		ran(event.Success),
		ran(event.Failure), // it is tried again
		func(c *change) error {
			c.item().Claims = map[string]Claim{"check": {ID: "c1", Run: "r1", Until: 1_060_000}}
			return nil
		},
		func(c *change) error {
			return c.append("item.prioritize", "", "items", By{}, Prioritized{Priority: 9})
		},
	} {
		if _, err := s.change(ctx, ids[i], f); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.change(ctx, ids[1], ran(event.Failure)); err != nil { // it is not
		t.Fatal(err)
	}
	record(t, s, "item:late", "Received")
	if _, err := s.change(ctx, "item:late", ran(event.Failure)); err != nil {
		t.Fatal(err)
	}
	want := Counts{Ready: 2, Later: 1, Running: 1, Failed: 1, Done: 1, Oldest: 1_000_000}
	if c := counted(t, s, "check"); c != want {
		t.Errorf("%+v", c)
	}
	var got []Placed
	for _, class := range []string{Ready, Later, Running, Failed} {
		for cursor, more := "", true; more; more = cursor != "" {
			page, next, err := s.Line(ctx, "check", class, cursor, 1)
			if err != nil {
				t.Fatal(err)
			}
			got, cursor = append(got, page...), next
		}
	}
	if want := []Placed{
		{Item: ids[3], Class: Ready, Priority: 9, First: 1_000_000},
		{Item: ids[4], Class: Ready, Priority: 5, First: 1_000_000},
		{Item: "item:late", Class: Later, From: 1_060_000},
		{Item: ids[2], Class: Running, Until: 1_060_000},
		{Item: ids[1], Class: Failed},
	}; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	for id, want := range map[string][2]string{ids[0]: {Done, "future"}, ids[1]: {Failed, "future"},
		ids[2]: {Running, ""}, ids[3]: {Ready, ""}, "item:late": {Later, ""}} {
		x, err := s.Standing(ctx, "check", id)
		if err != nil || x.Class != want[0] || x.Condition != want[1] || (x.Until > 0) != (want[0] == Running) {
			t.Errorf("%s: %+v, %v", id, x, err)
		}
	}
	if _, err := s.Standing(ctx, "check", "item:other"); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	if _, _, err := s.Line(ctx, "check", Done, "", 0); !fault.Is(err, fault.Invalid) {
		t.Error(err)
	}
}

// TestDryRun: the items that a definition would find are those that the component then finds.
func TestDryRun(t *testing.T) {
	s := newStore(t)
	received(t, s, MaxDryRun+100)
	d := checker("check", "Checked")
	s.Functions = []string{"x"}
	var got []string
	calls := 0
	for cursor, more := "", true; more; more = cursor != "" {
		ready, next, err := s.DryRun(t.Context(), d, cursor, 70)
		if err != nil || len(ready) > 70 {
			t.Fatal(len(ready), err)
		}
		got, cursor = append(got, ready...), next
		calls++
	}
	slices.Sort(got)
	if n := len(slices.Compact(got)); n != MaxDryRun+100 || calls < 9 {
		t.Errorf("%d items in %d calls", n, calls)
	}
	d.Types = []string{"box"}
	if ready, next, err := s.DryRun(t.Context(), d, "", 70); err != nil || len(ready) > 0 || next == "" {
		t.Errorf("%v, %q, %v: it looks at most at %d items", ready, next, err, MaxDryRun)
	}
}

// TestOldest: the oldest item that is ready is found in whichever priority it is.
func TestOldest(t *testing.T) {
	s := newStore(t)
	now := int64(1_000_000)
	s.Now = func() time.Time { return time.UnixMilli(now) }
	define(t, s, checker("check", "Checked"))
	for i, priority := range []int{9, 0, 3} {
		now += 1000
		for _, id := range received(t, s, i+1)[i:] {
			if _, err := s.change(t.Context(), id, func(c *change) error {
				return c.append("item.prioritize", "", "items", By{}, Prioritized{Priority: priority})
			}); err != nil {
				t.Fatal(err)
			}
		}
		if at, err := s.Oldest(t.Context(), "check"); err != nil || at != 1_001_000 {
			t.Errorf("%d items: %d, %v", i+1, at, err)
		}
	}
	// The first is done: now the oldest is the one of the least priority.
	if _, err := s.change(t.Context(), "item:d0000", func(c *change) error {
		return c.append("component.ran", event.Success, "check", By{}, Ran{Component: "check", Event: "Checked"})
	}); err != nil {
		t.Fatal(err)
	}
	if at, err := s.Oldest(t.Context(), "check"); err != nil || at != 1_002_000 {
		t.Errorf("%d, %v", at, err)
	}
}
