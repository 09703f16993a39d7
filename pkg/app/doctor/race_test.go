package doctor_test

import (
	"strings"
	"testing"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/workspace"
	"archivist/pkg/kernel/table/tabletest"
)

// repairing runs the doctor with repairs. meanwhile happens before each of its transactions.
func (w *world) repairing(meanwhile func()) {
	w.Helper()
	client := &tabletest.Client{DynamoDBAPI: w.Rows, Do: func(op string, call func() error) error {
		if op == "TransactWriteItems" {
			meanwhile()
		}
		return call()
	}}
	if _, err := w.through(client).All(w.Context(), true); err != nil {
		w.Fatal(err)
	}
}

// TestRepairOfChangedJob: a reservation is not made again for a job that has changed since the doctor read it.
func TestRepairOfChangedJob(t *testing.T) {
	w := busy(t)
	slot, rev := key("SLOT", w.running), int64(1000)
	w.drop(slot)
	w.repairing(func() { rev++; w.set(jobKey(w.running), "rev", num(rev)) })
	if w.Rows.Row(slot) != nil {
		t.Error("the row was made")
	}
	w.repairing(func() {})
	if w.Rows.Row(slot) == nil {
		t.Error("the row was not made for a job that stays as it is")
	}
}

// TestRepairOfRestoredJob: a row of a job that does not exist is not removed if the job is there when that is done.
func TestRepairOfRestoredJob(t *testing.T) {
	w := busy(t)
	slot := key("SLOT", "none")
	w.insert(slot, "owned_by", str("none"))
	w.repairing(func() {
		if w.Rows.Row(jobKey("none")) == nil {
			w.insert(jobKey("none"), "id", str("none"))
		}
	})
	if w.Rows.Row(slot) == nil {
		t.Error("the row was removed")
	}
}

// TestRepairOfRequeuedJob: work files are not removed of a job that needs them when that is done.
func TestRepairOfRequeuedJob(t *testing.T) {
	reads := func(w *world, repair bool, meanwhile func(read int)) (n int) {
		client := &tabletest.Client{DynamoDBAPI: w.Rows, Do: func(_ string, call func() error) error { return call() },
			Refuse: func(partition string) error {
				if partition == jobKey(w.second).PK {
					n++
					meanwhile(n)
				}
				return nil
			}}
		if _, err := w.through(client).All(t.Context(), repair); err != nil {
			t.Fatal(err)
		}
		return n
	}
	w := settled(t)
	file := workspace.FileKey(w.second, 1)
	w.putKey(w.Stages.Work.Bucket, file, "x")
	found := reads(w, false, func(int) {})
	reads(w, true, func(read int) {
		if read == found+1 { // that of the repair
			w.set(jobKey(w.second), "job_state", str(string(ingest.Failed)))
		}
	})
	if !strings.Contains(strings.Join(w.S3.Names("work/"), " "), file) {
		t.Error("the files were removed")
	}
}

// TestPlaceOfAcceptedBatch: the place in line of a submission that is not unpacked yet is no row without an owner, and
// is made again if it is gone.
func TestPlaceOfAcceptedBatch(t *testing.T) {
	w := settled(t)
	b, err := w.Machine.Queue.Submit(t.Context(), ingest.Batch{Collection: "bench", Mode: "add",
		LocalIDs: []string{"new"}}, "", nil, "me")
	if err != nil {
		t.Fatal(err)
	}
	w.finds(false)
	place := key("LOCK#local#bench#new", "WAITS#"+ingest.JobID(b.Batch.ID, 1))
	w.drop(place)
	w.finds(true, "reservation-missing batch:"+b.Batch.ID)
	if w.Rows.Row(place) == nil {
		t.Error("the place was not made")
	}
	w.set(batchKey(ingest.JobID(b.Batch.ID, 1)), "in_line", nil)
	w.finds(true, "reservation-owner "+place.String())
	if w.Rows.Row(place) != nil {
		t.Error("the place of a batch that has none is left")
	}
}
