package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/notify"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/stage"
	"archivist/pkg/ingest/workspace"
	"archivist/pkg/kernel/bucket"
)

// undetailed is a number of files for which a report lists none: the simulation has no
// stored files.
const undetailed = 1000

// report is the stage report itself. Its requests to the work bucket are calls of the actor.
func (a *actor) report(ctx context.Context, claim *queue.Claim) (ingest.Result, error) {
	began := a.w.check.changes
	url := "http://s3.invalid"
	client := s3.New(s3.Options{BaseEndpoint: &url, Region: "us-east-1", UsePathStyle: true, RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""), HTTPClient: bucketClient(a.bucket)})
	work := workspace.Store{Bucket: bucket.Bucket{Client: client, Name: "work", Limits: bucket.DefaultLimits}}
	a.reports = true
	res, err := stage.Report{Work: work, Jobs: a.q.Jobs, Now: a.q.Now}.Run(ctx, claim)
	a.reports = false
	a.w.check.reporting[claim.Batch.ID] = began
	return res, err
}

// bucketClient is the SDK's client as a function.
type bucketClient func(*http.Request) (*http.Response, error)

// Do sends one request.
func (f bucketClient) Do(r *http.Request) (*http.Response, error) { return f(r) }

// bucket sends a request to the twin of the work bucket.
func (a *actor) bucket(r *http.Request) (resp *http.Response, err error) {
	var body []byte
	if r.Body != nil {
		body, err = io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
	}
	op := a.w.twin.Operation(r) + " " + strings.TrimPrefix(r.URL.Path, "/")
	err = a.Do(op, func() error {
		again := r.Clone(context.Background())
		again.Body = io.NopCloser(bytes.NewReader(body))
		rec := httptest.NewRecorder()
		a.w.twin.ServeHTTP(rec, again)
		resp = rec.Result()
		resp.Request = r
		return nil
	})
	return resp, err
}

// reported is what a report has of a job.
type reported struct {
	state ingest.State
	again bool // it can be requeued
	// cancelled: it ended because its batch was cancelled.
	cancelled bool
}

// saved reads a report in the work bucket: what it has of the jobs, and how many lines.
func (c *checker) saved(key string) (jobs map[string]reported, lines int) {
	jobs = map[string]reported{}
	data, there := c.w.twin.Object("work/" + key)
	if !there {
		return jobs, 0
	}
	var r notify.Report
	if err := json.Unmarshal(data, &r); err != nil {
		c.fail("the report %s cannot be read: %v", key, err)
	}
	for _, line := range slices.Concat(r.Failed, r.Completed, r.Deleted, r.Open) {
		jobs[line.Job] = reported{ingest.State(line.State), line.Recoverable, false}
		lines++
	}
	for _, line := range r.Cancelled {
		jobs[line.Job] = reported{ingest.State(line.State), line.Recoverable, true}
		lines++
	}
	return jobs, lines
}

// reports checks a batch that ends with a report, and the mails that become due with it.
func (c *checker) reports(prev, next *queue.Batch, mails map[string]bool) {
	if prev.Report != next.Report {
		c.lists(next)
	}
	c.informs(prev, next, mails)
}

// lists checks the report of a batch: it has each job once, in a state that the job has, or
// had while the report was made.
func (c *checker) lists(b *queue.Batch) {
	jobs, lines := c.saved(b.Report)
	of := 0
	for _, id := range c.sorted() {
		j := c.jobs[id]
		if j.Batch != b.Batch.ID {
			continue
		}
		of++
		is := jobs[id]
		if (is.state != j.State || is.cancelled != j.Cancelled) && c.changed[id] <= c.reporting[j.Batch] {
			c.fail("the report %s of batch %s has job %s as %q (cancelled: %t), but it is %s (%t) since before "+
				"the report was begun", b.Report, b.Batch.ID, id, is.state, is.cancelled, j.State, j.Cancelled)
		}
	}
	if lines != of || len(jobs) != of {
		c.fail("the report %s of batch %s has %d lines about %d of %d jobs", b.Report, b.Batch.ID, lines, len(jobs),
			of)
	}
}

// reportAgrees checks that the report of a Completed batch has no job that failed or is open.
func (c *checker) reportAgrees(b *queue.Batch) {
	jobs, _ := c.saved(b.Report)
	for id, j := range jobs {
		if j.state == ingest.Failed || j.state.Open() {
			c.fail("batch %s is Completed, but its report has job %s as %s", b.Batch.ID, id, j.state)
		}
	}
}

// differ is the number of jobs that have ended in another way than in an earlier report.
func (c *checker) differ(before, after string) (n int) {
	was, _ := c.saved(before)
	is, _ := c.saved(after)
	for id, job := range is {
		if !job.state.Open() && was[id] != job {
			n++
		}
	}
	return n
}

// informs checks which mail becomes due as a batch ends with a report: that of the first
// report always, that of an update only if something has changed.
func (c *checker) informs(prev, next *queue.Batch, mails map[string]bool) {
	update := prev.State == ingest.BatchUpdateReporting
	want := !update || next.Report != prev.Report && c.differ(prev.Report, next.Report) > 0
	kind := ingest.MailReport
	if update {
		kind = ingest.MailUpdateReport
	}
	if due := mails[next.Batch.ID+" "+string(kind)]; c.w.s.mails && due != want {
		c.fail("batch %s ends from %s as %s: mail %v, but %d jobs have another state than in %q", next.Batch.ID,
			prev.State, next.State, due, c.differ(prev.Report, next.Report), prev.Report)
	}
	if update {
		c.w.Met("update reported")
	}
	if update && next.Report == prev.Report && next.Message == "" {
		c.fail("batch %s ends its update without a report", next.Batch.ID)
	}
	if update && want {
		c.w.Met("update mailed")
	}
}
