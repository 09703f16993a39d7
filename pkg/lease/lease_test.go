package lease_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"archivist/pkg/fault"
	"archivist/pkg/lease"
	"archivist/pkg/table"
	"archivist/pkg/table/tabletest"
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
