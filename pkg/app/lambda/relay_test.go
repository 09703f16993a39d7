package lambda

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"archivist/pkg/aws/cloudwatch"
	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
)

// relayed is a log and its consumers, which note what they are asked.
type relayed struct {
	asked   []string
	placed  []envelope.Event
	failing map[string]error
	minute  int // of the hour
}

func (r *relayed) ask(what string) error {
	r.asked = append(r.asked, what)
	return r.failing[what]
}

func (r *relayed) Place(_ context.Context, subjects []event.Subject) ([]envelope.Event, error) {
	for _, s := range subjects {
		r.asked = append(r.asked, s.Type.String()+" "+s.ID)
	}
	return r.placed, r.ask("place")
}

func (r *relayed) Sweep(context.Context, time.Time) ([]envelope.Event, error) {
	return r.placed, r.ask("sweep")
}

func (r *relayed) Placed(_ context.Context, placed []envelope.Event) error {
	for _, e := range placed {
		r.asked = append(r.asked, "wake for "+e.ID)
	}
	return r.failing["placed"]
}

func (r *relayed) Install(context.Context) error { return r.ask("install") }

func (r *relayed) Tick(context.Context, time.Time) error { return r.ask("tick") }

func (r *relayed) Hourly(context.Context, time.Time) error { return r.ask("hourly") }

func (r *relayed) Now() time.Time { return time.Date(2026, 11, 22, 15, r.minute, 59, 0, time.UTC) }

func newRelay(r *relayed) *Relay {
	return &Relay{Log: r, Consumers: r, Install: r.Install, Hourly: r.Hourly, Now: r.Now, Budget: time.Minute,
		Metrics: &cloudwatch.Metrics{}, Logger: slog.New(slog.DiscardHandler)}
}

// TestRelay: records of the stream place the events of their subjects, each subject once, and
// wake consumers; the minute sweeps, and wakes consumers that are due.
func TestRelay(t *testing.T) {
	for name, want := range map[string][]string{
		"relay.stream.json": {"Job 01M7ZBMEYHBB62YP6RY21T1GQ6-00001", "place", "wake for e1"},
		"relay.minute.json": {"install", "sweep", "wake for e1", "tick", "hourly"},
	} {
		r := &relayed{placed: []envelope.Event{{ID: "e1"}}}
		var in RelayEvent
		sample(t, name, &in)
		relay := newRelay(r)
		for range 2 {
			if err := relay.Handle(t.Context(), in); err != nil || !slices.Equal(r.asked, want) {
				t.Errorf("%s: %q, %v", name, r.asked, err)
			}
			r.asked, r.minute = nil, 1 // the second time is a minute later
			want = slices.DeleteFunc(want, func(s string) bool { return s == "install" || s == "hourly" })
		}
	}
}

// TestRelayFails: what fails makes the whole invocation fail, so that it is repeated; events
// that have their places wake consumers all the same, and the minute's tick runs.
func TestRelayFails(t *testing.T) {
	for name, steps := range map[string][]string{"relay.stream.json": {"place", "placed"},
		"relay.minute.json": {"install", "sweep", "placed", "tick", "hourly"}} {
		var in RelayEvent
		sample(t, name, &in)
		for _, step := range steps {
			broken := errors.New("it is broken")
			r := &relayed{placed: []envelope.Event{{ID: "e1"}}, failing: map[string]error{step: broken}}
			relay := newRelay(r)
			if err := relay.Handle(t.Context(), in); !errors.Is(err, broken) {
				t.Errorf("%s: %s is broken: %v", name, step, err)
			}
			if step == "install" {
				err := relay.Handle(t.Context(), in)
				if err == nil || strings.Count(fmt.Sprint(r.asked), "install") != 2 {
					t.Errorf("%s fails, and then %q: %v", step, r.asked, err)
				}
			}
			ticked := slices.Contains(r.asked, "tick")
			if !slices.Contains(r.asked, "wake for e1") || ticked != (name == "relay.minute.json") {
				t.Errorf("%s: %s is broken: %q", name, step, r.asked)
			}
		}
	}
}

// TestRelaySubjects: a record of a row that is no subject's is left out, whatever is in it.
func TestRelaySubjects(t *testing.T) {
	var in RelayEvent
	sample(t, "relay.stream.json", &in)
	delete(in.Records[0].Change.Keys, "pk")
	in.Records[1].Change.Keys["pk"] = in.Records[1].Change.Keys["sk"]
	if got := newRelay(&relayed{}).subjects(in.Records); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}
