package queue_test

import (
	"strings"
	"testing"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
)

// TestDeleteAdvice: who cannot delete a batch is told to cancel it only if it can be cancelled.
func TestDeleteAdvice(t *testing.T) {
	b := newBench(t)
	d := queue.Admin{Queue: b.q}
	batch := b.failed(1)
	for _, state := range []ingest.BatchState{ingest.BatchPending, ingest.BatchProcessing, ingest.BatchReporting,
		ingest.BatchUpdateReporting} {
		row, err := b.q.Batch(t.Context(), batch)
		if err != nil {
			t.Fatal(err)
		}
		row.State = state
		tx := b.q.Table.Begin(b.q.NewID())
		tx.Save(row)
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		act := func(name ingest.ActionName) error {
			_, err := d.Act(t.Context(), ingest.Action{Name: name, Reason: "r", DryRun: true,
				Role: ingest.Administrator, Target: ingest.Target{Kind: ingest.TargetBatch, ID: batch}})
			return err
		}
		refused := act(ingest.ActDelete)
		if refused == nil || strings.Contains(refused.Error(), "Cancel it") != (act(ingest.ActCancel) == nil) {
			t.Errorf("%s: %v", state, refused)
		}
	}
}
