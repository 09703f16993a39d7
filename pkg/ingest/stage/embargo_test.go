package stage_test

import (
	"strings"
	"testing"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/inventory"
)

// embargo is the embargo on the object of a job; nil: there is none.
func (w *twins) embargo(id string) *inventory.Decision {
	w.Helper()
	o, err := w.Stages.Inventory.Object(w.Context(), w.Job(id).Primary)
	if err != nil {
		w.Fatal(err)
	}
	if o.Embargo != nil && !fault.Is(o.Open(time.Now()), fault.Denied) {
		w.Errorf("%s: its files are given out under the embargo %+v", id, o.Embargo)
	}
	return o.Embargo
}

// TestEmbargo: an embargo is a version, which later ones repeat; it can be made earlier, and lifted.
func TestEmbargo(t *testing.T) {
	w := newTwins(t)
	first := w.Submit("a.txt")
	ark := w.Ended(first, 1, false).Primary
	id := w.correct(ark, deciding(ingest.Embargo, "the author's wish", "2099-12-31"))
	w.Ended(id, 2, false)
	is := w.embargo(id)
	if is == nil || is.Until != "2099-12-31" || is.Reason != "the author's wish" || is.By != "ada@example.org" {
		t.Fatalf("the embargo is %+v", is)
	}
	premis := w.system(id, "premis.xml")
	if !strings.Contains(premis, "Embargo on the files of the object: until 2099") {
		t.Errorf("the provenance is %s", premis)
	}
	w.Ended(w.correct(ark, deciding(ingest.Embargo, "again", "2099-12-31")), 2, true)
	w.Ended(w.Submit("b.txt"), 3, false)
	w.Forget()
	w.Reindexed(ark)
	if again := w.embargo(id); again == nil || *again != *is {
		t.Errorf("after a deposit and a reindex it is %+v", again)
	}
	w.Ended(w.correct(ark, deciding(ingest.Embargo, "the heirs' wish", "2098-12-31")), 4, false)
	if is := w.embargo(id); is == nil || is.Until != "2098-12-31" {
		t.Errorf("made earlier, it is %+v", is)
	}
	w.Ended(w.correct(ark, deciding(ingest.LiftEmbargo, "settled", "")), 5, false)
	w.Ended(w.correct(ark, deciding(ingest.LiftEmbargo, "again", "")), 5, true)
	if is := w.embargo(id); is != nil {
		t.Errorf("lifted, it is %+v", is)
	}
}

// TestEmbargoFile: a package says until when its files are not given out. One that does not say it keeps the embargo of
// its object, and one that cannot be read is refused.
func TestEmbargoFile(t *testing.T) {
	d := newDeposits(t)
	said := func(text string) map[string]string {
		return map[string]string{"a.txt": "a", "mrt-embargo.txt": text}
	}
	j := d.add("thesis", said("embargoEndDate: 2099-06-30T09:00:00Z\n"))
	d.holds(j, said("embargoEndDate: 2099-06-30T09:00:00Z\n"))
	is := d.embargo(j.ID)
	if is == nil || is.Until != "2099-06-30" || !strings.Contains(is.Reason, "mrt-embargo.txt") || is.At == "" {
		t.Fatalf("the embargo is %+v", is)
	}
	if text := d.premis(j); !strings.Contains(text, "as mrt-embargo.txt says: 2099-06-30") {
		t.Errorf("the PREMIS document does not name the embargo: %s", text)
	}
	if j := d.add("thesis", said("embargoEndDate: 2099-06-30T09:00:00Z\n")); !j.NoChange {
		t.Errorf("the same again is %s, version %d", j.State, j.ObjectVersion)
	}

	for _, c := range []struct {
		files map[string]string
		until string
	}{
		{map[string]string{"a.txt": "new"}, "2099-06-30"},
		{said("embargoEndDate: 2020-01-01\n"), "2099-06-30"}, // it has ended, and is named
		{said("embargoEndDate: 2098-01-01\n"), "2098-01-01"},
		{said("EmbargoEndDate: None\n"), ""},
	} {
		j := d.update("thesis", c.files)
		is := d.embargo(j.ID)
		if c.until == "" && is != nil || c.until != "" && (is == nil || is.Until != c.until) {
			t.Errorf("%v: %s: the embargo is %+v", c.files, j.Message, is)
		}
		ended := strings.Contains(strings.Join(j.FileWarnings, " "), "the embargo has ended on 2020-01-01")
		past := strings.Contains(c.files["mrt-embargo.txt"], "2020")
		if ended != past || past && strings.Contains(d.premis(j), "mrt-embargo.txt says") {
			t.Errorf("%v: the warnings are %v: %s", c.files, j.FileWarnings, d.premis(j))
		}
	}

	for _, bad := range []string{"", "until: 2036-01-01\n", "embargoEndDate: soon\n", "embargoEndDate: 2036-02-30\n",
		"no element", "embargoEndDate: none\nembargoEndDate: none\n", strings.Repeat("x: y\n", 20_000)} {
		j := d.update("thesis", said(bad))
		if j.State != ingest.Failed || !j.NotRecoverable || !strings.Contains(j.Message, "mrt-embargo.txt: expected") {
			t.Errorf("%.40q: %s: %s", bad, j.State, j.Message)
		}
	}
}
