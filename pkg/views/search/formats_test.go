package search_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"archivist/pkg/events/consumer"
	"archivist/pkg/events/envelope"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/pkg/objects/aip/aiptest"
	"archivist/pkg/objects/formats"
	"archivist/pkg/objects/inventory"
	"archivist/pkg/views/search"
)

// TestSourceFormats: until the files of a version are identified, an object has the media types
// of its list of files; then it has the ids and media types that were found. A format without a
// media type is counted by its id. Of very many formats some are named, with a mark.
func TestSourceFormats(t *testing.T) {
	root := aiptest.New(t)
	root.Store(ark, map[string]string{"a.tif": "x", "b.txt": "y", "c": "z"},
		aiptest.System("maps", "", "", ""))
	tb := tabletest.Open(t)
	rows := inventory.Store{Table: tb}
	put, err := rows.Prepare(t.Context(), inventory.Record{Actor: "ada", Job: "J-1",
		Object: inventory.Object{ARK: ark, Collection: "maps", HeadOf: 1}}, 1000)
	if err != nil {
		t.Fatal(err)
	}
	tx := tb.Begin("tx")
	if err := errors.Join(put(tx), tx.Commit(t.Context())); err != nil {
		t.Fatal(err)
	}
	source := search.Source{Inventory: rows, Root: root.Root}
	expect := func(all, kinds []string) {
		t.Helper()
		d, err := source.Read(t.Context(), ark)
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(d.Formats)
		slices.Sort(d.Kinds)
		if !slices.Equal(d.Formats, all) || !slices.Equal(d.Kinds, kinds) {
			t.Errorf("the formats are %q and %q, want %q and %q", d.Formats, d.Kinds, all, kinds)
		}
	}
	listed := []string{}
	expect(listed, listed)

	many := 0
	ids := 0
	maker := &formats.Maker{Store: formats.Store{Table: tb, Derived: root.Derived},
		Root: root.Root, Signatures: "V1",
		NewID: func() string { ids++; return fmt.Sprint("id", ids) },
		Now:   func() time.Time { return time.UnixMilli(0) },
		Identify: func(_ context.Context, name string, _ io.ReaderAt, _ int64) ([]formats.Match,
			error) {
			switch name {
			case "producer/a.tif":
				found := []formats.Match{{ID: "fmt/353", MediaType: "image/tiff, Image/TIFF-FX"}}
				for n := range many {
					found = append(found, formats.Match{ID: fmt.Sprint("fmt/", 1000+n),
						MediaType: fmt.Sprint("a/", n)})
				}
				return found, nil
			case "producer/b.txt":
				return []formats.Match{{ID: "x-fmt/111"}}, nil
			}
			return []formats.Match{{ID: formats.Unknown}}, nil
		}}
	identify := func() {
		t.Helper()
		if _, err := maker.Version(t.Context(), ark, 1, time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
	}
	identify()
	expect([]string{"fmt/353", "image/tiff", "image/tiff-fx", "unknown", "x-fmt/111"},
		[]string{"image/tiff", "image/tiff-fx", "unknown", "x-fmt/111"})

	many, maker.Signatures = 1000, "V2"
	identify()
	d, err := source.Read(t.Context(), ark)
	if err != nil || len(d.Formats) > search.MaxFormats+1 || len(d.Formats) < 100 ||
		!slices.Contains(d.Formats, search.OtherFormats) || !slices.Contains(d.Kinds,
		search.OtherFormats) {
		t.Errorf("of very many formats %d are named: %v", len(d.Formats), err)
	}
}

// asked is an index that notes what it has to update.
type asked struct {
	search.Index
	changed []search.Change
}

func (a *asked) Update(_ context.Context, changed []search.Change, _ search.Reader) error {
	a.changed = changed
	return nil
}

// TestIdentified: the event that the files of a version were identified updates its object, with
// the version of an event of the object only. What is about no object is passed over.
func TestIdentified(t *testing.T) {
	x := &asked{}
	item := func(kind, id string, version int64, parents ...envelope.Ref) consumer.Item {
		return consumer.Item{Event: envelope.Event{Version: version,
			Subject: envelope.Ref{Type: kind, ID: id},
			Parents: parents}}
	}
	_, err := search.Consumer{Index: x}.Handle(t.Context(), consumer.Batch{Events: []consumer.Item{
		item("Object", ark, 2),
		item("ComponentItem", "Version:"+ark+"/v1", 9, envelope.Ref{Type: "Object", ID: ark},
			envelope.Ref{Type: "Version", ID: ark + "/v1"}),
		item("ComponentItem", "box-7", 9),
		item("ComponentItem", "Version:ark:/99999/b/v1", 3, envelope.Ref{Type: "Version",
			ID: "ark:/99999/b/v1"}),
	}})
	want := []search.Change{{ARK: ark, Version: 2}, {ARK: "ark:/99999/b"}}
	if err != nil || !slices.Equal(x.changed, want) {
		t.Errorf("%+v, %v; want %+v", x.changed, err, want)
	}
}
