package history_test

import (
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"archivist/pkg/events/consumer"
	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/pkg/views/history"
)

const ark = "ark:/99999/fk4x"

// happened is an event of the object's record.
func happened(n int, kind, subject, id string) consumer.Item {
	return consumer.Item{Event: envelope.Event{ID: fmt.Sprintf("tx%d.0", n), Type: kind, Time: int64(1000 * n),
		Subject: envelope.Ref{Type: subject, ID: id}, Version: int64(n), Outcome: "success",
		Identifiers: []string{ark, "a local id"}, Detail: []byte(`{"job":"J-1"}`), Schema: 1,
		Context: envelope.Context{Actor: "ada", Component: "record"}, Partition: "maps", Seq: int64(n)}}
}

// events are those of one object; the last is of another.
func events() []consumer.Item {
	return []consumer.Item{
		happened(1, "object.create", "Object", ark),
		happened(2, "version.create", "Version", ark+"/v1"),
		happened(3, "object.modify", "Object", ark),
		happened(4, "object.create", "Object", ark+"2"),
	}
}

// recorder records in a table whose calls pass through do.
func recorder(fake *tabletest.Fake, do func(op string, call func() error) error) history.Recorder {
	var n atomic.Int64
	return history.Recorder{Table: tabletest.Through(fake, do),
		NewID: func() string { return fmt.Sprintf("tx-%p-%d", &n, n.Add(1)) }}
}

func through(_ string, call func() error) error { return call() }

// check compares the record with the events.
func check(t *testing.T, tb *table.Table) {
	t.Helper()
	got, next, err := history.Store{Table: tb}.Page(t.Context(), ark, "")
	if err != nil || next != "" || len(got) != 3 {
		t.Fatalf("%d events, %q, %v", len(got), next, err)
	}
	for i, item := range events()[:3] {
		if !reflect.DeepEqual(got[i], item.Event) {
			t.Errorf("recorded %+v, want %+v", got[i], item.Event)
		}
	}
}

// TestRecord: each event is recorded once, also if it comes again, alone, or as a replay. The
// record is complete after the events' rows are gone.
func TestRecord(t *testing.T) {
	r := recorder(tabletest.New(), through)
	all := events()
	for _, b := range []consumer.Batch{{Events: all}, {Events: all[1:]}, {Events: all, Replay: true}} {
		if failures, err := r.Handle(t.Context(), b); err != nil || len(failures) > 0 {
			t.Fatal(failures, err)
		}
	}
	check(t, r.Table)
	if rows, _, err := event.Page(t.Context(), r.Table, event.Subject{Type: event.Object, ID: ark}, ""); err != nil ||
		len(rows) > 0 {
		t.Fatalf("the test has events that are not recorded: %v, %v", rows, err)
	}
}

// TestCrash: a call that dies at any point is repeated, and each event is recorded once.
func TestCrash(t *testing.T) {
	tabletest.Crashes(t, 4, func(t *testing.T, m *tabletest.Mortal) {
		fake := tabletest.New()
		_, err := recorder(fake, m.Do).Handle(t.Context(), consumer.Batch{Events: events()})
		if m.Dead() != (err != nil) {
			t.Fatalf("died %v, %v", m.Dead(), err)
		}
		again := recorder(fake, through)
		failures, err := again.Handle(t.Context(), consumer.Batch{Events: events()})
		if err != nil || failures != nil {
			t.Fatal(failures, err)
		}
		check(t, again.Table)
	})
}

// TestItems: what components did with an object, or with a version, is in the object's record. Items of no
// object have none.
func TestItems(t *testing.T) {
	r := recorder(tabletest.New(), through)
	of := func(n int, id string, parents ...envelope.Ref) consumer.Item {
		e := happened(n, "component.ran", "ComponentItem", id)
		e.Parents = append([]envelope.Ref{{Type: "Collection", ID: "maps"}}, parents...)
		return e
	}
	failures, err := r.Handle(t.Context(), consumer.Batch{Events: []consumer.Item{
		of(1, "object:"+ark, envelope.Ref{Type: "Object", ID: ark}),
		of(2, "version:"+ark+"/v2", envelope.Ref{Type: "Object", ID: ark},
			envelope.Ref{Type: "Version", ID: ark + "/v2"}),
		of(3, "batch:B1", envelope.Ref{Type: "Batch", ID: "B1"}), of(4, "item:box")}})
	if err != nil || len(failures) > 0 {
		t.Fatal(failures, err)
	}
	got, _, err := history.Store{Table: r.Table}.Page(t.Context(), ark, "")
	if err != nil || len(got) != 2 || got[0].ID != "tx1.0" || got[1].ID != "tx2.0" {
		t.Errorf("recorded %v, %v", got, err)
	}
}

// TestOthers: what is not kept permanently is not recorded. An event that cannot be recorded
// fails alone, with its reason.
func TestOthers(t *testing.T) {
	r := recorder(tabletest.New(), through)
	large := happened(2, "object.modify", "Object", ark)
	large.Detail = []byte(`"` + strings.Repeat("x", 500<<10) + `"`)
	failures, err := r.Handle(t.Context(), consumer.Batch{Events: []consumer.Item{
		happened(1, "batch.mail", "Object", ark), large, happened(3, "object.create", "Object", ark)}})
	if err != nil || len(failures) != 1 || failures[0].ID != "tx2.0" || failures[0].Reason == "" {
		t.Errorf("failures %v, %v", failures, err)
	}
	got, _, err := history.Store{Table: r.Table}.Page(t.Context(), ark, "")
	if err != nil || len(got) != 1 || got[0].ID != "tx3.0" {
		t.Errorf("recorded %v, %v", got, err)
	}
}
