package ingest

import (
	"fmt"
	"testing"
	"time"
)

// TestPossible: what is possible by state and role. That deciders refuse all else is tested with them.
func TestPossible(t *testing.T) {
	own := &Hold{Scope: TargetJob}
	for _, c := range []struct {
		job  Job
		role Role
		want string
	}{
		{Job{State: Failed, HasSpace: true}, Administrator, "[requeue delete prioritize clean-up]"},
		{Job{State: Failed, HasSpace: true}, Operator, "[requeue prioritize clean-up]"},
		{Job{State: Failed, NotRecoverable: true}, Operator, "[prioritize]"},
		{Job{State: Failed, HasSpace: true, Cleaning: true}, Operator, "[prioritize]"},
		{Job{State: Held, Hold: own}, Administrator, "[release delete prioritize]"},
		{Job{State: Held}, Operator, "[hold release prioritize]"},
		{Job{State: Storing}, Administrator, "[fail prioritize]"},
		{Job{State: Completed}, Administrator, "[]"},
		{Job{State: Failed}, Viewer, "[]"},
	} {
		if has := fmt.Sprint(Possible(TargetJob, c.role, c.job.Allows)); has != c.want {
			t.Errorf("%s %s: %s, want %s", c.role, c.job.State, has, c.want)
		}
	}
	for _, c := range []struct {
		batch  Batch
		counts Counts
		held   bool
		want   string
	}{
		{Batch{State: BatchProcessing, Sealed: true}, Counts{Processing: 1}, false, "[hold cancel]"},
		{Batch{State: BatchProcessing, Sealed: true}, Counts{Held: 1}, true, "[release cancel]"},
		{Batch{State: BatchFailed, Sealed: true}, Counts{Failed: 1}, false, "[delete update-report clean-up]"},
		{Batch{State: BatchFailed, Sealed: true}, Counts{Failed: 1, Processing: 1}, false, "[clean-up]"},
		{Batch{State: BatchReporting}, Counts{Completed: 1}, false, "[]"},
	} {
		allows := func(name ActionName) bool { return c.batch.Allows(name, c.counts, c.held) }
		if has := fmt.Sprint(Possible(TargetBatch, Administrator, allows)); has != c.want {
			t.Errorf("%s: %s, want %s", c.batch.State, has, c.want)
		}
	}

	// Repairs of the doctor need an administrator. An operation that is overdue is not continued.
	now := time.UnixMilli(1_795_000_000_000)
	o := Operation{State: OperationRunning, Created: now.UnixMilli(), Bulk: Bulk{Name: ActDoctor}, Repair: true}
	if has := fmt.Sprint(o.Possible(Administrator, now), o.Possible(Operator, now)); has != "[interrupt] []" {
		t.Errorf("a repair that runs: %s", has)
	}
	o.State = OperationInterrupted
	if has := fmt.Sprint(o.Possible(Administrator, now), o.Possible(Administrator,
		now.Add(KeepOperations))); has != "[continue] []" {
		t.Errorf("a repair that was interrupted: %s", has)
	}
}
