package replica

import (
	"errors"
	"strings"
	"testing"
	"time"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/fixity"
	"archivist/pkg/objects/ocfl"
)

// checker checks the copies.
func (w *world) checker() *fixity.Checker {
	r := w.replica(w.table(through))
	return &fixity.Checker{
		Table:  r.Table,
		NewID:  w.id,
		Now:    r.Now,
		At:     fixity.InCopy,
		Root:   r.SecondRoot(),
		State:  r.Copied,
		Limits: fixity.DefaultLimits,
	}
}

// audit checks the copy in one call.
func (w *world) audit() fixity.Result {
	w.Helper()
	r, err := w.checker().Check(w.Context(), ark, w.until())
	if err != nil {
		w.Fatal(err)
	}
	return r
}

// audited expects that a check of the copy finds nothing, or names a key with a problem.
func (w *world) audited(problem string) {
	w.Helper()
	r := w.audit()
	named := false
	for _, p := range r.Problems {
		named = named || p.Key == problem
	}
	if problem == "" && r.Outcome != fixity.OK || problem != "" && (r.Outcome != fixity.Damaged || !named) {
		w.Errorf("with a problem of %q: %+v", problem, r)
	}
}

// TestCopyIsChecked: whatever file of a copy is damaged or lost, the check of the copy names it, and it is restored
// from the storage root after a person has confirmed it.
func TestCopyIsChecked(t *testing.T) {
	w := newWorld(t)
	w.copy()
	w.audited("")
	n := 0
	for name, text := range w.files("copy") {
		key := ocfl.Prefix(ark) + name
		for _, lost := range []bool{false, true} {
			w.put(w.to, key, "damaged")
			if lost {
				if err := w.to.Delete(t.Context(), key); err != nil {
					t.Fatal(err)
				}
			}
			w.audited(key)
			row := w.advance(w.proposeAt(fixity.InCopy, key))
			if row.State != Planned || row.Expected != row.Source || row.Found == row.Expected {
				t.Fatalf("%s: the plan is %+v", name, row)
			}
			if got, there := w.root.Twin.Object("copy/" + key); there && string(got) == text {
				t.Errorf("%s was restored before it was confirmed", name)
			}
			row = w.advance(w.confirm(row))
			kept, there := w.root.Twin.Object("work/" + row.Quarantine)
			if row.State != Done || there == lost || there && string(kept) != "damaged" {
				t.Errorf("%s: %+v; kept %q", name, row, kept)
			}
			w.audited("")
			n++
		}
	}
	w.same()
	if got := w.repairs(); len(got) != n {
		t.Errorf("%d repairs have the events %v", n, got)
	}
}

// TestRolledBackCopy: a copy that is complete in itself, but is not what was copied, is damage; so is a key that
// does not belong to it.
func TestRolledBackCopy(t *testing.T) {
	w := newWorld(t)
	w.copy()
	now := w.files("copy")
	restore := func() {
		for name, text := range now {
			w.put(w.to, ocfl.Prefix(ark)+name, text)
		}
	}
	root, first := ocfl.Inventory(ark, 0), ocfl.Inventory(ark, 1)
	for name := range now {
		if strings.HasPrefix(name, "v2/") {
			if err := w.to.Delete(t.Context(), ocfl.Prefix(ark)+name); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.put(w.to, root.Key, now["v1/inventory.json"])
	w.put(w.to, root.Sidecar, now["v1/inventory.json.sha512"])
	w.audited(root.Key)
	restore()
	w.audited("")

	tampered := strings.Replace(now["v1/inventory.json"], "stored", "STORED", 1)
	tampered = strings.Replace(tampered, `"created"`, ` "created"`, 1)
	w.put(w.to, first.Key, tampered)
	w.put(w.to, first.Sidecar, string(ocfl.Sidecar(ocfl.SHA512([]byte(tampered)))))
	w.audited(first.Key)
	restore()

	stray := ocfl.Prefix(ark) + "v3/content/J-9/producer/stray.txt"
	w.put(w.to, stray, "stray")
	w.audited(stray)
}

// TestLateCopy: a copy of an earlier version is right as such. Its inventory is restored from that version's, and
// what it does not have yet cannot be repaired there.
func TestLateCopy(t *testing.T) {
	w := newWorld(t)
	w.copy()
	w.store(map[string]string{"e.txt": "of the third version"})
	w.audited("")
	if r := w.audit(); r.Version != 2 || r.OnRecord != 2 {
		t.Errorf("got %+v", r)
	}
	for _, key := range []string{ocfl.Inventory(ark, 0).Key, ocfl.Inventory(ark, 0).Sidecar} {
		w.put(w.to, key, "damaged")
		w.audited(key)
		row := w.advance(w.confirm(w.advance(w.proposeAt(fixity.InCopy, key))))
		if row.State != Done {
			t.Errorf("%s: %+v", key, row)
		}
		w.audited("")
	}
	row := w.advance(w.proposeAt(fixity.InCopy, w.key("/e.txt")))
	if row.State != Refused || !strings.Contains(row.Problem, "the copy has version 2 of 3") {
		t.Errorf("got %+v", row)
	}
	w.copy()
	w.audited("")
	w.same()
}

// TestRefusedInCopy: a file that is right, and one that is wrong in the storage root too, are not restored.
func TestRefusedInCopy(t *testing.T) {
	w := newWorld(t)
	key := w.key("/b.txt")
	for _, c := range []struct {
		before func()
		says   string
	}{
		{func() {}, "the copy has version 0 of 2"},
		{func() { w.copy() }, "the copied file is right"},
		{func() { w.put(w.to, key, "x"); w.put(w.root.Bucket, key, "y") }, "the stored file is damaged too"},
		{func() {
			if err := w.root.Bucket.Delete(t.Context(), key); err != nil {
				t.Fatal(err)
			}
		}, "the storage root does not have the file"},
	} {
		c.before()
		if row := w.advance(w.proposeAt(fixity.InCopy, key)); row.State != Refused ||
			!strings.Contains(row.Problem, c.says) {
			t.Errorf("want %q: %+v", c.says, row)
		}
	}
}

// TestCheckWaitsForCopy: what is found while a version is copied is thrown away: its keys come before the inventory
// that names them.
func TestCheckWaitsForCopy(t *testing.T) {
	w := newWorld(t)
	check := func() error {
		_, err := w.checker().Check(t.Context(), ark, w.until())
		return err
	}
	if err := check(); !errors.Is(err, ErrNotCopied) {
		t.Errorf("before the first copy: %v", err)
	}
	w.copy()
	w.store(map[string]string{"e.txt": "of the third version"})

	// The copy of the third version begins, and is cut off after its first file.
	w.tick = time.Minute / 4
	_, err := w.replica(w.table(through)).Copy(t.Context(), ark, w.until())
	w.tick = 0
	if !fault.Is(err, fault.Unavailable) {
		t.Fatal(err)
	}
	if err := check(); !errors.Is(err, ErrNotCopied) {
		t.Errorf("while it is copied: %v", err)
	}
	w.copy()

	// The fourth version is copied between two calls of a check, the fifth within one.
	c := w.checker()
	c.Limits.Call = 100
	if _, err := c.Check(t.Context(), ark, w.until()); !errors.Is(err, fixity.ErrStopped) {
		t.Fatal(err)
	}
	w.store(map[string]string{"f.txt": "of the fourth version"})
	w.copy()
	if r := w.audit(); r.Version != 4 || r.Outcome != fixity.OK {
		t.Errorf("between two calls: %+v", r)
	}
	w.store(map[string]string{"g.txt": "of the fifth version"})
	w.root.Twin.Before = func(op, name string) int {
		if op == "GET object" && strings.HasPrefix(name, "copy/") {
			w.root.Twin.Before = nil
			w.copy()
		}
		return 0
	}
	if err := check(); !fault.Is(err, fault.Unavailable) {
		t.Errorf("within a call: %v", err)
	}
	w.audited("")
	w.put(w.to, w.key("/g.txt"), "damaged")
	w.audited(w.key("/g.txt"))
}
