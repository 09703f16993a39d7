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
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"archivist/pkg/formats/checkm"
	"archivist/pkg/ingest/transfer"
	"archivist/pkg/ingest/workspace"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/bucket/buckettest"
	"archivist/pkg/kernel/fetch"
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

// endless is content of any size that is in no memory.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(i)
	}
	return len(p), nil
}

// TestMemory: a large file is kept in parts of 16 MiB, and never has more than two of them in memory.
func TestMemory(t *testing.T) {
	const parts, part = 4, 16 << 20
	w := newWorld(t, nil, "")
	w.work.Limits = bucket.DefaultLimits
	w.source.Config.Handler = http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("ETag", `"1"`)
		out.Header().Set("Content-Length", strconv.Itoa(parts*part))
		_, _ = io.CopyN(out, endless{}, parts*part)
	})
	// Signed: what an earlier test left can be freed after the first measurement.
	inUse := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before, most := inUse(), int64(0)
	w.twin.Before = func(op, _ string) int {
		if op == "UploadPart" {
			most = max(most, inUse()-before)
		}
		return 0
	}
	f, err := w.try(1000, true)
	if err != nil || f.Sums.Size != parts*part || w.twin.Calls["UploadPart"] != parts {
		t.Fatalf("%+v in %d parts, %v", f, w.twin.Calls["UploadPart"], err)
	}
	if most > 2*part+part/2 {
		t.Errorf("%d MiB in memory; a part has %d", most>>20, part>>20)
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

// TestRestOfOtherContent: a source that ignores the condition of a request, and answers with the rest of other content,
// is asked for all of that. What is stored is one content.
func TestRestOfOtherContent(t *testing.T) {
	const size = 12 << 20
	before, after := bytes.Repeat([]byte("b"), size), bytes.Repeat([]byte("a"), size)
	for name, validator := range map[string]string{"another ETag": `"2"`, "no ETag": "", "a weak one": `W/"1"`} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, before, `"1"`)
			if _, err := w.try(3, true); !errors.Is(err, fetch.ErrStop) {
				t.Fatal(err)
			}
			w.source.Config.Handler = http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
				from := 0
				if validator != "" {
					out.Header().Set("ETag", validator)
				}
				if _, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &from); err == nil {
					out.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, size-1, size))
					out.WriteHeader(http.StatusPartialContent)
				}
				_, _ = out.Write(after[from:])
			})
			f, err := w.try(1000, false)
			if err != nil {
				t.Fatal(err)
			}
			w.whole(f, after)
		})
	}
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
