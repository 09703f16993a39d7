package stage_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aws/smithy-go"

	"archivist/pkg/events/event"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/collection"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/fetch"
	"archivist/pkg/kernel/table/tabletest"
)

// troubled is a deployment of which one part fails.
type troubled struct {
	*unreliable
	db       *tabletest.Client
	at       atomic.Value // the stage whose step runs now, or ""
	payload  ingest.Payload
	draining bool                            // workers handle messages
	stage    string                          // that fails
	step     func(ctx context.Context) error // in place of the stage's step, if set
	bucket   func(op, name string) int       // what the buckets answer while the stage's step runs
	table    func(partition string) error    // what the table answers meanwhile
	take     func(partition string) error    // what it answers a worker outside a step
	source   func(http.ResponseWriter, *http.Request)
}

func newTroubled(t *testing.T) *troubled {
	u := &troubled{unreliable: newUnreliable(t, "")}
	u.at.Store("")
	u.db = &tabletest.Client{DynamoDBAPI: u.Rows, Do: func(_ string, call func() error) error { return call() }}
	*u.Machine.Queue.Table = *tabletest.Table(u.db)
	u.Machine.Queue.Table.Wait = func(context.Context, time.Duration) error { return nil }
	u.db.Refuse = func(partition string) error {
		switch {
		case u.at.Load() == u.stage && u.table != nil:
			return u.table(partition)
		case u.at.Load() == "" && u.draining && u.take != nil:
			return u.take(partition)
		}
		return nil
	}
	u.S3.Before = func(op, name string) int {
		if u.bucket != nil && u.at.Load() == u.stage {
			return u.bucket(op, name)
		}
		return 0
	}
	steps := u.Machine.Step
	u.Machine.Step = func(s ingest.Stage) queue.Step {
		return func(ctx context.Context, h *queue.Claim) (ingest.Result, error) {
			u.at.Store(s.Name)
			defer u.at.Store("")
			if u.step != nil && s.Name == u.stage {
				return ingest.Result{}, u.step(ctx)
			}
			return steps(s)(ctx, h)
		}
	}
	u.source = func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("content")) }
	u.unreliable.Source.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter,
		r *http.Request) {
		u.source(w, r)
	})
	u.payload = ingest.Payload{URL: u.unreliable.Source.URL + "/a.txt", Type: ingest.TypeFile, Filename: "a.txt"}
	return u
}

// errKilled is the panic of a killed worker.
var errKilled = errors.New("killed")

// drive handles messages and ticks for three hours. Errors and deaths of workers are
// expected.
func (u *troubled) drive(each func()) {
	ctx := u.Context()
	for range 45 {
		u.later += 4 * time.Minute
		for range 20 {
			if u.drained(ctx) {
				break
			}
		}
		each()
		_ = u.Machine.Scheduler.Tick(ctx, true)
	}
}

func (u *troubled) drained(ctx context.Context) (done bool) {
	u.draining = true
	defer func() {
		u.draining = false
		if r := recover(); r != nil && r != errKilled {
			panic(r)
		}
		u.at.Store("")
	}()
	return u.Machine.Drain(ctx) == nil
}

var denied = &smithy.GenericAPIError{Code: "AccessDeniedException", Message: "not authorized",
	Fault: smithy.FaultClient}

// causes are what can be wrong, and what the message must contain.
var causes = []struct {
	name     string
	arrange  func(u *troubled)
	says     []string
	final    bool // it cannot be requeued
	unseen   bool // the cause was not seen
	unfailed bool // the job cannot be failed, since no worker may write its row: explain reports it
}{
	{name: "source silent", says: []string{"/a.txt: no response header for 0.05 s", "Correct the source, then requeue"},
		arrange: func(u *troubled) {
			u.Stages.Fetch.Limits = shortLimits
			u.source = func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
		}},
	{name: "source slow", says: []string{"received 12 of 1,400 bytes, then nothing for 0.05 s",
		"Correct the source, then requeue"},
		arrange: func(u *troubled) {
			u.Stages.Fetch.Limits = shortLimits
			u.source = func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Length", "1400")
				if r.Method == http.MethodHead {
					return
				}
				_, _ = w.Write([]byte("twelve bytes"))
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
			}
		}},
	{name: "404", says: []string{"/a.txt answered 404 Not Found", "Correct the source, then requeue"},
		arrange: func(u *troubled) { u.source = http.NotFound }},
	{name: "503", says: []string{"/a.txt answered 503 Service Unavailable and asks to wait 7 s (tried 4 times)",
		"Correct the source, then requeue"},
		arrange: func(u *troubled) {
			u.source = func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", "7")
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		}},
	{name: "connection refused", says: []string{"connection refused", "Correct the source, then requeue"},
		arrange: func(u *troubled) {
			u.way, u.failing = "connection refused", func(*http.Request) bool { return true }
		}},
	{name: "redirect into a private network", final: true,
		says: []string{"redirects to 169.254.169.254, which is not a public address", "submit it again"},
		arrange: func(u *troubled) {
			u.source = func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "http://169.254.169.254/latest", http.StatusFound)
			}
		}},
	{name: "certificate", says: []string{"certificate signed by unknown authority", "Correct the source, then requeue"},
		arrange: func(u *troubled) {
			tls := httptest.NewUnstartedServer(http.NotFoundHandler())
			tls.Config.ErrorLog = log.New(io.Discard, "", 0)
			tls.StartTLS()
			u.Cleanup(tls.Close)
			u.payload.URL = tls.URL + "/a.txt"
		}},
	{name: "bad manifest", final: true,
		says: []string{`the manifest is rejected: line 5, column 1: found "nonsense"; expected an http or https URL`},
		arrange: func(u *troubled) {
			u.payload.Type = ingest.TypeObjectManifest
			u.source = func(w http.ResponseWriter, _ *http.Request) {
				_, _ = w.Write([]byte(manifest("mrt-ingest-manifest", fileFields, "nonsense | | | | | a |")))
			}
		}},
	{name: "wrong digest", final: true, says: []string{"the depositor's md5 is 00000000000000000000000000000000, " +
		"but 9a0364b9e99bb480dd25e1f0284c8555 was computed over 7 bytes received"},
		arrange: func(u *troubled) { u.payload.Algorithm, u.payload.Digest = "md5", strings.Repeat("0", 32) }},
	{name: "work bucket refuses", says: []string{"the bucket work refused PutObject: AccessDenied",
		"Check the permissions of the function that made the call", "requeue"},
		arrange: func(u *troubled) { u.stage, u.bucket = "download", refuse("work/", http.StatusForbidden) }},
	{name: "storage bucket refuses", says: []string{"the bucket storage refused", "AccessDenied",
		"Check the permissions of the function that made the call", "requeue"},
		arrange: func(u *troubled) { u.stage, u.bucket = "store", refuse("storage/", http.StatusForbidden) }},
	{name: "storage bucket is slow down", says: []string{"the bucket storage is throttled", "SlowDown", "requeue"},
		arrange: func(u *troubled) { u.stage, u.bucket = "store", refuse("storage/", http.StatusServiceUnavailable) }},
	{name: "table throttled", says: []string{"the table is throttled: ", "ProvisionedThroughputExceeded", "quotas",
		"requeue"},
		arrange: func(u *troubled) {
			u.stage, u.table = "process", func(string) error { return tabletest.Throttled() }
		}},
	{name: "permission for some rows missing",
		says: []string{"the table refused ", "AccessDeniedException",
			"Check the permissions of the function that made the call"},
		arrange: func(u *troubled) { u.stage, u.table = "process", func(string) error { return denied } }},
	{name: "permission for the table missing", unfailed: true,
		says: []string{"no worker could take it", "permissions for the table", "function estimate"},
		arrange: func(u *troubled) {
			u.take = func(partition string) error {
				if strings.HasPrefix(partition, "JOB#") && strings.HasSuffix(partition, "-00001") {
					return denied
				}
				return nil
			}
		}},
	{name: "secret refused", says: []string{"preserved as ark:/", "the secret archivist/bench cannot be read",
		"AccessDeniedException", "Correct the secret, its name in the profile", "requeue"},
		arrange: func(u *troubled) {
			p := collection.Profile{Callback: collection.Callback{URL: "https://example.org/",
				Secret: "archivist/bench"}}
			if err := u.Stages.Collections.Put(u.Context(), "bench", p, collection.By{Actor: "me"}, 0); err != nil {
				u.Fatal(err)
			}
			u.Stages.Secret = func(context.Context, string) (string, error) { return "", denied }
		}},
	{name: "worker killed, or out of memory", unseen: true,
		says: []string{"the worker ended without an answer: it was killed, or ran out of memory or time",
			"log of the function download", "requeue"},
		arrange: func(u *troubled) { u.stage, u.step = "download", func(context.Context) error { panic(errKilled) } }},
	{name: "function time-out", says: []string{"the function ran out of time", "requeue"},
		arrange: func(u *troubled) {
			u.Machine.Queue.Rules.Timing.Long, u.Machine.Queue.Rules.Timing.Pause = 60*time.Millisecond,
				20*time.Millisecond
			u.stage, u.step = "store", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		}},
	{name: "a cause was seen before the worker was killed", says: []string{"connection reset by peer", "requeue"},
		arrange: func(u *troubled) {
			n := 0
			u.stage, u.step = "download", func(context.Context) error {
				n++
				if n == 1 {
					return syscall.ECONNRESET
				}
				panic(errKilled)
			}
		}},
}

var shortLimits = fetch.Limits{Connect: time.Second, TLS: time.Second, Header: 50 * time.Millisecond,
	Data: 50 * time.Millisecond, Small: 50 * time.Millisecond}

func refuse(prefix string, status int) func(op, name string) int {
	return func(op, name string) int {
		if strings.HasPrefix(name, prefix) && strings.HasPrefix(op, "PUT") {
			return status
		}
		return 0
	}
}

// TestTrueCause: the job's message, explain, the event and the report each name what is
// wrong and what to do next.
func TestTrueCause(t *testing.T) {
	for _, c := range causes {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			u := newTroubled(t)
			c.arrange(u)
			b, err := u.Machine.Queue.Submit(t.Context(),
				ingest.Batch{Collection: "bench", Mode: "add", Payload: u.payload},
				"", nil, "me")
			if err != nil {
				t.Fatal(err)
			}
			id := ingest.JobID(b.Batch.ID, 1)
			explained := map[string]bool{}
			u.drive(func() {
				if x, err := u.Machine.Queue.ExplainJob(t.Context(), id); err == nil {
					explained[x.Why] = true
				}
			})
			u.take = nil
			u.check(c.says, id, explained, c.unfailed)
			for text := range explained {
				if strings.Contains(text, "ended without an answer") && !c.unseen {
					t.Errorf("explain said %q of a cause that was seen", text)
				}
			}
			j := u.Job(id)
			if c.unfailed {
				return
			}
			if j.State != ingest.Failed || j.NotRecoverable != c.final {
				t.Errorf("the job is %s, final %v: %s", j.State, j.NotRecoverable, j.Message)
			}
		})
	}
}

// check fails unless every place where a person looks has all the texts.
func (u *troubled) check(says []string, id string, explained map[string]bool, unfailed bool) {
	u.Helper()
	places := map[string]string{}
	for text := range explained {
		places["explain"] += text + "\n"
	}
	if !unfailed {
		places["the job"] = u.Job(id).Message
		places["the events"] = u.events(event.Job, id)
		report, _, err := u.Stages.Work.Read(u.Context(), "reports/"+u.Job(id).Batch+".json")
		if err != nil {
			u.Error(err)
		}
		places["the report"] = strings.ReplaceAll(string(report), `\"`, `"`)
		places["the report"] = strings.ReplaceAll(places["the report"], `\u0026`, `&`)
	}
	for place, text := range places {
		for _, want := range says {
			if !strings.Contains(text, want) {
				u.Errorf("%s does not say %q: %s", place, want, text)
			}
		}
	}
}

func (u *troubled) events(of event.Type, id string) string {
	u.Helper()
	out := ""
	for cursor := ""; ; {
		p, err := u.Machine.Queue.Events(u.Context(), event.Subject{Type: of, ID: id}, cursor)
		if err != nil {
			u.Fatal(err)
		}
		for _, e := range p.Items {
			out += strings.ReplaceAll(e.Detail, `\"`, `"`) + "\n"
		}
		cursor = p.Cursor
		if cursor == "" {
			return out
		}
	}
}

// TestTrueCauseOfBatch: the batch, explain and the events report why a submission has no
// jobs.
func TestTrueCauseOfBatch(t *testing.T) {
	for name, c := range map[string]struct {
		arrange func(u *troubled)
		says    []string
	}{
		"404": {func(u *troubled) { u.source = http.NotFound },
			[]string{"/a.txt answered 404 Not Found", "Correct the source, then submit it again"}},
		"web page": {func(u *troubled) {
			u.source = func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<!doctype html>")) }
		}, []string{"/a.txt: received a web page (HTML); expected a manifest", "submit it again"}},
		"redirect into a private network": {func(u *troubled) {
			u.source = func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "http://10.0.0.1/", http.StatusFound)
			}
		}, []string{"redirects to 10.0.0.1, which is not a public address", "submit it again"}},
		"bad row": {func(u *troubled) {
			u.source = func(w http.ResponseWriter, _ *http.Request) {
				_, _ = w.Write([]byte(manifest("mrt-batch-manifest", batchFields, "nonsense | | | | | a | | | | |")))
			}
		}, []string{`line 5, column 1: found "nonsense"; expected an http or https URL`}},
		"wrong digest": {func(u *troubled) {
			u.payload.Algorithm, u.payload.Digest = "md5", strings.Repeat("0", 32)
		}, []string{"the manifest", "the depositor's md5 is 0000"}},
		"work bucket refuses": {
			func(u *troubled) { u.stage, u.bucket = "unpack", refuse("work/batches/", http.StatusForbidden) },
			[]string{"the bucket work refused PutObject: AccessDenied", "Check the permissions", "submit again"}},
		"worker killed": {
			func(u *troubled) { u.stage, u.step = "unpack", func(context.Context) error { panic(errKilled) } },
			[]string{"it was killed, or ran out of memory or time", "log of the function unpack", "submit again"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newTroubled(t)
			u.source = func(w http.ResponseWriter, _ *http.Request) {
				_, _ = w.Write([]byte(manifest("mrt-batch-manifest", batchFields, "http://x/a | | | | | a | | | | |")))
			}
			c.arrange(u)
			u.payload.Type = ingest.TypeBatchManifest
			b, err := u.Machine.Queue.Submit(t.Context(),
				ingest.Batch{Collection: "bench", Mode: "add", Payload: u.payload},
				"", nil, "me")
			if err != nil {
				t.Fatal(err)
			}
			u.drive(func() {})
			row, err := u.Machine.Queue.Batch(t.Context(), b.Batch.ID)
			if err != nil || row.State != ingest.BatchFailed || row.Unpacked > 0 {
				t.Fatalf("%s, %d jobs, %v", row.State, row.Unpacked, err)
			}
			x, err := u.Machine.Queue.ExplainBatch(t.Context(), b.Batch.ID)
			if err != nil {
				t.Fatal(err)
			}
			for place, text := range map[string]string{"the batch": row.Message, "explain": x.Why,
				"the events": u.events(event.Batch, b.Batch.ID)} {
				for _, want := range c.says {
					if !strings.Contains(text, want) {
						t.Errorf("%s does not say %q: %s", place, want, text)
					}
				}
			}
		})
	}
}

// TestReportWithoutFiles: a report that cannot list the files of a job says why, in our words.
func TestReportWithoutFiles(t *testing.T) {
	u := newTroubled(t)
	u.stage, u.bucket = "report", func(op, name string) int {
		if strings.HasPrefix(op, "GET") && strings.HasPrefix(name, "storage/") {
			return http.StatusForbidden
		}
		return 0
	}
	b, err := u.Machine.Queue.Submit(t.Context(),
		ingest.Batch{Collection: "bench", Mode: "add", Payload: u.payload}, "", nil, "me")
	if err != nil {
		t.Fatal(err)
	}
	u.drive(func() {})
	report := u.report(b.Batch.ID)
	if len(report.Completed) != 1 || !strings.HasPrefix(report.Completed[0].Problem,
		"the files could not be listed: the bucket storage refused GetObject: AccessDenied. Check the permissions") {
		t.Errorf("%+v", report)
	}
}
