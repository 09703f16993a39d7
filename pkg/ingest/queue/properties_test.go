package queue_test

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/queue/queuetest"
)

// envelopes are the events of a subject, oldest first, in the form that everybody sees.
func (b *bench) envelopes(of event.Type, id string) (out []envelope.Event) {
	b.Helper()
	rows, _, err := event.Page(b.Context(), b.q.Table, event.Subject{Type: of, ID: id}, "")
	if err != nil {
		b.Fatal(err)
	}
	for _, r := range rows {
		e, err := r.Envelope()
		if err != nil {
			b.Fatal(err)
		}
		out = append(out, e)
	}
	return out
}

// TestJobEvents: each event of a job names its collection, its batch and its identifiers. What
// one event says of after, the next says of before; all together say what the row says.
func TestJobEvents(t *testing.T) {
	b := newBench(t)
	id := b.failedJob(ingest.Downloading)
	b.did(ingest.ActPrioritize, id, queuetest.Priority(7))
	b.requeue(id)
	b.did(ingest.ActFail, id)
	b.did(ingest.ActDelete, id, queuetest.Confirmed)

	j := b.job(id)
	all, now := b.envelopes(event.Job, id), map[string]any{}
	for i, e := range all {
		want := []envelope.Ref{{Type: "Collection", ID: j.Collection}, {Type: "Batch", ID: j.Batch}}
		if !reflect.DeepEqual(e.Parents, want) || e.Log() != j.Collection || e.Version != int64(i+1) {
			t.Errorf("event %d: %+v", i+1, e)
		}
		before := read(t, e.Before)
		for _, name := range e.Properties {
			if !reflect.DeepEqual(before[name], now[name]) {
				t.Errorf("event %d: %s was %v, the event before says %v", i+1, name, before[name], now[name])
			}
			delete(now, name)
		}
		for name, value := range read(t, e.After) {
			now[name] = value
		}
	}
	want := map[string]any{"state": "Deleted", "priority": 7.0, "message": j.Message}
	if j.Message == "" {
		delete(want, "message")
	}
	if !reflect.DeepEqual(now, want) {
		t.Errorf("after all events: %v, expected %v", now, want)
	}
	if first, last := all[0], all[len(all)-1]; first.Action != envelope.Create || last.Action != envelope.Delete {
		t.Errorf("actions %q, %q", first.Action, last.Action)
	}
}

// read are the properties in before or after.
func read(t *testing.T, text json.RawMessage) map[string]any {
	t.Helper()
	out := map[string]any{}
	if text == nil {
		return out
	}
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestStoredVersion: the event of a job that stored a version names it.
func TestStoredVersion(t *testing.T) {
	b := newBench(t)
	id := b.estimated("x", 10)
	b.tick()
	b.handle(b.toState(id, ingest.Storing), func(_ context.Context, c *queue.Claim) (ingest.Result, error) {
		c.Job.Primary, c.Job.ObjectVersion = "ark:/99999/fk4a", 1
		return ingest.Result{Outcome: ingest.StepNext}, nil
	})
	b.through(queue.Message{Job: id, Token: "t"})
	var named []string
	for _, e := range b.envelopes(event.Job, id) {
		for _, o := range e.Objects {
			named = append(named, o.Role+" "+o.Type+" "+o.ID)
		}
	}
	if want := []string{"version Version ark:/99999/fk4a/v1"}; !reflect.DeepEqual(named, want) {
		t.Errorf("events name %q, expected %q", named, want)
	}
	all := b.envelopes(event.Job, id)
	if last := all[len(all)-1]; !reflect.DeepEqual(last.Identifiers, []string{"ark:/99999/fk4a", "x"}) {
		t.Errorf("identifiers %q", last.Identifiers)
	}
}

// TestHoldEvents: the event of a hold says what the hold is, that of its end what it was.
func TestHoldEvents(t *testing.T) {
	b := newBench(t)
	b.do(ingest.ActHold, collectionC)
	b.do(ingest.ActRelease, collectionC)
	all := b.envelopes(event.Collection, "c")
	if len(all) != 2 || all[0].Before != nil || all[1].After != nil || string(all[0].After) != string(all[1].Before) ||
		!strings.Contains(string(all[0].After), `"reason":"the shelf is counted"`) || all[0].Log() != "c" {
		t.Errorf("%+v", all)
	}
}

// TestOperationEvents: the events of a bulk operation say how its state changed, and what it
// selects.
func TestOperationEvents(t *testing.T) {
	b := newBench(t)
	batch := b.submit(2, "")
	admin := queue.Admin{Queue: b.q}
	o, err := admin.Start(t.Context(), ingest.Bulk{Name: ingest.ActPrioritize, Priority: new(int),
		Filter: ingest.Filter{Batch: batch}}, "a test", "me", ingest.Administrator, "", false)
	for err == nil && o.State == ingest.OperationRunning {
		o, err = admin.RunPage(t.Context(), o.Operation.ID, o.Exec, b.q.Now().Add(1e9))
	}
	if err != nil {
		t.Fatal(err)
	}
	all := b.envelopes(event.Operation, o.Operation.ID)
	last := all[len(all)-1]
	if len(all) != 2 || string(all[0].After) != `{"state":"Running"}` || string(last.Before) != `{"state":"Running"}` ||
		string(last.After) != `{"state":"Done"}` || last.Log() != envelope.Site {
		t.Errorf("%+v", all)
	}
	if want := []envelope.Ref{{Role: "batch", Type: "Batch", ID: batch}}; !reflect.DeepEqual(last.Objects, want) {
		t.Errorf("objects %v", last.Objects)
	}
}

// TestLargeReason: a failure with a very long reason is recorded, with the beginning of it.
func TestLargeReason(t *testing.T) {
	b := newBench(t)
	id := b.one()
	b.tick()
	reason := strings.Repeat("<\"file\" answered> ", 10_000)
	m := b.last()
	m.State = string(ingest.Estimating)
	b.handle(m, func(context.Context, *queue.Claim) (ingest.Result, error) { return ingest.Fail(true, reason), nil })
	all := b.envelopes(event.Job, id)
	if text := string(all[len(all)-1].After); !strings.Contains(text, "…") || len(text) > event.MaxDetail {
		t.Errorf("%d bytes: %.200s", len(text), text)
	}
}
