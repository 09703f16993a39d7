package eventsim

import (
	"context"
	"slices"
	"strings"
	"testing"

	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/table/tabletest"
)

// examine lets the doctor read all rows at the end. The subjects of a simulation are no real jobs and
// objects: only what it finds of their events, the log and the consumers counts.
func (w *world) examine(ctx context.Context) {
	w.Examine(ctx, w.fake, len(w.check.ids), func(f queue.Finding) bool { // each event has a row, and most a place
		kind, _, _ := strings.Cut(f.Invariant, "-")
		return slices.Contains([]string{"event", "log", "cursor", "kept"}, kind)
	}, w.check.fail)
}

// TestDoctorFindsDamage: at the end of a seed in which all is well, the place of an event is gone.
func TestDoctorFindsDamage(t *testing.T) {
	w := simulate(t, 1, mutant{})
	if w.check.err != nil {
		t.Fatal(w.check.err)
	}
	w.fake.Watch = nil
	rows := tabletest.Table(w.fake).Rows
	if err := rows.Delete("pk", "LOG#c0").Range("sk", "SEQ#000000000001").Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.examine(t.Context())
	// Both are true, of the log and of the event; which row is read first depends on the seed.
	for _, said := range []string{"the doctor finds log-gap", "the doctor finds event-place"} {
		if w.check.err != nil && strings.Contains(w.check.err.Error(), said) {
			return
		}
	}
	t.Errorf("found: %v", w.check.err)
}
