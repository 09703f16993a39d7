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

	"archivist/pkg/aip"
	"archivist/pkg/bucket"
	"archivist/pkg/bucket/buckettest"
	"archivist/pkg/collection"
	"archivist/pkg/ingest"
	"archivist/pkg/ocfl"
	"archivist/pkg/queue"
	"archivist/pkg/queue/queuetest"
	"archivist/pkg/stage"
	"archivist/pkg/stage/stagetest"
	"archivist/pkg/table/tabletest"
)

// twins are the stages of one deployment on twins in this process.
type twins struct {
	*testing.T
	m      *queuetest.Machine
	s      *stage.Stages
	s3     *buckettest.Twin
	rows   *tabletest.Fake
	source *httptest.Server
	refuse atomic.Bool // to copy two.txt
}

func newTwins(t *testing.T) *twins {
	w := &twins{T: t, s3: buckettest.New(t.TempDir()), rows: tabletest.New()}
	w.s3.Before = func(op, name string) int {
		if w.refuse.Load() && op == "Copy" && strings.Contains(name, "producer/two.txt") {
			return http.StatusServiceUnavailable
		}
		return 0
	}
	server := httptest.NewServer(w.s3)
	w.source = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
		r *http.Request) {
		_, _ = w.Write([]byte("content of " + r.URL.Path))
	}))
	t.Cleanup(server.Close)
	t.Cleanup(w.source.Close)
	w.m = queuetest.New(tabletest.Table(w.rows), time.Now, 50)
	w.s = stagetest.New(w.m, server.URL)
	return w
}

// submit submits one file as the new state of the one object, changed by how, and
// runs what can run.
func (w *twins) submit(name string, how ...func(*ingest.Batch)) string {
	w.Helper()
	in := ingest.Batch{Collection: "bench", Mode: "add", LocalIDs: []string{"one object"},
		Payload: ingest.Payload{URL: w.source.URL + "/" + name, Type: ingest.TypeFile, Filename: name}}
	for _, h := range how {
		h(&in)
	}
	b, err := w.m.Queue.Submit(w.Context(), in, "", nil, "me")
	if err != nil {
		w.Fatal(err)
	}
	w.run()
	return ingest.JobID(b.ID, 1)
}

func (w *twins) run() {
	w.Helper()
	if err := w.m.Run(w.Context(), 12); err != nil {
		w.Fatal(err)
	}
}

func (w *twins) job(id string) *queue.Job {
	w.Helper()
	j, err := w.m.Queue.Job(w.Context(), id)
	if err != nil {
		w.Fatal(err)
	}
	return j
}

// ended fails unless a job is Completed as a version.
func (w *twins) ended(id string, version int, noChange bool) *queue.Job {
	w.Helper()
	j := w.job(id)
	if j.State != ingest.Completed || j.ObjectVersion != version || j.NoChange != noChange {
		w.Errorf("%s is %s, v%d, no change %v; expected v%d: %s", id, j.State, j.ObjectVersion, j.NoChange, version,
			j.Message)
	}
	return j
}

// refused fails unless a job is Failed for good with a reason that says something.
func (w *twins) refused(id, says string) {
	w.Helper()
	if j := w.job(id); j.State != ingest.Failed || !j.NotRecoverable || !strings.Contains(j.Message, says) {
		w.Errorf("%s is %s: %q; expected it to be refused with %q", id, j.State, j.Message, says)
	}
}

// TestVersions: a submission is the new complete state; nothing changed makes no
// version; one made for another version than stands is refused.
func TestVersions(t *testing.T) {
	w := newTwins(t)
	madeFor := func(n int) func(*ingest.Batch) { return func(b *ingest.Batch) { b.IfVersion = n } }
	w.refused(w.submit("early.txt", madeFor(1)), "at version 0")
	first := w.ended(w.submit("a.txt"), 1, false)
	w.ended(w.submit("a.txt"), 1, true)
	w.refused(w.submit("b.txt", madeFor(2)), "expects version 2 of the object, which is at version 1")
	w.ended(w.submit("b.txt", madeFor(1)), 2, false)
	copies := w.s3.Calls["Copy"]
	renamed := w.ended(w.submit("a.txt", func(b *ingest.Batch) { b.Filename = "renamed.txt" }), 3, false)
	if renamed.Primary != first.Primary {
		t.Errorf("%s became %s", first.Primary, renamed.Primary)
	}
	stored, err := w.s.Root.Head(t.Context(), first.Primary)
	if err != nil {
		t.Fatal(err)
	}
	key, err := aip.Of(w.s.Root, stored, 3).Content(t.Context(), "producer/renamed.txt")
	if err != nil || !strings.Contains(key, "/v1/content/"+first.Job.ID) {
		t.Errorf("content that was stored is stored again at %s, %v", key, err)
	}
	if n := w.s3.Calls["Copy"] - copies; n >= len(stored.SystemFiles(3)) { // some of these are as before, too
		t.Errorf("%d copies for %d system files", n, len(stored.SystemFiles(3)))
	}
	if _, err := aip.Of(w.s.Root, stored, 3).Content(t.Context(), "producer/b.txt"); err == nil {
		t.Error("a file that was left out is still in the complete state")
	}
}

// TestFailedAfterCommit: a job that is failed by hand after its version was
// committed says that it is preserved, and goes on from there.
func TestFailedAfterCommit(t *testing.T) {
	w, ctx := newTwins(t), t.Context()
	committed := atomic.Bool{}
	w.s3.Before = func(op, name string) int {
		root := strings.HasSuffix(name, "/inventory.json") && strings.HasPrefix(name, "storage/") &&
			!strings.Contains(name, "/v1/")
		if op == "PUT object" && root {
			committed.Store(true) // this one still gets through
		} else if committed.Load() && op == "PUT object" && strings.HasPrefix(name, "storage/") {
			return http.StatusServiceUnavailable
		}
		return 0
	}
	id := w.submit("a.txt")
	if j := w.job(id); j.State != ingest.Storing || !committed.Load() {
		t.Fatalf("the job is %s", j.State)
	}
	if _, err := w.m.Queue.ForceFail(ctx, id, "enough", "me"); err != nil {
		t.Fatal(err)
	}
	if j := w.job(id); !strings.HasPrefix(j.Message, "preserved as "+j.Primary+" v1; stopped by me: enough") ||
		j.LastSuccessful != ingest.Processing {
		t.Errorf("it says %q", j.Message)
	}
	w.s3.Before = nil
	if _, err := w.m.Queue.Requeue(ctx, id, "go on", "me"); err != nil {
		t.Fatal(err)
	}
	w.run()
	j := w.ended(id, 1, false)
	sidecar, _, err := w.s.Root.Bucket.Read(ctx, ocfl.Prefix(j.Primary)+"inventory.json.sha512")
	if err != nil || !strings.HasPrefix(string(sidecar), j.Inventory+" ") {
		t.Errorf("the sidecar is %q, %v: the commit was not finished", sidecar, err)
	}
}

// TestSlowSource: a source that stalls within a part loses what came only if that
// is too little to be kept.
func TestSlowSource(t *testing.T) {
	w := newTwins(t)
	w.m.Queue.Rules.Timing.Pause = w.m.Queue.Rules.Timing.Long - time.Second // a budget of a second
	content := strings.Repeat("0123456789abcdef", 1<<19)                     // 8 MiB
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
	j := w.ended(w.submit("slow.bin", func(b *ingest.Batch) { b.URL = slow.URL }), 1, false)
	if len(asked) != 2 || asked[1] != fmt.Sprintf("bytes=%d-", 6<<20) || j.Bytes != int64(len(content)) {
		t.Errorf("asked for %v, %d bytes are there", asked, j.Bytes)
	}
}

// TestSilentSource: a source that does not answer within a time budget is a failed
// try that says so, not progress.
func TestSilentSource(t *testing.T) {
	w := newTwins(t)
	w.m.Queue.Rules.Timing.Pause = w.m.Queue.Rules.Timing.Long - time.Second
	silent := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && r.Header.Get("Range") == "" {
			<-r.Context().Done()
		}
	}))
	defer silent.Close()
	j := w.job(w.submit("silent.bin", func(b *ingest.Batch) { b.URL, b.Size = silent.URL, 10 }))
	if j.State != ingest.Downloading || j.Tries != 1 ||
		!strings.Contains(j.Message, "the source is too slow for a try of 1s: "+silent.URL+
			": no response header until") {
		t.Errorf("the job is %s after %d tries: %q", j.State, j.Tries, j.Message)
	}
}

// TestIdentifiers: arks are of the collection's shoulder, an object is only its
// own collection's, and local ids and arks have to agree.
func TestIdentifiers(t *testing.T) {
	w := newTwins(t)
	with := func(ark string, local ...string) func(*ingest.Batch) {
		return func(b *ingest.Batch) { b.Primary, b.LocalIDs = ark, local }
	}
	in := func(collection string) func(*ingest.Batch) {
		return func(b *ingest.Batch) { b.Collection = collection }
	}
	given := onShoulder("fk4given")
	if err := w.s.Collections.Put(t.Context(), "maps", collection.Profile{Shoulder: "fk7"}, "me", 0); err != nil {
		t.Fatal(err)
	}
	mine := w.ended(w.submit("a.txt"), 1, false).Primary
	maps := w.ended(w.submit("a.txt", in("maps")), 1, false).Primary
	if !strings.HasPrefix(mine, "ark:/99999/fk4") || !strings.HasPrefix(maps, "ark:/99999/fk7") {
		t.Errorf("minted %s and %s", mine, maps)
	}
	w.ended(w.submit("b.txt", with(given)), 1, false)
	w.refused(w.submit("b.txt", with("ark:/13030/xf93gt2q")), "not on the shoulder ark:/99999/fk4 of this collection")
	w.refused(w.submit("b.txt", with(onShoulder("fk4other")), in("maps")), "not on the shoulder ark:/99999/fk7")
	other := w.submit("b.txt", with(mine), in("maps"))
	w.refused(other, "not an object that this submission may change")
	if strings.Contains(w.job(other).Message, "bench") {
		t.Errorf("the refusal names the owner: %s", w.job(other).Message)
	}
	w.refused(w.submit("b.txt", with(given, "one object")), `the local id "one object" belongs to another object`)
	w.ended(w.submit("c.txt", with("", "second")), 1, false)
	w.refused(w.submit("d.txt", with("", "one object", "second")), "belong to different objects")
	w.refused(w.submit("d.txt", with("ark:/no")), "the primary identifier is not an ARK")
}

// TestCopyInParts: what is larger than S3 copies at once goes in parts, and is
// verified as a whole.
func TestCopyInParts(t *testing.T) {
	w := newTwins(t)
	w.s.Root.Bucket.Limits.Copy, w.s.Root.Bucket.Limits.CopyPart = 10, 7
	j := w.ended(w.submit("a.txt"), 1, false) // 17 bytes
	if w.s3.Calls["UploadPartCopy"] < 3 || w.s3.Calls["Copy"] > 0 {
		t.Errorf("%v", w.s3.Calls)
	}
	stored, err := w.s.Root.Head(t.Context(), j.Primary)
	if err != nil {
		t.Fatal(err)
	}
	key, err := aip.Of(w.s.Root, stored, 1).Content(t.Context(), "producer/a.txt")
	if data, _, readErr := w.s.Root.Bucket.Read(t.Context(), key); err != nil || readErr != nil ||
		string(data) != "content of /a.txt" {
		t.Errorf("%q, %v, %v", data, err, readErr)
	}
	if files := stored.SystemFiles(1); !slices.Contains(files, "system/premis.xml") ||
		!slices.Contains(files, aip.ListName) {
		t.Errorf("the system files are %v", files)
	}
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
	if _, err := w.m.Queue.ForceFail(ctx, two, "it does not come to an end", "me"); err != nil {
		t.Fatal(err)
	}
	three := w.submit("three.txt")
	w.refuse.Store(false)
	if _, err := w.m.Queue.RequeueConfirmed(ctx, two, "the store is back", "me"); err != nil {
		t.Fatal(err)
	}
	w.run()
	for id, version := range map[string]int{one: 1, three: 2, two: 3} {
		w.ended(id, version, false)
	}
	stored, err := w.s.Root.Head(ctx, w.job(two).Primary)
	if err != nil || stored.Head != 3 {
		t.Fatalf("%+v, %v", stored, err)
	}
	for version, name := range map[int]string{1: "one.txt", 2: "three.txt", 3: "two.txt"} {
		key, err := aip.Of(w.s.Root, stored, version).Content(ctx, "producer/"+name)
		if data, _, readErr := w.s.Root.Bucket.Read(ctx, key); err != nil || readErr != nil ||
			string(data) != "content of /"+name {
			t.Errorf("v%d has %q, %v, %v", version, data, err, readErr)
		}
	}
	err = w.s.Root.Bucket.List(ctx, "", func(o bucket.Listed) error {
		if strings.Contains(o.Key, "/v2/content/"+two) {
			t.Errorf("%s is left of what was overtaken", o.Key)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
