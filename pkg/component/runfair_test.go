package component

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"archivist/pkg/fault"
)

// TestFewInARound: a component that works on one item at once takes a ready one before one that had to
// wait, but in every fourth round: neither starves, also if a run has one round.
func TestFewInARound(t *testing.T) {
	for most := range 2 {
		p := newPlant(t)
		d := checker("check", "Checked")
		d.Concurrency, d.MaxItems, d.Timeout = 1, most, &Timeout{Item: 600}
		define(t, p.Store, d)
		p.receive(3, 0)
		start := func() {
			t.Helper()
			_, err := p.Start(t.Context(), "check", By{Actor: "ada", Reason: "now"})
			if err != nil && !fault.Is(err, fault.Conflict) {
				t.Fatal(err)
			}
			p.settleAll()
		}
		p.work = func(context.Context, Work) (Result, error) { return Result{NotYet: true, Reason: "no"}, nil }
		for range 4 {
			start()
		}
		p.now = p.now.Add(2 * time.Hour)
		p.worked, p.work = nil, func(context.Context, Work) (Result, error) { return Result{}, nil }
		p.receive(20, 500)
		_, err := p.Store.Prioritize(t.Context(), "item:000519", 9, By{Actor: "ada", Reason: "urgent"})
		if err != nil {
			t.Fatal(err)
		}
		for range 30 {
			start()
		}
		var waited []int
		for i, id := range p.worked {
			if id < "item:000500" {
				waited = append(waited, i)
			}
		}
		urgent := slices.Index(p.worked, "item:000519")
		if len(p.worked) != 23 || urgent > 1 || len(waited) != 3 || waited[1]-waited[0] != 4 ||
			waited[2]-waited[1] != 4 {
			t.Errorf("maxItems %d: %d were worked on, the urgent one as %d, those that waited as %v", most,
				len(p.worked), urgent, waited)
		}
	}
}

// TestSummaryIsShort: what an item's row keeps of a request is short, whatever was asked for.
func TestSummaryIsShort(t *testing.T) {
	p := newPlant(t)
	define(t, p.Store, checker("check", "Checked"))
	p.receive(1, 0)
	names := make([]string, MaxEventNames+1)
	for i := range names {
		names[i] = fmt.Sprintf("Event_%044d", i)
	}
	by := By{Actor: "ada", Reason: "r", Request: "one"}
	got, err := p.Store.Revoke(t.Context(), "item:000000", names[1:], by)
	if err != nil || len(got.Summary) < 4000 {
		t.Errorf("%q, %v", got.Summary, err)
	}
	again, err := p.Store.Revoke(t.Context(), "item:000000", names[1:], by)
	if err != nil || len(again.Summary) > maxSummary {
		t.Errorf("again: %d bytes, %v", len(again.Summary), err)
	}
	if _, err := p.Store.Revoke(t.Context(), "item:000000", names, by); !fault.Is(err, fault.Invalid) {
		t.Errorf("%d names: %v", len(names), err)
	}
}
