package component

import (
	"strings"
	"testing"

	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/explain"
)

// afterEvents is an item after these events, the oldest first, e.g. "A", "A-" (a failure),
// "A changed" (and it changed the item), "revoke A", "change" (by another). A and B are the events of
// components a and b.
func afterEvents(t *testing.T, all ...string) *Item {
	t.Helper()
	it := &Item{ID: "item:d1"}
	add := func(name, outcome, component string, detail any) {
		e := envelope.Event{ID: "e", Subject: envelope.Ref{Type: "ComponentItem", ID: it.ID}, Version: it.Version + 1,
			Type: name, Time: 1000, Outcome: outcome, Detail: []byte(toJSON(t, detail)),
			Context: envelope.Context{Component: component}}
		if err := it.apply(e); err != nil {
			t.Fatal(err)
		}
	}
	add("item.create", event.Success, "items", Shape{Types: []string{"newspaper", "delivery"}})
	for _, text := range all {
		name, how, _ := strings.Cut(text, " ")
		outcome := event.Success
		if strings.HasSuffix(name, "-") {
			name, outcome = name[:len(name)-1], event.Failure
		}
		switch name {
		case "revoke":
			add("item.revoke", "", "items", Revoked{Events: []string{how}})
		case "change":
			add("item.change", "", "items", Shape{Types: []string{"newspaper", "delivery"}})
		case "forget":
			add("item.forget", "", "items", Forgot{})
		default:
			add("component.ran", outcome, strings.ToLower(name), Ran{Component: strings.ToLower(name), Event: name,
				BasedOn: SeenVersions{Item: it.Version}, Changed: how == "changed"})
		}
	}
	return it
}

// rule is one row of the table of rules.
type rule struct {
	name      string
	d         Definition
	events    string // separated by commas
	condition string // that does not hold; "" if it is ready
}

// triggerRules are the rules of the trigger.
func triggerRules() []rule {
	of := func(change func(d *Definition)) Definition {
		d := Definition{Name: "x", Event: "X", Old: []string{"X"}}
		change(&d)
		return d
	}
	success := of(func(d *Definition) { d.PastSuccess = []string{"A"} })
	failure := of(func(d *Definition) { d.PastFailure = []string{"A"} })
	future := of(func(d *Definition) { d.Future = []string{"A"} })
	old := of(func(d *Definition) { d.Old = []string{"X", "A"} })
	return []rule{
		{"no condition, no event", of(func(*Definition) {}), "", ""},

		{"success: it is there", success, "A", ""},
		{"success: it is not", success, "B", "pastSuccess"},
		{"success: it is a failure", success, "A-", "pastSuccess"},
		{"success: a later failure hides it", success, "A,A-", "pastSuccess"},
		{"success: after a failure", success, "A-,A", ""},
		{"success: it was revoked", success, "A,revoke A", "pastSuccess"},
		{"success: a revoked failure hides nothing, nor does what was before it count", success, "A,A-,revoke A",
			"pastSuccess"},
		{"success: again after it was revoked", success, "A,revoke A,A", ""},
		{"success: all must hold", of(func(d *Definition) { d.PastSuccess = []string{"A", "B"} }), "A", "pastSuccess"},
		{"success: all hold", of(func(d *Definition) { d.PastSuccess = []string{"A", "B"} }), "B,A", ""},

		{"failure: it is there", failure, "A-", ""},
		{"failure: it is a success", failure, "A", "pastFailure"},
		{"failure: a later success hides it", failure, "A-,A", "pastFailure"},
		{"failure: it is not there", failure, "", "pastFailure"},

		{"future: it is not there", future, "B", ""},
		{"future: a success", future, "A", "future"},
		{"future: a failure", future, "A-", "future"},
		{"future: it was revoked", future, "A,revoke A", ""},

		{"old: it is not there", old, "B", ""},
		{"old: it is there", old, "A", "old"},
		{"old: it failed", old, "A-", "old"},
		{"old: the item was changed since", old, "A,change", ""},
		{"old: the item was changed before", old, "change,A", "old"},
		{"old: another changed it since", old, "A,B changed", ""},
		{"old: another worked on it, and did not change it", old, "A,B", "old"},
		{"old: the component of the event changed it", old, "A changed", ""},
		{"old: by the component itself", of(func(*Definition) {}), "X changed", "old"},
		{"old: by the component itself, and before by another", of(func(*Definition) {}), "B changed,X changed", "old"},
		{"old: by the component itself, and later by another", of(func(*Definition) {}), "X changed,B changed", ""},
		{"old: by another, and later by the component itself", of(func(*Definition) {}), "X,B changed,A changed", ""},
		{"old: it was revoked", old, "A,revoke A", ""},

		{"types: it has all", of(func(d *Definition) { d.Types = []string{"delivery", "newspaper"} }), "", ""},
		{"types: it does not have one", of(func(d *Definition) { d.Types = []string{"delivery", "book"} }), "",
			"types"},

		{"items: it is in the set", of(func(d *Definition) { d.Items = &Items{IDs: []string{"item:d1"}} }), "", ""},
		{"items: it is not", of(func(d *Definition) { d.Items = &Items{IDs: []string{"item:d2"}} }), "", "items"},
		{"items: the filter selects it", of(func(d *Definition) { d.Items = &Items{Filter: "All+All{id=item:d*}"} }),
			"", ""},
		{"items: it does not", of(func(d *Definition) { d.Items = &Items{Filter: "Object+All"} }), "", "items"},
		{"it was forgotten", of(func(*Definition) {}), "forget", "items"},

		{"stopped", success, "A," + Stopped, "stopped"},
		{"the stop was revoked", success, "A," + Stopped + ",revoke " + Stopped, ""},

		{"it is tried again", of(func(d *Definition) { d.Retry = &Retry{Max: 1, Backoff: 60} }), "X-", ""},
		{"not for ever", of(func(d *Definition) { d.Retry = &Retry{Max: 1, Backoff: 60} }), "X-,X-", "old"},
		{"a success ends the row of failures", of(func(d *Definition) { d.Retry = &Retry{Max: 1, Backoff: 60} }),
			"X-,X,revoke X,X-", ""},
	}
}

// TestTriggerRules: which items a component can work on (source: the autonomous-components text, "Advanced
// Triggering" and "Event triggers"), rule by rule.
func TestTriggerRules(t *testing.T) {
	for _, c := range triggerRules() {
		var events []string
		if c.events != "" {
			events = strings.Split(c.events, ",")
		}
		judge, err := compile(c.d)
		if err != nil {
			t.Fatal(err)
		}
		c.d.Runnable.Function = "x"
		if err := c.d.Check(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		judge.MaxDepth = defaultMaxDepth
		v := judge.judge(afterEvents(t, events...))
		if v.Condition != c.condition || v.Ready != (c.condition == "") || v.Reason == "" {
			t.Errorf("%s: %+v, expected %q", c.name, v, c.condition)
		}
	}
}

// TestLongestChain: a component works on an item at the end of as long a chain of causes as it accepts, and not of a
// longer one.
func TestLongestChain(t *testing.T) {
	d := checker("check", "Checked")
	d.MaxDepth = 3
	c, err := compile(d)
	if err != nil {
		t.Fatal(err)
	}
	for depth, ready := range map[int]bool{0: true, 3: true, 4: false} {
		it := &Item{ID: "item:a", Version: 1, Marks: map[string]Mark{"Received": {ID: "e", Version: 1,
			Outcome: event.Success, Cause: envelope.Cause{Event: "e", Root: "e", Depth: depth}}}}
		if v := c.judge(it); v.Ready != ready {
			t.Errorf("a chain of %d: %+v", depth, v)
		}
		// One that is too long needs a person, although the item is in no line.
		p := (&definitions{all: []compiled{c}}).part(it, 0, 0)
		if (p.Waits == explain.Person) == ready {
			t.Errorf("a chain of %d is explained: %+v", depth, p)
		}
	}
}
