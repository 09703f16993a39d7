package api_test

import (
	"context"
	"io"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"archivist/pkg/api"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/events/event"
	"archivist/pkg/ingest/collection"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/pkg/objects/inventory"
	"archivist/pkg/views/browse"
	"archivist/pkg/views/search"
)

// finder is an index that finds the same objects for every query.
type finder struct {
	search.Index
	asked search.Request
	found search.Result
}

func (f *finder) Search(_ context.Context, r search.Request) (search.Result, error) {
	f.asked = r
	return f.found, nil
}

// searchable serves the API with two objects.
func searchable(t *testing.T, f *finder) *v1.Client {
	tb := tabletest.Open(t)
	lists := browse.Store{Table: tb, NewID: func() string { return "id" }}
	for name, title := range map[string]string{"x": "Zwolle", "y": "Antwerp"} {
		ark := "ark:/99999/" + name
		k := event.Subject{Type: event.Object, ID: ark}.Key()
		tx := tb.Begin("tx" + name)
		tx.Insert(&inventory.Object{Head: table.Head{PK: k.PK, SK: k.SK}, ARK: ark, Collection: "maps", Title: title})
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := lists.Update(t.Context(), ark); err != nil {
			t.Fatal(err)
		}
	}
	srv := httptest.NewServer((&api.API{Open: true, Inventory: inventory.Store{Table: tb}, Index: f, Browse: lists,
		Queue: &queue.Queue{Table: tb, Now: time.Now}, Collections: collection.Store{Table: tb},
		Log: slog.New(slog.NewTextHandler(io.Discard, nil))}).Handler())
	t.Cleanup(srv.Close)
	return &v1.Client{URL: srv.URL, HTTP: srv.Client()}
}

// TestSearch: what is found is shown from the rows, in the order of the index, without what was
// deleted meanwhile. A query that cannot be read is refused with the position.
func TestSearch(t *testing.T) {
	f := &finder{found: search.Result{ARKs: []string{"ark:/99999/x", "ark:/99999/gone", "ark:/99999/y"}, Total: 3,
		Collections: []search.Count{{Collection: "maps", Objects: 3}}}}
	c := searchable(t, f)
	out, err := c.Search(t.Context(), "title:zwolle map*", v1.ByDate, 0)
	if err != nil || len(out.Items) != 2 || out.Items[0].Title != "Zwolle" || out.Items[1].Title != "Antwerp" ||
		out.Total != 3 || out.Collections[0] != (v1.CollectionCount{Name: "maps", Objects: 3}) {
		t.Errorf("%+v, %v", out, err)
	}
	if f.asked.Query.String() != `title:"zwolle" map*` || f.asked.Order != search.ByDate || f.asked.Limit != 50 {
		t.Errorf("the index was asked for %+v", f.asked)
	}
	if _, err := c.Search(t.Context(), "", "date descending", 0); err != nil ||
		len(f.asked.Query.Clauses) != 0 ||
		f.asked.Order != search.ByDate || !f.asked.Reverse {
		t.Errorf("without a query the index was asked for %+v, %v", f.asked, err)
	}
	for query, want := range map[string]string{"map titel:x": "character 5", "-map": "",
		`"map`: "quotation mark"} {
		_, err := c.Search(t.Context(), query, "", 0)
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", query, err)
		}
	}
	for _, order := range []string{"size", "date backwards"} {
		if _, err := c.Search(t.Context(), "map", order, 0); !fault.Is(err, fault.Invalid) ||
			!strings.Contains(err.Error(), "expected value to be one of") {
			t.Errorf("an unknown order: %v", err)
		}
	}
}

// TestFoundByFormat: what is found is counted by format, and a list by format or in another order
// is that of the index.
func TestFoundByFormat(t *testing.T) {
	f := &finder{found: search.Result{ARKs: []string{"ark:/99999/x"}, Total: 1,
		Formats: []search.FormatCount{{Format: "image/tiff", Objects: 1}}}}
	c := searchable(t, f)
	out, err := c.Search(t.Context(), "format:image/TIFF", "", 0)
	if err != nil || len(out.Formats) != 1 ||
		out.Formats[0] != (v1.FormatCount{Format: "image/tiff", Objects: 1}) {
		t.Errorf("%+v, %v", out, err)
	}
	for _, k := range []struct {
		filter  v1.Filter
		query   string
		order   string
		reverse bool
	}{
		{v1.Filter{Format: "Image/TIFF"}, `format:"image/tiff"`, search.ByTitle, false},
		{v1.Filter{Format: "fmt/353", Collection: `m "a" p`, Sort: v1.ByDate, Order: v1.Descending},
			`collection:"m "a" p" format:"fmt/353"`, search.ByDate, true},
		{v1.Filter{Sort: v1.ByModified}, "", search.ByModified, false},
		{v1.Filter{Sort: v1.ByModified, Order: v1.Descending}, "", search.ByModified, false},
		{v1.Filter{Sort: v1.ByModified, Order: v1.Ascending}, "", search.ByModified, true},
		{v1.Filter{Sort: v1.ByTitle, Order: v1.Ascending}, "", search.ByTitle, false},
	} {
		found, err := c.Objects(t.Context(), k.filter)
		if err != nil || len(found) != 1 || f.asked.Query.String() != k.query ||
			f.asked.Order != k.order ||
			f.asked.Reverse != k.reverse {
			t.Errorf("%+v: %d objects, asked for %+v, %v", k.filter, len(found), f.asked, err)
		}
	}
	for _, bad := range []v1.Filter{{Format: "a/b", Title: "x"}, {Sort: v1.ByDate, Date: "1851"},
		{Order: v1.Descending},
		{Sort: "size"}, {Sort: v1.ByDate, Order: "backwards"}, {Format: "a/b", LocalID: "x",
			Collection: "maps"}} {
		if _, err := c.Objects(t.Context(), bad); !fault.Is(err, fault.Invalid) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// TestFindObjects: objects are listed by title, of all collections or of one, and by date.
func TestFindObjects(t *testing.T) {
	c := searchable(t, &finder{})
	for _, k := range []struct {
		filter v1.Filter
		n      int
	}{{v1.Filter{}, 2}, {v1.Filter{Title: "ant"}, 1}, {v1.Filter{Title: "ZW", Collection: "maps"}, 1},
		{v1.Filter{Title: "b"}, 0}, {v1.Filter{Date: "1066"}, 0}} {
		if found, err := c.Objects(t.Context(), k.filter); err != nil || len(found) != k.n {
			t.Errorf("%+v: %+v, %v", k.filter, found, err)
		}
	}
	for _, bad := range []v1.Filter{{Title: "a", ARK: "ark:/99999/x"}, {Date: "1851", Collection: "maps"},
		{LocalID: "x"}, {ARK: "ark:/99999/x", Collection: "maps"}} {
		if _, err := c.Objects(t.Context(), bad); !fault.Is(err, fault.Invalid) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// TestBrowse: a list has the objects in its order, from a value on.
func TestBrowse(t *testing.T) {
	c := searchable(t, &finder{})
	all, err := c.Browse(t.Context(), "title", "", "", 0)
	if err != nil || len(all) != 2 || all[0].Value != "Antwerp" || all[1].Object.ARK != "ark:/99999/x" {
		t.Errorf("%+v, %v", all, err)
	}
	from, err := c.Browse(t.Context(), "title", "b", "", 0)
	if err != nil || len(from) != 1 || from[0].Value != "Zwolle" {
		t.Errorf("%+v, %v", from, err)
	}
	if one, err := c.Browse(t.Context(), "collection", "", "maps", 1); err != nil || len(one) != 1 {
		t.Errorf("%+v, %v", one, err)
	}
	for _, bad := range [][2]string{{"size", ""}, {"title", "maps"}} {
		if _, err := c.Browse(t.Context(), bad[0], "", bad[1], 0); !fault.Is(err, fault.Invalid) {
			t.Errorf("%v: %v", bad, err)
		}
	}
}
