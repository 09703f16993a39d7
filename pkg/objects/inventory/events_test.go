package inventory_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/table"
	"archivist/pkg/objects/inventory"
)

// events are those of a subject, oldest first.
func (s *store) events(of event.Type, id string) (out []envelope.Event) {
	s.Helper()
	rows, _, err := event.Page(s.Context(), s.Table, event.Subject{Type: of, ID: id}, "")
	if err != nil {
		s.Fatal(err)
	}
	for _, r := range rows {
		e, err := r.Envelope()
		if err != nil {
			s.Fatal(err)
		}
		out = append(out, e)
	}
	return out
}

// jobStored is a record of the version n of an object that a job has stored just now.
func jobStored(n int, title string) inventory.Record {
	r := stored()
	r.Object.HeadOf, r.Object.Digest, r.Object.Title = n, fmt.Sprint("digest ", n), title
	r.Job, r.Actor = fmt.Sprint("job-", n), "me"
	r.Versions = []inventory.Version{{Number: n, Job: r.Job, Files: 2, Bytes: 30, Created: 7, Digest: r.Object.Digest}}
	return r
}

const ark = "ark:/99999/fk4a"

// TestObjectEvents: the events of an object name its collection, its versions and their jobs,
// all that it is known by, and what has changed.
func TestObjectEvents(t *testing.T) {
	s := newStore(t)
	for n, title := range []string{1: "a map", 2: "The map"} {
		if n > 0 {
			if changed, err := s.record(jobStored(n, title)); err != nil || !changed {
				t.Fatal(changed, err)
			}
		}
	}
	all := s.events(event.Object, ark)
	if len(all) != 2 {
		t.Fatalf("%d events", len(all))
	}
	collection := envelope.Ref{Type: "Collection", ID: "maps"}
	first, second := all[0], all[1]
	wantObjects := []envelope.Ref{{Role: "collection", Type: "Collection", ID: "maps"},
		{Role: "version", Type: "Version", ID: ark + "/v1"}, {Role: "job", Type: "Job", ID: "job-1"}}
	if first.Action != envelope.Create || !reflect.DeepEqual(first.Objects, wantObjects) || first.Before != nil ||
		first.Context.Transaction.Count != 2 {
		t.Errorf("%+v", first)
	}
	if !reflect.DeepEqual(second.Parents, []envelope.Ref{collection}) || second.Log() != "maps" ||
		!reflect.DeepEqual(second.Identifiers, []string{ark, "x"}) {
		t.Errorf("parents %v, identifiers %q", second.Parents, second.Identifiers)
	}
	if want := []string{"inventoryDigest", "title", "version"}; !reflect.DeepEqual(second.Properties, want) {
		t.Errorf("properties %q", second.Properties)
	}
	if string(second.Before) != `{"inventoryDigest":"digest 1","title":"a map","version":1}` ||
		string(second.After) != `{"inventoryDigest":"digest 2","title":"The map","version":2}` {
		t.Errorf("before %s, after %s", second.Before, second.After)
	}
}

// TestVersionEvents: each version has one event, also after its row was lost and made again. A
// version whose events are lost, too, gets one.
func TestVersionEvents(t *testing.T) {
	s := newStore(t)
	if _, err := s.record(jobStored(1, "a")); err != nil {
		t.Fatal(err)
	}
	told := s.events(event.Version, ark+"/v1")
	if len(told) != 1 {
		t.Fatalf("%d events", len(told))
	}
	var d inventory.VersionDetail
	if err := json.Unmarshal(told[0].Detail, &d); err != nil {
		t.Fatal(err)
	}
	want := inventory.VersionDetail{Object: ark, Version: 1, Job: "job-1", Files: 2, Bytes: 30, Created: 7,
		Digest: "digest 1"}
	parents := []envelope.Ref{{Type: "Collection", ID: "maps"}, {Type: "Object", ID: ark}}
	if d != want || told[0].Type != "version.create" || told[0].Version != 1 ||
		!reflect.DeepEqual(told[0].Parents, parents) {
		t.Errorf("%+v with detail %+v", told[0], d)
	}

	for _, lost := range []table.Key{inventory.VersionKey(ark, 1),
		event.Key(event.Subject{Type: event.Version, ID: ark + "/v1"}, 1)} {
		row := table.Head{PK: inventory.VersionKey(ark, 1).PK, SK: inventory.VersionKey(ark, 1).SK, Rev: 1}
		tx := s.Table.Begin("lose " + lost.String())
		tx.Remove(&struct{ table.Head }{row})
		if strings.HasPrefix(lost.SK, event.Prefix) {
			tx.Remove(&struct{ table.Head }{table.Head{PK: lost.PK, SK: lost.SK, Rev: 1}})
		}
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		again := jobStored(1, "a")
		again.Job = ""
		if changed, err := s.record(again); err != nil || !changed {
			t.Fatal(changed, err)
		}
		if n := len(s.events(event.Version, ark+"/v1")); n != 1 {
			t.Errorf("after %s was lost: %d events", lost, n)
		}
	}
}

// TestManyLocalIDs: an object with long local ids has an event of bounded size.
func TestManyLocalIDs(t *testing.T) {
	s := newStore(t)
	r := jobStored(1, "a")
	r.Object.LocalIDs = nil
	for i := range 25 {
		r.Object.LocalIDs = append(r.Object.LocalIDs, fmt.Sprintf("%02d%s", i, strings.Repeat("&", 498)))
	}
	if _, err := s.record(r); err != nil {
		t.Fatal(err)
	}
	e := s.events(event.Object, ark)[0]
	if n := len(e.Identifiers); n != 1+20 || len(e.After) > event.MaxDetail {
		t.Errorf("%d identifiers, %d bytes", n, len(e.After))
	}
}
