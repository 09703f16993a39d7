package api_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/events/consumer"
	"archivist/pkg/events/envelope"
	"archivist/pkg/events/eventlog"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/fault"
)

var searching = v1.ConsumerDefinition{Name: "mine", Filter: "Batch+*", Target: v1.ConsumerTarget{Handler: "search"},
	Start: "horizon"}

// TestConsumers: a consumer is defined, shown, paused and deleted; each change is an event.
func TestConsumers(t *testing.T) {
	c, _ := serve(t, through)
	made, err := c.ApplyConsumer(t.Context(), searching, "new")
	if err != nil || made.Version != 1 || made.Order != "subject" || made.Paused {
		t.Fatalf("%+v, %v", made, err)
	}
	if again, err := c.ApplyConsumer(t.Context(), searching, "twice"); err != nil || again.Version != 1 {
		t.Errorf("the same again: %+v, %v", again, err)
	}
	for range 2 {
		out, err := c.ActOnConsumer(t.Context(), "mine", v1.ConsumerAction{Action: "pause", Reason: "wait"}, "one")
		if err != nil || !out.Consumer.Paused {
			t.Errorf("%+v, %v", out, err)
		}
	}
	list, err := c.Consumers(t.Context())
	if err != nil || len(list) != 1 || !list[0].Paused || list[0].Counted != "" {
		t.Errorf("a list before anything was counted: %+v, %v", list, err)
	}
	if one, err := c.Consumer(t.Context(), "mine"); err != nil || one.Counted == "" {
		t.Errorf("by itself it is counted: %+v, %v", one, err)
	}
	_, err = c.ActOnConsumer(t.Context(), "mine", v1.ConsumerAction{Action: "delete", Reason: "old"}, "")
	if err != nil {
		t.Error(err)
	}
	if _, err := c.Consumer(t.Context(), "mine"); !fault.Is(err, fault.NotFound) {
		t.Errorf("after its deletion: %v", err)
	}
	var types []string
	for _, e := range page[v1.Event](t, c, "/v1/consumers/mine/events").Items {
		types = append(types, e.Type)
	}
	if got := strings.Join(types, " "); got != "consumer.created consumer.paused consumer.deleted" {
		t.Errorf("the events are %s", got)
	}
}

// TestConsumerRefusals: what cannot run is refused with the field, and nothing is stored.
func TestConsumerRefusals(t *testing.T) {
	c, _ := serve(t, through)
	with := func(change func(d *v1.ConsumerDefinition)) v1.ConsumerDefinition {
		d := searching
		change(&d)
		return d
	}
	for want, d := range map[string]v1.ConsumerDefinition{
		"column 1":          with(func(d *v1.ConsumerDefinition) { d.Filter = "Nothing" }),
		"target.handler":    with(func(d *v1.ConsumerDefinition) { d.Target.Handler = "none" }),
		"consumerTargets":   with(func(d *v1.ConsumerDefinition) { d.Target = v1.ConsumerTarget{Lambda: lambdaARN} }),
		"schedule":          with(func(d *v1.ConsumerDefinition) { d.Mode = "scheduled" }),
		"name":              with(func(d *v1.ConsumerDefinition) { d.Name = "Not-Lower" }),
		"start":             with(func(d *v1.ConsumerDefinition) { d.Start = "tomorrow" }),
		"expected value to": with(func(d *v1.ConsumerDefinition) { d.Order = "author" }),
	} {
		if _, err := c.ApplyConsumer(t.Context(), d, "new"); !fault.Is(err, fault.Invalid) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if list, err := c.Consumers(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
	if _, err := c.ApplyConsumer(t.Context(), searching, "new"); err != nil {
		t.Fatal(err)
	}
	for want, in := range map[string]v1.ConsumerAction{
		"pause has no such field": {Action: "pause", Reason: "x", To: "latest"},
		"skip needs partition":    {Action: "skip", Reason: "x", Seq: 1},
		"name the partition":      {Action: "reset", Reason: "x", To: "seq:2"},
		"expected one":            {Action: "redrive", Reason: "x"},
		"column 1":                {Action: "discard", Reason: "x", Filter: "Nothing"},
	} {
		if _, err := c.ActOnConsumer(t.Context(), "mine", in, ""); !fault.Is(err, fault.Invalid) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

const lambdaARN = "arn:aws:lambda:us-east-1:123456789012:function:mine"

// TestParkedEvents: an event that fails is parked, is listed with its reason, and is handled
// after a redrive.
func TestParkedEvents(t *testing.T) {
	c, q := serve(t, through)
	if _, err := c.ApplyConsumer(t.Context(), searching, "new"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Submit(t.Context(), good, ""); err != nil {
		t.Fatal(err)
	}
	broken := true
	handled := drain(t, q, &broken)
	list, err := c.Parked(t.Context(), "mine", 10)
	if err != nil || len(list) != 1 || !strings.Contains(list[0].Reason, "read-only") || list[0].Type != "batch.state" {
		t.Fatalf("%+v, %v", list, err)
	}
	// Cursors of other lists, and one from beyond the end of the log.
	for _, path := range []string{"/v1/consumers/mine/parked?cursor=bWFwcw", "/v1/events?collection=maps&cursor=12345",
		"/v1/events?collection=maps&cursor=maps%3D-1",
		"/v1/events?subject=Job:" + strings.Repeat("%C3%A9", 1000)} {
		err := c.Call(t.Context(), http.MethodGet, path, nil, nil)
		if !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", path[:40], err)
		}
	}
	var newest v1.EventPage
	path := "/v1/events?collection=maps&cursor=maps%3D9223372036854775807"
	if err := c.Call(t.Context(), http.MethodGet, path, nil, &newest); err != nil || len(newest.Items) == 0 {
		t.Errorf("from beyond the end: %+v, %v", newest, err)
	}
	shown, err := c.Consumer(t.Context(), "mine")
	if err != nil || shown.Parked != 1 || shown.Behind != 0 {
		t.Errorf("%+v, %v", shown, err)
	}
	broken = false
	out, err := c.ActOnConsumer(t.Context(), "mine", v1.ConsumerAction{Action: "redrive", Reason: "x",
		Event: list[0].Event}, "")
	if err != nil || !strings.Contains(out.Summary, "in one partition") {
		t.Errorf("%+v, %v", out, err)
	}
	if *handled != 0 {
		t.Errorf("%d events were handled before", *handled)
	}
	if n := *drain(t, q, &broken); n != 1 {
		t.Errorf("%d events were handled", n)
	}
	if list, err := c.Parked(t.Context(), "mine", 10); err != nil || len(list) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
}

// drain places all events and runs the consumers; it returns how many events were handled.
func drain(t *testing.T, q *queue.Queue, broken *bool) *int {
	t.Helper()
	log := &eventlog.Log{Table: q.Table, Now: func() time.Time { return q.Now().Add(time.Hour) }, NewID: q.NewID}
	handled := 0
	r := &consumer.Runtime{Store: &consumer.Store{Table: q.Table, Log: log, Now: q.Now, NewID: q.NewID},
		Metric: func(string, float64) {}, Wake: func(context.Context, string, string) error { return nil },
		Handlers: map[string]consumer.Handler{"search": consumer.HandlerFunc(
			func(_ context.Context, b consumer.Batch) ([]consumer.Failure, error) {
				if *broken {
					return nil, errors.New("the index is read-only")
				}
				handled += len(b.Events)
				return nil, nil
			})}}
	r.Place = func(ctx context.Context) ([]envelope.Event, error) { return log.Sweep(ctx, log.Now().Add(time.Minute)) }
	if err := r.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	return &handled
}

// TestTryFilter: a filter is tried on the past log; a mistake has its position.
func TestTryFilter(t *testing.T) {
	c, q := serve(t, through)
	for _, key := range []string{"a", "b"} {
		if _, err := c.Submit(t.Context(), good, key); err != nil {
			t.Fatal(err)
		}
	}
	no := false
	drain(t, q, &no)
	out, err := c.TryFilter(t.Context(), v1.FilterTrial{Filter: "Batch+*"})
	if err != nil || out.Selected != 2 || len(out.Events) != 2 || out.Events[0].Partition != "maps" {
		t.Errorf("%+v, %v", out, err)
	}
	if out, err := c.TryFilter(t.Context(), v1.FilterTrial{Filter: "Object+*"}); err != nil || out.Selected != 0 {
		t.Errorf("%+v, %v", out, err)
	}
	_, err = c.TryFilter(t.Context(), v1.FilterTrial{Filter: "Object+Explode"})
	if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "column 8") {
		t.Errorf("%v", err)
	}
	if err := c.Call(t.Context(), http.MethodPost, "/v1/filters", map[string]any{"filter": nil}, nil); err == nil {
		t.Error("null was accepted")
	}
}

// TestReplays: events are replayed, marked; a repeated request is the same replay; it is listed,
// shown and cancelled; what cannot be replayed is refused with the field.
func TestReplays(t *testing.T) {
	c, q := serve(t, through)
	paused := searching
	paused.Paused = true
	if _, err := c.ApplyConsumer(t.Context(), paused, "new"); err != nil {
		t.Fatal(err)
	}
	for want, in := range map[string]v1.ReplayRequest{
		"from":                  {Reason: "x", From: "tomorrow"},
		"until":                 {Reason: "x", Until: "horizon"},
		"name the partition":    {Reason: "x", From: "seq:2"},
		"filter: column 1":      {Reason: "x", Filter: "Nothing"},
		"into: the handler":     {Reason: "x", Into: "mine-new"},
		"into: \"A\"":           {Reason: "x", Into: "A"},
		"filter: a rebuild":     {Reason: "x", Rebuild: true, Filter: "Object+*"},
		"reason":                {},
		"there is no partition": {Reason: "x", Partition: "none"},
	} {
		_, err := c.StartReplay(t.Context(), "mine", in, "")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	first, err := c.StartReplay(t.Context(), "mine", v1.ReplayRequest{Reason: "a bug", Filter: "Batch+*"}, "one")
	if err != nil || first.State != v1.ReplayRunning || first.From != "horizon" || first.Until != "latest" {
		t.Fatalf("%+v, %v", first, err)
	}
	again, err := c.StartReplay(t.Context(), "mine", v1.ReplayRequest{Reason: "a bug", Filter: "Batch+*"}, "one")
	if err != nil || again.ID != first.ID {
		t.Errorf("%+v, %v", again, err)
	}
	for range 2 {
		out, err := c.ActOnReplay(t.Context(), first.ID, v1.ReplayAction{Action: "cancel", Reason: "wrong"}, "two")
		if err != nil || out.State != v1.ReplayCancelled {
			t.Errorf("%+v, %v", out, err)
		}
	}
	no := false
	drain(t, q, &no)
	rebuild, err := c.StartReplay(t.Context(), "mine", v1.ReplayRequest{Reason: "lost", Rebuild: true}, "")
	if err != nil || !rebuild.Rebuild {
		t.Fatalf("%+v, %v", rebuild, err)
	}
	list, err := c.Replays(t.Context(), "mine", 10)
	if err != nil || len(list) != 2 || list[1].Ended == "" {
		t.Errorf("%+v, %v", list, err)
	}
	if _, err := c.Replay(t.Context(), "none"); !fault.Is(err, fault.NotFound) {
		t.Errorf("%v", err)
	}
	if _, err := c.Replays(t.Context(), "nobody", 1); !fault.Is(err, fault.NotFound) {
		t.Errorf("%v", err)
	}
}
