package envelope_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"archivist/pkg/envelope"
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

// TestPresentFiles: a version is presented with an event of each file, which are read one by one
// until the reader stops. Other events have no files, and their lists are not opened.
func TestPresentFiles(t *testing.T) {
	opened := 0
	list := func(_ context.Context, e envelope.Event, each func(envelope.File) error) error {
		for ; ; opened++ {
			if err := each(envelope.File{Path: fmt.Sprint("f", opened), Size: int64(opened)}); err != nil {
				return err
			}
		}
	}
	e := envelope.Event{ID: "e", Type: "version.create", Action: envelope.Create, Parents: inMaps,
		Subject: envelope.Ref{Type: "Version", ID: "ark:/1/a/v1"}}
	stop := errors.New("enough")
	var got []envelope.Event
	each := func(f envelope.Event) error {
		got = append(got, f)
		if len(got) == 3 {
			return stop
		}
		return nil
	}
	if err := envelope.PresentFiles(t.Context(), e, list, each); !errors.Is(err, stop) || opened != 2 {
		t.Fatalf("%d opened, %v", opened, err)
	}
	f := got[2]
	if f.ID != "e#3" || f.Subject.ID != "ark:/1/a/v1/f2" || f.Type != envelope.FileCreate || f.Log() != "maps" ||
		len(f.Parents) != 2 || f.Parents[1].ID != "ark:/1/a/v1" || string(f.After) != `{"path":"f2","size":2}` {
		t.Errorf("%+v", f)
	}
	if len(e.Parents) != 1 {
		t.Errorf("the event's own parents are now %v", e.Parents)
	}
	e.Type = "object.create"
	if err := envelope.PresentFiles(t.Context(), e, nil, each); err != nil {
		t.Error(err)
	}
}
