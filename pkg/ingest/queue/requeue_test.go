package queue_test

import (
	"testing"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
)

// TestRequeueAndFailTwice: only a failed job can be requeued, and one that was requeued is not
// requeued again. A job that has failed stays as it is.
func TestRequeueAndFailTwice(t *testing.T) {
	b := newBench(t)
	id := b.failedJob(ingest.Downloading)
	b.did(ingest.ActRequeue, id)
	b.refuses(fault.Conflict, "is Downloading|requeue needs Failed|"+ingest.Downloading.Becomes(), ingest.ActRequeue,
		id)
	if j := b.job(id); j.RetryCount != 1 || j.Exec != 3 {
		t.Errorf("the job is %+v", j)
	}
	b.did(ingest.ActFail, id)
	b.same(ingest.ActFail, id)
	b.refuses(fault.Conflict, "fail needs|"+ingest.Pending.Becomes(), ingest.ActFail, ingest.JobID(b.submit(1, ""), 1))
}
