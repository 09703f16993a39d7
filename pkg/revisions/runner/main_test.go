package runner

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/bucket/buckettest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/revisions/workflow"
)

// world is a runner with a bucket.
type world struct {
	*testing.T
	*Runner
	S3   *buckettest.Twin
	work bucket.Bucket
	ids  atomic.Int64
}

var quick = pace{parts: 20 * time.Millisecond, looks: 20 * time.Millisecond, grace: 400 * time.Millisecond,
	tries: 10 * time.Millisecond, words: 300 * time.Millisecond, reserve: 5 * time.Second}

func newWorld(t *testing.T) *world {
	t.Helper()
	twin, buckets := buckettest.Open(t, "work")
	w := &world{T: t, S3: twin, work: buckets[0]}
	w.Runner = w.runner(buckets[0], t.TempDir())
	t.Cleanup(func() {
		left, _ := os.ReadDir(w.Dir)
		for _, e := range left {
			if e.Name() != gateName {
				t.Errorf("%s is left of the scratch", e.Name())
			}
		}
	})
	return w
}

// runner is another runner of the same bucket.
func (w *world) runner(b bucket.Bucket, dir string) *Runner {
	return &Runner{Bucket: b, Name: b.Name, Dir: dir, Now: time.Now, pace: quick, Log: slog.New(slog.DiscardHandler),
		NewID: func() string { return fmt.Sprintf("%s-%d", dir, w.ids.Add(1)) },
		Secrets: func(_ context.Context, name string) (string, error) {
			return "", fault.New(fault.NotFound, "there is no secret %s", name)
		}}
}

// of is the Job of a task.
func of(task workflow.Task) Job {
	if task.Name == "" {
		task.Name = "build"
	}
	if task.Timeout == 0 {
		task.Timeout = 5 * time.Minute // ends only what hangs
	}
	return Job{ID: "maps/7/build/1", Archive: "maps", Revision: 7, Base: 5, Attempt: 1, Task: task, Bucket: "work",
		Prefix: "runs/maps/7/build/1/", Token: "token-of-the-run"}
}

func command(text string) Job { return of(workflow.Task{Command: text}) }

func script(shell, text string) Job { return of(workflow.Task{Script: text, Shell: shell}) }

// run runs a Job; an error ends the test.
func (w *world) run(job Job) Result {
	w.Helper()
	result, err := w.Runner.Run(w.Context(), job)
	if err != nil {
		w.Fatal(err)
	}
	return result
}

// expect checks how a run ended.
func (w *world) expect(r Result, end string, exit int, reason string) {
	w.Helper()
	if r.End != end || r.Exit != exit || !strings.Contains(r.Reason, reason) {
		said := w.output("")
		w.Fatalf("%s with %d, %q; want %s with %d, %q; the output:\n%.1000s", r.End, r.Exit, r.Reason, end, exit,
			reason, said)
	}
}

// parts are the stored parts of the log.
func (w *world) parts() (all []Part) {
	w.Helper()
	for _, name := range w.S3.Names("work/runs/maps/7/build/1/log/") {
		data, _ := w.S3.Object(name)
		dec := json.NewDecoder(bytes.NewReader(data))
		for dec.More() {
			var p Part
			if err := dec.Decode(&p); err != nil {
				w.Fatal(err)
			}
			all = append(all, p)
		}
	}
	return all
}

// output is what a stream said, "" is for all.
func (w *world) output(stream string) string {
	var b strings.Builder
	for _, p := range w.parts() {
		if stream == "" || p.Stream == stream {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

// put stores an object below the prefix of the Job.
func (w *world) put(key string, data []byte) {
	w.Helper()
	if err := w.Bucket.Put(w.Context(), "runs/maps/7/build/1/"+key, data, bucket.Condition{}); err != nil {
		w.Fatal(err)
	}
}

// pack is a tar.gz.
func pack(t *testing.T, entries ...tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	for _, h := range entries {
		content := h.Name + "\n"
		if h.Typeflag == tar.TypeReg {
			h.Size = int64(len(content))
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			fmt.Fprint(w, content)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// eventually waits until something is so. It looks again and again: what other processes do is not reported.
func (w *world) eventually(what string, is func() bool) {
	w.Helper()
	for end := time.Now().Add(5 * time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			w.Fatalf("after 10 s not: %s", what)
		}
	}
}
