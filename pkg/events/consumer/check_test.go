package consumer_test

import (
	"strings"
	"testing"

	"archivist/pkg/events/consumer"
	"archivist/pkg/events/eventlog"
	"archivist/pkg/kernel/fault"
)

// The log that is stored is what the runtime reads.
var _ consumer.Log = (*eventlog.Log)(nil)

type def = *consumer.Definition

func debounced(m consumer.Coalesce) func(def) { return func(d def) { d.Coalesce = &m } }

// refusals are the reasons for which definitions are refused, with a change that gives one.
var refusals = map[string]func(def){
	`name: "My Own": expected 1 to 50 small letters`: func(d def) { d.Name = "My Own" },
	`description: 1001 characters`: func(d def) {
		d.Description = strings.Repeat("x", 1001)
	},
	`filter: empty; *+* selects all events`: func(d def) { d.Filter = " " },
	`filter: column 1: `:                    func(d def) { d.Filter = "Itme+*" },
	`filter: 5000 characters`: func(d def) {
		d.Filter = strings.Repeat("x", 5000)
	},
	`mode: "sync": expected async, scheduled`:                func(d def) { d.Mode = "sync" },
	`order: "job": expected subject, collection, none`:       func(d def) { d.Order = "job" },
	`onFailure: "drop": expected park, block`:                func(d def) { d.OnFailure = "drop" },
	`ownEvents: "no": expected ignore, ignore-chain, handle`: func(d def) { d.OwnEvents = "no" },
	`batch: 91: expected 1 to 90`:                            func(d def) { d.Batch = 91 },
	`window: -1: expected 1 to 1000`:                         func(d def) { d.Window = -1 },
	`concurrency: 17: expected 1 to 16`:                      func(d def) { d.Concurrency = 17 },
	`retries: 11: expected -1 to 10`:                         func(d def) { d.Retries = 11 },
	`maxDepth: 51: expected 1 to 50`:                         func(d def) { d.MaxDepth = 51 },
	`start: "now": expected latest, horizon, seq:N`:          func(d def) { d.Start = "now" },
	`start: "seq:0": `:                                       func(d def) { d.Start = "seq:0" },
	`start: "latest:1": `:                                    func(d def) { d.Start = "latest:1" },
	`schedule: only a consumer of the mode scheduled has one`: func(d def) {
		d.Schedule = "rate(1 hour)"
	},
	`timeZone: only a consumer of the mode scheduled has one`: func(d def) { d.TimeZone = "UTC" },
	`schedule: "": expected e.g. "rate(1 hour)"`: func(d def) {
		d.Mode = consumer.Scheduled
	},
	`schedule: "rate(0 hours)": expected at least 1`: scheduled("rate(0 hours)", ""),
	`schedule: "0 0 30 2 *": there is no such time`:  scheduled("0 0 30 2 *", ""),
	`schedule: "61 * * * *": expected`:               scheduled("61 * * * *", ""),
	`timeZone: "Mars/Olympus": expected a name`:      scheduled("0 0 * * *", "Mars/Olympus"),
	`timeZone: "Mars/Base": expected a name`:         scheduled("rate(1 hour)", "Mars/Base"),
	`coalesce: events without an order key are not coalesced`: func(d def) {
		d.Order, d.Coalesce = consumer.OrderNone, &consumer.Coalesce{}
	},
	`coalesce.mostSeconds: needs coalesce.quietSeconds`: debounced(consumer.Coalesce{MaxWait: 5}),
	`coalesce.mostSeconds: 5: expected 9 to 604800`:     debounced(consumer.Coalesce{Debounce: 9, MaxWait: 5}),
	`coalesce.quietSeconds: -1: expected 1 to 86400`:    debounced(consumer.Coalesce{Debounce: -1, MaxWait: 5}),
	`coalesce.quietSeconds: the cursor has passed events that wait`: func(d def) {
		d.OnFailure, d.Coalesce = consumer.Block, &consumer.Coalesce{Debounce: 1}
	},
	`target: 2 of handler, lambda and queue are set`: func(d def) {
		d.Target.Lambda = function
	},
	`target: 0 of handler, lambda and queue are set`: func(d def) {
		d.Target = consumer.Target{}
	},
	`target.lambda: "mine": expected the ARN of a function`: func(d def) {
		d.Target = consumer.Target{Lambda: "mine"}
	},
	`target.queue: "mine": expected the URL of an SQS queue`: func(d def) {
		d.Target = consumer.Target{Queue: "mine"}
	},
	`target.handler: there is no handler "mine"; there are: note`: func(d def) {
		d.Target.Handler = "mine"
	},
	`is not among the consumerTargets of this deployment`: func(d def) {
		d.Target = consumer.Target{Lambda: function + "2"}
	},
}

// TestRefusals: what cannot run is refused with the field and the reason, and nothing is kept.
func TestRefusals(t *testing.T) {
	b := newBench(t)
	b.store.Targets = []string{function}
	for want, change := range refusals {
		d := define("c", change)
		_, err := b.store.Apply(t.Context(), d, consumer.By{Actor: "ann"})
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %s", err, want)
		}
	}
	if rows := b.fake.All(); len(rows) != 0 {
		t.Errorf("%d rows were written", len(rows))
	}
}

func scheduled(when, zone string) func(*consumer.Definition) {
	return func(d *consumer.Definition) { d.Mode, d.Schedule, d.TimeZone = consumer.Scheduled, when, zone }
}

// TestParse: a definition is JSON or YAML; unknown fields and what YAML hides are refused.
func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		`{"name": "c", "filter": "*+*", "target": {"handler": "x"}, "coalesce": {"quietSeconds": 5}}`: "",
		"name: c\nfilter: '*+*'\ntarget:\n  handler: x\ncoalesce:\n  quietSeconds: 5\n":               "",
		"name: c\nfiltr: x\n":                        `cannot be read: unknown object member name "filtr"`,
		`{"name": "c", "target": {"url": "x"}}`:      `unknown object member name "url" within "/target"`,
		`{"name": 7}`:                                "name",
		"a: &a [1,1]\nb: [*a,*a]":                    "anchor",
		"name: [":                                    "neither JSON nor YAML",
		`{"name": "c"} {"name": "d"}`:                "after top-level value",
		"name: c\n---\nname: d\n":                    "more than one definition",
		"description: " + strings.Repeat("x", 33000): "at most 32768",
		`{"name": "c", "name": "d"}`:                 "name",
		`{"name": "c", "Filter": "*+*"}`:             "Filter",
	} {
		d, err := consumer.Parse([]byte(text))
		switch {
		case want == "" && (err != nil || d.Name != "c" || d.Filter != "*+*" || d.Target.Handler != "x" ||
			d.Coalesce.Debounce != 5):
			t.Errorf("%.80s: %+v, %v", text, d, err)
		case want != "" && (!fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), want)):
			t.Errorf("%.80s: %v; want %s", text, err, want)
		}
	}
}
