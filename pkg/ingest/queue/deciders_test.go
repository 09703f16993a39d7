package queue

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
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

// undecided is a queue whose table has nothing but a batch with its counts.
func undecided(t *testing.T, b ingest.Batch, c ingest.Counts) *Queue {
	t.Helper()
	now := time.UnixMilli(1_795_000_000_000)
	q := &Queue{Table: tabletest.Table(tabletest.New()), Now: func() time.Time { return now },
		NewID: func() string { return "ID" }, Rules: ingest.Rules{Timing: ingest.Timings["production"]}}
	tx := q.Table.Begin("X")
	tx.Insert(&Batch{Head: head(batchKey(b.ID)), Batch: b})
	tx.Insert(&Counts{Head: table.Head{PK: "BATCH#" + b.ID, SK: "COUNT"}, Counts: c})
	if b.Hold != nil && b.Hold.Scope == ingest.TargetBatch {
		tx.Insert(&Hold{Head: head(holdKey(batchTarget(b.ID))), ID: b.ID, Hold: *b.Hold})
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	return q
}

// same fails unless an action is possible exactly if it is decided, and changes something.
func same(t *testing.T, what string, possible, unchanged bool, err error) {
	t.Helper()
	if err != nil && !fault.Is(err, fault.Conflict) && !fault.Is(err, fault.Held) {
		t.Fatalf("%s: %v", what, err)
	}
	if decided := err == nil && !unchanged; decided != possible {
		t.Errorf("%s: possible is %v; unchanged is %v, the refusal %v", what, possible, unchanged, err)
	}
}

// TestPossibleOnJobs: in each state of a job those actions are possible that are not refused because of it, and that
// change something.
func TestPossibleOnJobs(t *testing.T) {
	batch := ingest.Batch{ID: "B", Collection: "maps", State: ingest.BatchProcessing, Expected: 1}
	q, priority := undecided(t, batch, ingest.Counts{Processing: 1}), 1
	own := ingest.Hold{Scope: ingest.TargetJob, Reason: "rights"}
	above := ingest.Hold{Scope: ingest.TargetCollection, Reason: "rights"}
	for _, state := range ingest.JobStates() {
		for n, with := range []ingest.Job{{}, {NotRecoverable: true}, {HasSpace: true},
			{HasSpace: true, Cleaning: true}, {Hold: &own}, {Hold: &above}} {
			job := with
			job.ID, job.Batch, job.Collection, job.State = "B-00001", "B", "maps", state
			job.Due = q.Now().UnixMilli() + 30*24*time.Hour.Milliseconds()
			row := &Job{Job: job}
			for _, name := range ingest.Actions[ingest.TargetJob] {
				target := ingest.Target{Kind: ingest.TargetJob, ID: job.ID}
				a := ingest.Action{Name: name, Target: target, DryRun: true}
				if name == ingest.ActPrioritize {
					a.Priority = &priority
				}
				d, err := jobActions[name](t.Context(), q, row, a)
				same(t, fmt.Sprintf("%s of a job that is %s (%d)", name, state, n), job.Allows(name), d.unchanged, err)
			}
		}
	}
}

// TestPossibleOnBatches is the same for a batch. One that Failed has no rows that a clean-up would remove, but its jobs
// may have work files: the action leads to the operation that removes these.
func TestPossibleOnBatches(t *testing.T) {
	own := ingest.Hold{Scope: ingest.TargetBatch, Reason: "rights"}
	for _, state := range ingest.BatchStates() {
		for n, c := range []ingest.Counts{{}, {Processing: 1}, {Held: 1}, {Failed: 2, Completed: 1}} {
			for _, held := range []bool{false, true} {
				for _, cancelled := range []bool{false, true} {
					b := ingest.Batch{ID: "B", Collection: "maps", State: state, Sealed: true}
					if held {
						b.Hold = &own
					}
					if cancelled && c.Open() == 0 { // else its operation may have been interrupted
						b.Cancelled = &ingest.Decision{Reason: "twice"}
					}
					q := undecided(t, b, c)
					for _, name := range ingest.Actions[ingest.TargetBatch] {
						a := ingest.Action{Name: name, Target: batchTarget("B"), DryRun: true}
						d, err := batchActions[name](t.Context(), q, &Batch{Batch: b}, a)
						same(t, fmt.Sprintf("%s of a batch that is %s (%d, %v)", name, state, n, held),
							b.Allows(name, c, held), d.unchanged && d.offers == nil, err)
					}
				}
			}
		}
	}
}
