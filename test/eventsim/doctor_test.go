package eventsim

import (
	"context"
	"strings"
	"testing"

	"archivist/pkg/queue"
	"archivist/pkg/table/tabletest"
	"archivist/test/adversary"
)

// examine lets the doctor read all rows at the end. The subjects of a simulation are no real jobs and
// objects: only what it finds of their events, the log and the consumers counts.
func (w *world) examine(ctx context.Context) {
	if w.check.err != nil {
		return
	}
	rows, err := adversary.Examine(ctx, w.fake, w.newID, func(f queue.Finding) {
		switch kind, _, _ := strings.Cut(f.Invariant, "-"); kind {
		case "event", "log", "cursor", "kept":
			w.check.fail("the doctor finds %s of %s: %s", f.Invariant, f.Subject, f.Evidence)
		}
	})
	if err != nil {
		w.check.fail("the doctor: %v", err)
	}
	if rows > len(w.check.ids) { // each event has a row, and most a place
		w.Met("rows read by the doctor")
	}
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
	if w.check.err == nil || !strings.Contains(w.check.err.Error(), "the doctor finds log-gap") {
		t.Errorf("found: %v", w.check.err)
	}
}
