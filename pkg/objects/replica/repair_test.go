package replica

import (
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/pkg/objects/fixity"
	"archivist/pkg/objects/ocfl"
	"slices"
	"strings"
	"testing"
)

// repairs are the events of repairs of the object.
func (w *world) repairs() (outcomes []string) {
	w.Helper()
	rows, _, err := event.Page(w.Context(), w.table(through), event.Subject{Type: event.Object, ID: ark}, "")
	if err != nil {
		w.Fatal(err)
	}
	for _, r := range rows {
		if r.Type == "object.repair" {
			outcomes = append(outcomes, r.Outcome)
			if r.Actor != "bo" || !strings.Contains(r.Detail, "it was found damaged") {
				w.Errorf("the event is %+v", r)
			}
		}
	}
	return outcomes
}

// advance calls Advance until the repair waits for a person, or has ended.
func (w *world) advance(row *Repair) *Repair {
	w.Helper()
	for range 100 {
		next, err := w.replica(w.table(through)).Advance(w.Context(), ark, row.ID, w.until())
		if err == nil {
			return next
		}
		if !fault.Is(err, fault.Unavailable) {
			w.Fatal(err)
		}
	}
	w.Fatal("the repair does not end")
	return nil
}

func (w *world) propose(file string) *Repair {
	w.Helper()
	return w.proposeAt(fixity.InStorage, file)
}

func (w *world) proposeAt(at fixity.Location, file string) *Repair {
	w.Helper()
	row, err := w.replica(w.table(through)).Propose(w.Context(), ark, file, at, "ada", "it was found damaged")
	if err != nil {
		w.Fatal(err)
	}
	return row
}

func (w *world) confirm(row *Repair) *Repair {
	w.Helper()
	next, err := w.replica(w.table(through)).Confirm(w.Context(), ark, row.ID, row.Token, "bo")
	if err != nil {
		w.Fatal(err)
	}
	return next
}

// TestRepair: whatever file of the object is damaged or lost, it is restored; what was damaged is kept.
func TestRepair(t *testing.T) {
	w := newWorld(t)
	w.copy()
	n := 0
	for name, text := range w.files("storage") {
		key := ocfl.Prefix(ark) + name
		for _, lost := range []bool{false, true} {
			w.put(w.root.Bucket, key, "damaged")
			if err := w.root.Bucket.Delete(t.Context(), key); lost && err != nil {
				t.Fatal(err)
			} else if !lost {
				w.put(w.root.Bucket, key, "damaged")
			}
			row := w.advance(w.propose([]string{key, name}[n%2]))
			if row.State != Planned || row.Expected != row.Source || row.Found == row.Expected || row.Token == "" {
				t.Fatalf("%s: the plan is %+v", name, row)
			}
			if got, there := w.root.Twin.Object("storage/" + key); there && string(got) == text {
				t.Errorf("%s was restored before it was confirmed", name)
			}
			row = w.advance(w.confirm(row))
			n++
			kept, there := w.root.Twin.Object("work/" + row.Quarantine)
			if row.State != Done || there == lost || there && string(kept) != "damaged" {
				t.Errorf("%s: %+v; kept %q", name, row, kept)
			}
			if again := w.advance(row); again.State != Done {
				t.Errorf("again: %+v", again)
			}
		}
	}
	w.same()
	if got := w.repairs(); len(got) != n || slices.Contains(got, event.Failure) {
		t.Errorf("%d repairs have the events %v", n, got)
	}
	rows, _, err := w.replica(w.table(through)).Repairs(t.Context(), ark, "")
	if err != nil || len(rows) != n {
		t.Errorf("%d repairs are listed of %d, %v", len(rows), n, err)
	}
}

// TestRefused: a file that is right, and one that is wrong in the copy too, are not restored.
func TestRefused(t *testing.T) {
	w := newWorld(t)
	w.copy()
	key := w.key("/b.txt")
	right := w.advance(w.propose(key))
	w.put(w.root.Bucket, key, "damaged")
	w.put(w.to, key, "damaged too")
	both := w.advance(w.propose(key))
	if err := w.to.Delete(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	lost := w.advance(w.propose(key))
	for row, says := range map[*Repair]string{right: "nothing to repair", both: "damaged too", lost: "does not have"} {
		if row.State != Refused || !strings.Contains(row.Problem, says) {
			t.Errorf("want %q: %+v", says, row)
		}
		_, err := w.replica(w.table(through)).Confirm(t.Context(), ark, row.ID, row.Token, "bo")
		if !fault.Is(err, fault.Conflict) {
			t.Errorf("a refused repair was confirmed: %v", err)
		}
	}
	r := w.replica(w.table(through))
	if row := w.advance(w.propose("v1/content/none")); row.State != Refused ||
		!strings.Contains(row.Problem, "no stored file") {
		t.Errorf("a file that there is not: %+v", row)
	}
	_, err := r.Propose(t.Context(), "ark:/99999/none", key, fixity.InStorage, "ada", "why")
	if !fault.Is(err, fault.NotFound) {
		t.Errorf("an object that there is not: %v", err)
	}
	if _, err := r.Propose(t.Context(), ark, key, fixity.InStorage, "ada", ""); !fault.Is(err, fault.Invalid) {
		t.Errorf("no reason: %v", err)
	}
	if _, err := r.Advance(t.Context(), ark, "none", w.until()); !fault.Is(err, fault.NotFound) {
		t.Errorf("a repair that there is not: %v", err)
	}
	if got := w.repairs(); len(got) != 0 {
		t.Errorf("events %v", got)
	}
}

// TestToken: only the plan that a person has seen can be confirmed, and the same request again changes
// nothing.
func TestToken(t *testing.T) {
	w := newWorld(t)
	w.copy()
	key := w.key("/b.txt")
	w.put(w.root.Bucket, key, "damaged")
	row := w.advance(w.propose(key))
	_, err := w.replica(w.table(through)).Confirm(t.Context(), ark, row.ID, "other", "bo")
	if !fault.Is(err, fault.Conflict) {
		t.Errorf("another token: %v", err)
	}
	first := w.confirm(row)
	if again := w.confirm(row); again.ConfirmedAt != first.ConfirmedAt || again.State != Confirmed {
		t.Errorf("again: %+v", again)
	}
}

// TestLost: a file that is lost after a part of it was read for the plan is restored; one that is lost after
// the plan was confirmed fails the repair.
func TestLost(t *testing.T) {
	w := newWorld(t)
	w.copy()
	key := w.key("/b.txt")
	lose := func() {
		t.Helper()
		if err := w.root.Bucket.Delete(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
	w.put(w.root.Bucket, key, "damaged")
	row := w.propose(key)
	_, err := w.replica(w.table(through)).Advance(t.Context(), ark, row.ID, w.now)
	if !fault.Is(err, fault.Unavailable) {
		t.Fatal(err)
	}
	lose()
	row = w.advance(w.confirm(w.advance(row)))
	if row.State != Done || row.Found != missing {
		t.Errorf("%+v", row)
	}
	w.same()
	w.put(w.root.Bucket, key, "damaged")
	row = w.confirm(w.advance(w.propose(key)))
	lose()
	row = w.advance(row)
	if row.State != Failed {
		t.Errorf("%+v", row)
	}
}

// TestBrokenInventory: an object whose inventory cannot be read as one is not copied, which is no matter of time.
func TestBrokenInventory(t *testing.T) {
	w := newWorld(t)
	w.put(w.root.Bucket, ocfl.Inventory(ark, 0).Key, "damaged")
	_, err := w.replica(w.table(through)).Copy(t.Context(), ark, w.until())
	if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("got %v", err)
	}
}

// TestReplaced: a file that was replaced after the plan is left as it is. If it is right now, all is well.
func TestReplaced(t *testing.T) {
	for text, state := range map[string]string{"other": Failed, strings.Repeat("large", 30): Done} {
		w := newWorld(t)
		w.copy()
		key := w.key("/b.txt")
		w.put(w.root.Bucket, key, "damaged")
		row := w.confirm(w.advance(w.propose(key)))
		w.put(w.root.Bucket, key, text)
		row = w.advance(row)
		if got, _ := w.root.Twin.Object("storage/" + key); row.State != state || string(got) != text {
			t.Errorf("%q: %q, %+v", text, got, row)
		}
	}
	w := newWorld(t)
	w.copy()
	key := w.key("/b.txt")
	w.put(w.root.Bucket, key, "damaged")
	row := w.confirm(w.advance(w.propose(key)))
	w.put(w.to, key, "replaced in the copy")
	row = w.advance(row)
	if got, _ := w.root.Twin.Object("storage/" + key); row.State != Refused || string(got) != "damaged" {
		t.Errorf("%q, %+v", got, row)
	}
}

// TestRepairCrash: a call that dies before or after any request is repeated; the file is restored once,
// and what was damaged is kept.
func TestRepairCrash(t *testing.T) {
	crashes(t, 15, func(w *world, m *tabletest.Mortal) {
		w.copy()
		key, damaged := w.key("/archivist-files.jsonl"), strings.Repeat("damaged", 200)
		w.put(w.root.Bucket, key, damaged)
		row := w.propose(key)
		w.root.Twin.Before = m.Status
		err := w.repair(w.table(m.Do), row)
		w.root.Twin.Before = nil
		if m.Dead() != (err != nil) {
			w.Fatalf("died %v, %v", m.Dead(), err)
		}
		row = w.advance(row)
		if row.State == Planned {
			row = w.advance(w.confirm(row))
		}
		kept, _ := w.root.Twin.Object("work/" + row.Quarantine)
		if row.State != Done || string(kept) != damaged {
			w.Errorf("%+v; kept %q", row, kept)
		}
		if got := w.repairs(); len(got) != 1 {
			w.Errorf("events %v", got)
		}
		w.same()
	})
}

// repair plans, confirms and does a repair with a table.
func (w *world) repair(tb *table.Table, row *Repair) error {
	planned, err := w.replica(tb).Advance(w.Context(), ark, row.ID, w.until())
	if err == nil {
		_, err = w.replica(tb).Confirm(w.Context(), ark, row.ID, planned.Token, "bo")
	}
	if err == nil {
		_, err = w.replica(tb).Advance(w.Context(), ark, row.ID, w.until())
	}
	return err
}
