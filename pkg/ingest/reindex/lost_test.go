package reindex_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/reindex"
	"archivist/pkg/ingest/stage/stagetest"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/objects/aip"
	"archivist/pkg/objects/ocfl"
)

// twins are the stages of one deployment on twins in this process.
type twins struct{ *stagetest.World }

func newTwins(t *testing.T) *twins { return &twins{stagetest.NewWorld(t)} }

// inventoryRows are the inventory's rows by their keys, without their bookkeeping.
func (w *twins) inventoryRows() map[string]string {
	out := map[string]string{}
	for _, row := range w.Rows.All() {
		key := row["pk"].(*types.AttributeValueMemberS).Value + "/" + row["sk"].(*types.AttributeValueMemberS).Value
		if strings.Contains(key, "/EV#") || !slices.ContainsFunc(stagetest.InventoryKeys,
			func(begin string) bool { return strings.HasPrefix(key, begin) }) {
			continue
		}
		text := ""
		for _, name := range slices.Sorted(maps.Keys(row)) {
			if !slices.Contains([]string{"rev", "wid", "version"}, name) {
				text += fmt.Sprintf("%s=%s ", name, value(row[name]))
			}
		}
		out[key] = text
	}
	return out
}

func value(v types.AttributeValue) string {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return v.Value
	case *types.AttributeValueMemberN:
		return v.Value
	case *types.AttributeValueMemberL:
		var all []string
		for _, one := range v.Value {
			all = append(all, value(one))
		}
		return strings.Join(all, ",")
	}
	return fmt.Sprintf("%T", v)
}

// same fails unless the inventory's rows are the same as before.
func (w *twins) same(before map[string]string) {
	w.Helper()
	after := w.inventoryRows()
	for key, row := range before {
		if after[key] != row {
			w.Errorf("%s was %q, is %q", key, row, after[key])
		}
	}
	for key := range after {
		if _, prev := before[key]; !prev {
			w.Errorf("%s is new", key)
		}
	}
}

// reindexAll reindexes the storage root, with a limited time for each request.
func (w *twins) reindexAll(each time.Duration) (sum reindex.Result) {
	w.Helper()
	for cursor, pages := "", 0; pages == 0 || cursor != ""; pages++ {
		page, err := w.Stages.Reindexer().All(w.Context(), cursor, "", "me", time.Now().Add(each))
		if err != nil || pages > 1000 {
			w.Fatalf("page %d: %v", pages, err)
		}
		cursor = page.Cursor
		sum.Objects += page.Objects
		sum.Changed += page.Changed
		sum.Failed = append(sum.Failed, page.Failed...)
	}
	return sum
}

// TestReindexEachRow: any lost row of an object is restored from the storage root without
// a change, and reported as missing.
func TestReindexEachRow(t *testing.T) {
	w := newTwins(t)
	ark := w.Ended(w.Submit("a.txt", stagetest.Of("", "A", "B"), stagetest.Titled("One")), 1, false).Primary
	w.Ended(w.Submit("b.txt", stagetest.Of(ark, "C")), 2, false)
	w.Ended(w.Submit("c.txt", stagetest.Of(ark)), 3, false)
	before := w.inventoryRows()
	if len(before) != 1+3+3+1 {
		t.Fatalf("there are %d rows: %v", len(before), slices.Sorted(maps.Keys(before)))
	}
	for key := range before {
		if w.Forget(key) != 1 {
			t.Fatalf("%s was not deleted", key)
		}
		w.Reindexed(ark)
		w.same(before)
	}
	w.Forget()
	if sum := w.reindexAll(time.Hour); sum.Objects != 1 || sum.Changed != 1 || len(sum.Failed) > 0 {
		t.Errorf("%+v", sum)
	}
	w.same(before)
	if sum := w.reindexAll(time.Hour); sum.Objects != 1 || sum.Changed != 0 || len(sum.Failed) > 0 {
		t.Errorf("again: %+v", sum)
	}
}

// TestReindexContinues: objects that cannot be read or are in conflict are listed; all
// others are restored.
func TestReindexContinues(t *testing.T) {
	w, ctx := newTwins(t), t.Context()
	arks := map[string]string{}
	for _, name := range []string{"good", "unreadable", "no root", "conflict", "no list", "misplaced", "also good"} {
		arks[name] = w.Ended(w.Submit("a.txt", stagetest.Of("", name)), 1, false).Primary
	}
	before := w.inventoryRows()
	w.Forget()
	put := func(key, text string) {
		if err := w.Stages.Root.Bucket.Put(ctx, key, []byte(text), bucket.Condition{}); err != nil {
			t.Fatal(err)
		}
	}
	root := func(name string) string { return ocfl.Prefix(arks[name]) + "inventory.json" }
	put(root("unreadable"), "this was an inventory")
	other, _, err := w.Stages.Root.Bucket.Read(ctx, root("good"))
	if err != nil {
		t.Fatal(err)
	}
	put(root("misplaced"), string(other))
	stored, err := w.Stages.Root.Head(ctx, arks["no list"])
	if err != nil {
		t.Fatal(err)
	}
	list, err := w.Stages.Root.Key(ctx, stored, 1, aip.ListName)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{root("no root"), list} {
		if err := w.Stages.Root.Bucket.Delete(ctx, key); err != nil {
			t.Fatal(err)
		}
	}
	taker := w.Ended(w.Submit("b.txt", stagetest.Of("", "conflict")), 1, false).Primary // its row is lost
	sum := w.reindexAll(time.Hour)
	if sum.Objects != len(arks)+1 || sum.Changed != 3 {
		t.Errorf("%d objects, %d changed", sum.Objects, sum.Changed)
	}
	says := map[string]string{"unreadable": "inventory at byte", "no root": "no root inventory",
		"conflict": `the local id "conflict" is that of ` + taker, "no list": aip.ListName,
		"misplaced": "whose place is"}
	if len(sum.Failed) != len(says) {
		t.Errorf("listed are %+v", sum.Failed)
	}
	for _, f := range sum.Failed {
		for name, why := range says {
			if strings.HasPrefix(f.Key, ocfl.Prefix(arks[name])) && !strings.Contains(f.Why, why) {
				t.Errorf("%s: %s", name, f.Why)
			}
		}
	}
	after := w.inventoryRows()
	for key, row := range before {
		whole := strings.Contains(key, arks["good"]) || strings.Contains(key, arks["also good"]) ||
			strings.Contains(key, arks["conflict"]) && !strings.HasPrefix(key, "LOCAL#")
		if whole && after[key] != row {
			t.Errorf("%s was %q, is %q", key, row, after[key])
		}
	}
}

// TestReindexLarge: more versions and local ids than one transaction allows, without the
// time for all of them at once.
func TestReindexLarge(t *testing.T) {
	w := newTwins(t)
	ark, id := "", 0
	for v := range 50 + 11 {
		var ids []string
		for ; v < 4 && len(ids) < 20; id++ {
			ids = append(ids, fmt.Sprintf("%0500d", id)) // as long as allowed
		}
		b, err := w.Machine.Queue.Submit(t.Context(),
			ingest.Batch{Collection: "bench", Mode: "add", Primary: ark, LocalIDs: ids,
				Payload: ingest.Payload{URL: w.Source.URL + "/a", Type: ingest.TypeFile, Filename: fmt.Sprint(v)}}, "",
			nil, "me")
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Machine.Run(t.Context(), 3); err != nil { // no more than it needs
			t.Fatal(err)
		}
		ark = w.Ended(ingest.JobID(b.ID, 1), v+1, false).Primary
	}
	before := w.inventoryRows()
	if len(before) != 1+61+80+1 {
		t.Fatalf("there are %d rows", len(before))
	}
	w.Forget()
	if sum := w.reindexAll(time.Hour); sum.Objects != 1 || sum.Changed != 1 || len(sum.Failed) > 0 {
		t.Errorf("%+v", sum)
	}
	w.same(before)
	w.Forget("OBJECT#"+ark+"/V#00005", "LOCAL#bench#"+fmt.Sprintf("%0500d", 7), "ARK#")
	w.Reindexed(ark)
	w.same(before)
	w.Forget()
	w.reindexAll(100 * time.Millisecond)
	w.same(before)
}

// TestReindexResumes: with time for one object per request, each is reindexed once.
func TestReindexResumes(t *testing.T) {
	w := newTwins(t)
	for i := range 5 {
		w.Ended(w.Submit("a.txt", stagetest.Of("", fmt.Sprint(i))), 1, false)
	}
	before := w.inventoryRows()
	w.Forget()
	if sum := w.reindexAll(-time.Second); sum.Objects != 5 || sum.Changed != 5 || len(sum.Failed) > 0 {
		t.Errorf("%+v", sum)
	}
	w.same(before)
}
