package event_test

import (
	"context"
	"reflect"
	"strings"
	"testing"

	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
)

// TestEnvelope: what a writer says, and where the call comes from, is in the envelope of the
// row that is read again.
func TestEnvelope(t *testing.T) {
	tb := tabletest.Open(t)
	maps := envelope.Ref{Type: "Collection", ID: "maps"}
	other := envelope.Ref{Role: "version", Type: "Version", ID: "ark:/1/x/v2"}
	origin := event.Origin{Version: "v1.2", Modules: []envelope.Module{{Name: "m", Version: "v3"}}, Request: "r",
		Cause: envelope.Cause{Event: "e", Root: "e", Depth: 1, Components: []string{"robot"}}}
	tx := tb.Begin("tx")
	for _, s := range []string{"B-1", "B-2"} {
		err := event.Append(tx, event.Subject{Type: event.Job, ID: s}, 2, event.New{Type: "job.state", Time: 5,
			Outcome: event.Failure, Detail: map[string]string{"to": "Failed"}, Actor: "me", Component: "store",
			Objects: []envelope.Ref{other}, Parents: []envelope.Ref{maps}, Identifiers: []string{"ark:/1/x"},
			Before: map[string]any{"state": "Storing"}, After: map[string]any{"state": "Failed", "message": "no"}})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(event.From(t.Context(), origin)); err != nil {
		t.Fatal(err)
	}
	want := envelope.Event{ID: "tx.1", Subject: envelope.Ref{Type: "Job", ID: "B-2"}, Version: 2, Type: "job.state",
		Action: envelope.Modify, Time: 5, Outcome: event.Failure, Objects: []envelope.Ref{other},
		Parents: []envelope.Ref{maps}, Identifiers: []string{"ark:/1/x"}, Properties: []string{"message", "state"},
		Context: envelope.Context{Actor: "me", Component: "store", Version: "v1.2", Modules: origin.Modules,
			Request: "r", Transaction: envelope.Transaction{ID: "tx", Index: 1, Count: 2}},
		Cause: origin.Cause, Detail: []byte(`{"to":"Failed"}`), Before: []byte(`{"state":"Storing"}`),
		After: []byte(`{"message":"no","state":"Failed"}`)}
	got := only(t, tb, event.Subject{Type: event.Job, ID: "B-2"})
	kind, _ := envelope.KindOf("job.state")
	want.Schema = kind.Schema
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, expected %+v", got, want)
	}
}

// TestUnknownType: an event of a type that is not in the table, or that is about subjects of
// another type, is not written.
func TestUnknownType(t *testing.T) {
	tb := tabletest.Open(t)
	job := event.Subject{Type: event.Job, ID: "B-1"}
	for _, name := range []string{"", "job.unheard", "batch.state"} {
		if err := event.Append(tb.Begin("tx"), job, 1, event.New{Type: name}); err == nil ||
			!strings.Contains(err.Error(), name) {
			t.Errorf("%q: error %v, expected one that names the type", name, err)
		}
	}
}

// TestUnreadable: a row of a newer release, or of a type that nobody knows, has no envelope,
// and the error names the row.
func TestUnreadable(t *testing.T) {
	kind, _ := envelope.KindOf("job.state")
	for _, r := range []event.Row{{Type: "job.unheard", Schema: 1}, {Type: "job.state", Schema: kind.Schema + 1},
		{Type: "job.state", Schema: kind.Schema, After: `[1]`}} {
		r.PK, r.SK = "JOB#B-1", "EV#1"
		if e, err := r.Envelope(); err == nil || !strings.Contains(err.Error(), "JOB#B-1") {
			t.Errorf("%+v: %+v, error %v", r, e, err)
		}
	}
}

// only is the one event of a subject.
func only(t *testing.T, tb *table.Table, s event.Subject) envelope.Event {
	t.Helper()
	rows, _, err := event.Page(context.Background(), tb, s, "")
	if err != nil || len(rows) != 1 {
		t.Fatalf("%d events of %v, error %v", len(rows), s, err)
	}
	e, err := rows[0].Envelope()
	if err != nil {
		t.Fatal(err)
	}
	return e
}
