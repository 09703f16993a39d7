package component

import (
	"strings"
	"testing"

	"archivist/pkg/events/event"
)

// TestEveryDays: after a success, and after a failure that is not tried again sooner, the item waits for its
// time; after a change, for nothing.
func TestEveryDays(t *testing.T) {
	d := Definition{Name: "x", Event: "Checked", Old: []string{"Checked"}, EveryDays: 2,
		Runnable: Runnable{Function: "f"}}
	if err := d.Check(); err != nil {
		t.Fatal(err)
	}
	c, err := compile(d)
	if err != nil {
		t.Fatal(err)
	}
	const at, days = 1000, 2 * 24 * 3600 * 1000
	item := func(outcome string, changes int64) *Item {
		return &Item{ID: "item:a", Applied: 5, Subject: [2]Change{{Version: changes}},
			Marks: map[string]Mark{"Checked": {Outcome: outcome, At: at, BasedOn: SeenVersions{Subject: 5}}}}
	}
	for _, want := range []struct {
		item  *Item
		place string
	}{
		{&Item{ID: "item:a"}, Ready},
		{item(event.Success, 5), "later#0000172801000#item:a"},
		{item(event.Success, 6), Ready},
		{item(event.Failure, 5), "later#0000172801000#item:a"},
		{item(event.Failure, 6), Ready},
	} {
		if got := c.place(want.item); !strings.HasPrefix(got, want.place) {
			t.Errorf("%+v is at %q, want %q", want.item, got, want.place)
		}
	}
	if v := c.judge(item(event.Success, 5)); !v.Ready || v.NotBefore != at+days {
		t.Errorf("the verdict is %+v", v)
	}
	c.Retry = &Retry{Max: 1, Backoff: 60}
	for failures, after := range map[int]int64{1: 60_000, 2: days} {
		it := item(event.Failure, 5)
		m := it.Marks["Checked"]
		m.Failures = failures
		it.Marks["Checked"] = m
		if v := c.judge(it); !v.Ready || v.NotBefore != at+after {
			t.Errorf("after %d failures: %+v", failures, v)
		}
	}
	for _, bad := range []Definition{{Old: []string{"Checked"}, EveryDays: -1},
		{Future: []string{"Checked"}, EveryDays: 1}, {Old: []string{"Checked"}, EveryDays: MaxEveryDays + 1}} {
		bad.Name, bad.Event, bad.Runnable = d.Name, d.Event, d.Runnable
		if err := bad.Check(); err == nil || !strings.HasPrefix(err.Error(), "everyDays:") {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}
