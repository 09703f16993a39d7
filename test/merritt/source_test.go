package merritt

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"archivist/pkg/formats/checkm"
)

// object is one object of a submission: a manifest of one file.
type object struct {
	name   string
	digest string // md5 that the depositor gives for the file
	local  string // "" = the name
	ark    string
}

// source is a depositor's server.
type source struct {
	*httptest.Server
	mu      sync.Mutex
	objects map[string]object
	batches [][]object
	answers map[string]http.HandlerFunc // by path, instead of the usual answer
	asked   map[string]int              // by method and path
}

func newSource(t *testing.T) *source {
	s := &source{objects: map[string]object{}, answers: map[string]http.HandlerFunc{}, asked: map[string]int{}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

// batch returns the URL of a manifest of objects.
func (s *source) batch(objects []object) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.batches = append(s.batches, objects)
	for _, o := range objects {
		s.objects[o.name] = o
	}
	return fmt.Sprintf("%s/batch/%d", s.URL, len(s.batches)-1)
}

// set sets what a path answers; nil is the usual answer.
func (s *source) set(path string, answer http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[path] = answer
}

// requests is how often a path was asked by a method.
func (s *source) requests(method, path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[method+" "+path]
}

// status404 is the answer of a path that does not exist.
func status404(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) }

// ServeHTTP answers manifests of batches and objects, and files.
func (s *source) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.asked[r.Method+" "+r.URL.Path]++
	answer, object := s.answers[r.URL.Path], s.objects[strings.TrimSuffix(strings.Trim(r.URL.Path, "/"), ".checkm")]
	s.mu.Unlock()
	switch path := r.URL.Path; {
	case answer != nil:
		answer(w, r)
	case strings.HasPrefix(path, "/batch/"):
		s.writeBatch(w, path)
	case strings.HasSuffix(path, ".checkm"):
		row := checkm.Row{URL: s.URL + "/" + object.name + ".txt", Name: object.name + ".txt", Size: -1}
		if object.digest != "" {
			row.Algorithm, row.Digest = "md5", object.digest
		}
		_ = checkm.Write(w, "http://uc3.cdlib.org/registry/ingest/manifest/mrt-ingest-manifest", []checkm.Row{row})
	default:
		_, _ = w.Write([]byte(content(path)))
	}
}

// content is the content of the file at a path.
func content(path string) string { return "content of " + path }

func (s *source) writeBatch(w http.ResponseWriter, path string) {
	var n int
	_, _ = fmt.Sscanf(path, "/batch/%d", &n)
	var rows []checkm.Row
	for _, o := range s.batches[n] {
		row := checkm.Row{URL: s.URL + "/" + o.name + ".checkm", Name: o.name + ".checkm", Size: -1,
			Local: []string{o.name}, Title: "Title of " + o.name}
		if o.local != "" {
			row.Local = []string{o.local}
		}
		if o.ark != "" {
			row.Primary = o.ark
		}
		rows = append(rows, row)
	}
	_ = checkm.WriteBatch(w, "http://uc3.cdlib.org/registry/ingest/manifest/mrt-batch-manifest", rows)
}
