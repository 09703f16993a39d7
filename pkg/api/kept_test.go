package api_test

import (
	"strings"
	"testing"
	"time"

	"archivist/pkg/api"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/inventory"
)

const (
	keptARK   = "ark:/99999/fk4x"
	keptSince = "2026-11-27T09:00:00Z"
)

// decide records that a version of the object decides something.
func decide(t *testing.T, a *api.API, p inventory.Policies) {
	t.Helper()
	o, err := a.Inventory.Object(t.Context(), keptARK)
	if err != nil {
		t.Fatal(err)
	}
	o.HeadOf, o.Policies = o.HeadOf+1, p
	put, err := a.Inventory.Prepare(t.Context(), inventory.Record{Job: "J-2", Object: *o}, 2000)
	if err != nil {
		t.Fatal(err)
	}
	tx := a.Queue.Table.Begin(a.Queue.NewID())
	if err := put(tx); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestKept: an object says for which reasons its content is kept, its own first, then those of its collection, as long
// as they hold. A list says the same.
func TestKept(t *testing.T) {
	a, client, _ := kept(t)
	now := time.Date(2036, 12, 31, 23, 0, 0, 0, time.UTC)
	a.Queue.Now = func() time.Time { return now }
	shows := func(want ...string) {
		t.Helper()
		one, err := client.Object(t.Context(), keptARK)
		if err != nil {
			t.Fatal(err)
		}
		list, err := client.Objects(t.Context(), v1.Filter{Collection: "maps"})
		if err != nil || len(list) != 1 || len(list[0].Kept) != len(one.Kept) {
			t.Fatalf("listed is %+v, %v", list, err)
		}
		var got []string
		for i, k := range one.Kept {
			got = append(got, strings.Join([]string{k.Of, k.Kind, k.Until, k.Reason, k.By, k.At}, "|"))
			if list[0].Kept[i] != k {
				t.Errorf("listed is %+v, not %+v", list[0].Kept[i], k)
			}
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("it is kept for %q, expected %q", got, want)
		}
	}
	shows()
	decide(t, a, inventory.Policies{LegalHold: &inventory.Decision{Reason: "case 17", By: "ada", At: keptSince},
		Retention: &inventory.Decision{Reason: "grant", At: keptSince, Until: "2036-12-31"}})
	reason := "case 18"
	if _, err := client.PutCollection(t.Context(), "maps",
		v1.Profile{LegalHold: &reason, RetainUntil: "2037-01-01"}); err != nil {
		t.Fatal(err)
	}
	shows("object|legal-hold||case 17|ada|"+keptSince, "object|retention|2036-12-31|grant||"+keptSince,
		"collection|legal-hold||case 18||", "collection|retention|2037-01-01|||")
	now = now.Add(time.Hour)
	got, err := client.Collection(t.Context(), "maps")
	if err != nil || *got.Profile.LegalHold != reason || got.Profile.RetainUntil != "2037-01-01" {
		t.Errorf("the profile is %+v, %v", got, err)
	}
	if _, err := client.PutCollection(t.Context(), "maps", v1.Profile{RetainUntil: "2037-01-01"}); !fault.Is(err,
		fault.Conflict) {
		t.Errorf("a profile without the hold: %v", err)
	}
	none := ""
	put, err := client.PutCollection(t.Context(), "maps", v1.Profile{LegalHold: &none, RetainUntil: "2037-01-01"})
	if err != nil || put.Profile.LegalHold != nil {
		t.Errorf("lifted, it is %+v, %v", put, err)
	}
	decide(t, a, inventory.Policies{})
	shows("collection|retention|2037-01-01|||")
	now = now.AddDate(0, 0, 1)
	shows()
}

// TestDecisions: a request decides one thing about an object, or corrects it. What would weaken a hold or a retention
// is refused before anything is stored; what is accepted is a job that decides it.
func TestDecisions(t *testing.T) {
	a, client, _ := kept(t)
	now := time.Date(2026, 11, 27, 9, 0, 0, 0, time.UTC)
	a.Queue.Now = func() time.Time { return now }
	decide(t, a, inventory.Policies{LegalHold: &inventory.Decision{Reason: "case 17", By: "ada", At: keptSince},
		Retention: &inventory.Decision{Reason: "grant", At: keptSince, Until: "2036-12-31"}})
	for says, in := range map[string]v1.CorrectionRequest{
		"access and legalHold":                  {Access: "withdraw", LegalHold: "lift"},
		"legalHold and retainUntil":             {LegalHold: "lift", RetainUntil: "2040-01-01"},
		"retainUntil: what is decided":          {RetainUntil: "2040-01-01", What: "x"},
		"access: what is decided":               {Access: "withdraw", AddLocal: []string{"y"}},
		"retainUntil":                           {RetainUntil: "31.12.2040"}, // refused by the schema
		"legalHold":                             {LegalHold: "keep"},
		"retainUntil: 2026-11-26 is in the pas": {RetainUntil: "2026-11-26"},
		"it is retained until 2036-12-31":       {RetainUntil: "2036-12-30"},
		"under a legal hold already":            {LegalHold: "place"},
		"access and embargoUntil":               {Access: "withdraw", EmbargoUntil: "none"},
		"embargoUntil":                          {EmbargoUntil: "None"}, // refused by the schema
		"embargoUntil: 2026-11-26 is in the pa": {EmbargoUntil: "2026-11-26"},
		"embargoUntil: found \"2036-02-30\"":    {EmbargoUntil: "2036-02-30"},
	} {
		in.Reason = "a test"
		_, err := client.Correct(t.Context(), keptARK, in, "")
		if !fault.Is(err, fault.Invalid) && !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v; expected %q", in, err, says)
		}
	}
	for want, in := range map[ingest.Policy]v1.CorrectionRequest{
		ingest.LiftHold:  {LegalHold: "lift", Reason: "settled"},
		ingest.PlaceHold: {LegalHold: "place", Reason: "case 17"}, // it is in force already
		ingest.Retain:    {RetainUntil: "2036-12-31", Reason: "the law"},
		ingest.Withdraw:  {Access: "withdraw", Reason: "rights"},

		ingest.Embargo:     {EmbargoUntil: "2036-12-31", Reason: "the author"},
		ingest.LiftEmbargo: {EmbargoUntil: "none", Reason: "the author agrees"},
	} {
		accepted, err := client.Correct(t.Context(), keptARK, in, "")
		if err != nil {
			t.Errorf("%+v: %v", in, err)
			continue
		}
		b, err := a.Queue.Batch(t.Context(), accepted.ID)
		day := strings.TrimSuffix(in.RetainUntil+in.EmbargoUntil, "none")
		if err != nil || b.Policy != want || b.LastDay != day || b.Note != in.Reason {
			t.Errorf("%+v: the batch is %+v, %v", in, b.Batch, err)
		}
	}
}

// TestDecisionIsRepeated: a repeated request is the same batch, also after the day that it names.
func TestDecisionIsRepeated(t *testing.T) {
	a, client, _ := kept(t)
	now := time.Date(2026, 11, 27, 23, 0, 0, 0, time.UTC)
	a.Queue.Now = func() time.Time { return now }
	in := v1.CorrectionRequest{RetainUntil: "2026-11-27", Reason: "for today"}
	first, err := client.Correct(t.Context(), keptARK, in, "k")
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(2 * time.Hour)
	if again, err := client.Correct(t.Context(), keptARK, in, "k"); err != nil || again.ID != first.ID {
		t.Errorf("repeated it is %+v, %v", again, err)
	}
	if _, err := client.Correct(t.Context(), keptARK, in, "other"); !fault.Is(err, fault.Invalid) {
		t.Errorf("a new request of that day: %v", err)
	}
}
