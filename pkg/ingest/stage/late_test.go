package stage_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue/queuetest"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/objects/aip"
	"archivist/pkg/objects/ocfl"
)

// late is a deployment in which the worker of a second version stops at one of its
// writes. Meanwhile its job is failed by hand. The next job of the object, which submits
// what is stored already, runs to its end.
type late struct {
	*twins
	offset         time.Duration
	one, two, same string
	dead           bool // the late worker has ended
}

// newLate stops the worker at its write of a key that ends in name. diesAfter ends
// its process right after that write. then is done after the job was failed by hand.
func newLate(t *testing.T, name string, diesAfter bool, then ...func(w *late)) *late {
	w := &late{twins: newTwins(t)}
	here := func(key string) bool {
		return strings.HasPrefix(key, "storage/") && strings.HasSuffix(key, name) &&
			strings.Contains(key, "/v2/") == strings.Contains(name, "/v2/")
	}
	now := func() time.Time { return time.Now().Add(w.offset) }
	w.Machine.Queue.Now, w.Machine.Scheduler.Leases.Now, w.Stages.Now = now, now, now
	w.one = w.Submit("one.txt")
	stopped, written := false, false
	w.S3.Before = func(op, key string) int {
		if written && !here(key) {
			w.dead = diesAfter
		}
		if w.dead {
			return http.StatusServiceUnavailable
		}
		if !stopped && op == "PUT object" && here(key) {
			stopped = true
			if _, err := queuetest.ForceFail(t.Context(), w.Machine.Queue, w.two, "it is too slow", "me"); err != nil {
				t.Error(err)
			}
			for _, do := range then {
				do(w)
			}
			w.Drive()
			written = true
		}
		return 0
	}
	w.two = w.queued("two.txt")
	if err := w.Machine.Drain(t.Context()); err != nil { // it is unpacked, and first in line
		t.Fatal(err)
	}
	w.same = w.queued("one.txt")
	w.Drive()
	w.S3.Before, w.dead = nil, false
	if !stopped {
		t.Fatal("the worker did not reach its write")
	}
	w.Ended(w.same, 1, true)
	return w
}

// queued submits without running.
func (w *late) queued(name string) string {
	w.Helper()
	b, err := w.Machine.Queue.Submit(w.Context(), ingest.Batch{Collection: "bench", Mode: "add",
		LocalIDs: []string{"one object"},
		Payload:  ingest.Payload{URL: w.Source.URL + "/" + name, Type: ingest.TypeFile, Filename: name}}, "", nil, "me")
	if err != nil {
		w.Fatal(err)
	}
	return ingest.JobID(b.ID, 1)
}

// head is the object's newest version, whose content is read.
func (w *late) head(file string) int {
	w.Helper()
	stored, err := w.Stages.Root.Head(w.Context(), w.Job(w.one).Primary)
	if err != nil {
		w.Fatal(err)
	}
	key, err := aip.Of(w.Stages.Root, stored, stored.Head).Content(w.Context(), "producer/"+file)
	if err != nil {
		w.Fatal(err)
	}
	if data, _, err := w.Stages.Root.Bucket.Read(w.Context(), key); err != nil || string(data) != "content of /"+file {
		w.Errorf("v%d has %q, %v", stored.Head, data, err)
	}
	return stored.Head
}

// keys counts what is stored of a job's version.
func (w *late) keys(job string) (n int) {
	w.Helper()
	err := w.Stages.Root.Bucket.List(w.Context(), ocfl.Prefix(w.Job(w.one).Primary), func(o bucket.Listed) error {
		if strings.Contains(o.Key, "/content/"+job) {
			n++
		}
		return nil
	})
	if err != nil {
		w.Fatal(err)
	}
	return n
}

// TestLateWorkerIsFenced: a job that was failed by hand commits nothing after it.
// What it copied stays until none of its workers can be late; then it is removed.
func TestLateWorkerIsFenced(t *testing.T) {
	for _, name := range []string{"/v2/inventory.json", "/v2/inventory.json.sha512"} {
		w := newLate(t, name, false)
		if j := w.Job(w.two); j.State != ingest.Failed || j.ObjectVersion != 0 || w.head("one.txt") != 1 {
			t.Errorf("at %s: the late job is %s v%d, the object at v%d", name, j.State, j.ObjectVersion,
				w.head("one.txt"))
		}
		if w.keys(w.two) == 0 {
			t.Errorf("at %s: what the job copied was removed while its worker could be late", name)
		}
		w.offset += w.Machine.Queue.Rules.Timing.Times(ingest.Stage{Long: true}).Grace
		w.Ended(w.Submit("one.txt"), 1, true)
		if n := w.keys(w.two); n > 0 {
			t.Errorf("at %s: %d keys are left of a job that ended long ago", name, n)
		}
	}
}

// TestLateCommit: S3 has no fence, so a worker can commit just after its job was failed
// by hand. Then the version is complete, and the job's message states that it is preserved.
func TestLateCommit(t *testing.T) {
	const root = "/inventory.json"
	for what, c := range map[string]struct {
		dies bool
		then func(w *late) // the next action on the job
	}{
		"it survives":              {false, func(*late) {}},
		"it dies, another follows": {true, func(w *late) { w.Ended(w.Submit("three.txt"), 3, false) }},
		"it dies, the same again":  {true, func(w *late) { w.Ended(w.Submit("two.txt"), 2, true) }},
		"it dies, it is reindexed": {true, func(w *late) { w.Reindexed(w.Job(w.one).Primary) }},
		"it dies, it is cleaned": {true, func(w *late) {
			w.offset += 2 * w.Machine.Queue.Rules.FailedRetention
			w.Drive()
		}},
	} {
		t.Run(what, func(t *testing.T) {
			w := newLate(t, root, c.dies)
			if n := w.head("two.txt"); n != 2 {
				t.Fatalf("the object is at v%d: no worker was late", n)
			}
			c.then(w)
			j := w.Job(w.two)
			if !strings.HasPrefix(j.Message, "preserved as "+j.Primary+" v2; stopped by me: it is too slow") ||
				j.State != ingest.Failed || j.ObjectVersion != 2 {
				t.Errorf("the job is %s v%d: %s", j.State, j.ObjectVersion, j.Message)
			}
		})
	}
	t.Run("it dies, it is requeued", func(t *testing.T) {
		w := newLate(t, root, true)
		if _, err := queuetest.Requeue(t.Context(), w.Machine.Queue, w.two, "again", "me"); err != nil {
			t.Fatal(err)
		}
		w.Drive()
		w.Ended(w.two, 2, false)
	})
}
