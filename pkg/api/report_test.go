package api_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"archivist/pkg/api"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/collection"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/workspace"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/bucket/buckettest"
	"archivist/pkg/kernel/fault"
)

// TestReportByRedirect: a batch has the path of its report, which redirects to the
// document. So a report can have any size. The API's key is not sent to the storage.
func TestReportByRedirect(t *testing.T) {
	_, q := serve(t, through)
	var keys []string
	twin := buckettest.New(t.TempDir())
	s3 := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet { // the API itself asks first whether it is there
			keys = append(keys, r.Header.Get("x-api-key"))
		}
		twin.ServeHTTP(w, r)
	}))
	defer s3.Close()
	work := bucket.Bucket{Client: buckettest.Client(s3.URL), Name: "work", Limits: bucket.DefaultLimits}
	srv := httptest.NewServer((&api.API{Queue: q, Collections: collection.Store{Table: q.Table}, Work: work,
		Log: q.Log}).Handler())
	defer srv.Close()
	c := &v1.Client{URL: srv.URL, Key: "secret", HTTP: srv.Client()}
	out, err := c.Submit(t.Context(), good, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Report(t.Context(), out.ID, 0); !fault.Is(err, fault.NotFound) || !strings.Contains(err.Error(),
		"has no report") {
		t.Errorf("before the report exists: %v", err)
	}
	large := `{"failed":["` + strings.Repeat("x", 8<<20) + `"]}` // more than the response of a function can have
	if err := work.Put(t.Context(), workspace.ReportKey(out.ID, 1), []byte(large), bucket.Condition{}); err != nil {
		t.Fatal(err)
	}
	end(t, q, out.ID)
	b, err := c.Batch(t.Context(), out.ID)
	if err != nil || b.Report != "/v1/batches/"+out.ID+"/report" {
		t.Errorf("%+v, %v", b, err)
	}
	if len(b.MailProblems) != 1 || b.MailProblems[0].To != "a@example.org" || b.MailProblems[0].NextTry == "" ||
		!strings.Contains(b.MailProblems[0].Text,
			"report mail to a@example.org could not be delivered: no; next try at ") {
		t.Errorf("%+v", b.MailProblems)
	}
	keys = nil
	body, err := c.Report(t.Context(), out.ID, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	if got, err := io.ReadAll(body); err != nil || string(got) != large {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if body, err = c.Report(t.Context(), out.ID, 1); err == nil {
		body.Close()
	}
	if err != nil || b.Reports != 1 {
		t.Errorf("the first of %d reports: %v", b.Reports, err)
	}
	if _, err := c.Report(t.Context(), out.ID, 2); !fault.Is(err, fault.NotFound) || !strings.Contains(err.Error(),
		"has no report 2; the newest is report 1") {
		t.Errorf("a report that does not exist: %v", err)
	}
	if err := work.Delete(t.Context(), workspace.ReportKey(out.ID, 1)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Report(t.Context(), out.ID, 0); !fault.Is(err, fault.NotFound) || !strings.Contains(err.Error(),
		"the saved report of batch "+out.ID+" is missing") {
		t.Errorf("a report that is gone: %v", err)
	}
	if len(keys) != 2 || keys[0] != "" || keys[1] != "" {
		t.Errorf("the storage was sent the keys %q", keys)
	}
}

// end ends a batch with a report, whose mail is refused.
func end(t *testing.T, q *queue.Queue, id string) {
	t.Helper()
	q.Compose = func(context.Context, *ingest.Batch, ingest.Mail) ([]string, func(context.Context, string) error,
		error) {
		return []string{"a@example.org"}, func(context.Context, string) error { return errors.New("no") }, nil
	}
	unpack, _ := ingest.StageNamed("unpack")
	w := queue.Worker{Queue: q, Stage: unpack, Step: func(_ context.Context, h *queue.Claim) (ingest.Result, error) {
		h.Batch.Report = workspace.ReportKey(id, 1)
		return ingest.Fail(false, "it is no good"), nil
	}}
	if _, err := w.Handle(t.Context(), queue.Message{Batch: id, Exec: 1, Step: "unpack"}); err != nil {
		t.Fatal(err)
	}
}
