package researchsim

import (
	"context"
	"strings"
	"testing"

	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/table/tabletest"
)

// examine lets the doctor read all rows at the end. Nothing gives events their places in the log here.
func (w *world) examine(ctx context.Context) {
	w.Examine(ctx, w.fake, len(w.check.episodes)+len(w.check.clips)+len(w.check.leases),
		func(f queue.Finding) bool { return f.Invariant != "event-overdue" }, w.check.fail)
}

// TestDoctorFindsDamage: at the end of a seed in which all is well, the place of an episode is gone.
func TestDoctorFindsDamage(t *testing.T) {
	w := simulate(t, 1, mutant{})
	if w.check.err != nil {
		t.Fatal(w.check.err)
	}
	for sk := range w.check.line {
		if strings.HasPrefix(sk, "closed#") {
			w.fake.Watch = nil
			rows := tabletest.Table(w.fake).Rows
			if err := rows.Delete("pk", "RESEARCHLINE#"+songs).Range("sk", sk).Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	w.examine(t.Context())
	if w.check.err == nil || !strings.Contains(w.check.err.Error(), "the doctor finds research-place of episode:") {
		t.Errorf("found: %v", w.check.err)
	}
}
