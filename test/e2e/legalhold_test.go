package e2e

import (
	"strings"
	"testing"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/views/search"
)

// decided is the job of a correction that decides something about an object, and makes that version.
func decided(t *testing.T, ark string, in v1.CorrectionRequest, version int) v1.Job {
	t.Helper()
	accepted, err := client.Correct(t.Context(), ark, in, in.Reason)
	if err != nil {
		t.Fatal(err)
	}
	done := ends(t, ingest.JobID(accepted.ID, 1), "Completed", soon)
	if done.Version != version {
		t.Errorf("%+v made %+v", in, done)
	}
	return done
}

// keeps compares the reasons for which content of an object is kept, with those that a list and a search show.
func keeps(t *testing.T, ark, collection string, want ...string) {
	t.Helper()
	o, err := client.Object(t.Context(), ark)
	if err != nil {
		t.Fatal(err)
	}
	reasons := func(o v1.Object) string {
		var all []string
		for _, k := range o.Kept {
			all = append(all, strings.Join(strings.Fields(k.Of+" "+k.Kind+" "+k.Until+" "+k.Reason), " "))
		}
		return strings.Join(all, ", ")
	}
	if got := reasons(o); got != strings.Join(want, ", ") {
		t.Errorf("it is kept for %q, expected %q", got, want)
	}
	list, err := client.Objects(t.Context(), v1.Filter{Collection: collection})
	if err != nil || len(list) != 1 || reasons(list[0]) != reasons(o) {
		t.Errorf("listed is %+v, %v", list, err)
	}
	until(t, "it is found", soon, func() bool {
		found, err := client.Search(t.Context(), "collection:"+collection, search.ByTitle, 10)
		return err == nil && len(found.Items) == 1 && reasons(found.Items[0]) == reasons(o)
	})
}

// TestLegalHold: a legal hold and a retention are placed on an object and on its collection, are shown with it wherever
// it is shown, and stay over a deposit. What would weaken them is refused at the door.
func TestLegalHold(t *testing.T) {
	begin(t)
	const name = "legal-hold"
	src := newSource(t)
	ark := preserve(t, name, src, "/evidence.txt").Identifiers.Primary
	keeps(t, ark, name)
	held := decided(t, ark, v1.CorrectionRequest{LegalHold: "place", Reason: "Case 17"}, 2)
	if says := string(content(t, held, "system/archivist-legal-hold.txt")); !strings.Contains(says, "reason: Case 17") {
		t.Errorf("the version says %s", says)
	}
	decided(t, ark, v1.CorrectionRequest{RetainUntil: "2099-12-31", Reason: "The law"}, 3)
	for says, in := range map[string]v1.CorrectionRequest{
		"is under a legal hold already": {LegalHold: "place", Reason: "Case 18"},
		"retained until 2099-12-31":     {RetainUntil: "2098-12-31", Reason: "A mistake"},
	} {
		if _, err := client.Correct(t.Context(), ark, in, ""); !fault.Is(err, fault.Conflict) ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v", in, err)
		}
	}
	if _, err := client.Submit(t.Context(), v1.BatchRequest{Collection: name,
		Payload:     v1.Payload{URL: src.put("/more.txt", []byte("more")), Type: "file"},
		Identifiers: &v1.Identifiers{Primary: ark}}, t.Name()); err != nil {
		t.Fatal(err)
	}
	until(t, "the deposit is stored", soon, func() bool {
		o, err := client.Object(t.Context(), ark)
		return err == nil && o.Version == 4
	})
	own := []string{"object legal-hold Case 17", "object retention 2099-12-31 The law"}
	keeps(t, ark, name, own...)
	hold := "Case 18"
	putProfile(t, name, v1.Profile{LegalHold: &hold, RetainUntil: "2098-01-01"})
	keeps(t, ark, name, append(own, "collection legal-hold Case 18", "collection retention 2098-01-01")...)
	if _, err := client.PutCollection(t.Context(), name, v1.Profile{}); !fault.Is(err, fault.Conflict) {
		t.Errorf("a profile without them: %v", err)
	}
	decided(t, ark, v1.CorrectionRequest{LegalHold: "lift", Reason: "Settled"}, 5)
	none := ""
	putProfile(t, name, v1.Profile{LegalHold: &none, RetainUntil: "2098-01-01"})
	keeps(t, ark, name, own[1], "collection retention 2098-01-01")
}
