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
	"archivist/pkg/table"
	"archivist/pkg/table/tabletest"
)

// TestOvertakenWhileStoring: a job that failed while it copied is requeued after
// another job stored the version that it had prepared: it prepares again, and
// becomes the next version.
func TestOvertakenWhileStoring(t *testing.T) {
	twin := buckettest.New(t.TempDir())
	var refuse atomic.Bool
	twin.Before = func(op, name string) int {
		if refuse.Load() && op == "Copy" && strings.Contains(name, "producer/two.txt") {
			return http.StatusServiceUnavailable
		}
		return 0
	}
	server := httptest.NewServer(twin)
	defer server.Close()
	source := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte("content of " + r.URL.Path)) }))
	defer source.Close()

	ctx := t.Context()
	m := newMachine(tabletest.New(), func(m *meter) *table.Table { return tabletest.Table(m) }, 50)
	s := largeStages(m.q, server.URL)
	m.q.Rules.FailedRetention, m.q.Clean = time.Hour, s.Clean
	m.step = func(st ingest.Stage) queue.Step { return s.Steps()[st.Name] }
	submit := func(name string) string {
		b, err := m.q.Submit(ctx, ingest.Batch{Collection: "bench", Mode: "add", LocalIDs: []string{"one object"},
			Payload: ingest.Payload{URL: source.URL + "/" + name, Type: ingest.TypeFile, Filename: name}}, "", nil, "me")
		if err != nil {
			t.Fatal(err)
		}
		return ingest.JobID(b.ID, 1)
	}
	run := func() {
		for range 12 {
			if err := m.drain(ctx); err != nil {
				t.Fatal(err)
			}
			if err := m.c.Tick(ctx, true); err != nil {
				t.Fatal(err)
			}
		}
	}
	state := func(id string) *queue.Job {
		j, err := m.q.Job(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		return j
	}
	one := submit("one.txt")
	run()
	refuse.Store(true)
	two := submit("two.txt")
	run()
	if j := state(two); j.State != ingest.Storing {
		t.Fatalf("the second is %s: %s", j.State, j.Message)
	}
	if _, err := m.q.ForceFail(ctx, two, "it does not come to an end", "me"); err != nil {
		t.Fatal(err)
	}
	three := submit("three.txt")
	run()
	refuse.Store(false)
	if _, err := m.q.Requeue(ctx, two, "the store is back", "me"); err != nil {
		t.Fatal(err)
	}
	run()
	for id, version := range map[string]int{one: 1, three: 2, two: 3} {
		if j := state(id); j.State != ingest.Completed || j.ObjectVersion != version || j.NoChange {
			t.Errorf("%s is %s, v%d, expected v%d: %s", id, j.State, j.ObjectVersion, version, j.Message)
		}
	}
	stored, err := s.Root.Head(ctx, state(two).Primary)
	if err != nil || stored.Head != 3 {
		t.Fatalf("%+v, %v", stored, err)
	}
	for version, name := range map[int]string{1: "one.txt", 2: "three.txt", 3: "two.txt"} {
		key, err := s.Content(ctx, stored, version, "producer/"+name)
		if data, _, readErr := s.Root.Bucket.Read(ctx, key); err != nil || readErr != nil || string(data) != "content of /"+name {
			t.Errorf("v%d has %q, %v, %v", version, data, err, readErr)
		}
		if strings.Contains(key, two) != (version == 3) {
			t.Errorf("v%d is at %s", version, key)
		}
	}
	left := 0
	_ = s.Root.Bucket.List(ctx, "", func(key string, _ int64) error {
		if strings.Contains(key, "/v2/content/"+two) {
			left++
		}
		return nil
	})
	if left > 0 {
		t.Errorf("%d keys are left of what was overtaken", left)
	}
}
