package api_test

import (
	"strings"
	"testing"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/inventory"
)

// TestCorrections: a correction is a batch of one job of the object's collection, by who asked for it, with the
// reason. What no version could say is refused with the field. A repeated request is the same batch, also when what
// it asked for is done.
func TestCorrections(t *testing.T) {
	a, client, _ := kept(t)
	const ark = "ark:/99999/fk4x"
	o := &inventory.Object{ARK: ark, Collection: "maps"}
	named := func(id, ark string) {
		t.Helper()
		tx := a.Queue.Table.Begin(a.Queue.NewID())
		inventory.PutLocalIDs(tx, &inventory.Object{ARK: ark, Collection: o.Collection}, []string{id})
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	named("wrong", ark)
	named("taken", "ark:/99999/fk4y")
	twenty := strings.Split("abcdefghijklmnopqrst", "")
	for says, in := range map[string]v1.CorrectionRequest{
		"nothing is corrected":        {},
		"who has a control":           {Who: "a\nb"},
		"no value yet":                {Who: "(:tba)"},
		"what has a control":          {What: "a\x00"},
		"addLocal: the local id \"a;": {AddLocal: []string{"a;b"}},
		"belongs to ark:/99999/fk4y":  {AddLocal: []string{"taken"}},
		"\"taken\" is not a local id": {WithdrawLocal: []string{"taken"}},
		"\"none\" is not a local id":  {WithdrawLocal: []string{"none"}},
		"leave one out":               {AddLocal: []string{"x"}, WithdrawLocal: []string{"x"}},
		"21 ids together":             {AddLocal: twenty, WithdrawLocal: []string{"x"}},
		"the reason":                  {What: "x", Reason: "\ufffd"},
		"found only blanks":           {What: "x", Reason: " "},
	} {
		if in.Reason == "" {
			in.Reason = "a test"
		}
		if _, err := client.Correct(t.Context(), ark, in, ""); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v; expected %q", in, err, says)
		}
	}
	if _, err := client.Correct(t.Context(), "ark:/99999/fk4none", v1.CorrectionRequest{What: "x", Reason: "a test"},
		""); !fault.Is(err, fault.NotFound) {
		t.Errorf("an unknown object: %v", err)
	}
	in := v1.CorrectionRequest{What: "Notes", WithdrawLocal: []string{"wrong"}, IfVersion: 1,
		Reason: " a typing error "}
	accepted, err := client.Correct(t.Context(), ark, in, "k")
	if err != nil {
		t.Fatal(err)
	}
	b, err := a.Queue.Batch(t.Context(), accepted.ID)
	if err != nil || b.Primary != ark || b.Collection != o.Collection || b.Payload.Type != ingest.TypeCorrection ||
		b.What != "Notes" || len(b.Withdrawn) != 1 || b.Note != "a typing error" || b.IfVersion != 1 ||
		!strings.Contains(b.Submitter, "operator") || !b.InLine {
		t.Errorf("the batch is %+v, %v", b.Batch, err)
	}
	if err := a.Inventory.Release(t.Context(), o, []string{"wrong", "taken"}, a.Queue.NewID); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]string{"wrong": "", "taken": "ark:/99999/fk4y"} {
		if known, err := a.Inventory.ByLocalID(t.Context(), o.Collection, id); err != nil || known != want {
			t.Errorf("%s names %q, %v", id, known, err)
		}
	}
	if again, err := client.Correct(t.Context(), ark, in, "k"); err != nil || again.ID != accepted.ID {
		t.Errorf("again it is %+v, %v", again, err)
	}
	in.What = "Other"
	if _, err := client.Correct(t.Context(), ark, in, "k"); !fault.Is(err, fault.Conflict) {
		t.Errorf("the key with another request: %v", err)
	}
}
