package bench

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"archivist/pkg/bucket/buckettest"
	"archivist/pkg/ingest"
	"archivist/pkg/queue"
	"archivist/pkg/stage"
	"archivist/pkg/table"
	"archivist/pkg/table/tabletest"
)

// twins are the stages of one deployment on twins in this process.
type twins struct {
	*testing.T
	m      *machine
	s      *stage.Stages
	source *httptest.Server
	refuse atomic.Bool // to copy two.txt
}

func newTwins(t *testing.T) *twins {
	w := &twins{T: t}
	s3 := buckettest.New(t.TempDir())
	s3.Before = func(op, name string) int {
		if w.refuse.Load() && op == "Copy" && strings.Contains(name, "producer/two.txt") {
			return http.StatusServiceUnavailable
		}
		return 0
	}
	server := httptest.NewServer(s3)
	w.source = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte("content of " + r.URL.Path)) }))
	t.Cleanup(server.Close)
	t.Cleanup(w.source.Close)
	w.m = newMachine(tabletest.New(), func(m *meter) *table.Table { return tabletest.Table(m) }, 50)
	w.s = largeStages(w.m.q, server.URL)
	w.m.q.Rules.FailedRetention, w.m.q.Clean = time.Hour, w.s.Clean
	w.m.step = func(st ingest.Stage) queue.Step { return w.s.Steps()[st.Name] }
	return w
}

// submit submits one file as the new state of the one object, and runs what can run.
func (w *twins) submit(name string) string {
	w.Helper()
	b, err := w.m.q.Submit(w.Context(), ingest.Batch{Collection: "bench", Mode: "add", LocalIDs: []string{"one object"},
		Payload: ingest.Payload{URL: w.source.URL + "/" + name, Type: ingest.TypeFile, Filename: name}}, "", nil, "me")
	if err != nil {
		w.Fatal(err)
	}
	w.run()
	return ingest.JobID(b.ID, 1)
}

func (w *twins) run() {
	w.Helper()
	for range 12 {
		if err := w.m.drain(w.Context()); err != nil {
			w.Fatal(err)
		}
		if err := w.m.c.Tick(w.Context(), true); err != nil {
			w.Fatal(err)
		}
	}
}

func (w *twins) job(id string) *queue.Job {
	w.Helper()
	j, err := w.m.q.Job(w.Context(), id)
	if err != nil {
		w.Fatal(err)
	}
	return j
}

// TestOvertakenWhileStoring: a job that failed while it copied is requeued after
// another job stored the version that it had prepared: it prepares again, and
// becomes the next version.
func TestOvertakenWhileStoring(t *testing.T) {
	w, ctx := newTwins(t), t.Context()
	one := w.submit("one.txt")
	w.refuse.Store(true)
	two := w.submit("two.txt")
	if j := w.job(two); j.State != ingest.Storing {
		t.Fatalf("the second is %s: %s", j.State, j.Message)
	}
	if _, err := w.m.q.ForceFail(ctx, two, "it does not come to an end", "me"); err != nil {
		t.Fatal(err)
	}
	three := w.submit("three.txt")
	w.refuse.Store(false)
	if _, err := w.m.q.Requeue(ctx, two, "the store is back", "me"); err != nil {
		t.Fatal(err)
	}
	w.run()
	for id, version := range map[string]int{one: 1, three: 2, two: 3} {
		if j := w.job(id); j.State != ingest.Completed || j.ObjectVersion != version || j.NoChange {
			t.Errorf("%s is %s, v%d, expected v%d: %s", id, j.State, j.ObjectVersion, version, j.Message)
		}
	}
	stored, err := w.s.Root.Head(ctx, w.job(two).Primary)
	if err != nil || stored.Head != 3 {
		t.Fatalf("%+v, %v", stored, err)
	}
	for version, name := range map[int]string{1: "one.txt", 2: "three.txt", 3: "two.txt"} {
		key, err := w.s.Content(ctx, stored, version, "producer/"+name)
		if data, _, readErr := w.s.Root.Bucket.Read(ctx, key); err != nil || readErr != nil || string(data) != "content of /"+name {
			t.Errorf("v%d has %q, %v, %v", version, data, err, readErr)
		}
	}
	err = w.s.Root.Bucket.List(ctx, "", func(key string, _ int64) error {
		if strings.Contains(key, "/v2/content/"+two) {
			t.Errorf("%s is left of what was overtaken", key)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
