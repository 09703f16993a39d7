package doctor_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/guregu/dynamo/v2/dynamodbiface"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/workspace"
	"archivist/pkg/kernel/table"
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

// reader is a client before whose reads of single rows something happens.
type reader struct {
	dynamodbiface.DynamoDBAPI
	before func(row table.Key)
}

func (r reader) GetItem(ctx context.Context, in *dynamodb.GetItemInput,
	more ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	part := func(name string) string { return in.Key[name].(*types.AttributeValueMemberS).Value }
	r.before(key(part("pk"), part("sk")))
	return r.DynamoDBAPI.GetItem(ctx, in, more...)
}

// TestBatchRemovedWhileCounted: a batch whose jobs are removed while the doctor counts them has no missing jobs. The
// removal does not write the counts. A mail that is still to be sent keeps the batch's own row.
func TestBatchRemovedWhileCounted(t *testing.T) {
	w := newWorld(t)
	w.Machine.Queue.Compose = func(context.Context, *ingest.Batch, ingest.Mail) ([]string, queue.Send, error) {
		return nil, nil, errors.New("no mail can be written now")
	}
	job := w.Submit("a.txt")
	w.Ended(job, 1, false)
	w.finds(false)
	var reads atomic.Int64
	found, err := w.through(reader{w.Rows, func(row table.Key) {
		// The first read is that of the batch, the second begins the list of its jobs.
		if row == batchKey(job) && reads.Add(1) == 2 {
			w.act(ingest.ActCleanUp, "batch:"+batchOf(job))
			w.Drive() // the sweep removes the jobs
		}
	}}).All(t.Context(), false)
	if err != nil || len(found) > 0 {
		t.Errorf("%v, found:\n%s", err, text(found))
	}
	if b := w.BatchRow(batchOf(job)); b.State != ingest.BatchDeleted || w.Rows.Row(jobKey(job)) != nil {
		t.Errorf("the batch is %s, or its job was not removed", b.State)
	}
	w.finds(false)
}
