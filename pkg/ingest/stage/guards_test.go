package stage_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue/queuetest"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/objects/ocfl"
)

// once does something before the first request of a kind.
func (w *twins) once(op string, key func(key string) bool, do func()) {
	done := false
	w.S3.Before = func(sent, name string) int {
		if !done && sent == op && key(name) {
			done = true
			do()
		}
		return 0
	}
}

func isRoot(key string) bool { return rootInventory(key) && !strings.Contains(key, "/v1/") }

func rootInventory(key string) bool {
	return strings.HasPrefix(key, "storage/") && strings.HasSuffix(key, "/inventory.json")
}

// TestCommitOfALostJob: a worker that cannot finish its version, and finds that its job was failed by hand, says which
// version it stored.
func TestCommitOfALostJob(t *testing.T) {
	w := newTwins(t)
	b, err := w.Machine.Queue.Submit(t.Context(), ingest.Batch{Collection: "bench", Mode: "add",
		Payload: ingest.Payload{URL: w.Source.URL + "/a.txt", Type: ingest.TypeFile, Filename: "a.txt"}}, "", nil, "me")
	if err != nil {
		t.Fatal(err)
	}
	id := ingest.JobID(b.Batch.ID, 1)
	w.once("PUT object", isRoot, func() {
		if _, err := queuetest.ForceFail(t.Context(), w.Machine.Queue, id, "too slow", "me"); err != nil {
			t.Error(err)
		}
	})
	commit := w.S3.Before
	w.S3.Before = func(op, key string) int {
		commit(op, key)
		if op == "PUT object" && isRoot(strings.TrimSuffix(key, ".sha512")) && !isRoot(key) {
			return http.StatusServiceUnavailable
		}
		return 0
	}
	w.Drive()
	j := w.Job(id)
	if j.State != ingest.Failed || j.ObjectVersion != 1 || !strings.HasPrefix(j.Message, "preserved as ") {
		t.Errorf("%s v%d: %q", j.State, j.ObjectVersion, j.Message)
	}
}

// TestOtherSystemFiles: system files that were written for another version of the object are not stored; they are
// written again.
func TestOtherSystemFiles(t *testing.T) {
	w := newTwins(t)
	written := 0
	files := func(key string) bool { return strings.HasSuffix(key, "/version.json") }
	w.once("GET object", files, func() {
		for _, name := range w.S3.Names("work/jobs/") {
			if !files(name) {
				continue
			}
			job := strings.Split(name, "/")[2]
			system, err := w.Stages.Work.SystemFiles(t.Context(), job)
			if err == nil {
				system.Follows = "another"
				err = w.Stages.Work.PutSystemFiles(t.Context(), job, system)
			}
			if err != nil {
				t.Error(err)
			}
		}
	})
	before := w.S3.Before
	w.S3.Before = func(op, key string) int {
		if op == "PUT object" && files(key) {
			written++
		}
		return before(op, key)
	}
	w.Ended(w.Submit("a.txt"), 1, false)
	if written != 3 { // by the job, by the test, and by the job again
		t.Errorf("the system files were written %d times", written)
	}
}

// TestMissingFileOfTheSame: a submission of what is stored already does not bring a system file that is missing:
// the job says who can restore it.
func TestMissingFileOfTheSame(t *testing.T) {
	w := newTwins(t)
	first := w.Ended(w.Submit("a.txt"), 1, false)
	err := w.Stages.Root.Bucket.List(t.Context(), ocfl.Prefix(first.Primary), func(o bucket.Listed) error {
		if strings.HasSuffix(o.Key, "/system/premis.xml") {
			return w.Stages.Root.Bucket.Delete(t.Context(), o.Key)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	w.stays(w.Submit("a.txt"), "archivist object repair")
}

// TestConflictIsRequeued: a job whose version cannot be recorded, since a local id became another object's, can be
// requeued once that is settled.
func TestConflictIsRequeued(t *testing.T) {
	w := newTwins(t)
	w.once("PUT object", isRoot, func() { w.owner("one object", "ark:/99999/fk4other") })
	id := w.Submit("a.txt")
	w.stays(id, "could not be recorded")
	w.owner("one object", w.Job(id).Primary)
	w.requeued(id, queuetest.Requeue)
	w.Ended(id, 1, false)
}

// owner makes a local id that of another object, as a person could.
func (w *twins) owner(local, ark string) {
	w.Helper()
	row := w.Machine.Queue.Table.Rows.Update("pk", "LOCAL#bench#"+local).Range("sk", "LOCAL")
	err := row.Set("ark", ark).Run(w.Context())
	if err != nil {
		w.Fatal(err)
	}
}

// TestUnknownSizeAsksForNoSpace: a job of which only some sizes are known waits until the reserve is free, and asks
// for no space before.
func TestUnknownSizeAsksForNoSpace(t *testing.T) {
	w := newTwins(t)
	w.Machine.Queue.Settings.Reserve = w.Machine.Queue.Settings.Space + 1
	known := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/known") {
			out.Header().Set("Content-Length", "7")
			fmt.Fprint(out, "content")
			return
		}
		fmt.Fprint(out, "content")
		_ = http.NewResponseController(out).Flush() // without a length
	}))
	t.Cleanup(known.Close)
	id := w.manifestOf(func(string) []string {
		return []string{known.URL + "/known | | | | | a |", known.URL + "/unknown | | | | | b |"}
	})
	if j := w.Job(id); j.State != ingest.Provisioning || j.SizeKnown || j.SpaceNeeded != 0 {
		t.Errorf("%s: %q, size known %v, asks for %d bytes", j.State, j.Message, j.SizeKnown, j.SpaceNeeded)
	}
}

// TestLargePageIsFetchedAgain: a web page that came in place of a manifest is not kept, however large it is.
func TestLargePageIsFetchedAgain(t *testing.T) {
	w := newTwins(t)
	w.Stages.Work.Limits.Part = 1024
	page, source := atomic.Bool{}, w.Source.URL
	page.Store(true)
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
		if page.Load() {
			fmt.Fprint(out, "<!DOCTYPE html><html>", strings.Repeat("please sign in ", 100_000), "</html>")
			return
		}
		fmt.Fprint(out, manifest("mrt-ingest-manifest", fileFields, source+"/a | | | | | a |"))
	}))
	t.Cleanup(server.Close)
	id := w.Submit("list", func(b *ingest.Batch) { b.URL, b.Type = server.URL, ingest.TypeObjectManifest })
	w.stays(id, "page")
	page.Store(false)
	w.requeued(id, queuetest.Requeue)
	w.Ended(id, 1, false)
}

// TestShortLedger: a job whose list of downloaded files lacks one of its manifest does not go on.
func TestShortLedger(t *testing.T) {
	w := newTwins(t)
	ledger := func(key string) bool { return strings.Contains(key, "/ledger/") }
	w.once("PUT object", ledger, func() {
		name := w.S3.Names("work/jobs/")[0]
		_, err := queuetest.ForceFail(t.Context(), w.Machine.Queue, strings.Split(name, "/")[2], "no more", "me")
		if err != nil {
			t.Error(err)
		}
	})
	id := w.manifestOf(func(url string) []string {
		return []string{url + "/a | | | | | a |", url + "/b | | | | | b |"}
	})
	for _, name := range slices.DeleteFunc(w.S3.Names("work/jobs/"), func(name string) bool { return !ledger(name) }) {
		data, _ := w.S3.Object(name)
		var whole []json.RawMessage
		err := json.Unmarshal(data, &whole)
		if err != nil || len(whole) != 2 {
			t.Fatalf("the ledger is %q: %v", data, err)
		}
		err = w.Stages.Work.PutJSON(t.Context(), strings.TrimPrefix(name, "work/"), whole[:1], bucket.Condition{})
		if err != nil {
			t.Fatal(err)
		}
	}
	w.requeued(id, queuetest.Requeue)
	if j := w.Job(id); j.State == ingest.Completed {
		t.Errorf("%s v%d: %q", j.State, j.ObjectVersion, j.Message)
	}
}
