package inventory_test

import (
	"fmt"
	"strings"
	"testing"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/pkg/objects/inventory"
)

// store is an inventory on a twin of the table.
type store struct {
	*testing.T
	inventory.Store
	transactions int
}

func newStore(t *testing.T) *store {
	return &store{T: t, Store: inventory.Store{Table: tabletest.Table(tabletest.New())}}
}

// record records an object. It returns whether anything was missing.
func (s *store) record(r inventory.Record) (changed bool, err error) {
	s.Helper()
	put, err := s.Prepare(s.Context(), r, 1)
	if put == nil {
		return false, err
	}
	s.transactions++
	tx := s.Table.Begin(fmt.Sprint("tx ", s.transactions))
	if err := put(tx); err != nil {
		s.Fatal(err)
	}
	if err := tx.Commit(s.Context()); err != nil {
		s.Fatal(err)
	}
	return true, err
}

// stored is version 2 of an object.
func stored() inventory.Record {
	return inventory.Record{First: "job-1", Object: inventory.Object{
		ARK: "ark:/99999/fk4a", Collection: "maps", LocalIDs: []string{"x"}, HeadOf: 2, Digest: "two",
	}}
}

// TestDisagreement: rows that cannot be those of an earlier state of the stored object are
// a Conflict, and are not changed.
func TestDisagreement(t *testing.T) {
	for want, change := range map[string]func(*inventory.Record){
		"":                                    func(*inventory.Record) {},
		"of another collection":               func(r *inventory.Record) { r.Object.Collection = "letters" },
		"at version 2, the stored object at":  func(r *inventory.Record) { r.Object.HeadOf = 1 },
		"with the inventory digest two, the ": func(r *inventory.Record) { r.Object.Digest = "another" },
	} {
		s := newStore(t)
		if changed, err := s.record(stored()); err != nil || !changed {
			t.Fatal(changed, err)
		}
		r := stored()
		change(&r)
		changed, err := s.record(r)
		if changed || (err == nil) != (want == "") {
			t.Errorf("%q: changed is %v, %v", want, changed, err)
		}
		if want != "" && (!fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), want)) {
			t.Errorf("got %v, want a Conflict that says %q", err, want)
		}
	}
}

// TestReservation: the ark's permanent row names the job that stored the first version, if
// that is known; rows rebuilt without it do not change it.
func TestReservation(t *testing.T) {
	s := newStore(t)
	tx := s.Table.Begin("reserve")
	inventory.Reserve(tx, "ark:/99999/fk4a", "maps", "job-0") // which failed before it stored anything
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.record(stored()); err != nil {
		t.Fatal(err)
	}
	unknown, other := stored(), stored()
	unknown.First, other.First = "", "job-2"
	for _, c := range []struct {
		r       inventory.Record
		changed bool
		job     string
	}{{stored(), false, "job-1"}, {unknown, false, "job-1"}, {other, true, "job-2"}} {
		changed, err := s.record(c.r)
		if err != nil || changed != c.changed {
			t.Errorf("by %q: changed is %v, %v", c.r.First, changed, err)
		}
		row, err := s.Reserved(t.Context(), "ark:/99999/fk4a")
		if err != nil || row == nil || row.Job != c.job || row.Collection != "maps" {
			t.Errorf("by %q: the reservation is %+v, %v", c.r.First, row, err)
		}
	}
}

// TestMissing: versions without a row are found, wherever they are.
func TestMissing(t *testing.T) {
	s := newStore(t)
	r := stored()
	r.Versions = []inventory.Version{{Number: 2}, {Number: 4}}
	if _, err := s.record(r); err != nil {
		t.Fatal(err)
	}
	for head, want := range map[int]string{0: "[]", 1: "[1]", 2: "[1]", 4: "[1 3]", 6: "[1 3 5 6]"} {
		got, err := s.Missing(t.Context(), "ark:/99999/fk4a", head)
		if err != nil || fmt.Sprint(got) != want {
			t.Errorf("up to %d: got %v, want %s (%v)", head, got, want, err)
		}
	}
}

// TestRelease: a withdrawn local id names its object no more. One that names another object by then stays.
func TestRelease(t *testing.T) {
	s := newStore(t)
	put := func(ark string, ids ...string) {
		t.Helper()
		tx := s.Table.Begin("put " + ark)
		inventory.PutLocalIDs(tx, &inventory.Object{ARK: ark, Collection: "maps"}, ids)
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	put("ark:/99999/x", "a", "b", "stays")
	put("ark:/99999/y", "taken")
	o := &inventory.Object{ARK: "ark:/99999/x", Collection: "maps"}
	for range 2 {
		err := s.Release(t.Context(), o, []string{"a", "taken", "b", "unknown"}, func() string { return "release" })
		if err != nil {
			t.Fatal(err)
		}
	}
	for id, want := range map[string]string{"a": "", "b": "", "stays": o.ARK, "taken": "ark:/99999/y"} {
		if ark, err := s.ByLocalID(t.Context(), "maps", id); err != nil || ark != want {
			t.Errorf("%s names %q, %v; expected %q", id, ark, err, want)
		}
	}
}
