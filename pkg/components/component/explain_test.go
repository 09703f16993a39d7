package component

import (
	"strings"
	"testing"
	"time"

	"archivist/pkg/events/event"
	"archivist/pkg/kernel/explain"
	"archivist/pkg/kernel/fault"
)

// TestExplainItem: an item is explained by where it stands in the line of a component; without one, the component that
// needs a person comes first, and all are named.
func TestExplainItem(t *testing.T) {
	s, ctx := newStore(t), t.Context()
	define(t, s, checker("check", "Checked"), checker("next", "Next"))
	ids := received(t, s, 4)
	ran := func(component, name, outcome string) func(c *change) error {
		return func(c *change) error {
			return c.append("component.ran", outcome, component, By{}, Ran{Component: component, Event: name})
		}
	}
	changed := func(id string, f func(c *change) error) {
		t.Helper()
		if _, err := s.change(ctx, id, f); err != nil {
			t.Fatal(err)
		}
	}
	changed(ids[0], ran("check", "Checked", event.Success))
	changed(ids[0], ran("next", "Next", event.Failure))
	changed(ids[1], ran("check", "Checked", event.Failure))
	changed(ids[2], func(c *change) error {
		c.item().Claims = map[string]Claim{"next": {ID: "c1", Run: "r1", Until: 1_060_000}}
		return nil
	})
	record(t, s, "item:new")
	record(t, s, ids[3], Stopped)

	for _, k := range []struct {
		item, component string
		waits           explain.Wait
		says, todo      string
		facts           int
	}{
		{ids[0], "check", explain.Nothing, "Checked already", "", 2},
		{ids[0], "next", explain.Person, "next: ", "archivist component item restart " + ids[0], 2},
		{ids[0], "", explain.Person, "next: ", "archivist component item restart " + ids[0], 2},
		{ids[1], "", explain.Person, "check: ", "archivist component item restart " + ids[1], 2},
		{ids[2], "", explain.Worker, "The run r1 of next", "archivist component item release " + ids[2] + " next", 2},
		{ids[2], "check", explain.Turn, "All conditions of check hold", "archivist component run check", 1},
		{"item:new", "check", explain.Event, "there is no event Received", "", 2},
		{"item:new", "", explain.Nothing, "No component works on it", "", 0},
		{ids[3], "", explain.Person, "A person has stopped it", "archivist component item restart " + ids[3], 0},
	} {
		x, err := s.ExplainItem(ctx, k.item, k.component)
		if err != nil || x.Waits != k.waits || !strings.Contains(x.Why, k.says) || len(x.Facts) != k.facts ||
			x.ID != k.item || k.todo != "" && !strings.HasPrefix(x.Do[0].Command, k.todo) {
			t.Errorf("%s %s: %+v, %v; want one that waits for %s", k.item, k.component, x, err, k.waits)
		}
	}

	s.Now = func() time.Time { return time.UnixMilli(1_060_000) } // the lease has ended
	x, err := s.ExplainItem(ctx, ids[2], "next")
	if err != nil || x.Waits != explain.Turn || x.Until != 0 || !strings.Contains(x.Why, "not ended its work in time") {
		t.Errorf("after the end of the lease: %+v, %v", x, err)
	}
	if err := s.Pause(ctx, "check", By{Actor: "ada", Reason: "wait"}); err != nil {
		t.Fatal(err)
	}
	x, err = s.ExplainItem(ctx, ids[2], "check")
	if err != nil || x.Waits != explain.Hold || x.Do[0].Command != "archivist component resume check --reason TEXT" {
		t.Errorf("of a paused component: %+v, %v", x, err)
	}
	for _, k := range [][2]string{{"item:other", ""}, {ids[0], "other"}} {
		if _, err := s.ExplainItem(ctx, k[0], k[1]); !fault.Is(err, fault.NotFound) {
			t.Errorf("%v: %v", k, err)
		}
	}
}

// TestExplainComponent: what a component waits for, by its line and its slots.
func TestExplainComponent(t *testing.T) {
	d := compiled{Definition: checker("check", "Checked")}
	d.Wake, d.Instances = true, 1
	idle, running := newSlot("check", 0), newSlot("check", 0)
	running.Run, running.Due = "r1", 90
	resting := newSlot("check", 0)
	resting.Rest = 99
	slow, paused := d, d
	slow.Wake, slow.Schedule = false, "rate(1 day)"
	paused.Paused = true
	for name, k := range map[string]struct {
		c     compiled
		ready int64
		slot  *slotRow
		waits explain.Wait
		until int64
		on    string
	}{
		"nothing":  {d, 0, idle, explain.Nothing, 0, ""},
		"ready":    {d, 2, idle, explain.Turn, 0, ""},
		"running":  {d, 2, running, explain.Worker, 90, "r1"},
		"resting":  {d, 2, resting, explain.Retry, 99, ""},
		"schedule": {slow, 2, idle, explain.Time, 0, ""},
		"paused":   {paused, 2, running, explain.Hold, 0, ""},
	} {
		p := k.c.part(Counts{Ready: k.ready, Oldest: 7}, []*slotRow{k.slot}, 50)
		if p.Waits != k.waits || p.Until != k.until || p.On != k.on || p.Since != 7 || p.Why == "" {
			t.Errorf("%s: %+v", name, p)
		}
	}
}
