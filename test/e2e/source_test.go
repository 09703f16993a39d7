package e2e

import (
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"archivist/pkg/formats/checkm"
)

// source is a depositor's web server that tests break and repair.
type source struct {
	*httptest.Server
	mu    sync.Mutex
	files map[string][]byte
	slow  map[string]chan struct{} // the second half of a file waits for this
	half  map[string]bool          // files of which the first half is out, and the second waits
}

func newSource(t *testing.T) *source {
	s := &source{files: map[string][]byte{}, slow: map[string]chan struct{}{}, half: map[string]bool{}}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.CloseClientConnections)
	return s
}

func (s *source) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	data, there := s.files[r.URL.Path]
	gate := s.slow[r.URL.Path]
	s.mu.Unlock()
	if !there {
		http.NotFound(w, r)
		return
	}
	if gate == nil || r.Method == http.MethodHead {
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(string(data)))
		return
	}
	w.Header().Set("content-length", fmt.Sprint(len(data)))
	w.Write(data[:len(data)/2])
	w.(http.Flusher).Flush()
	s.mark(r.URL.Path, true)
	defer s.mark(r.URL.Path, false)
	select {
	case <-gate:
		w.Write(data[len(data)/2:])
	case <-r.Context().Done():
	}
}

func (s *source) mark(path string, on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.half[path] = on
}

// underWay is how many files are held at their second half.
func (s *source) underWay() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, on := range s.half {
		if on {
			n++
		}
	}
	return n
}

// put puts a file, and returns its URL.
func (s *source) put(path string, data []byte) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[path] = data
	return s.URL + path
}

// remove removes a file.
func (s *source) remove(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.files, path)
}

// hold holds back the second half of a file until the returned function is called.
func (s *source) hold(path string) (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slow[path] = make(chan struct{})
	return func() { s.free(path) }
}

// free ends the hold of a file.
func (s *source) free(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.slow[path])
	delete(s.slow, path)
}

// row describes a file as its depositor would.
func (s *source) row(path string) checkm.Row {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := md5.Sum(s.files[path])
	return checkm.Row{URL: s.URL + path, Algorithm: "md5", Digest: hex.EncodeToString(sum[:]),
		Size: int64(len(s.files[path])), Name: strings.TrimPrefix(path, "/")}
}

// manifest puts a manifest of rows, and returns its URL.
func (s *source) manifest(t *testing.T, path string, rows ...checkm.Row) string {
	var b strings.Builder
	if err := checkm.Write(&b, "http://uc3.cdlib.org/registry/ingest/manifest/mrt-ingest-manifest", rows); err != nil {
		t.Fatal(err)
	}
	return s.put(path, []byte(b.String()))
}
