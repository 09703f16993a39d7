package queue_test

import (
	"context"
	"testing"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/fault"
)

// taken is a bench on which the first execution of a batch has a name that is in use; meanwhile happens first.
type taken struct {
	*bench
	meanwhile func(batch string)
}

func (r *taken) Start(ctx context.Context, machine, name string, in queue.Message) error {
	if f := r.meanwhile; f != nil && in.Batch != "" {
		r.meanwhile = nil
		f(in.Batch)
		return fault.New(fault.Conflict, "the name is in use")
	}
	return r.bench.Start(ctx, machine, name, in)
}

// TestNameInUse: a batch whose execution has a name that is in use gets another one, once: not if it has a newer
// execution meanwhile.
func TestNameInUse(t *testing.T) {
	for name, newer := range map[string]bool{"as it was": false, "newer": true} {
		b := newBench(t)
		b.q.Executions = &taken{b, func(batch string) {
			if newer {
				b.editBatch(batch, func(row *queue.Batch) { row.Batch.Exec = 7 })
			}
		}}
		row, err := b.q.Submit(t.Context(), ingest.Batch{Collection: "c", Mode: "add"}, "", nil, "me")
		if err != nil {
			t.Fatal(err)
		}
		exec := b.batch(row.Batch.ID).Exec
		if newer && (exec != 7 || len(b.started) != 0) || !newer && (exec != b.now.Unix() || len(b.started) != 1) {
			t.Errorf("%s: execution %d, %d were started", name, exec, len(b.started))
		}
	}
}

// TestCheckpointOfFailedTry: how far a step has come is known also after a try that failed.
func TestCheckpointOfFailedTry(t *testing.T) {
	b := newBench(t)
	id := ingest.JobID(b.submit(1, ""), 1)
	b.tick()
	b.handle(b.last(), func(_ context.Context, c *queue.Claim) (ingest.Result, error) {
		c.Job.Checkpoint = "5 of 9 files"
		return ingest.Result{}, fault.New(fault.Unavailable, "the bucket does not answer")
	})
	if j := b.job(id); j.Checkpoint != "5 of 9 files" || j.Message == "" {
		t.Errorf("the checkpoint is %q, the message %q", j.Checkpoint, j.Message)
	}
}
