package component

import (
	"context"
	"fmt"
	"testing"

	"archivist/pkg/events/consumer"
	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/events/filter"
	"archivist/pkg/kernel/table"
)

// happen writes the next event of a subject of the system. by is the part of the system that made it.
func happen(t *testing.T, s *Store, of event.Subject, version int64, name, by string) envelope.Event {
	t.Helper()
	tx := s.Table.Begin(s.NewID())
	err := event.Append(tx, of, version, event.New{Type: name, Time: millis(s.Now()), Component: by,
		Identifiers: []string{of.ID}, Parents: []envelope.Ref{{Type: "Collection", ID: "maps"}}})
	if err == nil {
		err = tx.Commit(t.Context())
	}
	var row event.Row
	if err == nil {
		err = s.Table.Get(t.Context(), event.Key(of, version), &row)
	}
	if err != nil {
		t.Fatal(err)
	}
	e, err := row.Envelope()
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// object is a subject with as many events.
func object(n int) event.Subject {
	return event.Subject{Type: event.Object, ID: fmt.Sprintf("ark:/99999/fk4%d", n)}
}

// batchOf is a call with these events.
func batchOf(events ...envelope.Event) (b consumer.Batch) {
	for _, e := range events {
		b.Events = append(b.Events, consumer.Item{Event: e})
	}
	return b
}

// TestFollower: an item follows from its subject's events, whichever of them comes, in whatever order,
// and how often. What is damaged fails alone.
func TestFollower(t *testing.T) {
	s := newStore(t)
	woken := 0
	s.Wake = func(context.Context, string) error { woken++; return nil }
	d := Definition{Name: "check", Event: "Checked", PastSuccess: []string{"object.create"}, Old: []string{"Checked"},
		Runnable: Runnable{Function: "x"}, Wake: true}
	define(t, s, d)
	var events []envelope.Event
	for n := range 3 {
		events = append(events, happen(t, s, object(n), 1, "object.create", "record"))
	}
	if _, err := s.Sync(t.Context(), IDOf(events[1].Subject)); err != nil {
		t.Fatal(err)
	}
	damage(t, s, IDOf(events[1].Subject))
	events = append(events, happen(t, s, object(0), 2, "object.modify", "record"))
	gone := envelope.Event{ID: "snapshot", Type: envelope.Snapshot, Subject: envelope.Ref{Type: "Object", ID: "gone"}}
	h := Follower{Store: s}
	for _, b := range []consumer.Batch{batchOf(events[3]), batchOf(gone, events[0])} {
		if failed, err := h.Handle(t.Context(), b); err != nil || len(failed) > 0 {
			t.Fatalf("%+v, %v", failed, err)
		}
	}
	failed, err := h.Handle(t.Context(), batchOf(events...))
	if err != nil || len(failed) != 1 || failed[0].ID != events[1].ID {
		t.Errorf("%+v, %v", failed, err)
	}
	// The damaged one was found ready before that.
	if c := counted(t, s, "check"); c.Ready != 3 || woken != 3 {
		t.Errorf("%+v, %d wake-ups", c, woken)
	}
	x, err := s.Standing(t.Context(), "check", object(0).ID)
	if err != nil || !x.Ready || x.Cause.Event != events[3].ID && x.Cause.Event != events[0].ID {
		t.Errorf("%+v, %v", x, err)
	}
}

// TestWhoChanged: a component is triggered by changes of the system and of other components, also if a part
// of the system has its name, and not by those that it asked for itself.
func TestWhoChanged(t *testing.T) {
	s := newStore(t)
	d := Definition{Name: "record", Event: "Recorded", PastSuccess: []string{"object.create"},
		Old: []string{"Recorded"}, Runnable: Runnable{Function: "x"}}
	define(t, s, d)
	id := IDOf(ref(object(1)))
	happen(t, s, object(1), 1, "object.create", "record")
	for i, c := range []struct {
		asked []string // the components in the chain of causes
		ready bool
	}{{nil, true}, {[]string{"items", "record"}, false}, {[]string{"record", "other"}, true}} {
		_, err := s.change(t.Context(), id, func(c *change) error {
			return c.append("component.ran", "", "record", By{}, Ran{Component: "record", Event: "Recorded",
				BasedOn: SeenVersions{Subject: c.item().Applied, Item: c.item().Version}})
		})
		if err != nil {
			t.Fatal(err)
		}
		tx := s.Table.Begin(s.NewID())
		err = event.Append(tx, object(1), int64(i+2), event.New{Type: "object.modify", Time: 1_000_000,
			Component: "record"})
		if err == nil {
			err = tx.Commit(event.From(t.Context(), event.Origin{Cause: envelope.Cause{Event: "e", Root: "e", Depth: 1,
				Components: c.asked}}))
		}
		if err != nil {
			t.Fatal(err)
		}
		if x, err := s.Standing(t.Context(), "record", id); err != nil || x.Ready != c.ready {
			t.Errorf("asked by %v: %+v, %v", c.asked, x, err)
		}
	}
}

// TestFollowerSelects: the consumer is accepted, and selects no events of items, so it does not cause
// itself.
func TestFollowerSelects(t *testing.T) {
	d := FollowerDefinition
	if err := d.Check(); err != nil {
		t.Fatal(err)
	}
	f, err := filter.Compile(d.Filter)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range envelope.Kinds {
		e := envelope.Event{Type: k.Type, Action: k.Action, Subject: envelope.Ref{Type: k.Subject, ID: "x"}}
		if want := IDOf(e.Subject) != ""; f.Match(e) != want {
			t.Errorf("%s is selected: %v", k.Type, !want)
		}
	}
}

// TestWake: a component that an item makes ready is woken once for each time.
func TestWake(t *testing.T) {
	s := newStore(t)
	var woken []string
	s.Wake = func(_ context.Context, name string) error { woken = append(woken, name); return nil }
	d := checker("check", "Checked")
	d.Wake = true
	define(t, s, d, checker("other", "Other"))
	received(t, s, 2)
	record(t, s, "item:d0000", "Counted")
	if fmt.Sprint(woken) != "[check check]" {
		t.Errorf("woken: %v", woken)
	}
	s.Wake = nil // the scheduler's tick starts it
	received(t, s, 3)
	var rows []table.Head
	if _, err := s.Table.Page(t.Context(), table.Query{PK: linePK("check"), Prefix: Ready}, &rows); err != nil ||
		len(rows) != 3 {
		t.Errorf("%v, %v", rows, err)
	}
}

func ref(s event.Subject) envelope.Ref { return envelope.Ref{Type: s.Type.String(), ID: s.ID} }
