package doctor_test

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"archivist/pkg/ingest/stage/stagetest"
	"archivist/pkg/kernel/table"
	"archivist/pkg/views/browse"
	"archivist/pkg/views/search"
	"archivist/pkg/views/search/embedded"
	"archivist/pkg/views/search/searchtest"
	"archivist/pkg/views/statistics"
)

// shown is a settled world whose lists and whose search index have all objects.
func shown(t *testing.T) (w *world, lists browse.Store, index *embedded.Index) {
	w = settled(t)
	q := w.Machine.Queue
	lists = browse.Store{Table: q.Table, NewID: q.NewID}
	derived := w.Stages.Root.Bucket
	derived.Name = "derived"
	index = embedded.Open(search.Parts{Table: q.Table, Bucket: derived,
		Leases: w.Machine.Scheduler.Leases, Now: q.Now}).(*embedded.Index)
	index.Dir = t.TempDir()
	t.Cleanup(func() {
		if err := index.Close(); err != nil {
			t.Error(err)
		}
	})
	source := search.Source{Inventory: w.Stages.Inventory, Root: w.Stages.Root}
	w.search = search.Consumer{Index: index, Read: source.Read, Exists: w.Stages.Inventory.Exists}
	w.consumed(browse.Definition(), lists)
	w.consumed(search.Definition(), w.search)
	w.finds(false)
	return w, lists, index
}

// listed are the titles in the list by title.
func listed(t *testing.T, lists browse.Store) string {
	t.Helper()
	entries, _, err := lists.Read(t.Context(), browse.Page{By: browse.ByTitle})
	var titles []string
	for _, e := range entries {
		titles = append(titles, e.Value)
	}
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(titles, ",")
}

// entry is the entry of the object in the list by title.
func (w *world) entry() table.Key {
	w.Helper()
	keys := w.keptBy("BROWSE#" + browse.ByTitle)
	if len(keys) != 1 {
		w.Fatalf("%d entries", len(keys))
	}
	return keys[0]
}

// TestListsAsObjects: an entry of a list that is lost, wrong or surplus is found and made right. What the consumer
// has not passed yet is no finding.
func TestListsAsObjects(t *testing.T) {
	w, lists, _ := shown(t)
	object, place := "browse-entry "+w.object, key("OBJECT#"+w.object, "BROWSE")
	damages := map[string]struct {
		damage func()
		want   []string
	}{
		"lost":  {func() { w.drop(w.entry()) }, []string{object}},
		"wrong": {func() { w.set(w.entry(), "listed_by", str("Another")) }, []string{object}},
		"surplus": {func() {
			w.insert(key("BROWSE#"+browse.ByTitle, "1AAA#"+w.object+"#1"), "owned_by", str(w.object),
				"listed_by", str("Earlier"))
		}, []string{"browse-surplus " + w.object}},
		// Its entries are nobody's then: what a run repairs first decides what it finds.
		"no names": {func() { w.drop(place) }, nil},
	}
	for name, d := range damages {
		d.damage()
		if d.want == nil {
			for n := 0; n < 3; n++ {
				if _, err := w.doctor().All(t.Context(), true); err != nil {
					t.Fatal(err)
				}
			}
		} else {
			w.finds(false, d.want...)
			w.repairs(d.want)
		}
		w.finds(false)
		if is := listed(t, lists); is != "One" {
			t.Errorf("%s: the list has %q", name, is)
		}
	}

	w.drop(w.entry())
	w.behind(browse.Name)
	w.finds(false)
}

// behind sets the cursors of a consumer back by one event.
func (w *world) behind(name string) {
	w.Helper()
	for _, k := range w.keptBy("CONSUMER#" + name) {
		if strings.HasPrefix(k.SK, "CURSOR#") {
			w.set(k, "seq", num(0))
		}
	}
}

// TestIndexAsObjects: an object that the search index lacks, or has as it was, is found and indexed. An index that
// cannot be read is one finding, and the rest is checked.
func TestIndexAsObjects(t *testing.T) {
	w, _, index := shown(t)
	want := "search-document " + w.object
	for name, damage := range map[string]search.Reader{
		"lost": func(context.Context, string) (*search.Document, error) { return nil, nil },
		"earlier": func(ctx context.Context, ark string) (*search.Document, error) {
			d, err := w.search.Read(ctx, ark)
			if err == nil {
				d.Modified, d.Titles = d.Modified-1, []string{"Earlier"}
			}
			return d, err
		},
	} {
		if err := index.Update(t.Context(), []search.Change{{ARK: w.object}}, damage); err != nil {
			t.Fatal(err)
		}
		w.finds(false, want)
		w.repairs([]string{want})
		w.finds(false)
		if found := searchtest.Search(t, index, "title:one", "", 0, ""); found.Total != 1 {
			t.Errorf("%s: %d objects are found", name, found.Total)
		}
	}

	w.search.Index = broken{index}
	found := w.finds(false, "search-index search")
	if len(found) == 1 && !strings.Contains(found[0].Evidence, "files are gone") {
		t.Errorf("%+v", found[0])
	}

	w.search.Index = index
	none := func(context.Context, string) (*search.Document, error) { return nil, nil }
	if err := index.Update(t.Context(), []search.Change{{ARK: w.object}}, none); err != nil {
		t.Fatal(err)
	}
	w.behind(search.Name)
	w.finds(false)
}

// broken is an index that cannot be read.
type broken struct{ search.Index }

func (broken) Modified(context.Context, []string) (map[string]int64, error) {
	return nil, errors.New("files are gone")
}

// TestStatisticsAsEvents: counts that are not what the events say are found; a total is repaired if its days are right.
func TestStatisticsAsEvents(t *testing.T) {
	w := settled(t)
	q := w.Machine.Queue
	w.consumed(statistics.Definition, statistics.Counter{Table: q.Table, NewID: q.NewID})
	w.finds(false)
	var total, day table.Key
	for _, k := range w.keptBy("STATISTICS#bench") {
		switch {
		case strings.HasPrefix(k.SK, "TOTAL#"):
			total = k
		case strings.HasPrefix(k.SK, "DAY#"):
			day = k
		}
	}
	of := "statistics-counts partition:" + strings.TrimPrefix(total.SK, "TOTAL#")
	right := w.Rows.Row(total)["counts"].(*types.AttributeValueMemberM).Value
	change := func(k table.Key, name string, by int64) {
		counts := maps.Clone(w.Rows.Row(k)["counts"].(*types.AttributeValueMemberM).Value)
		n, err := strconv.ParseInt(counts[name].(*types.AttributeValueMemberN).Value, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		counts[name] = num(n + by)
		w.set(k, "counts", &types.AttributeValueMemberM{Value: counts})
	}

	for _, name := range []string{"objects", "versions", "files", "bytes"} {
		change(total, name, -1)
		w.finds(false, of)
		w.repairs([]string{of})
		w.finds(false)
		is := w.Rows.Row(total)["counts"].(*types.AttributeValueMemberM).Value
		if is[name].(*types.AttributeValueMemberN).Value != right[name].(*types.AttributeValueMemberN).Value {
			t.Errorf("%s: repaired as %v, was %v", name, is[name], right[name])
		}
	}

	// What is counted during a run is no finding.
	d := w.doctor()
	page, err := d.Check(t.Context(), "", false, w.now)
	if err != nil || page.Cursor == "" {
		t.Fatalf("a page of one row: %+v, %v", page, err)
	}
	before := w.Rows.Row(total)["last_seq"]
	w.Ended(w.Submit("c.txt", stagetest.Of("", "another")), 1, false)
	w.advance(time.Hour) // the sweep looks only at what has waited
	w.Drive()
	w.sweep()
	w.consumed(statistics.Definition, statistics.Counter{Table: q.Table, NewID: q.NewID})
	if after := w.Rows.Row(total)["last_seq"]; reflect.DeepEqual(before, after) {
		t.Fatalf("nothing was counted since %v", before)
	}
	for page.Cursor != "" {
		page, err = d.Check(t.Context(), page.Cursor, false, w.now.Add(time.Minute))
		if err != nil || len(page.Findings) > 0 {
			t.Fatalf("%+v, %v", page.Findings, err)
		}
	}

	change(day, "bytes", 1)
	if found := w.finds(true, of); len(found) == 1 && found[0].Repaired {
		t.Errorf("repaired, though no one knows what is right: %+v", found[0])
	}
	change(day, "bytes", -1)
	change(total, "objects", 1)
	change(day, "objects", 1) // an event was counted twice
	w.finds(false, of)
	w.drop(total)
	w.finds(false, "statistics-counts "+day.String())
}
