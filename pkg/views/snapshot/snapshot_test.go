package snapshot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"archivist/pkg/events/consumer"
	"archivist/pkg/events/envelope"
	"archivist/pkg/ingest/collection"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/pkg/objects/inventory"
	"archivist/pkg/objects/ocfl"
)

// A storage root of package ocfl can be read.
var _ Root = ocfl.Root{}

// root lists keys in their order, a few in each page. The id of an object is in its key.
type root []string

func (r root) Objects(_ context.Context, cursor, to string) (keys []string, next string, err error) {
	for _, key := range r {
		switch {
		case key <= cursor:
		case to != "" && key >= to:
			return keys, "", nil
		case len(keys) == 7:
			return keys, keys[6], nil
		default:
			keys = append(keys, key)
		}
	}
	return keys, "", nil
}

func (r root) At(_ context.Context, key string) (string, error) {
	_, id, _ := strings.Cut(key, "/")
	if id == "none" {
		return "", fault.New(fault.NotFound, "its first version is not written")
	}
	if id == "broken" || ocfl.Folder(key) != "" {
		return "", errors.New("its inventory is broken")
	}
	if id == "away" {
		return "", &bucket.Error{Bucket: "b", Op: "get", Key: key, Err: errors.New("S3 is away")}
	}
	return id, nil
}

// partitions is a log with these partitions.
type partitions struct {
	consumer.Log
	all []envelope.Partition
}

func (p partitions) Partitions(context.Context) ([]envelope.Partition, error) { return p.all, nil }

// read reads all parts, in pages of four snapshots.
func read(t *testing.T, r Reader) (all []consumer.Snapshot, err error) {
	t.Helper()
	for part := range 16 {
		for cursor, first := "", true; first || cursor != ""; first = false {
			var events []consumer.Snapshot
			before := cursor
			if events, cursor, err = r.Snapshots(t.Context(), part, 16, cursor, 4); err != nil {
				return all, err
			}
			if cursor == before && cursor != "" {
				t.Fatalf("part %d stays at %q", part, cursor)
			}
			all = append(all, events...)
		}
	}
	return all, nil
}

// TestSnapshots: each object is there once, with all of its versions behind it, and each
// collection once; what is not recorded is left out.
func TestSnapshots(t *testing.T) {
	tb := tabletest.Open(t)
	ids := 0
	newID := func() string { ids++; return fmt.Sprintf("tx%d", ids) }
	store := inventory.Store{Table: tb}
	var keys root
	want := []string{"Collection/maps"}
	for i := range 40 {
		ark := fmt.Sprintf("ark:%d", i)
		keys = append(keys, fmt.Sprintf("%02x/%s", i*256/40, ark))
		versions := []inventory.Version{{Number: 1, Files: 1}, {Number: 2, Files: 3, Bytes: 7}}[:1+i%2]
		put, err := store.Prepare(t.Context(), inventory.Record{Object: inventory.Object{ARK: ark, Collection: "maps",
			Title: "T", HeadOf: len(versions)}, Versions: versions, First: "job"}, 5)
		if err != nil {
			t.Fatal(err)
		}
		tx := tb.Begin(newID())
		if err := put(tx); err != nil {
			t.Fatal(err)
		}
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		want = append(want, "Object/"+ark)
		for _, v := range versions {
			want = append(want, "Version/"+inventory.VersionID(ark, v.Number))
		}
	}
	keys = append(keys, "f8/none", "f9/lost")
	r := Reader{Root: keys, Inventory: store, Collections: collection.Store{Table: tb, NewID: newID},
		Log: partitions{all: []envelope.Partition{{Log: "maps"}, {Log: "maps", Part: 1}, {Log: envelope.Site}}}}
	all, err := read(t, r)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range all {
		got = append(got, e.Subject.Type+"/"+e.Subject.ID)
		if e.Type != envelope.Snapshot || e.Log() != "maps" || e.Version < 1 || e.ID == "" || e.Detail == nil {
			t.Errorf("%+v", e)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("snapshots of %q, expected %q", got, want)
	}
	r.Root = append(slices.Clone(keys), "fa/broken", "fb/none")
	broken, err := read(t, r)
	if err != nil || len(broken) != len(all)+1 {
		t.Fatalf("with an object that is damaged: %d snapshots, %v", len(broken), err)
	}
	for i, e := range broken {
		last := i == len(all)
		if last != (e.Unreadable == "its inventory is broken") || last != (e.ID == "snapshot.fa/broken") {
			t.Errorf("%d: %+v", i, e)
		}
	}
	// Of two objects without a root inventory, one has no row: its first version may be on its way.
	const declaration = "0=ocfl_object_1.1"
	lost := ocfl.Prefix("ark:0") + declaration
	r.Root = root{lost, ocfl.Prefix("ark:unrecorded") + declaration}
	slices.Sort(r.Root.(root))
	if events, err := read(t, r); err != nil || len(events) != 2 || events[1].ID != "snapshot."+lost {
		t.Errorf("of two objects without a root inventory: %+v, %v", events, err)
	}
	r.Root = append(slices.Clone(keys), "fa/away")
	if _, err := read(t, r); err == nil || !strings.Contains(err.Error(), "S3 is away") {
		t.Errorf("while S3 is away: %v", err)
	}
}
