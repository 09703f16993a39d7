package transfer_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"archivist/pkg/bucket"
	"archivist/pkg/bucket/buckettest"
	"archivist/pkg/checkm"
	"archivist/pkg/fetch"
	"archivist/pkg/transfer"
	"archivist/pkg/workspace"
)

const (
	key   = "jobs/B-00001/files/000000"
	noted = "jobs/B-00001/partial/000000.json"
)

// world is a source, a work bucket, and a clock that advances each time it is read.
type world struct {
	*testing.T
	source *httptest.Server
	work   workspace.Store
	twin   *buckettest.Twin
	now    time.Time
	from   []string // ranges that were requested
}

func newWorld(t *testing.T, content []byte, etag string) *world {
	w := &world{T: t, twin: buckettest.New(t.TempDir()), now: time.Unix(1000, 0)}
	w.source = httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		w.from = append(w.from, r.Header.Get("Range"))
		out.Header().Set("ETag", etag)
		http.ServeContent(out, r, "", time.Time{}, bytes.NewReader(content))
	}))
	t.Cleanup(w.source.Close)
	server := httptest.NewServer(w.twin)
	t.Cleanup(server.Close)
	w.work = workspace.Store{Bucket: bucket.Bucket{Client: buckettest.Client(server.URL), Name: "work",
		Limits: bucket.Limits{Part: 5 << 20, Copy: 1 << 30, CopyPart: 1 << 29}}}
	return w
}

// try runs one try that ends after so many readings of the clock.
func (w *world) try(readings int, first bool) (*transfer.File, error) {
	allow := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	t := transfer.Transfer{Fetch: fetch.New(fetch.Guard{Allow: allow}, func() float64 { return 0 }), Work: w.work,
		First: first,
		Began: w.now, Until: w.now.Add(time.Duration(readings) * time.Second)}
	t.Now = func() time.Time { w.now = w.now.Add(time.Second); return w.now }
	return t.File(w.Context(), checkm.Row{URL: w.source.URL, Size: -1}, key, noted)
}

// whole fails unless a file is there completely, with its digest.
func (w *world) whole(f *transfer.File, content []byte) {
	w.Helper()
	body, err := f.Text()(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	defer body.Close()
	text, err := io.ReadAll(body)
	if err != nil || !bytes.Equal(text, content) ||
		f.Sums.Sums()["sha256"] != fmt.Sprintf("%x", sha256.Sum256(content)) {
		w.Errorf("%d of %d bytes are there, %v", len(text), len(content), err)
	}
	if stored, there := w.twin.Object("work/" + f.Key); !there || !bytes.Equal(stored, content) {
		w.Errorf("%d of %d bytes are at %s", len(stored), len(content), f.Key)
	}
}

// TestSmallFile: a file of one part is one request to the source and one to the bucket.
func TestSmallFile(t *testing.T) {
	for _, content := range []string{"", "a", strings.Repeat("x", 1<<20)} {
		w := newWorld(t, []byte(content), `"1"`)
		f, err := w.try(1000, true)
		if err != nil {
			t.Fatal(err)
		}
		w.whole(f, []byte(content))
		if len(w.from) != 1 || w.twin.Calls["PUT object"] != 1 {
			t.Errorf("%d requests to the source, %v to the bucket", len(w.from), w.twin.Calls)
		}
	}
}

// TestResumes: a file of many parts is transferred in several tries; each continues where
// the one before stopped, and none fetches more than a part again.
func TestResumes(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789abcdef"), 23<<20/16)
	w := newWorld(t, content, `"1"`)
	var f *transfer.File
	err := fetch.ErrStop
	tries := 0
	for ; errors.Is(err, fetch.ErrStop) && tries < 20; tries++ {
		f, err = w.try(4, tries == 0)
	}
	if err != nil || tries < 3 {
		t.Fatalf("after %d tries: %v", tries, err)
	}
	w.whole(f, content)
	for i, asked := range w.from[1:] {
		var from int
		if _, err := fmt.Sscanf(asked, "bytes=%d-", &from); err != nil || from < (i+1)*5<<20 {
			t.Errorf("try %d asks for %q", i+2, asked)
		}
	}
}

// TestChangedSource: parts of different content are never joined.
func TestChangedSource(t *testing.T) {
	before := bytes.Repeat([]byte("b"), 12<<20)
	w := newWorld(t, before, `"1"`)
	if _, err := w.try(3, true); !errors.Is(err, fetch.ErrStop) {
		t.Fatal(err)
	}
	after := bytes.Repeat([]byte("a"), 11<<20)
	other := newWorld(t, after, `"2"`)
	other.work, other.twin, other.now = w.work, w.twin, w.now
	f, err := other.try(1000, false)
	if err != nil {
		t.Fatal(err)
	}
	other.whole(f, after)
}

// TestFinishedUpload: after a try that ended between the last part and the completion, no
// request to the source is needed.
func TestFinishedUpload(t *testing.T) {
	content := bytes.Repeat([]byte("c"), 6<<20)
	w := newWorld(t, content, `"1"`)
	w.twin.Before = func(op, _ string) int {
		if op == "Complete" {
			return http.StatusForbidden
		}
		return 0
	}
	if _, err := w.try(1000, true); err == nil {
		t.Fatal("the upload was completed")
	}
	w.twin.Before = nil
	asked := len(w.from)
	w.source.Config.Handler = http.NotFoundHandler()
	f, err := w.try(1000, false)
	if err != nil || len(w.from) != asked {
		t.Fatalf("%d requests, %v", len(w.from)-asked, err)
	}
	w.whole(f, content)
}
