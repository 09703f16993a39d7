package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
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
	"archivist/pkg/objects/inventory"
)

// TestReportByRedirect: a batch has the path of its report, which redirects to the
// document. So a report can have any size. The token is not sent to the storage.
func TestReportByRedirect(t *testing.T) {
	_, q := serve(t, through)
	var sent []string
	twin := buckettest.New(t.TempDir())
	s3 := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet { // the API itself asks first whether it is there
			sent = append(sent, r.Header.Get("Authorization"))
		}
		twin.ServeHTTP(w, r)
	}))
	defer s3.Close()
	work := bucket.Bucket{Client: buckettest.Client(s3.URL), Name: "work", Limits: bucket.DefaultLimits}
	a := &api.API{Authenticator: programs, Queue: q, Collections: collection.Store{Table: q.Table},
		Inventory: inventory.Store{Table: q.Table}, Work: work, Log: q.Log}
	srv := httptest.NewServer(a.Handler())
	defer srv.Close()
	c := &v1.Client{URL: srv.URL, Bearer: as("theirs"), HTTP: srv.Client()}
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
	sent = nil
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
	if len(sent) != 2 || sent[0] != "" || sent[1] != "" {
		t.Errorf("the storage was sent the tokens %q", sent)
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

// longReport is a report of 40,000 jobs in two lists, of 5 MB, with its lines as CSV.
func longReport() (all v1.Report, want []string) {
	const jobs = 40_000
	none := []v1.ReportJob{}
	all = v1.Report{Warnings: []string{"a warning"}, Cancelled: none, Deleted: none, Open: none}
	want = []string{"job,state,ark,version,local ids,title,files,bytes,source,recoverable,message,warnings"}
	for n := range jobs {
		j := v1.ReportJob{Job: fmt.Sprintf("job-%05d", n), State: "Failed", Title: "=1+1", Message: `a "cause"`}
		if n < jobs/2 {
			all.Failed = append(all.Failed, j)
		} else {
			j.State = "Completed"
			all.Completed = append(all.Completed, j)
		}
		want = append(want, j.Job+","+j.State+`,,0,,'=1+1,0,0,,false,"a ""cause""",`)
	}
	return all, want
}

// TestReportAsCSV: the jobs of a report come in pages as a table, of the report that was the newest at the first page;
// together they are what one page would be. A report that is cut off is no shorter report.
func TestReportAsCSV(t *testing.T) {
	_, q := serve(t, through)
	_, buckets := buckettest.Open(t, "work")
	srv := httptest.NewServer((&api.API{Open: true, Queue: q, Collections: collection.Store{Table: q.Table},
		Inventory: inventory.Store{Table: q.Table}, Work: buckets[0],
		Log: q.Log}).Handler())
	defer srv.Close()
	c := &v1.Client{URL: srv.URL, HTTP: srv.Client()}
	out, err := c.Submit(t.Context(), good, "")
	if err != nil {
		t.Fatal(err)
	}
	end(t, q, out.ID)

	all, want := longReport()
	saved, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	put := func(text []byte) {
		if err := buckets[0].Put(t.Context(), workspace.ReportKey(out.ID, 1), text, bucket.Condition{}); err != nil {
			t.Fatal(err)
		}
	}
	put(saved)

	var got strings.Builder
	if err := c.ReportCSV(t.Context(), out.ID, 0, &got); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(got.String(), "\r\n"), "\r\n")
	if !slices.Equal(lines, want) {
		t.Errorf("%d lines of %d; the first %q, the last %q", len(lines), len(want), lines[:2], lines[len(lines)-1])
	}

	ask := func(query, accept string) (*http.Response, string) {
		url := srv.URL + "/v1/batches/" + out.ID + "/report" + query
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		req.Header.Set("Accept", accept)
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		return resp, string(body)
	}
	first, body := ask("", "text/csv")
	if link := first.Header.Get("Link"); first.StatusCode != 200 || len(body) > 3<<20 ||
		!strings.Contains(link, "number=1") || !strings.Contains(link, "format=csv") ||
		first.Header.Get("Content-Disposition") != `attachment; filename="`+out.ID+`-report.csv"` ||
		first.Header.Get("Content-Type") != "text/csv; charset=utf-8" {
		t.Errorf("%d, %d bytes, %v", first.StatusCode, len(body), first.Header)
	}
	for query, status := range map[string]int{"": 302, "?format=json": 302, "?cursor=3": 422, "?format=xml": 422,
		"?format=csv&cursor=x": 422, "?format=csv&cursor=9": 422, "?format=csv&number=2": 404,
		"?format=csv&number=x": 422} {
		accept := "application/json"
		if query == "?format=json" {
			accept = "text/csv"
		}
		if resp, body := ask(query, accept); resp.StatusCode != status {
			t.Errorf("%s: %d %s", query, resp.StatusCode, body)
		}
	}

	put(saved[:len(saved)/2])
	if err := c.ReportCSV(t.Context(), out.ID, 0, io.Discard); err == nil {
		t.Error("a report that is cut off is complete")
	}
}
