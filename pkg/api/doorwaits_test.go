package api_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest"
	"archivist/pkg/kernel/bucket/buckettest"
)

// TestMerrittWaits: a form whose batch waits for weeks is the same submission all the time, also when the keys of
// earlier times have ended; for a day after it has completed, too; and then it is submitted again.
func TestMerrittWaits(t *testing.T) {
	a, _ := service(through)
	_, buckets := buckettest.Open(t, "storage", "work")
	a.Uploads.Work = buckets[1]
	now := time.Now()
	clock := func() time.Time { return now }
	a.Queue.Now, a.Uploads.Now = clock, clock
	srv := httptest.NewServer(a.Handler())
	defer srv.Close()
	c := &v1.Client{URL: srv.URL, HTTP: srv.Client()}
	send := func() string {
		t.Helper()
		resp, out := knock(t, c, "/poster/submit", "a.txt", "abc", "profile", "maps")
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("%d %+v", resp.StatusCode, out)
		}
		return out.BatchID
	}
	ends := func(id string, state ingest.BatchState) {
		t.Helper()
		row, err := a.Queue.Batch(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		row.State = state
		tx := a.Queue.Table.Begin(a.Queue.NewID())
		tx.Save(row)
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}

	first := send()
	ends(first, ingest.BatchFailed)
	now = now.Add(6 * 24 * time.Hour)
	second := send()
	for range 3 { // the key of the first time ends, then that of the second
		now = now.Add(4 * 24 * time.Hour)
		if got := send(); got != second || got == first {
			t.Fatalf("after %s it is %s, not %s, which waits still", now, got, second)
		}
	}

	ends(second, ingest.BatchFailed)
	third := send() // its key is that of the first time again
	ends(third, ingest.BatchFailed)
	now = now.Add(time.Hour)
	fourth := send()
	ends(fourth, ingest.BatchCompleted)
	now = now.Add(6*24*time.Hour + 23*time.Hour + 30*time.Minute) // the third's key ends soon
	fifth := send()
	if third == second || fourth == third || fifth == fourth {
		t.Errorf("%s, %s, %s, %s: one was not submitted again", second, third, fourth, fifth)
	}
	ends(fifth, ingest.BatchCompleted)
	now = now.Add(4 * time.Hour)
	if err := a.Uploads.Sweep(t.Context(), now.Add(time.Minute)); err != nil { // it removes the upload
		t.Fatal(err)
	}
	now = now.Add(16 * time.Hour)
	if got := send(); got != fifth {
		t.Errorf("it was completed a few hours ago, and became %s, not %s", got, fifth)
	}
	now = now.Add(5 * time.Hour)
	if got := send(); got == fifth {
		t.Error("a day after it was submitted, it was not submitted again")
	}
}
