package identity_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/queue/queuetest"
	"archivist/pkg/ingest/stage/stagetest"
	"archivist/pkg/kernel/table/tabletest"
)

// failing makes a stage fail for the file of a name until end is called.
func (w *twins) failing(stage, name string) (end func()) {
	step, on := w.Machine.Step, true
	w.Machine.Step = func(st ingest.Stage) queue.Step {
		real := step(st)
		return func(ctx context.Context, h *queue.Claim) (ingest.Result, error) {
			if on && st.Name == stage && h.Job.Filename == name {
				return ingest.Fail(true, "stopped by the test"), nil
			}
			return real(ctx, h)
		}
	}
	return func() { on = false }
}

// TestLocalIDsStayWithTheirObject: a job that fails at any stage after its identifier is
// fixed keeps its local ids for its object. A later submission with one of them is for the
// same object, whichever of the two ends first.
func TestLocalIDsStayWithTheirObject(t *testing.T) {
	for _, stage := range []string{"store", "record", "notify"} {
		t.Run(stage, func(t *testing.T) {
			w := newTwins(t)
			end := w.failing(stage, "one.txt")
			one := w.Submit("one.txt")
			if j := w.Job(one); j.State != ingest.Failed {
				t.Fatalf("the first is %s: %s", j.State, j.Message)
			}
			two := w.Submit("two.txt")
			version := map[string]int{"store": 1, "record": 2, "notify": 2}[stage]
			if got := w.Ended(two, version, false).Primary; got != w.Job(one).Primary {
				t.Errorf("the id stands for %s and for %s", w.Job(one).Primary, got)
			}
			end()
			if stage == "store" {
				return // requeues of overtaken jobs have tests of their own
			}
			if _, err := queuetest.Requeue(t.Context(), w.Machine.Queue, one, "go on", "me"); err != nil {
				t.Fatal(err)
			}
			w.Drive()
			w.Ended(one, 1, false)
		})
	}
}

// TestLocalIDUsedWhileDownloading: an id is found in a package, and another job records it
// after the first check. It is checked again under the lock.
func TestLocalIDUsedWhileDownloading(t *testing.T) {
	w := newTwins(t)
	base := w.Source.Config.Handler
	w.Source.Config.Handler = http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/mrt-erc.txt") {
			_, _ = out.Write([]byte("erc:\nwho: a\nwhat: b\nwhen: 2020\nwhere: found\n"))
			return
		}
		base.ServeHTTP(out, r)
	})
	nested := false
	w.S3.Before = func(op, name string) int {
		if op == "HEAD object" && strings.HasSuffix(name, "/inventory.json") && !nested { // resolved, not locked yet
			nested = true
			w.Ended(w.Submit("other.txt", stagetest.Of("", "found")), 1, false)
		}
		return 0
	}
	id := w.Submit("mrt-erc.txt", stagetest.Of("", "mine"))
	w.Refused(id, "found")
	if j := w.Job(id); j.ObjectVersion != 0 {
		t.Errorf("it was stored as v%d", j.ObjectVersion)
	}
}

// restored makes the table what it was.
func (w *twins) restored(earlier []tabletest.Item) {
	w.Helper()
	rows := w.Stages.Queue.Table.Rows
	for _, row := range w.Rows.All() {
		if err := rows.Delete("pk", row["pk"]).Range("sk", row["sk"]).Run(w.Context()); err != nil {
			w.Fatal(err)
		}
	}
	for _, row := range earlier {
		if err := rows.Put(row).Run(w.Context()); err != nil {
			w.Fatal(err)
		}
	}
}

// TestStoredWhileReindexed: the table was restored to before a job stored its object. While the job runs again, a
// reindex brings back the reservation of the object's ARK: the job still finds its own object, and makes no second.
func TestStoredWhileReindexed(t *testing.T) {
	w := newTwins(t)
	end := w.failing("estimate", "a.txt")
	job := w.Submit("a.txt", stagetest.Of(""))
	end()
	earlier := w.Rows.All()
	requeue := func() {
		if _, err := queuetest.Requeue(t.Context(), w.Machine.Queue, job, "go on", "me"); err != nil {
			t.Fatal(err)
		}
		w.Drive()
	}
	requeue()
	ark := w.Ended(job, 1, false).Primary

	w.restored(earlier)
	asked, meanwhile := false, false
	w.Client.Do = func(op string, call func() error) error {
		if op == "TransactWriteItems" && asked && !meanwhile {
			meanwhile = true
			w.Reindexed(ark)
		}
		return call()
	}
	w.Client.Refuse = func(partition string) error { // nothing is refused
		asked = asked || partition == "ARK#"+ark
		return nil
	}
	requeue()
	if now := w.Ended(job, 1, false).Primary; now != ark || !meanwhile {
		t.Errorf("the object was %s, is %s; reindexed meanwhile: %v", ark, now, meanwhile)
	}
}
