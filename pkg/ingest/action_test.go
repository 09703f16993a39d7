package ingest

import (
	"strings"
	"testing"
	"time"

	"archivist/pkg/kernel/fault"
)

const (
	someBatch = "01M7ZBMEYHBB62YP6RY21T1GQ6"
	someJob   = someBatch + "-00001"
)

func TestParseTarget(t *testing.T) {
	for text, want := range map[string]Target{
		someJob:               {TargetJob, someJob},
		someBatch:             {TargetBatch, someBatch},
		"job:" + someJob:      {TargetJob, someJob},
		"batch:" + someBatch:  {TargetBatch, someBatch},
		"collection:old-maps": {TargetCollection, "old-maps"},
		"queue":               {TargetQueue, ""},
		"storage":             {TargetStorage, ""},
	} {
		got, err := ParseTarget(text)
		if err != nil || got != want {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "job", "job:", "queue:x", "storage:1", "user:anna", "maps", "collection:a\nb"} {
		if _, err := ParseTarget(text); !fault.Is(err, fault.Invalid) || !strings.HasPrefix(err.Error(), "target") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestActionIsChecked: a wrong request is refused with the field before anything is read.
func TestActionIsChecked(t *testing.T) {
	one := 1
	good := Action{Name: ActHold, Target: Target{TargetCollection, "maps"}, Reason: " stock-taking ",
		Role: Administrator}
	if err := good.Check(); err != nil || good.Reason != "stock-taking" {
		t.Fatalf("%v, %q", err, good.Reason)
	}
	long := good
	long.Reason = strings.Repeat("ö", MaxActionReason)
	if err := long.Check(); err != nil {
		t.Error(err) // it is counted in characters, as the API does
	}
	for _, c := range []struct {
		change func(*Action)
		kind   fault.Kind
		says   string
	}{
		{func(a *Action) { a.Name = "holds" }, fault.Invalid, "a collection has hold or release"},
		{func(a *Action) { a.Name = ActPause }, fault.Invalid, "action"},
		{func(a *Action) { a.Reason = " " }, fault.Invalid, "reason"},
		{func(a *Action) { a.Reason = "a\nb" }, fault.Invalid, "reason"},
		{func(a *Action) { a.Reason = strings.Repeat("ö", MaxActionReason+1) }, fault.Invalid, "1001 characters"},
		{func(a *Action) { a.Name, a.Until = ActRelease, 5000 }, fault.Invalid, "until"},
		{func(a *Action) { a.Priority = &one }, fault.Invalid, "priority"},
		{func(a *Action) { a.Target, a.Name = Target{TargetJob, someJob}, ActPrioritize }, fault.Invalid, "priority"},
		{func(a *Action) { a.Role = Viewer }, fault.Denied, "operator"},
		{func(a *Action) { a.Target, a.Name, a.Role = Target{TargetJob, someJob}, ActDelete, Operator }, fault.Denied,
			"administrator"},
	} {
		a := good
		c.change(&a)
		if err := a.Check(); !fault.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v; want %s with %q", a, err, c.kind, c.says)
		}
	}
}

func TestUntilIsChecked(t *testing.T) {
	now := time.UnixMilli(1000)
	for until, says := range map[int64]string{0: "", 1001: "", 1: "in the past", 1000: "in the past",
		99_999_999_999_999: "within 10 years"} {
		err := CheckUntil(until, now)
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%d: %v; want %q", until, err, says)
		}
	}
}

// TestTimesAreRead: a time that is given is never read as none, which would be a hold without
// an end, or all jobs.
func TestTimesAreRead(t *testing.T) {
	for text, want := range map[string]int64{"": 0, "1970-01-01T00:00:01Z": 1000,
		"1970-01-01T01:00:00.001+01:00": 1} {
		if ms, err := ReadTime("until", text); err != nil || ms != want {
			t.Errorf("%q: %d, %v", text, ms, err)
		}
	}
	for _, text := range []string{"tomorrow", "0", "2026-11-22", "1970-01-01T00:00:00Z", "1970-01-01T00:00:00.0009Z",
		"1970-01-01T01:00:00+01:00", "1969-12-31T23:59:59Z", "0000-01-01T00:00:00Z"} {
		_, err := ReadTime("until", text)
		if !fault.Is(err, fault.Invalid) || !strings.HasPrefix(err.Error(), "until: found \"") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestBulkIsChecked(t *testing.T) {
	now := time.UnixMilli(1000)
	good := Bulk{Name: ActRequeue, Filter: Filter{Batch: someBatch, Message: "refused"}}
	if err := good.Check(now); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		bulk Bulk
		says string
	}{
		{Bulk{Name: ActPause, Filter: good.Filter}, "action"},
		{Bulk{Name: ActRequeue}, "filter"},
		{Bulk{Name: ActRequeue, Filter: Filter{Batch: someBatch, State: Held}}, "filter.state"},
		{Bulk{Name: ActRequeue, Filter: Filter{Batch: someBatch, Before: 2000}}, "filter.before"},
		{Bulk{Name: ActRequeue, Filter: Filter{Batch: someBatch, KeepOwnHolds: true}}, "filter.keepOwnHolds"},
		{Bulk{Name: ActRequeue, Filter: Filter{Batch: "a\nb"}}, "filter.batch"},
		{Bulk{Name: ActPrioritize, Filter: good.Filter}, "priority"},
		{Bulk{Name: ActRequeue, Filter: good.Filter, Until: 5000}, "until"},
		{Bulk{Name: ActHold, Filter: good.Filter, Until: 1}, "until"},
	} {
		if err := c.bulk.Check(now); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v; want %q", c.bulk, err, c.says)
		}
	}
}

func TestFilterMatches(t *testing.T) {
	j := &Job{ID: someJob, Batch: someBatch, Collection: "maps", State: Failed, Message: "The server Refused"}
	j.Entered = 500
	for _, c := range []struct {
		filter Filter
		want   bool
	}{
		{Filter{}, true},
		{Filter{Batch: someBatch, Collection: "maps", State: Failed, Before: 501, Message: "server refused"}, true},
		{Filter{Batch: "another"}, false},
		{Filter{Collection: "another"}, false},
		{Filter{State: Held}, false},
		{Filter{Before: 500}, false},
		{Filter{Message: "time-out"}, false},
	} {
		if got := c.filter.Matches(j); got != c.want {
			t.Errorf("%+v: %v", c.filter, got)
		}
	}
}
