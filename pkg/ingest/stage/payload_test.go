package stage_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/queue/queuetest"
	"archivist/pkg/objects/aip"
)

// unreliable is a source that fails in one way, for as long as its test needs.
type unreliable struct {
	*twins
	real    http.RoundTripper
	failing func(r *http.Request) bool
	way     string
	later   time.Duration // by how much the clock was advanced
	batch   string
}

// ways in which a source fails, with the text of the message.
var ways = map[string]string{
	"404":                "404 Not Found",
	"503":                "503 Service Unavailable",
	"timeout":            "no answer",
	"connection refused": "connection refused",
	"web page":           "received a web page (HTML)",
}

func newUnreliable(t *testing.T, way string) *unreliable {
	u := &unreliable{twins: newTwins(t), way: way, failing: func(*http.Request) bool { return false }}
	now := func() time.Time { return time.Now().Add(u.later) }
	u.Machine.Queue.Now, u.Machine.Scheduler.Leases.Now, u.Stages.Now = now, now, now
	u.Machine.Queue.Rules.Timing.MaxBackoff = time.Minute
	u.Machine.Queue.Rules.FailedRetention = 1000 * time.Hour
	u.Stages.Fetch.Wait = func(context.Context, time.Duration) error { return nil }
	u.real = u.Stages.Fetch.HTTP.Transport
	u.Stages.Fetch.HTTP.Transport = u
	return u
}

// silence is the transport's error if a server does not answer.
type silence struct{}

func (silence) Error() string   { return "no answer" }
func (silence) Timeout() bool   { return true }
func (silence) Temporary() bool { return true }

// RoundTrip answers a request, or fails in the test's way.
func (u *unreliable) RoundTrip(r *http.Request) (*http.Response, error) {
	if !u.failing(r) {
		return u.real.RoundTrip(r)
	}
	answer := func(status int) (*http.Response, error) {
		return &http.Response{StatusCode: status, Header: http.Header{}, Body: http.NoBody, ContentLength: 0,
			Request: r}, nil
	}
	switch u.way {
	case "404":
		return answer(http.StatusNotFound)
	case "503":
		return answer(http.StatusServiceUnavailable)
	case "timeout":
		return nil, silence{}
	case "connection refused":
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	r2 := r.Clone(r.Context())
	r2.URL.Path = "/error-page"
	return u.real.RoundTrip(r2)
}

// at is where the batch and its only job are.
func (u *unreliable) at() string {
	b, err := u.Machine.Queue.Batch(u.Context(), u.batch)
	if err != nil || b.State == ingest.BatchPending {
		return "unpack"
	}
	j, err := u.Machine.Queue.Job(u.Context(), ingest.JobID(u.batch, 1))
	if err != nil {
		return string(b.State)
	}
	return string(j.State)
}

// begin submits without a type and runs until nothing changes.
func (u *unreliable) begin(name string) {
	u.Helper()
	b, err := u.Machine.Queue.Submit(u.Context(), ingest.Batch{Collection: "bench", Mode: "add",
		Payload: ingest.Payload{URL: u.Source.URL + "/" + name, Filename: name}}, "", nil, "me")
	if err != nil {
		u.Fatal(err)
	}
	u.batch = b.Batch.ID
	u.settle()
}

// settle runs the queue for two hours of its clock, or until the batch has ended.
func (u *unreliable) settle() {
	u.Helper()
	for range 30 {
		u.later += 4 * time.Minute
		if err := u.Machine.Run(u.Context(), 1); err != nil {
			u.Fatal(err)
		}
		b, err := u.Machine.Queue.Batch(u.Context(), u.batch)
		if err != nil {
			u.Fatal(err)
		}
		open := func(j queue.Job) bool { return j.State.Open() }
		if b.State != ingest.BatchPending && !slices.ContainsFunc(u.jobs(), open) {
			return
		}
	}
}

func (u *unreliable) jobs() []queue.Job {
	u.Helper()
	jobs, err := u.Machine.Queue.Jobs(u.Context(), u.batch, 0)
	if err != nil {
		u.Fatal(err)
	}
	return jobs
}

// content of the producer's files of a job's version, by path.
func (u *unreliable) content(j queue.Job) map[string]string {
	u.Helper()
	stored, err := u.Stages.Root.Head(u.Context(), j.Primary)
	if err != nil {
		u.Fatal(err)
	}
	files, _, err := aip.Of(u.Stages.Root, stored, j.ObjectVersion).Files(u.Context(), 0, 100)
	if err != nil {
		u.Fatal(err)
	}
	out := map[string]string{}
	for _, f := range files {
		key, err := aip.Of(u.Stages.Root, stored, j.ObjectVersion).Content(u.Context(), f.Path)
		if err != nil {
			u.Fatal(err)
		}
		data, _, err := u.Stages.Root.Bucket.Read(u.Context(), key)
		if err != nil {
			u.Fatal(err)
		}
		out[f.Path] = string(data)
	}
	return out
}

func manifest(profile, fields string, rows ...string) string {
	return "#%checkm_0.7\n#%profile | http://uc3.cdlib.org/registry/ingest/manifest/" + profile +
		"\n#%prefix | nfo: | http://www.semanticdesktop.org/ontologies/2007/03/22/nfo#\n#%fields | " + fields + "\n" +
		strings.Join(rows, "\n") + "\n#%eof\n"
}

const (
	fileFields = "nfo:fileUrl | nfo:hashAlgorithm | nfo:hashValue | nfo:fileSize | nfo:fileLastModified | " +
		"nfo:fileName | nie:mimeType"
	batchFields = "nfo:fileUrl | nfo:hashAlgorithm | nfo:hashValue | nfo:fileSize | nfo:fileLastModified | " +
		"nfo:fileName | mrt:primaryIdentifier | mrt:localIdentifier | mrt:creator | mrt:title | mrt:date"
)

// serve makes the source serve a batch manifest of two objects, an object manifest
// of one file, and files.
func (u *unreliable) serve() {
	url := u.Source.URL
	object := manifest("mrt-ingest-manifest", fileFields, url+"/inside.txt | | | | | inside.txt |")
	texts := map[string]string{
		"/object.checkm": object,
		"/batch.checkm": manifest("mrt-batch-manifest", batchFields,
			url+"/object.checkm | | | | | o.checkm | | a1 | | |", url+"/object.checkm | | | | | o.checkm | | a2 | | |"),
		"/error-page": "<!DOCTYPE html><title>Please wait</title>",
	}
	u.Source.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if text, known := texts[r.URL.Path]; known {
			_, _ = w.Write([]byte(text))
			return
		}
		_, _ = fmt.Fprint(w, "content of "+r.URL.Path)
	})
}

// TestPayloadTypeIsNeverGuessed: a payload without a type whose source fails first,
// in any way and at any stage, is never stored as anything but what it is.
func TestPayloadTypeIsNeverGuessed(t *testing.T) {
	want := map[string]string{"batch.checkm": "producer/inside.txt", "object.checkm": "producer/inside.txt",
		"plain.txt": "producer/plain.txt"}
	for way, says := range ways {
		for _, stage := range []string{"unpack once", "unpack", string(ingest.Estimating), string(ingest.Downloading)} {
			for name, file := range want {
				if name == "batch.checkm" && !strings.HasPrefix(stage, "unpack") || name == "object.checkm" &&
					stage == string(ingest.Downloading) {
					continue // it is not fetched then
				}
				t.Run(way+"/"+stage+"/"+name, func(t *testing.T) {
					t.Parallel()
					u := newUnreliable(t, way)
					u.serve()
					failed := 0
					u.failing = func(r *http.Request) bool {
						fails := u.at() == strings.Fields(stage)[0] && r.URL.Path == "/"+name &&
							(stage != "unpack once" || failed == 0)
						if fails {
							failed++
						}
						return fails
					}
					u.begin(name)
					if failed == 0 {
						t.Fatal("the source was not asked")
					}
					u.recover(t, name, stage, says)
					for _, j := range u.jobs() {
						if j.State != ingest.Completed {
							continue
						}
						content := u.content(j)
						if len(content) != 1 || content[file] == "" ||
							content[file] != "content of /"+strings.TrimPrefix(file, "producer/") {
							t.Errorf("stored %q", content)
						}
					}
				})
			}
		}
	}
}

// recover requeues failed jobs once the source works again, and checks the outcome.
func (u *unreliable) recover(t *testing.T, name, stage, says string) {
	t.Helper()
	u.failing = func(*http.Request) bool { return false }
	for _, j := range u.jobs() {
		if j.State != ingest.Failed || j.NotRecoverable {
			continue
		}
		if !strings.Contains(j.Message, says) || !strings.Contains(j.Message, "requeue") {
			t.Errorf("the job says %q; expected %q and what to do", j.Message, says)
		}
		// A requeue cannot make jobs of a batch manifest: as long as it may be one, both ways are named.
		untyped := j.Payload.Type == ""
		if strings.Contains(j.Message, "batch manifest, submit that again") != untyped {
			t.Errorf("the type is %q, and the job says %q", j.Payload.Type, j.Message)
		}
		if _, err := queuetest.Requeue(u.Context(), u.Machine.Queue, j.Job.ID, "the source works again",
			"me"); err != nil {
			t.Fatal(err)
		}
		u.settle()
	}
	jobs := u.jobs()
	if name == "batch.checkm" && stage == "unpack" {
		if len(jobs) != 1 || jobs[0].State != ingest.Failed ||
			!strings.Contains(jobs[0].Message, "Submit it again with the type batch-manifest") {
			t.Errorf("%+v", jobs[0].Job)
		}
		return
	}
	for _, j := range jobs {
		if j.State != ingest.Completed {
			t.Errorf("%s is %s: %s", j.Job.ID, j.State, j.Message)
		}
	}
	if expect := map[string]int{"batch.checkm": 2}[name]; len(jobs) != max(1, expect) {
		t.Errorf("%d jobs", len(jobs))
	}
}

// TestTypeChangesAfterEstimate: what was a plain file when its type was detected and
// is a manifest or a web page when it is downloaded is not stored as a file. A
// requeue detects the type again.
func TestTypeChangesAfterEstimate(t *testing.T) {
	u := newUnreliable(t, "")
	u.serve()
	served := u.Source.Config.Handler
	before := true
	u.Source.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if before && u.at() != string(ingest.Downloading) && r.URL.Path == "/object.checkm" {
			_, _ = w.Write([]byte("please wait"))
			return
		}
		served.ServeHTTP(w, r)
	})
	u.begin("object.checkm")
	j := u.jobs()[0]
	if j.State != ingest.Failed || j.NotRecoverable || !strings.Contains(j.Message, "type object-manifest") {
		t.Fatalf("%s: %q", j.State, j.Message)
	}
	before = false
	if _, err := queuetest.Requeue(t.Context(), u.Machine.Queue, j.Job.ID, "again", "me"); err != nil {
		t.Fatal(err)
	}
	u.settle()
	j = u.jobs()[0]
	if j.State != ingest.Completed || u.content(j)["producer/inside.txt"] == "" {
		t.Errorf("%s: %q", j.State, j.Message)
	}
}
