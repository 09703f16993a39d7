package stage_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/collection"
	"archivist/pkg/ingest/queue/queuetest"
	"archivist/pkg/ingest/stage/stagetest"
	"archivist/pkg/ingest/workspace"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/objects/aip"
	"archivist/pkg/objects/ocfl"
)

// twins are the stages of one deployment on twins in this process.
type twins struct{ *stagetest.World }

func newTwins(t *testing.T) *twins { return &twins{stagetest.NewWorld(t)} }

// TestVersions: a submission is the new complete state. One without a change makes no
// version; one that expects another version than the newest is refused.
func TestVersions(t *testing.T) {
	w := newTwins(t)
	madeFor := func(n int) func(*ingest.Batch) { return func(b *ingest.Batch) { b.IfVersion = n } }
	w.Refused(w.Submit("early.txt", madeFor(1)), "at version 0")
	first := w.Ended(w.Submit("a.txt"), 1, false)
	w.Ended(w.Submit("a.txt"), 1, true)
	w.Refused(w.Submit("b.txt", madeFor(2)), "expects version 2 of the object, which is at version 1")
	w.Ended(w.Submit("b.txt", madeFor(1)), 2, false)
	copies := w.S3.Calls["Copy"]
	renamed := w.Ended(w.Submit("a.txt", func(b *ingest.Batch) { b.Filename = "renamed.txt" }), 3, false)
	if renamed.Primary != first.Primary {
		t.Errorf("%s became %s", first.Primary, renamed.Primary)
	}
	stored, err := w.Stages.Root.Head(t.Context(), first.Primary)
	if err != nil {
		t.Fatal(err)
	}
	key, err := aip.Of(w.Stages.Root, stored, 3).Content(t.Context(), "producer/renamed.txt")
	if err != nil || !strings.Contains(key, "/v1/content/"+first.Job.ID) {
		t.Errorf("content that was stored is stored again at %s, %v", key, err)
	}
	if n := w.S3.Calls["Copy"] - copies; n >= len(stored.SystemFiles(3)) { // some of these are as before, too
		t.Errorf("%d copies for %d system files", n, len(stored.SystemFiles(3)))
	}
	if _, err := aip.Of(w.Stages.Root, stored, 3).Content(t.Context(), "producer/b.txt"); err == nil {
		t.Error("a file that was left out is still in the complete state")
	}
}

// failAfterCommit makes the storage refuse writes after the commit of an object's first
// version. It returns whether that happened.
func (w *twins) failAfterCommit() *atomic.Bool {
	committed := &atomic.Bool{}
	w.S3.Before = func(op, name string) int {
		root := strings.HasSuffix(name, "/inventory.json") && strings.HasPrefix(name, "storage/") &&
			!strings.Contains(name, "/v1/")
		if op == "PUT object" && root {
			committed.Store(true) // this request still succeeds
		} else if committed.Load() && op == "PUT object" && strings.HasPrefix(name, "storage/") {
			return http.StatusServiceUnavailable
		}
		return 0
	}
	return committed
}

// TestFailedAfterCommit: a job that is failed by hand after its version was committed
// states that it is preserved. A requeue continues from there.
func TestFailedAfterCommit(t *testing.T) {
	for name, plan := range map[string]bool{"with its plan": true, "prepared again meanwhile": false} {
		t.Run(name, func(t *testing.T) { failsAfterCommit(t, plan) })
	}
}

// failsAfterCommit fails a job whose version is committed. It may have no plan: a late worker has committed the
// version, and the one after it was about to prepare again.
func failsAfterCommit(t *testing.T, plan bool) {
	w, ctx := newTwins(t), t.Context()
	committed := w.failAfterCommit()
	id := w.Submit("a.txt")
	if j := w.Job(id); j.State != ingest.Storing || !committed.Load() {
		t.Fatalf("the job is %s", j.State)
	}
	if !plan {
		if err := w.Stages.Work.Delete(ctx, workspace.PlanKey(id)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := queuetest.ForceFail(ctx, w.Machine.Queue, id, "enough", "me"); err != nil {
		t.Fatal(err)
	}
	if j := w.Job(id); !strings.HasPrefix(j.Message, "preserved as "+j.Primary+" v1; stopped by me: enough") ||
		j.LastSuccessful != ingest.Processing {
		t.Errorf("it says %q", j.Message)
	}
	w.S3.Before = nil
	if _, err := queuetest.Requeue(ctx, w.Machine.Queue, id, "go on", "me"); err != nil {
		t.Fatal(err)
	}
	w.Drive()
	j := w.Ended(id, 1, false)
	sidecar, _, err := w.Stages.Root.Bucket.Read(ctx, ocfl.Prefix(j.Primary)+"inventory.json.sha512")
	if err != nil || !strings.HasPrefix(string(sidecar), j.Inventory+" ") {
		t.Errorf("the sidecar is %q, %v: the commit was not finished", sidecar, err)
	}
}

// TestSlowSource: if a source stalls within a part, what was received is kept, unless it
// is too little.
func TestSlowSource(t *testing.T) {
	t.Parallel() // it waits
	w := newTwins(t)
	timing := &w.Machine.Queue.Rules.Timing
	timing.Pause = timing.Long - 5*time.Second           // the budget: ten times what it takes
	content := strings.Repeat("0123456789abcdef", 1<<19) // 8 MiB
	var asked []string
	slow := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		out.Header().Set("ETag", `"same"`)
		if r.Method == http.MethodGet && r.Header.Get("Range") != "bytes=0-0" {
			asked = append(asked, r.Header.Get("Range"))
			if len(asked) == 1 {
				out.Header().Set("Content-Length", strconv.Itoa(len(content)))
				_, _ = out.Write([]byte(content[:6<<20]))
				_ = http.NewResponseController(out).Flush()
				<-r.Context().Done()
				return
			}
		}
		http.ServeContent(out, r, "slow.bin", time.Time{}, strings.NewReader(content))
	}))
	defer slow.Close()
	j := w.Ended(w.Submit("slow.bin", func(b *ingest.Batch) { b.URL = slow.URL }), 1, false)
	if len(asked) != 2 || asked[1] != fmt.Sprintf("bytes=%d-", 6<<20) || j.Bytes != int64(len(content)) {
		t.Errorf("asked for %v, %d bytes are there", asked, j.Bytes)
	}
}

// TestSilentSource: a source that does not answer within a time budget is a failed try
// with that reason, not progress.
func TestSilentSource(t *testing.T) {
	w := newTwins(t)
	w.Machine.Queue.Rules.Timing.Pause = w.Machine.Queue.Rules.Timing.Long - time.Second
	silent := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && r.Header.Get("Range") == "" {
			<-r.Context().Done()
		}
	}))
	defer silent.Close()
	j := w.Job(w.Submit("silent.bin", func(b *ingest.Batch) { b.URL, b.Size = silent.URL, 10 }))
	if j.State != ingest.Downloading || j.Tries != 1 ||
		!strings.Contains(j.Message, "the source is too slow for a try of 1s: "+silent.URL+
			": no response header until") {
		t.Errorf("the job is %s after %d tries: %q", j.State, j.Tries, j.Message)
	}
}

// TestIdentifiers: arks are on the collection's shoulder, an object belongs to one
// collection, and local ids and arks must agree.
func TestIdentifiers(t *testing.T) {
	w := newTwins(t)
	given := stagetest.OnShoulder("fk4given")
	if err := w.Stages.Collections.Put(t.Context(), "maps", collection.Profile{Shoulder: "fk7"},
		collection.By{Actor: "me"}, 0); err != nil {
		t.Fatal(err)
	}
	mine := w.Ended(w.Submit("a.txt"), 1, false).Primary
	maps := w.Ended(w.Submit("a.txt", stagetest.In("maps")), 1, false).Primary
	if !strings.HasPrefix(mine, "ark:/99999/fk4") || !strings.HasPrefix(maps, "ark:/99999/fk7") {
		t.Errorf("minted %s and %s", mine, maps)
	}
	w.Ended(w.Submit("b.txt", stagetest.Of(given)), 1, false)
	w.Refused(w.Submit("b.txt", stagetest.Of("ark:/13030/xf93gt2q")),
		"not on the shoulder ark:/99999/fk4 of this collection")
	w.Refused(w.Submit("b.txt", stagetest.Of(stagetest.OnShoulder("fk4other")), stagetest.In("maps")),
		"not on the shoulder ark:/99999/fk7")
	other := w.Submit("b.txt", stagetest.Of(mine), stagetest.In("maps"))
	w.Refused(other, "not an object that this submission may change")
	if strings.Contains(w.Job(other).Message, "bench") {
		t.Errorf("the refusal names the owner: %s", w.Job(other).Message)
	}
	w.Refused(w.Submit("b.txt", stagetest.Of(given, "one object")),
		`the local id "one object" belongs to another object`)
	w.Ended(w.Submit("c.txt", stagetest.Of("", "second")), 1, false)
	w.Refused(w.Submit("d.txt", stagetest.Of("", "one object", "second")), "belong to different objects")
	w.Refused(w.Submit("d.txt", stagetest.Of("ark:/no")), "the primary identifier is not an ARK")
}

// TestCopyInParts: a file larger than S3 copies in one request is copied in parts, and
// verified as a whole.
func TestCopyInParts(t *testing.T) {
	w := newTwins(t)
	w.Stages.Root.Bucket.Limits.Copy, w.Stages.Root.Bucket.Limits.CopyPart = 10, 7
	j := w.Ended(w.Submit("a.txt"), 1, false) // 17 bytes
	if w.S3.Calls["UploadPartCopy"] < 3 || w.S3.Calls["Copy"] > 0 {
		t.Errorf("%v", w.S3.Calls)
	}
	stored, err := w.Stages.Root.Head(t.Context(), j.Primary)
	if err != nil {
		t.Fatal(err)
	}
	key, err := aip.Of(w.Stages.Root, stored, 1).Content(t.Context(), "producer/a.txt")
	if data, _, readErr := w.Stages.Root.Bucket.Read(t.Context(), key); err != nil || readErr != nil ||
		string(data) != "content of /a.txt" {
		t.Errorf("%q, %v, %v", data, err, readErr)
	}
	if files := stored.SystemFiles(1); !slices.Contains(files, "system/premis.xml") ||
		!slices.Contains(files, aip.ListName) {
		t.Errorf("the system files are %v", files)
	}
}

// TestOvertakenWhileStoring: a job failed while it copied, and another job stored a
// version with the number that it had prepared. After a requeue the job prepares again
// and becomes the next version.
func TestOvertakenWhileStoring(t *testing.T) {
	w, ctx := newTwins(t), t.Context()
	one := w.Submit("one.txt")
	w.Refuse.Store(true)
	two := w.Submit("two.txt")
	if j := w.Job(two); j.State != ingest.Storing {
		t.Fatalf("the second is %s: %s", j.State, j.Message)
	}
	if _, err := queuetest.ForceFail(ctx, w.Machine.Queue, two, "it does not end", "me"); err != nil {
		t.Fatal(err)
	}
	three := w.Submit("three.txt")
	w.Refuse.Store(false)
	if _, err := queuetest.RequeueConfirmed(ctx, w.Machine.Queue, two, "the store is back", "me"); err != nil {
		t.Fatal(err)
	}
	w.Drive()
	for id, version := range map[string]int{one: 1, three: 2, two: 3} {
		w.Ended(id, version, false)
	}
	stored, err := w.Stages.Root.Head(ctx, w.Job(two).Primary)
	if err != nil || stored.Head != 3 {
		t.Fatalf("%+v, %v", stored, err)
	}
	for version, name := range map[int]string{1: "one.txt", 2: "three.txt", 3: "two.txt"} {
		key, err := aip.Of(w.Stages.Root, stored, version).Content(ctx, "producer/"+name)
		if data, _, readErr := w.Stages.Root.Bucket.Read(ctx, key); err != nil || readErr != nil ||
			string(data) != "content of /"+name {
			t.Errorf("v%d has %q, %v, %v", version, data, err, readErr)
		}
	}
	err = w.Stages.Root.Bucket.List(ctx, "", func(o bucket.Listed) error {
		if strings.Contains(o.Key, "/v2/content/"+two) {
			t.Errorf("%s is left of what was overtaken", o.Key)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
