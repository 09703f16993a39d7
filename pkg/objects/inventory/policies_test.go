package inventory_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"archivist/pkg/events/event"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/inventory"
)

// TestLasts: a day lasts until it has ended in UTC. A text that is no day lasts for ever.
func TestLasts(t *testing.T) {
	for _, c := range []struct {
		day, now string
		want     bool
	}{
		{"2036-12-31", "2026-11-27T00:00:00Z", true},
		{"2036-12-31", "2036-12-31T23:59:59Z", true},
		{"2036-12-31", "2037-01-01T00:00:00Z", false},
		{"2036-12-31", "2037-01-01T00:30:00+01:00", true},
		{"2036-02-30", "2037-01-01T00:00:00Z", true},
		{"", "2037-01-01T00:00:00Z", true},
	} {
		now, err := time.Parse(time.RFC3339, c.now)
		if got := inventory.Lasts(c.day, now); err != nil || got != c.want {
			t.Errorf("%q at %s: %v, %v", c.day, c.now, got, err)
		}
	}
}

// TestPolicies: what was decided about an object is in its row and in its events, and goes when it is not said any
// more. What is recorded already makes no event.
func TestPolicies(t *testing.T) {
	s := newStore(t)
	said := &inventory.Decision{Reason: "case 17", By: "ada", At: "2026-11-27T09:00:00Z"}
	until := &inventory.Decision{Reason: "law", At: "2026-11-27T09:00:00Z", Until: "2036-12-31"}
	for i, c := range []struct {
		policies inventory.Policies
		after    string
		until    string // in the detail
	}{
		{inventory.Policies{}, "", ""},
		{inventory.Policies{Embargo: until}, `"embargoUntil":"2036-12-31"`, "2036-12-31"},
		{inventory.Policies{LegalHold: said}, `"legalHold":"case 17"`, ""},
		{inventory.Policies{LegalHold: said, Retention: until}, `"retainUntil":"2036-12-31"`, "2036-12-31"},
		{inventory.Policies{Retention: until, Withdrawal: said}, `"withdrawn":"case 17"`, ""},
	} {
		r := stored()
		r.Object.HeadOf, r.Object.Digest, r.Object.Policies = i+1, fmt.Sprint(i), c.policies
		for n := range 2 {
			if changed, err := s.record(r); err != nil || changed != (n == 0) {
				t.Errorf("%d: recorded is %v, %v", i, changed, err)
			}
		}
		o, err := s.Object(t.Context(), r.Object.ARK)
		if err != nil || !reflect.DeepEqual(o.Policies, c.policies) {
			t.Errorf("%d: the row is %+v, %v", i, o, err)
		}
		events := s.events(event.Object, r.Object.ARK)
		last := events[len(events)-1]
		var detail inventory.Detail
		if err := json.Unmarshal(last.Detail, &detail); err != nil || len(events) != i+1 ||
			detail.RetainUntil+detail.EmbargoUntil != c.until || !strings.Contains(string(last.After), c.after) {
			t.Errorf("%d: %d events, the last with %s, then %s, %v", i, len(events), last.Detail, last.After, err)
		}
	}
}

// TestOpen: the files of an object are given out unless it is withdrawn, or its embargo has not ended.
func TestOpen(t *testing.T) {
	last, over := time.Date(2036, 12, 31, 23, 59, 59, 0, time.UTC), time.Date(2037, 1, 1, 0, 0, 0, 0, time.UTC)
	closed := inventory.Policies{Embargo: &inventory.Decision{Reason: "wish", Until: "2036-12-31"}}
	for _, c := range []struct {
		policies inventory.Policies
		now      time.Time
		says     string
	}{
		{inventory.Policies{}, last, ""},
		{closed, last, "under an embargo until 2036-12-31: wish"},
		{closed, over, ""},
		{inventory.Policies{Withdrawal: &inventory.Decision{Reason: "rights"}}, over, "withdrawn since : rights"},
		{inventory.Policies{Embargo: &inventory.Decision{Reason: "wish", Until: "for ever"}}, over, "until for ever"},
	} {
		err := (&inventory.Object{Policies: c.policies}).Open(c.now)
		open := c.says == "" && err == nil
		if !open && (!fault.Is(err, fault.Denied) || c.says == "" || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%+v at %s: %v; expected %q", c.policies, c.now, err, c.says)
		}
	}
}
