package lease_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/lease"
	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
)

func TestOneHolderAndRisingFence(t *testing.T) {
	now := time.UnixMilli(1_000_000)
	n := 0
	tb := tabletest.Open(t)
	s := &lease.Store{Table: tb, Now: func() time.Time { return now },
		NewID: func() string { n++; return fmt.Sprint("id", n) }}
	first, err := s.Acquire(t.Context(), "clock", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Acquire(t.Context(), "clock", time.Minute)
	var held *lease.HeldError
	if !fault.Is(err, fault.Held) || !errors.As(err, &held) || !held.Until.Equal(now.Add(time.Minute)) {
		t.Fatalf("a second holder got %v", err)
	}
	now = now.Add(time.Minute)
	second, err := s.Acquire(t.Context(), "clock", time.Minute)
	if err != nil || second.Fence <= first.Fence {
		t.Fatalf("after the end: %+v, %v", second, err)
	}
	guarded := func(l lease.Lease, id string) error {
		tx := tb.Begin(id)
		l.Guard(tx)
		tx.Insert(&struct{ table.Head }{table.Head{PK: id, SK: "x"}})
		return tx.Commit(t.Context())
	}
	if err := guarded(first, "old"); !fault.Is(err, fault.Stale) {
		t.Errorf("the old holder wrote: %v", err)
	}
	if err := guarded(second, "new"); err != nil {
		t.Errorf("the holder could not write: %v", err)
	}
	if err := s.Release(t.Context(), first); !fault.Is(err, fault.Stale) {
		t.Errorf("the old holder released: %v", err)
	}
	if err := s.Release(t.Context(), second); err != nil {
		t.Error(err)
	}
	third, err := s.Acquire(t.Context(), "clock", time.Minute)
	if err != nil || third.Fence <= second.Fence {
		t.Errorf("after a release: %+v, %v", third, err)
	}
}

// TestRevoke: a revoked lease guards nothing any more, and is free, whether it had a holder,
// was free, or had never been taken. A lease that is taken meanwhile is not revoked.
func TestRevoke(t *testing.T) {
	n := 0
	tb := tabletest.Open(t)
	s := &lease.Store{Table: tb, Now: func() time.Time { return time.UnixMilli(1_000_000) },
		NewID: func() string { n++; return fmt.Sprint("id", n) }}
	revoke := func(between func()) error {
		t.Helper()
		tx := tb.Begin(s.NewID())
		if err := s.Revoke(t.Context(), tx, "clock"); err != nil {
			t.Fatal(err)
		}
		between()
		return tx.Commit(t.Context())
	}
	guarded := func(l lease.Lease) error {
		tx := tb.Begin(s.NewID())
		l.Guard(tx)
		tx.Insert(&struct{ table.Head }{table.Head{PK: tx.ID(), SK: "x"}})
		return tx.Commit(t.Context())
	}
	acquire := func() (l lease.Lease) {
		t.Helper()
		l, err := s.Acquire(t.Context(), "clock", time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	nothing := func() {}
	if err := revoke(nothing); err != nil { // it was never taken
		t.Fatal(err)
	}
	first := acquire()
	if err := revoke(nothing); err != nil {
		t.Fatal(err)
	}
	if err := guarded(first); !fault.Is(err, fault.Stale) {
		t.Errorf("under a revoked lease: %v", err)
	}
	if err := s.Release(t.Context(), first); !fault.Is(err, fault.Stale) {
		t.Errorf("a revoked lease is released: %v", err)
	}
	var second lease.Lease
	if err := revoke(func() { second = acquire() }); !fault.Is(err, fault.Stale) {
		t.Errorf("a lease taken meanwhile is revoked: %v", err)
	}
	if err := guarded(second); err != nil || second.Fence <= first.Fence+1 {
		t.Errorf("fences %d and %d: %v", first.Fence, second.Fence, err)
	}
}
