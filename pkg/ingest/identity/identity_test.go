package identity_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"archivist/pkg/formats/ark"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/collection"
	"archivist/pkg/ingest/description"
	"archivist/pkg/ingest/identity"
	"archivist/pkg/ingest/reindex"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/bucket/buckettest"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/pkg/objects/inventory"
	"archivist/pkg/objects/ocfl"
)

// Example shows that a job's ARK follows from its id.
func Example() {
	for range 2 {
		id := ark.Mint("99999", "fk4", identity.Draw("01M7ZBMEYHBB62YP6R00000001-00001", 0))
		fmt.Println(id, id.Valid())
	}
	// Output:
	// ark:/99999/fk42wk8zprn7c true
	// ark:/99999/fk42wk8zprn7c true
}

// registrar makes a Registrar without a queue, on twins.
func registrar(t *testing.T) identity.Registrar {
	server := httptest.NewServer(buckettest.New(t.TempDir()))
	t.Cleanup(server.Close)
	tb, n := tabletest.Table(tabletest.New()), 0
	newID := func() string { n++; return fmt.Sprintf("tx%d", n) }
	rows := inventory.Store{Table: tb}
	root := ocfl.Root{Bucket: bucket.Bucket{Client: buckettest.Client(server.URL), Name: "storage"}}
	return identity.Registrar{
		Resolver: identity.Resolver{Inventory: rows, Collections: collection.Store{Table: tb, NewID: newID}, Root: root,
			NAAN: "99999", Shoulder: "fk4", Draw: identity.Draw},
		Reindexer: reindex.Reindexer{Root: root, Inventory: rows, NewID: newID, Now: time.Now},
		Now:       time.Now,
	}
}

// valid is an ARK on the shoulder, made of a number.
func valid(n int) string {
	return ark.Mint("99999", "fk4", func(int) int { return n }).String()
}

// has makes local ids stand for an object of a collection.
func has(t *testing.T, r identity.Registrar, collection, object string, ids ...string) {
	t.Helper()
	tx := r.Inventory.Table.Begin("tx" + object)
	inventory.Reserve(tx, object, collection, "B-00001")
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	refused, err := r.ReserveLocalIDs(t.Context(), &ingest.Job{Collection: collection, Primary: object, LocalIDs: ids})
	if err != nil || refused != "" {
		t.Fatal(refused, err)
	}
}

// TestResolve: one row per way in which a submission names its object.
func TestResolve(t *testing.T) {
	r := registrar(t)
	a, b, maps := valid(1), valid(2), valid(3)
	has(t, r, "bench", a, "A")
	has(t, r, "bench", b, "B")
	has(t, r, "maps", maps, "A")
	wrong := valid(4)[:len(valid(4))-1] + "x"
	for _, row := range []struct {
		name, primary string
		ids           []string
		object, says  string
	}{
		{"nothing", "", nil, "", ""},
		{"a new id", "", []string{"new"}, "", ""},
		{"a known id", "", []string{"new", "A"}, a, ""},
		{"ids of two objects", "", []string{"A", "B"}, "", "belong to different objects"},
		{"its ARK", a, nil, a, ""},
		{"its ARK and id", a, []string{"A"}, a, ""},
		{"the ARK of one, the id of another", a, []string{"B"}, a, "belongs to another object"},
		{"a new ARK on the shoulder", valid(5), nil, valid(5), ""},
		{"no ARK", "ark:/no", nil, "", "is not an ARK"},
		{"an ARK of another archive", "ark:/12345/x1", nil, "ark:/12345/x1", "is not on the shoulder"},
		{"the shoulder", "ark:/99999/fk4", nil, "ark:/99999/fk4", "is the shoulder"},
		{"a mistyped ARK", wrong, nil, wrong, "check character"},
		{"another collection's reserved ARK", maps, nil, maps, "may change"},
	} {
		j := &ingest.Job{ID: "B-00002", Collection: "bench", Primary: row.primary, LocalIDs: row.ids}
		refused, err := r.Resolve(t.Context(), j)
		if err != nil || (refused == "") != (row.says == "") || !strings.Contains(refused, row.says) {
			t.Errorf("%s: %q, %v; expected %q", row.name, refused, err, row.says)
		}
		if row.says == "" && j.Primary != row.object {
			t.Errorf("%s is for %q; expected %q", row.name, j.Primary, row.object)
		}
	}
}

// TestAdopt: identifiers that are found in a package are added, and never select another
// object.
func TestAdopt(t *testing.T) {
	r := registrar(t)
	a, b := valid(1), valid(2)
	has(t, r, "bench", a, "A")
	has(t, r, "bench", b, "B")
	for _, row := range []struct {
		name, primary string
		found         description.Description
		says          string
		object, ids   string
	}{
		{"nothing", a, description.Description{}, "", a, "[own]"},
		{"a new id", a, description.Description{LocalIDs: []string{"new", "own"}}, "", a, "[own new]"},
		{"its id", a, description.Description{LocalIDs: []string{"A"}}, "", a, "[own A]"},
		{"another's id", a, description.Description{LocalIDs: []string{"B"}}, "belongs to another object", "", ""},
		{"its ARK", a, description.Description{ARK: a}, "", a, "[own]"},
		{"another's ARK", a, description.Description{ARK: b}, "Correct one of them", "", ""},
		{"an ARK for none", "", description.Description{ARK: valid(5)}, "", valid(5), "[own]"},
		{"an id of which nothing is stored", "", description.Description{LocalIDs: []string{"A"}}, "", a, "[own A]"},
		{"no id", a, description.Description{LocalIDs: []string{"\x00"}}, "package's description", "", ""},
	} {
		j := &ingest.Job{ID: "B-00002", Collection: "bench", Primary: row.primary, LocalIDs: []string{"own"}}
		refused, err := r.Adopt(t.Context(), j, row.found)
		if err != nil || (refused == "") != (row.says == "") || !strings.Contains(refused, row.says) {
			t.Errorf("%s: %q, %v; expected %q", row.name, refused, err, row.says)
		}
		if row.says == "" && (j.Primary != row.object || fmt.Sprint(j.LocalIDs) != row.ids) {
			t.Errorf("%s is for %s with %v; expected %s with %s", row.name, j.Primary, j.LocalIDs, row.object, row.ids)
		}
	}
}

// TestReserveLocalIDs: all of a job's local ids become its object's, or none.
func TestReserveLocalIDs(t *testing.T) {
	r := registrar(t)
	a, b := valid(1), valid(2)
	has(t, r, "bench", a, "A")
	j := &ingest.Job{Collection: "bench", Primary: b, LocalIDs: []string{"new", "A"}}
	refused, err := r.ReserveLocalIDs(t.Context(), j)
	if err != nil || !strings.Contains(refused, `"A"`) {
		t.Errorf("%q, %v", refused, err)
	}
	for id, want := range map[string]string{"new": "", "A": a} {
		if known, err := r.Inventory.ByLocalID(t.Context(), "bench", id); err != nil || known != want {
			t.Errorf("%s stands for %q, %v; expected %q", id, known, err, want)
		}
	}
}

// TestUnusable: what Estimate would refuse of an ARK is refused when it is submitted. An object that is stored can
// be updated, whatever its ARK is, also if it has no row.
func TestUnusable(t *testing.T) {
	r := registrar(t)
	const recorded, lost, foreign = "ark:/12345/recorded", "ark:/12345/lost", "ark:/12345/foreign"
	records(t, r, "bench", recorded)
	records(t, r, "other", foreign)
	err := r.Root.Bucket.Put(t.Context(), ocfl.Inventory(lost, 0).Key, []byte("{}"), bucket.Condition{})
	if err != nil {
		t.Fatal(err)
	}

	good := valid(7)
	for text, says := range map[string]string{
		good: "", good[:len(good)-1] + "x": "check character", "ark:/99999/fk4": "is the shoulder",
		"ark:/12345/x": "not on the shoulder", "nonsense": "ark", recorded: "", lost: "", foreign: "may change",
	} {
		why, err := r.Unusable(t.Context(), "bench", text)
		if err != nil || (why == "") != (says == "") || !strings.Contains(strings.ToLower(why), says) {
			t.Errorf("%s: %q, %v; expected %q", text, why, err, says)
		}
	}
}

// records records an object of a collection.
func records(t *testing.T, r identity.Registrar, collection, id string) {
	t.Helper()
	put, err := r.Inventory.Prepare(t.Context(), inventory.Record{Job: "J-1",
		Object: inventory.Object{ARK: id, Collection: collection, HeadOf: 1, Digest: "d"}}, 1000)
	if err != nil {
		t.Fatal(err)
	}
	tx := r.Inventory.Table.Begin("tx" + id)
	if err := put(tx); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}
