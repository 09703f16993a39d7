package api_test

import (
	"strings"
	"testing"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest"
)

// TestNewCollection: the first submission to a collection is accepted, and says that it begins one, with names that
// are nearly the same. A hold of a collection that was never used warns, too.
func TestNewCollection(t *testing.T) {
	c, _ := serve(t, through)
	submitted := func(name string) string {
		in := good
		in.Collection = name
		out, err := c.Submit(t.Context(), in, "")
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(out.Warnings, "\n")
	}
	if got := submitted("daily"); got != "the collection daily has never been used. This submission begins it" {
		t.Errorf("%q", got)
	}
	if got := submitted("daily"); got != "" {
		t.Errorf("it is used now: %q", got)
	}

	got, err := c.Collection(t.Context(), "dialy")
	if err != nil || !got.New || len(got.Near) != 1 || got.Near[0] != "daily" {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err = c.Collection(t.Context(), "daily"); err != nil || got.New || got.Near != nil {
		t.Errorf("%+v, %v", got, err)
	}

	typo := ingest.Target{Kind: ingest.TargetCollection, ID: "dialy"}
	hold := v1.Action{Action: "hold", Reason: "no rights"}
	r, err := c.Act(t.Context(), typo, hold, "")
	if err != nil || len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "there is daily") {
		t.Errorf("a hold of a misspelt collection: %+v, %v", r, err)
	}

	_, err = c.PutCollection(t.Context(), "prepared", v1.Profile{Title: "Prepared"})
	if err != nil {
		t.Fatal(err)
	}
	if got := submitted("prepared"); got != "" {
		t.Errorf("it has a profile: %q", got)
	}
	if got := submitted("dailies"); got == "" || strings.Contains(got, "there is") {
		t.Errorf("three characters are another name: %q", got)
	}
}
