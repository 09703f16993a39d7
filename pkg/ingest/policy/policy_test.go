package policy_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/policy"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/inventory"
)

func said(reason, until string) *inventory.Decision {
	return &inventory.Decision{Reason: reason, By: "ada", At: "2026-11-27T09:00:00Z", Until: until}
}

// TestNext: what is decided holds from the next version on, and nothing else changes. What is in force stays as it was
// decided; what would weaken it by mistake is refused with its reason.
func TestNext(t *testing.T) {
	withdrawn := inventory.Policies{Withdrawal: said("rights", "")}
	held := inventory.Policies{Withdrawal: said("rights", ""), LegalHold: said("case 17", "")}
	kept := inventory.Policies{LegalHold: said("case 17", ""), Retention: said("grant", "2036-12-31")}
	closed := inventory.Policies{Embargo: said("wish", "2036-12-31")}
	for _, c := range []struct {
		policy        ingest.Policy
		reason, until string
		before        inventory.Policies
		want          string
		refused       string
	}{
		{"", "a typing error", "", kept, "hold: case 17, until 2036-12-31", ""},
		{ingest.Withdraw, "rights", "", inventory.Policies{}, "withdrawn: rights", ""},
		{ingest.Withdraw, "again", "", withdrawn, "withdrawn: rights", ""},
		{ingest.Withdraw, "rights", "", kept, "withdrawn: rights, hold: case 17, until 2036-12-31", ""},
		{ingest.Reinstate, "settled", "", held, "hold: case 17", ""},
		{ingest.PlaceHold, "case 17", "", withdrawn, "withdrawn: rights, hold: case 17", ""},
		{ingest.PlaceHold, "case 17", "", held, "withdrawn: rights, hold: case 17", ""},
		{ingest.PlaceHold, "case 18", "", held, "withdrawn: rights, hold: case 17", "by ada: case 17. To add a reason"},
		{ingest.LiftHold, "settled", "", kept, "until 2036-12-31", ""},
		{ingest.LiftHold, "settled", "", withdrawn, "withdrawn: rights", ""},
		{ingest.Retain, "law", "2030-01-01", inventory.Policies{}, "until 2030-01-01", ""},
		{ingest.Retain, "law", "2037-01-01", kept, "hold: case 17, until 2037-01-01", ""},
		{ingest.Retain, "law", "2036-12-31", kept, "hold: case 17, until 2036-12-31", ""},
		{ingest.Retain, "law", "2036-12-30", kept, "hold: case 17, until 2036-12-31", "until 2036-12-31, since"},
		{ingest.Embargo, "wish", "2036-12-31", withdrawn, "withdrawn: rights, embargo: wish until 2036-12-31", ""},
		{ingest.Embargo, "again", "2036-12-31", closed, "embargo: wish until 2036-12-31", ""},
		{ingest.Embargo, "earlier", "2030-01-01", closed, "embargo: earlier until 2030-01-01", ""},
		{ingest.LiftEmbargo, "settled", "", closed, "", ""},
		{ingest.LiftEmbargo, "settled", "", kept, "hold: case 17, until 2036-12-31", ""},
	} {
		after, refused := policy.Next(c.policy, *said(c.reason, c.until), c.before)
		if got := inForce(after); got != c.want || !strings.Contains(refused, c.refused) ||
			(refused == "") != (c.refused == "") {
			t.Errorf("%s %s %s: it is %s, %q; expected %s, %q", c.policy, c.reason, c.until, got, refused, c.want,
				c.refused)
		}
	}
}

func inForce(p inventory.Policies) string {
	var all []string
	if p.Withdrawal != nil {
		all = append(all, "withdrawn: "+p.Withdrawal.Reason)
	}
	if p.LegalHold != nil {
		all = append(all, "hold: "+p.LegalHold.Reason)
	}
	if p.Retention != nil {
		all = append(all, "until "+p.Retention.Until)
	}
	if p.Embargo != nil {
		all = append(all, "embargo: "+p.Embargo.Reason+" until "+p.Embargo.Until)
	}
	return strings.Join(all, ", ")
}

// TestDeletable: each legal hold and each day that has not ended forbids to delete content, and is named. A day ends at
// midnight in UTC. A text that is no day never ends.
func TestDeletable(t *testing.T) {
	at := func(text string) time.Time {
		now, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return now
	}
	last, over := at("2036-12-31T23:59:59Z"), at("2036-12-31T23:00:00-01:00")
	for _, c := range []struct {
		own  inventory.Policies
		of   policy.Collection
		now  time.Time
		want []string
	}{
		{inventory.Policies{}, policy.Collection{}, last, nil},
		{inventory.Policies{Withdrawal: said("rights", "")}, policy.Collection{}, last, nil},
		{inventory.Policies{LegalHold: said("case 17", "")}, policy.Collection{}, over,
			[]string{"legal hold since 2026-11-27T09:00:00Z, by ada: case 17"}},
		{inventory.Policies{Retention: said("grant", "2036-12-31")}, policy.Collection{}, last,
			[]string{"retained until 2036-12-31 since 2026-11-27T09:00:00Z, by ada: grant"}},
		{inventory.Policies{Retention: said("grant", "2036-12-31")}, policy.Collection{}, over, nil},
		{inventory.Policies{Retention: said("grant", "for ever")}, policy.Collection{}, over, []string{"for ever"}},
		{inventory.Policies{}, policy.Collection{LegalHold: "case 18"}, over,
			[]string{"its collection: legal hold: case 18"}},
		{inventory.Policies{}, policy.Collection{RetainUntil: "2036-12-31"}, last,
			[]string{"its collection: retained until 2036-12-31"}},
		{inventory.Policies{}, policy.Collection{RetainUntil: "2036-12-31"}, over, nil},
		{inventory.Policies{LegalHold: said("a", ""), Retention: said("b", "2037-01-01")},
			policy.Collection{LegalHold: "c", RetainUntil: "2040-01-01"}, over,
			[]string{"ada: a", "until 2037-01-01", "legal hold: c", "until 2040-01-01"}},
	} {
		err := policy.Deletable(&inventory.Object{ARK: "ark:/99999/fk4a", Policies: c.own}, c.of, c.now)
		if (err == nil) != (c.want == nil) {
			t.Errorf("%s, %+v at %s: %v", inForce(c.own), c.of, c.now, err)
			continue
		}
		var kept *policy.KeptError
		if err != nil && (!fault.Is(err, fault.Held) || !errors.As(err, &kept) || len(kept.Reasons) != len(c.want)) {
			t.Errorf("the error is %#v", err)
		}
		for _, text := range c.want {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%q does not name %q", err, text)
			}
		}
	}
}

// An object may be deleted neither before its own day has ended nor before that of its collection.
func ExampleDeletable() {
	o := &inventory.Object{ARK: "ark:/99999/fk4a"}
	now := time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC)
	fmt.Println(policy.Deletable(o, policy.Collection{}, now))
	fmt.Println(policy.Deletable(o, policy.Collection{LegalHold: "Case 17", RetainUntil: "2020-01-01"}, now))
	// Output:
	// <nil>
	// no content of ark:/99999/fk4a may be deleted: its collection: legal hold: Case 17
}
