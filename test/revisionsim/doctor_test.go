package revisionsim

import (
	"context"
	"slices"
	"strings"
	"testing"

	"archivist/pkg/ingest/queue"
)

// examine lets the doctor read all rows. It finds nothing but, perhaps, what is expected. Nothing gives events their
// places in the log here.
func (w *world) examine(ctx context.Context, expected ...string) {
	w.Examine(ctx, w.fake, len(w.check.instances)+len(w.check.revisions), func(f queue.Finding) bool {
		return f.Invariant != "event-overdue" && !slices.Contains(expected, f.Invariant)
	}, w.check.fail)
}

// TestOnlyTheDoctorFinds: a defect that breaks no rule of the reference is found by the doctor, and by nothing else. It
// is looked for in seeds in which the doctor looks at what goes on: at the end, what has ended is in the bucket.
func TestOnlyTheDoctorFinds(t *testing.T) {
	found := 0
	for n := range uint64(10) {
		seed := (n + 1) * examined
		w := simulate(t, seed, unlisted)
		switch {
		case w.check.err == nil: // no instance was left
		case strings.HasPrefix(w.check.err.Error(), "the doctor finds revision-place of task:"):
			found++
		default:
			t.Errorf("seed %d: %v", seed, w.check.err)
		}
	}
	if found < 7 {
		t.Errorf("the doctor has found it in %d of 10 seeds", found)
	}
}
