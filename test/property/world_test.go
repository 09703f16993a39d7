// Package property submits random content to the production API and stages, on twins of
// S3 and DynamoDB, and compares all answers of the archive with what the sources served and
// what is in the storage root.
//
// A submission is drawn with hostile names, texts, identifiers and sources. An accepted
// submission must be preserved unchanged, or fail with a reason; a refused one must leave
// nothing behind.
package property

import (
	"bytes"
	"context"
	"encoding/xml"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"archivist/pkg/api"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/collection"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/queue/queuetest"
	"archivist/pkg/ingest/stage"
	"archivist/pkg/ingest/stage/stagetest"
	"archivist/pkg/kernel/bucket/buckettest"
	"archivist/pkg/kernel/table/tabletest"
)

// world is one archive on twins, in a bubble with its own time, with the sources of its
// depositors.
type world struct {
	m      *queuetest.Machine
	s      *stage.Stages
	fake   *tabletest.Fake
	twin   *buckettest.Twin
	api    *v1.Client
	source *source
	known  *archive

	// overtaken are the jobs whose requeue was refused.
	overtaken map[string]bool

	mu    sync.Mutex
	mails [][]byte
	log   bytes.Buffer
	door  *door
	wrong []finding // what is not as promised
}

// finding is something wrong; kind is the same for others like it.
type finding struct{ kind, text string }

// inWorld runs f in a new world and returns its findings.
func inWorld(t *testing.T, f func(ctx context.Context, w *world)) (wrong []finding, log string) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t.TempDir())
		defer w.source.close()
		defer doors.Put(w.door)
		f(t.Context(), w)
		wrong, log = w.wrong, w.log.String()
	})
	return wrong, log
}

// door is an API with its routes. To describe these takes as long as to play a history, so each process does it once.
type door struct {
	api     *api.API
	handler http.Handler
}

var doors = sync.Pool{New: func() any {
	a := &api.API{}
	return &door{a, a.Handler()}
}}

func newWorld(dir string) *world {
	w := &world{fake: tabletest.New(), twin: buckettest.New(dir), source: newSource(), known: newArchive(),
		overtaken: map[string]bool{}}
	w.m = queuetest.New(tabletest.Table(w.fake), time.Now, 50)
	w.m.Queue.Log = slog.New(slog.NewTextHandler(&locked{w: w}, nil))
	w.s = stagetest.New(w.m, "http://s3")
	w.s.Work.Client = client(w)
	w.s.Root.Work.Client, w.s.Root.Bucket.Client = w.s.Work.Client, w.s.Work.Client
	w.source.serve(w.s.Fetch)
	w.s.MailFrom, w.s.SendMail = "archive@example.org", func(_ context.Context, raw []byte) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.mails = append(w.mails, raw)
		return nil
	}
	w.m.Step = func(st ingest.Stage) queue.Step { return w.guarded(st.Name, w.s.Steps()[st.Name]) }
	w.door = doors.Get().(*door)
	*w.door.api = api.API{Open: true, Queue: w.m.Queue, Inventory: w.s.Inventory, Collections: w.s.Collections,
		Root: w.s.Root,
		Work: w.s.Work.Bucket, Identity: w.s.Identity(), Log: w.m.Queue.Log}
	w.api = &v1.Client{URL: "http://archive", HTTP: &http.Client{Transport: inProcess{w, "archive", w.door.handler},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	return w
}

func client(w *world) *s3.Client {
	return s3.New(s3.Options{BaseEndpoint: aws.String("http://s3"), Region: "us-east-1", UsePathStyle: true,
		RetryMaxAttempts: 1,
		Credentials:      credentials.NewStaticCredentialsProvider("a", "b", ""),
		HTTPClient:       &http.Client{Transport: inProcess{w, "s3", w.twin}}})
}

// profile gives a collection a profile.
func (w *world) profile(ctx context.Context, name string, p collection.Profile) {
	if err := w.s.Collections.Put(ctx, name, p, collection.By{Actor: "test"}, time.Now().UnixMilli()); err != nil {
		w.fail("the profile of %s: %v", name, err)
	}
}

// fail records a finding.
func (w *world) fail(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrong = append(w.wrong, finding{format, fmt.Sprintf(format, args...)})
}

// locked is the log, which has concurrent writers.
type locked struct{ w *world }

func (l *locked) Write(p []byte) (int, error) {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	return l.w.log.Write(p)
}

// guarded turns a step's panic into a failure of the test that names the
// submission.
func (w *world) guarded(name string, step queue.Step) queue.Step {
	return func(ctx context.Context, claim *queue.Claim) (res ingest.Result, err error) {
		defer func() {
			if p := recover(); p != nil {
				w.fail("%s panics: %v\n%s", name, p, debug.Stack())
				err = fmt.Errorf("panic: %v", p)
			}
		}()
		return step(ctx, claim)
	}
}

// inProcess carries requests to a handler without a network.
type inProcess struct {
	w       *world
	host    string
	handler http.Handler
}

func (p inProcess) RoundTrip(r *http.Request) (resp *http.Response, err error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	in := r.Clone(r.Context())
	if in.Body == nil {
		in.Body = http.NoBody
	}
	defer in.Body.Close()
	defer func() {
		if v := recover(); v != nil {
			p.w.fail("%s %s panics: %v\n%s", r.Method, r.URL, v, debug.Stack())
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	rec := httptest.NewRecorder()
	p.handler.ServeHTTP(rec, in)
	resp = rec.Result()
	resp.Request = r
	return resp, nil
}

// rest runs the archive until nothing is in progress.
func (w *world) rest(ctx context.Context, batches []string) {
	for n := range 300 {
		if err := w.m.Run(ctx, 1); err != nil {
			w.fail("the queue: %v", err)
			return
		}
		if !slices.ContainsFunc(batches, func(id string) bool { return w.open(ctx, id) }) {
			return
		}
		time.Sleep(time.Minute * time.Duration(1+n/30)) // of the bubble
	}
	for _, id := range batches {
		w.fail("batch %s does not end: %s", id, w.explain(ctx, id))
	}
}

func (w *world) open(ctx context.Context, batch string) bool {
	b, err := w.api.Batch(ctx, batch)
	if err != nil {
		w.fail("batch %s: %v", batch, err)
		return false
	}
	return b.Counts.Processing > 0 || b.State != string(ingest.BatchCompleted) && b.State != string(ingest.BatchFailed)
}

func (w *world) explain(ctx context.Context, batch string) string {
	x, err := w.api.Explain(ctx, batch)
	jobs, jobsErr := w.api.Jobs(ctx, v1.Filter{Batch: batch})
	text := fmt.Sprintf("%+v %v %v", x, err, jobsErr)
	for _, j := range jobs {
		text += fmt.Sprintf("; %s is %s: %s", j.ID, j.State, short(j.Message))
	}
	return text
}

// object reads an object of a bucket, without our own client.
func (w *world) object(bucket, key string) ([]byte, bool) {
	rec := httptest.NewRecorder()
	w.twin.ServeHTTP(rec, &http.Request{Method: http.MethodGet, URL: &url.URL{Path: "/" + bucket + "/" + key},
		Header: http.Header{}, Body: http.NoBody})
	return rec.Body.Bytes(), rec.Code == http.StatusOK
}

// keys lists the keys of a bucket, without our own client.
func (w *world) keys(bucket string) (keys []string) {
	for after := ""; ; {
		q := url.Values{"list-type": {"2"}, "continuation-token": {after}}
		rec := httptest.NewRecorder()
		w.twin.ServeHTTP(rec, &http.Request{Method: http.MethodGet, URL: &url.URL{Path: "/" + bucket,
			RawQuery: q.Encode()}, Header: http.Header{}, Body: http.NoBody})
		var page struct {
			Contents              []struct{ Key string }
			NextContinuationToken string
		}
		if err := xml.Unmarshal(rec.Body.Bytes(), &page); err != nil {
			w.fail("the list of %s: %v", bucket, err)
			return keys
		}
		for _, c := range page.Contents {
			keys = append(keys, c.Key)
		}
		after = page.NextContinuationToken
		if after == "" {
			return keys
		}
	}
}

// read follows a redirect to content and reads it.
func (w *world) read(location string) []byte {
	u, err := url.Parse(location)
	if err != nil {
		w.fail("the redirect to %s: %v", location, err)
		return nil
	}
	bucket, key, _ := strings.Cut(strings.TrimPrefix(u.Path, "/"), "/")
	data, _ := w.object(bucket, key)
	return data
}

// text is an attribute of a row.
func text(item tabletest.Item, name string) string {
	if s, ok := item[name].(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}
