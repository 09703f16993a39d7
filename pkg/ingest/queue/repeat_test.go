package queue_test

import (
	"strings"
	"testing"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/fault"
)

// TestHoldOfNoCollection: what cannot be a collection is not held, also not in a dry run.
func TestHoldOfNoCollection(t *testing.T) {
	b := newBench(t)
	for _, name := range []string{"a b", "-a", "ü", strings.Repeat("a", 101)} {
		for _, a := range []ingest.Action{{Name: ingest.ActHold, DryRun: true}, {Name: ingest.ActHold},
			{Name: ingest.ActRelease}} {
			a.Target, a.Reason, a.Role = ingest.Target{Kind: ingest.TargetCollection, ID: name}, "r", ingest.Operator
			out, err := queue.Admin{Queue: b.q}.Act(t.Context(), a)
			if !fault.Is(err, fault.Invalid) || !strings.HasPrefix(err.Error(), "target: ") {
				t.Errorf("%s of %q: %+v, %v", a.Name, name, out, err)
			}
		}
	}
}

// TestRepeatsAreNotCheckedAgain: a request that was accepted has the same result when it is made
// again, although it could not be accepted any more. An execution of admin-action repeats its
// request at each step.
func TestRepeatsAreNotCheckedAgain(t *testing.T) {
	b := newBench(t)
	d := queue.Admin{Queue: b.q}
	batch := b.failed(1)
	end := b.now.Add(time.Minute)
	hold := ingest.Bulk{Name: ingest.ActHold, Filter: ingest.Filter{Batch: batch}, Until: end.UnixMilli()}
	op := b.operate(hold, "bulk", false)
	pause := ingest.Action{Name: ingest.ActPause, Target: theStorage, Reason: "r", Actor: "ann", Role: ingest.Operator,
		Request: "pause", Until: end.UnixMilli()}
	first, err := d.Act(t.Context(), pause)
	if err != nil {
		t.Fatal(err)
	}

	b.now = end.Add(time.Second)
	if again := b.operate(hold, "bulk", false); again.Operation.ID != op.Operation.ID {
		t.Errorf("after its end, the request started %s", again.Operation.ID)
	}
	if again, err := d.Act(t.Context(), pause); err != nil || again.Summary != first.Summary || !again.Changed {
		t.Errorf("after its end, the pause gave %+v, %v", again, err)
	}
	pause.Request = "another"
	if out, err := d.Act(t.Context(), pause); err == nil {
		t.Errorf("a pause that has ended already gave %+v", out)
	}

	remove := ingest.Bulk{Name: ingest.ActDelete, Filter: ingest.Filter{Batch: batch}, Confirm: true}
	op = b.operate(remove, "remove", false)
	row, err := b.q.Batch(t.Context(), batch)
	if err != nil {
		t.Fatal(err)
	}
	tx := b.q.Table.Begin(b.q.NewID())
	tx.Remove(row) // as when its rows are removed meanwhile
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if again := b.operate(remove, "remove", false); again.Operation.ID != op.Operation.ID {
		t.Errorf("without the batch, the request started %s", again.Operation.ID)
	}
}
