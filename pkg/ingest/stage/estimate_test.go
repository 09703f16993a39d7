package stage_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/queue/queuetest"
)

// TestSlowHosts: the sizes of 500 files on 500 hosts that do not answer are unknown,
// each host is asked once, and no try takes longer than it may.
func TestSlowHosts(t *testing.T) {
	w := newTwins(t)
	var later, asked, longest atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	w.Machine.Queue.Now, w.Machine.Scheduler.Leases.Now, w.Stages.Now = now, now, now
	rows := make([]string, 500)
	for i := range rows {
		rows[i] = fmt.Sprintf("http://host%d.invalid/a | | | | | a%d |", i, i)
	}
	list := manifest("mrt-ingest-manifest", fileFields, rows...)
	w.Source.Config.Handler = http.HandlerFunc(func(out http.ResponseWriter,
		r *http.Request) {
		_, _ = out.Write([]byte(list))
	})
	real := w.Stages.Fetch.HTTP.Transport
	w.Stages.Fetch.HTTP.Transport = transport(func(r *http.Request) (*http.Response, error) {
		if !strings.HasSuffix(r.URL.Host, ".invalid") {
			return real.RoundTrip(r)
		}
		if r.Method == http.MethodHead {
			asked.Add(1)
		}
		later.Add(int64(time.Second)) // 10 s, with nine others at once
		return nil, errors.New("no answer")
	})
	steps := w.Machine.Step
	w.Machine.Step = timed(steps, now, &longest)
	in := ingest.Batch{Collection: "bench", Mode: "add",
		Payload: ingest.Payload{URL: w.Source.URL, Type: ingest.TypeObjectManifest, Filename: "x"}}
	b, err := w.Machine.Queue.Submit(t.Context(), in, "", nil, "me")
	if err != nil {
		t.Fatal(err)
	}
	estimated := false
	for range 50 {
		if err := w.Machine.Scheduler.Tick(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		if err := w.Machine.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		j := w.Job(ingest.JobID(b.Batch.ID, 1))
		estimated = j.LastSuccessful == ingest.Estimating
		if estimated || j.State == ingest.Failed {
			break
		}
	}
	j := w.Job(ingest.JobID(b.Batch.ID, 1))
	if !estimated || j.SizeKnown || j.Files != 500 {
		t.Errorf("%s, %d files, size known %v: %s", j.State, j.Files, j.SizeKnown, j.Message)
	}
	if n := asked.Load(); n != 500 {
		t.Errorf("%d requests for the sizes of 500 files", n)
	}
	if budget := w.Machine.Queue.Rules.Timing.Short; time.Duration(longest.Load()) >= budget {
		t.Errorf("a try took %s of %s", time.Duration(longest.Load()), budget)
	}
}

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// TestSourceWithoutHead: a server that does not answer a HEAD request causes no long wait
// and no failure.
func TestSourceWithoutHead(t *testing.T) {
	w := newTwins(t)
	w.Stages.Fetch.Limits.Small = 50 * time.Millisecond
	source := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead {
			<-r.Context().Done()
			return
		}
		_, _ = out.Write([]byte("content"))
	}))
	defer source.Close()
	w.Ended(w.Submit("a.txt", func(b *ingest.Batch) { b.URL = source.URL }), 1, false)
}

// TestCutConnection: content of unknown length whose connection is closed early is not
// accepted as complete.
func TestCutConnection(t *testing.T) {
	w := newTwins(t)
	w.Stages.Fetch.Tries = 1
	source := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		_, _ = out.Write([]byte("half of the con"))
		_ = http.NewResponseController(out).Flush()
		panic(http.ErrAbortHandler)
	}))
	defer source.Close()
	j := w.Job(w.Submit("a.txt", func(b *ingest.Batch) { b.URL = source.URL }))
	if j.State != ingest.Failed || j.NotRecoverable ||
		!strings.Contains(j.Message, source.URL+": received 15 bytes, then the connection was closed") {
		t.Errorf("%s: %q", j.State, j.Message)
	}
}

// timed measures the longest try by a clock.
func timed(steps func(ingest.Stage) queue.Step, now func() time.Time,
	longest *atomic.Int64) func(ingest.Stage) queue.Step {
	return func(s ingest.Stage) queue.Step {
		return func(ctx context.Context, h *queue.Claim) (ingest.Result, error) {
			began := now()
			res, err := steps(s)(ctx, h)
			longest.Store(max(longest.Load(), int64(now().Sub(began))))
			return res, err
		}
	}
}

// drip is a source that sends some bytes of its content per connection, from the requested
// offset, and then nothing.
func drip(t *testing.T, content, etag string, some int) *httptest.Server {
	source := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		from := 0
		_, _ = fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &from)
		if r.Method == http.MethodHead || r.Header.Get("Range") == "bytes=0-0" {
			out.Header().Set("Content-Length", fmt.Sprint(len(content)))
			return
		}
		if etag == "" || r.Header.Get("If-Range") != etag {
			from = 0
		}
		out.Header().Set("Content-Length", fmt.Sprint(len(content)-from))
		if etag != "" {
			out.Header().Set("ETag", etag)
		}
		if from > 0 {
			out.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(content)-1, len(content)))
			out.WriteHeader(http.StatusPartialContent)
		}
		_, _ = out.Write([]byte(content[from:min(len(content), from+some)]))
		if from+some < len(content) {
			_ = http.NewResponseController(out).Flush()
			<-r.Context().Done()
		}
	}))
	t.Cleanup(source.Close)
	return source
}

// TestSlowSmallFile: a file that is smaller than a part and needs several tries is resumed
// where the last try ended, if the source supports it.
func TestSlowSmallFile(t *testing.T) {
	w := newTwins(t)
	w.Machine.Queue.Rules.Timing.Pause = w.Machine.Queue.Rules.Timing.Long - 200*time.Millisecond
	content := strings.Repeat("0123456789", 100_000)
	source := drip(t, content, `"same"`, 300_000)
	j := w.Ended(w.Submit("a.txt", func(b *ingest.Batch) {
		b.URL, b.Algorithm, b.Payload.Digest = source.URL, "sha256", fmt.Sprintf("%x", sha256.Sum256([]byte(content)))
	}), 1, false)
	if j.Bytes != int64(len(content)) {
		t.Errorf("%d bytes", j.Bytes)
	}
}

// TestSlowSourceThatBeginsAgain: a source that always begins at the beginning, and is
// too slow for one try, is a failed try. The number of tries is limited.
func TestSlowSourceThatBeginsAgain(t *testing.T) {
	t.Parallel() // it waits
	w := newTwins(t)
	w.Machine.Queue.Rules.Timing.Pause = w.Machine.Queue.Rules.Timing.Long - 5*time.Second
	source := drip(t, strings.Repeat("0123456789", 100_000), "", 300_000)
	j := w.Job(w.Submit("a.txt", func(b *ingest.Batch) { b.URL = source.URL }))
	if j.State != ingest.Downloading || j.Tries != 1 ||
		!strings.Contains(j.Message, "the source is too slow for a try of 5s: ") ||
		!strings.Contains(j.Message, "received 300,000 of 1,000,000 bytes when the time for this try was up") {
		t.Errorf("the job is %s after %d tries: %q", j.State, j.Tries, j.Message)
	}
}

// TestSourceWithoutEnd: a file that its source ends by closing the connection is taken only if the submission says how
// long it is: else one that was cut would look whole.
func TestSourceWithoutEnd(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		conn, _, err := http.NewResponseController(out).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprint(conn, "HTTP/1.0 200 OK\r\n\r\n")
		if r.Method == http.MethodGet {
			fmt.Fprint(conn, "content")
		}
	}))
	t.Cleanup(server.Close)
	w := newTwins(t)
	from := func(b *ingest.Batch) { b.URL = server.URL + "/a.txt" }
	w.stays(w.Submit("a.txt", from), "Content-Length")
	w.Ended(w.Submit("a.txt", from, func(b *ingest.Batch) { b.Size = 7 }), 1, false)
	w.Refused(w.Submit("b.txt", from, func(b *ingest.Batch) { b.Size = 9 }), "7 were received")
}

// TestManifestOfATry: each try keeps the manifest at a key of its own, so that a late
// worker does not change what another one checked.
func TestManifestOfATry(t *testing.T) {
	w := newTwins(t)
	puts := map[string]bool{}
	w.S3.Before = func(op, name string) int {
		if op == "PUT object" && strings.HasSuffix(name, "/manifest.checkm") {
			puts[name] = true
			if len(puts) == 1 {
				return http.StatusServiceUnavailable
			}
		}
		return 0
	}
	id := w.manifestOf(func(url string) []string { return []string{url + "/a | | | | | a |"} })
	if _, err := queuetest.ForceFail(t.Context(), w.Machine.Queue, id, "it does not end", "me"); err != nil {
		t.Fatal(err)
	}
	if _, err := queuetest.Requeue(t.Context(), w.Machine.Queue, id, "again", "me"); err != nil {
		t.Fatal(err)
	}
	w.Drive()
	if j := w.Ended(id, 1, false); len(puts) != 2 || !puts["work/"+j.Manifest] {
		t.Errorf("the manifest was kept at %v, the job names %q", puts, j.Manifest)
	}
}
