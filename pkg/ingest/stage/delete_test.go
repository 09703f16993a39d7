package stage_test

import (
	"strings"
	"testing"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue/queuetest"
)

// deleted deletes a job, which is confirmed.
func (w *twins) deleted(id string) {
	w.Helper()
	if _, err := queuetest.Act(w.Context(), w.Machine.Queue, ingest.ActDelete, id, queuetest.Confirmed); err != nil {
		w.Fatal(err)
	}
}

// recorded fails unless a deleted job's version is the newest in the inventory, all versions
// have rows, and the job says that it is preserved.
func (w *twins) recorded(id string, version int) {
	w.Helper()
	j := w.Job(id)
	o, err := w.Stages.Inventory.Object(w.Context(), j.Primary)
	if err != nil || o.HeadOf != version {
		w.Fatalf("the inventory has %+v, %v", o, err)
	}
	if missing, err := w.Stages.Inventory.Missing(w.Context(), j.Primary, version); err != nil || len(missing) > 0 {
		w.Errorf("the rows of versions %v are missing, %v", missing, err)
	}
	if j.State != ingest.Deleted || j.ObjectVersion != version || !strings.HasPrefix(j.Message, "preserved as ") ||
		strings.Contains(j.Message, "requeue") {
		w.Errorf("the job is %s v%d: %s", j.State, j.ObjectVersion, j.Message)
	}
}

// TestDeleteAfterCommit: a version that was stored but not recorded is in the inventory after
// its job was deleted.
func TestDeleteAfterCommit(t *testing.T) {
	w := newTwins(t)
	w.failAfterCommit()
	id := w.Submit("a.txt")
	if _, err := queuetest.ForceFail(t.Context(), w.Machine.Queue, id, "enough", "me"); err != nil {
		t.Fatal(err)
	}
	w.S3.Before = nil
	w.deleted(id)
	w.recorded(id, 1)
}

// TestLateCommitOfADeletedJob: a worker may store the version just after its job was deleted,
// and then die. The version is recorded all the same, before the work files are removed.
func TestLateCommitOfADeletedJob(t *testing.T) {
	for what, dies := range map[string]bool{"it survives": false, "it dies": true} {
		t.Run(what, func(t *testing.T) {
			w := newLate(t, "/inventory.json", dies, func(w *late) { w.deleted(w.two) })
			if n := w.head("two.txt"); n != 2 {
				t.Fatalf("the object is at v%d: no worker was late", n)
			}
			if j := w.Job(w.two); j.State != ingest.Deleted || !j.HasSpace {
				t.Fatalf("the job is %s, with space %v", j.State, j.HasSpace)
			}
			for range 2 { // the first sweep may find that the job has changed
				w.offset += w.Machine.Queue.Rules.Timing.Times(ingest.Stage{Long: true}).Grace
				w.Drive()
			}
			w.recorded(w.two, 2)
			if j := w.Job(w.two); j.HasSpace {
				t.Error("the work files of the deleted job were not removed")
			}
		})
	}
}

// TestDeleteALateCommit: a version that a worker stored after its job was failed by hand, and
// did not report, is found and recorded when the job is deleted.
func TestDeleteALateCommit(t *testing.T) {
	w := newLate(t, "/inventory.json", true)
	w.deleted(w.two)
	w.recorded(w.two, 2)
}
