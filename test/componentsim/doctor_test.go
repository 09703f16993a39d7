package componentsim

import (
	"context"
	"strings"
	"testing"

	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/table/tabletest"
)

// examine lets the doctor read all rows at the end. The objects of a simulation are no real ones.
func (w *world) examine(ctx context.Context) {
	w.Examine(ctx, w.fake, len(w.check.items), func(f queue.Finding) bool {
		return !strings.HasPrefix(f.Subject, "OBJECT#")
	}, w.check.fail)
}

// TestDoctorFindsDamage: at the end of a seed in which all is well, the row of an item is gone.
func TestDoctorFindsDamage(t *testing.T) {
	w := simulate(t, 1, mutant{})
	if w.check.err != nil {
		t.Fatal(w.check.err)
	}
	w.fake.Watch = nil
	rows := tabletest.Table(w.fake).Rows
	if err := rows.Delete("pk", itemPrefix+"item:d0").Range("sk", "COMPONENTITEM").Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.examine(t.Context())
	if w.check.err == nil {
		t.Error("the doctor found nothing")
	}
	t.Log(w.check.err)
}
