package inprocess

import (
	"bytes"
	"crypto/md5"
	"encoding/hex"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/formats/checkm"
	"archivist/pkg/ingest"
)

func TestMain(m *testing.M) {
	// The library of the search index has workers of its own, for all indexes.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/blevesearch/bleve_index_api.AnalysisWorker"))
}

// sourceURL is the depositor's web server.
const sourceURL = "http://source.example.org"

// source is that server.
type source struct {
	mu    sync.Mutex
	files map[string][]byte
	gate  chan struct{}   // if set, a file waits for it
	waits map[string]bool // files that have waited
}

// ServeHTTP serves a file.
func (s *source) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	data, there := s.files[r.URL.Path]
	gate := s.gate
	s.mu.Unlock()
	if !there {
		http.NotFound(w, r)
		return
	}
	if gate != nil && r.Method == http.MethodGet && !strings.HasSuffix(r.URL.Path, ".checkm") {
		s.mu.Lock()
		s.waits[r.URL.Path] = true
		s.mu.Unlock()
		select {
		case <-gate:
		case <-r.Context().Done():
			return
		}
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
}

func (s *source) put(path, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[path] = []byte(text)
}

// waiting reports whether a file was asked for that waits.
func (s *source) waiting(path string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waits[path]
}

// open lets files through that wait.
func (s *source) open() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.gate)
	s.gate = nil
}

// row describes a file as its depositor would.
func (s *source) row(path string) checkm.Row {
	sum := md5.Sum(s.files[path])
	return checkm.Row{URL: sourceURL + path, Algorithm: "md5", Digest: hex.EncodeToString(sum[:]),
		Size: int64(len(s.files[path])), Name: strings.TrimPrefix(path, "/")}
}

// object puts a manifest of files, and returns its path.
func (s *source) object(t *testing.T, name string, paths ...string) string {
	t.Helper()
	var rows []checkm.Row
	for _, p := range paths {
		rows = append(rows, s.row(p))
	}
	var b strings.Builder
	err := checkm.Write(&b, "http://uc3.cdlib.org/registry/ingest/manifest/mrt-ingest-manifest", rows)
	if err != nil {
		t.Fatal(err)
	}
	s.put("/"+name+".checkm", b.String())
	return "/" + name + ".checkm"
}

// batch puts a batch manifest of objects, and returns its URL.
func (s *source) batch(t *testing.T, manifests ...string) string {
	t.Helper()
	var rows []checkm.Row
	for _, m := range manifests {
		r := s.row(m)
		r.Local, r.Title, r.Creator, r.Date = []string{"local" + m}, "Object "+m, "Alice Liddell", "2026"
		rows = append(rows, r)
	}
	var b strings.Builder
	err := checkm.WriteBatch(&b, "http://uc3.cdlib.org/registry/ingest/manifest/mrt-batch-manifest", rows)
	if err != nil {
		t.Fatal(err)
	}
	s.put("/batch.checkm", b.String())
	return sourceURL + "/batch.checkm"
}

// world is a system with a client of its API and a depositor.
type world struct {
	*testing.T
	*System
	api *v1.Client
	src *source

	tokens map[string]string // by the names of callers, where the API demands them

	each, limit time.Duration // how often, and how long, something is waited for
}

// begin starts a system. Nothing of it uses a socket.
func begin(t *testing.T, settings Settings) *world {
	t.Helper()
	w := &world{T: t, src: &source{files: map[string][]byte{}, waits: map[string]bool{}},
		each: 20 * time.Millisecond, limit: 3 * time.Minute}
	if settings.Timing == "" { // in a bubble
		w.each, w.limit, settings.Index = time.Second, 24*time.Hour, &NoIndex{}
	}
	if testing.Verbose() {
		settings.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	settings.Dir, settings.MailFrom = t.TempDir(), "archive@example.org"
	hosts := map[string]http.Handler{strings.TrimPrefix(sourceURL, "http://"): w.src}
	if more, is := settings.Web.(*Web); is { // the issuer of tokens
		maps.Copy(hosts, more.Hosts)
	}
	settings.Web = &Web{Hosts: hosts}
	var err error
	w.System, err = Start(settings)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := w.Close()
		if err != nil {
			t.Error(err)
		}
	})
	w.api = &v1.Client{URL: APIURL, HTTP: w.HTTP()}
	return w
}

// quick are settings of a test on real time.
func quick() Settings {
	return Settings{Timing: "quick", Each: 200 * time.Millisecond, Window: 10 * time.Millisecond}
}

// until looks until f is true.
func (w *world) until(what string, f func() bool) {
	w.Helper()
	end := time.Now().Add(w.limit)
	for !f() {
		if time.Now().After(end) {
			w.Fatalf("%s: not within %s", what, w.limit)
		}
		sleep(w.Context(), w.each)
	}
}

// must fails the test at an error.
func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// two puts a batch of two objects, and submits it.
func (w *world) two() (batch string) {
	w.Helper()
	w.src.put("/a.txt", "content of a")
	w.src.put("/b.txt", strings.Repeat("large ", 2000))
	w.src.put("/c.txt", "content of c")
	return w.submit(w.src.batch(w.T, w.src.object(w.T, "one", "/a.txt", "/b.txt"), w.src.object(w.T, "two", "/c.txt")))
}

// submit submits a manifest, and returns the id of the batch.
func (w *world) submit(url string) string {
	w.Helper()
	out, err := w.api.Submit(w.Context(), v1.BatchRequest{Collection: "maps", Submitter: "alice",
		Payload: v1.Payload{URL: url}, Notification: []string{"bob@example.org"}}, "")
	w.must(err)
	return out.ID
}

// completed waits for the end of a batch, which must be good.
func (w *world) completed(batch string) v1.Batch {
	w.Helper()
	var b v1.Batch
	w.until("the batch ends", func() bool {
		var err error
		b, err = w.api.Batch(w.Context(), batch)
		w.must(err)
		return b.State == "Completed" || b.State == "Failed"
	})
	if b.State != "Completed" {
		w.Fatalf("the batch is %+v", b)
	}
	return b
}

// job is a job of a batch.
func (w *world) job(batch string, n int) v1.Job {
	w.Helper()
	j, err := w.api.Job(w.Context(), ingest.JobID(batch, n))
	w.must(err)
	return j
}

// repairs is how often a job's execution was started again.
func (w *world) repairs(job string) (n int) {
	w.Helper()
	all, err := w.api.Events(w.Context(), job)
	w.must(err)
	for _, e := range all {
		if e.Type == "job.repaired" {
			n++
		}
	}
	return n
}

// content is a file of a job's object, through the signed URL of the API.
func (w *world) content(j v1.Job, path string) string {
	w.Helper()
	r, err := w.api.Content(w.Context(), j.Identifiers.Primary, j.Version, path)
	w.must(err)
	defer r.Close()
	data, err := io.ReadAll(r)
	w.must(err)
	return string(data)
}

// mailed waits for a mail.
func (w *world) mailed(to, subject string) {
	w.Helper()
	w.until("the mail "+subject, func() bool {
		return slices.ContainsFunc(w.Mails(), func(m Mail) bool {
			return slices.Contains(m.To, to) && strings.Contains(m.Subject, subject)
		})
	})
}
