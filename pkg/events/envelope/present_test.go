package envelope_test

import (
	"reflect"
	"testing"

	"archivist/pkg/events/envelope"
)

var inMaps = []envelope.Ref{{Type: "Collection", ID: "maps"}}

// TestPresentAdd: the creation of an object is also its addition to the collection, with the
// object; its modification is not.
func TestPresentAdd(t *testing.T) {
	e := envelope.Event{ID: "e", Type: "object.create", Action: envelope.Create, Version: 1, Time: 5,
		Subject: envelope.Ref{Type: "Object", ID: "ark:/1/a"}, Parents: inMaps, Detail: []byte(`{}`), Seq: 3,
		Objects: []envelope.Ref{{Role: "collection", Type: "Collection", ID: "maps"},
			{Role: "job", Type: "Job", ID: "j"}}}
	all := envelope.Present(e)
	if len(all) != 2 || !reflect.DeepEqual(all[0], e) {
		t.Fatalf("%+v", all)
	}
	add := all[1]
	want := envelope.Event{ID: "e#add", Type: envelope.CollectionAdd, Action: envelope.Add, Time: 5, Seq: 3, Schema: 1,
		Subject: inMaps[0], Parents: []envelope.Ref{},
		Objects: []envelope.Ref{{Role: "object", Type: "Object", ID: "ark:/1/a"}}}
	if !reflect.DeepEqual(add, want) || add.Log() != e.Log() {
		t.Errorf("%+v, expected %+v", add, want)
	}
	e.Action = envelope.Modify
	if all := envelope.Present(e); len(all) != 1 {
		t.Errorf("a modification is presented as %+v", all)
	}
}

// TestPresentFile: a file of a version is presented as an event of its own, in the log of the version.
func TestPresentFile(t *testing.T) {
	e := envelope.Event{ID: "e", Type: "version.create", Action: envelope.Create, Parents: inMaps,
		Subject: envelope.Ref{Type: "Version", ID: "ark:/1/a/v1"}, Version: 1, Detail: []byte(`{}`), Seq: 3}
	f, err := envelope.PresentFile(e, 3, envelope.File{Path: "f2", Size: 2})
	want := envelope.Event{ID: "e#3", Type: envelope.FileCreate, Action: envelope.Create, Seq: 3, Schema: 1,
		Subject: envelope.Ref{Type: "File", ID: "ark:/1/a/v1/f2"}, After: []byte(`{"path":"f2","size":2}`),
		Parents: append(inMaps[:1:1], e.Subject)}
	if err != nil || !reflect.DeepEqual(f, want) || f.Log() != "maps" {
		t.Errorf("%+v, %v, expected %+v", f, err, want)
	}
	if len(e.Parents) != 1 || !e.HasFiles() || f.HasFiles() {
		t.Errorf("the event is now %+v", e)
	}
}
