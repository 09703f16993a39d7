package stage_test

import (
	"testing"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/collection"
	"archivist/pkg/ingest/stage/stagetest"
)

// TestPriorityOfCollection: jobs have the priority of their collection's profile, also the best, which is 0; without
// one, that of the size of their batch.
func TestPriorityOfCollection(t *testing.T) {
	w := newTwins(t)
	for name, priority := range map[string]int{"first": 0, "last": 777} {
		p := collection.Profile{Priority: &priority}
		if err := w.Stages.Collections.Put(t.Context(), name, p, collection.By{Actor: "me"}, 0); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]int{"first": 0, "last": 777, "bench": ingest.BatchPriority(1)} {
		if j := w.Ended(w.Submit("a.txt", stagetest.In(name)), 1, false); j.Priority != want {
			t.Errorf("a job of %s has the priority %d, expected %d", name, j.Priority, want)
		}
	}
}
