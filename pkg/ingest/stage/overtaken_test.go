package stage_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/queue/queuetest"
	"archivist/pkg/ingest/stage/stagetest"
	"archivist/pkg/kernel/fault"
)

// late is a source that sends nothing until it is open.
func (w *twins) late(content string) (from func(*ingest.Batch), open func()) {
	is := atomic.Bool{}
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if !is.Load() {
			http.NotFound(out, r)
			return
		}
		_, _ = out.Write([]byte(content))
	}))
	w.Cleanup(server.Close)
	return func(b *ingest.Batch) { b.URL = server.URL + "/" + b.Filename }, func() { is.Store(true) }
}

// requeued requeues a job and runs it.
func (w *twins) requeued(id string, how requeue) {
	w.Helper()
	if _, err := how(w.Context(), w.Machine.Queue, id, "the source is back", "me"); err != nil {
		w.Fatal(err)
	}
	w.Drive()
}

// stays fails unless a job is Failed and can be requeued, and its message states which
// version it would replace.
func (w *twins) stays(id, says string) {
	w.Helper()
	if j := w.Job(id); j.State != ingest.Failed || j.NotRecoverable || !strings.Contains(j.Message, says) {
		w.Errorf("%s is %s: %q; expected it to say %q", id, j.State, j.Message, says)
	}
}

// TestOvertaken: a job failed, and meanwhile a later submission became a version. The job
// is requeued only with a confirmation of the version that it replaces.
func TestOvertaken(t *testing.T) {
	w := newTwins(t)
	from, open := w.late("the older content")
	old := w.Submit("a.txt", from)
	w.stays(old, "404")
	newer := w.Ended(w.Submit("b.txt"), 1, false)
	open()
	for range 2 {
		_, err := queuetest.Requeue(t.Context(), w.Machine.Queue, old, "the source is back", "me")
		if !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(),
			"version 1 of "+newer.Primary+" is by job "+newer.Job.ID) ||
			!strings.Contains(err.Error(), "replace version 1") {
			t.Fatalf("the requeue gave %v", err)
		}
		w.stays(old, "404")
	}
	w.requeued(old, queuetest.RequeueConfirmed)
	w.Ended(old, 2, false)
	w.Ended(w.Submit("c.txt"), 3, false)
}

// TestOvertakenInBulk: a bulk requeue cannot be confirmed; it refuses an overtaken job with
// the version that would be replaced, and requeues the others.
func TestOvertakenInBulk(t *testing.T) {
	w := newTwins(t)
	from, open := w.late("the older content")
	old := w.Submit("a.txt", from)
	w.Ended(w.Submit("b.txt"), 1, false)
	other := w.Submit("a.txt", from, stagetest.Of("", "another object"))
	open()
	d := queue.Admin{Queue: w.Machine.Queue}
	bulk := ingest.Bulk{Name: ingest.ActRequeue, Filter: ingest.Filter{Collection: "bench", State: ingest.Failed}}
	op, err := d.Start(t.Context(), bulk, "the source is back", "me", ingest.Operator, "", false)
	for err == nil && op.State == ingest.OperationRunning {
		op, err = d.RunPage(t.Context(), op.Operation.ID, op.Exec, time.Now().Add(time.Minute))
	}
	if err != nil || op.Tally.Done != 1 || op.Tally.Refused != 1 {
		t.Fatalf("the operation is %+v, %v", op, err)
	}
	page, err := d.Refusals(t.Context(), op.Operation.ID, "")
	if err != nil || len(page.Items) != 1 || page.Items[0].Job != old ||
		!strings.Contains(page.Items[0].Reason, "replace version 1") {
		t.Errorf("refused were %+v, %v", page.Items, err)
	}
	w.Drive()
	w.stays(old, "404")
	w.Ended(other, 1, false)
}

// TestOvertakenTwice: a confirmation is valid only for the version that it names.
func TestOvertakenTwice(t *testing.T) {
	w := newTwins(t)
	from, open := w.late("the older content")
	old := w.Submit("a.txt", from)
	w.Ended(w.Submit("b.txt"), 1, false)
	w.requeued(old, queuetest.RequeueConfirmed)
	w.stays(old, "404")
	w.Ended(w.Submit("c.txt"), 2, false)
	open()
	if _, err := queuetest.Requeue(t.Context(), w.Machine.Queue, old, "again", "me"); !fault.Is(err, fault.Conflict) ||
		!strings.Contains(err.Error(), "replace version 2") {
		t.Errorf("the requeue gave %v", err)
	}
	w.requeued(old, queuetest.RequeueConfirmed)
	w.Ended(old, 3, false)
}

// TestOvertakenUnseen: if the rows do not show the later version, Processing and Storing
// find it in the storage root.
func TestOvertakenUnseen(t *testing.T) {
	w := newTwins(t)
	ark := w.Ended(w.Submit("a.txt"), 1, false).Primary
	from, open := w.late("erc:\nwho: somebody\nwhere: " + ark + "\n")
	old := w.Submit("mrt-erc.txt", from, stagetest.Of("")) // its object is not known yet
	w.Ended(w.Submit("b.txt"), 2, false)
	open()
	w.requeued(old, queuetest.Requeue)
	w.stays(old, "replace version 2")
	w.requeued(old, queuetest.RequeueConfirmed)
	w.Ended(old, 3, false)

	w.Refuse.Store(true)
	storing := w.Submit("two.txt")
	if _, err := queuetest.ForceFail(t.Context(), w.Machine.Queue, storing, "it does not end", "me"); err != nil {
		t.Fatal(err)
	}
	w.Ended(w.Submit("c.txt"), 4, false)
	w.Forget("OBJECT#" + ark + "/V#000004")
	w.Refuse.Store(false)
	w.requeued(storing, queuetest.Requeue)
	w.stays(storing, "replace version 4")
}

// TestNotOvertaken: a job whose own version is stored finishes without a confirmation.
func TestNotOvertaken(t *testing.T) {
	w := newTwins(t)
	down := atomic.Bool{}
	w.S3.Before = func(op, name string) int {
		if down.Load() && op == "PUT object" && strings.HasSuffix(name, "/inventory.json.sha512") &&
			!strings.Contains(name, "/v1/") {
			return http.StatusServiceUnavailable
		}
		return 0
	}
	down.Store(true)
	first := w.Submit("a.txt")
	if _, err := queuetest.ForceFail(t.Context(), w.Machine.Queue, first, "it does not end", "me"); err != nil {
		t.Fatal(err)
	}
	down.Store(false)
	w.Ended(w.Submit("b.txt", stagetest.Of(w.Job(first).Primary, "one object")), 2, false)
	w.requeued(first, queuetest.Requeue)
	w.Ended(first, 1, false)
}

// requeue is how a job is requeued.
type requeue = func(ctx context.Context, q *queue.Queue, id, reason, actor string) (*queue.Job, error)
