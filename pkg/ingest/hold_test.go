package ingest

import (
	"slices"
	"testing"
	"time"

	"archivist/pkg/kernel/fault"
)

// TestHeldJob: a Pending job that is held keeps its priority, leaves its line, has a place by
// the end of its hold, and waits again when it is released.
func TestHeldJob(t *testing.T) {
	now := time.UnixMilli(1_000_000)
	j := rules.New(Job{ID: "b-00001", Collection: "c", LocalIDs: []string{"x"}, Priority: 7}, now)
	h := Hold{Scope: TargetCollection, Reason: "why", Actor: "ann", Since: 1, Until: 2_000_000}
	held, err := rules.Held(j, h, now.Add(time.Second))
	if err != nil || held.State != Held || *held.Hold != h || held.Due != h.Until || held.HasSlot ||
		held.QueuedLocks() != nil || held.Waiting() {
		t.Errorf("held: %+v, %v", held, err)
	}
	place, rank := held.WorkKey()
	later := rules.HeldBy(held, Hold{Scope: TargetJob})
	never, last := later.WorkKey()
	if place != WorkHeld || never != WorkHeld || later.Due != 0 || rank != DueSK(h.Until)+"#b-00001" ||
		last <= DueSK(now.Add(MaxHold).UnixMilli()) {
		t.Errorf("places %s %s, and %s %s without an end", place, rank, never, last)
	}
	again, err := rules.Released(held, now.Add(2*time.Second))
	if err != nil || again.State != Pending || again.Hold != nil || again.Due != 0 || !again.Waiting() ||
		again.Priority != 7 || !slices.Equal(again.QueuedLocks(), j.QueuedLocks()) {
		t.Errorf("released: %+v, %v", again, err)
	}
	for _, s := range []State{Held, Estimating, Provisioning, Downloading, Processing, Storing, Recording, Notify,
		Completed, Failed, Deleted} {
		if _, err := rules.Held(Job{State: s}, h, now); !fault.Is(err, fault.Conflict) {
			t.Errorf("a %s job is held: %v", s, err)
		}
		if _, err := rules.Released(Job{State: s}, now); s != Held && !fault.Is(err, fault.Conflict) {
			t.Errorf("a %s job is released: %v", s, err)
		}
	}
}

// TestHeldBatch: a batch that is held has no execution; released, it gets a new one.
func TestHeldBatch(t *testing.T) {
	now := time.UnixMilli(1_000_000)
	b := rules.EnterBatch(Batch{ID: "b"}, BatchPending, now)
	held := rules.HeldBatch(b, Hold{Scope: TargetBatch, Until: 2_000_000}, now)
	place, _ := held.WorkKey()
	if held.State != BatchHeld || held.Due != 2_000_000 || held.Exec != b.Exec || place != WorkHeld ||
		len(BatchWakes(b, held)) != 0 {
		t.Errorf("held: %+v at %s, wakes %v", held, place, BatchWakes(b, held))
	}
	again := rules.EnterBatch(held, BatchPending, now)
	if again.Hold != nil || again.Exec != b.Exec+1 || len(BatchWakes(held, again)) != 1 {
		t.Errorf("released: %+v, wakes %v", again, BatchWakes(held, again))
	}
}

// TestHoldSays: the text has all that a person needs.
func TestHoldSays(t *testing.T) {
	h := Hold{Reason: "moving house", Actor: "ann", Since: 0, Until: 86_400_000}
	want := "since 1970-01-01T00:00:00Z by ann: moving house (until 1970-01-02T00:00:00Z)"
	if got := h.Description(); got != want {
		t.Errorf("%q; expected %q", got, want)
	}
	if h.Ended(time.UnixMilli(86_399_999)) || !h.Ended(time.UnixMilli(86_400_000)) {
		t.Error("a hold ends at its end")
	}
	h.Until = 0
	if h.Ended(time.UnixMilli(1 << 50)) {
		t.Error("a hold without an end has ended")
	}
}
