package queue

import (
	"slices"
	"testing"

	"archivist/pkg/ingest"
)

// TestEveryActionHasADecider: what the rules allow on a job or a batch can be done.
func TestEveryActionHasADecider(t *testing.T) {
	onJobs := slices.Clone(ingest.Actions[ingest.TargetJob])
	for name := range ingest.BulkActions {
		onJobs = append(onJobs, name)
	}
	for _, name := range onJobs {
		if jobActions[name] == nil {
			t.Errorf("nothing decides %s on a job", name)
		}
	}
	for _, name := range ingest.Actions[ingest.TargetBatch] {
		if batchActions[name] == nil {
			t.Errorf("nothing decides %s on a batch", name)
		}
	}
	for kind, names := range ingest.Actions {
		onHold := kind != ingest.TargetJob && kind != ingest.TargetBatch
		for _, name := range names {
			if onHold && !slices.Contains([]ingest.ActionName{ingest.ActHold, ingest.ActRelease, ingest.ActPause,
				ingest.ActResume}, name) {
				t.Errorf("%s on a %s is no hold or pause", name, kind)
			}
		}
	}
}
