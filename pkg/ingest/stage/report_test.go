package stage_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"archivist/pkg/formats/checkm"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/notify"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/queue/queuetest"
	"archivist/pkg/ingest/workspace"
	"archivist/pkg/objects/aip"
)

// report reads a batch's saved report.
func (w *twins) report(batch string) (r notify.Report) {
	w.Helper()
	b, err := w.Machine.Queue.Batch(w.Context(), batch)
	if err != nil {
		w.Fatal(err)
	}
	data, _, err := w.Stages.Work.Read(w.Context(), b.Report)
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err != nil {
		w.Fatalf("the report of %s (%s): %v", batch, b.State, err)
	}
	return r
}

// reported is the one file of the objects whose report is tested.
const reported = "content of a"

// reportSource serves a batch manifest of five objects: of one file, of 21 and of 20, with a wrong digest, and gone.
func reportSource(out http.ResponseWriter, r *http.Request) {
	var rows []checkm.Row
	row := checkm.Row{URL: "http://" + r.Host + "/a", Name: "a.txt", Algorithm: "md5",
		Digest: "3939143418786c525351edbd330b7769", Size: 99}
	switch r.URL.Path {
	case "/a":
		_, _ = out.Write([]byte(reported))
		return
	case "/good":
		rows = []checkm.Row{row}
	case "/many", "/twenty":
		for n := range map[string]int{"/many": 21, "/twenty": 20}[r.URL.Path] {
			rows = append(rows, checkm.Row{URL: row.URL, Name: fmt.Sprintf("%d.txt", n), Size: -1})
		}
	case "/wrong":
		row.Digest = strings.Repeat("0", 32)
		rows = []checkm.Row{row}
	case "/batch":
		for _, name := range []string{"good", "many", "wrong", "gone", "twenty"} {
			rows = append(rows, checkm.Row{URL: "http://" + r.Host + "/" + name, Name: name, Local: []string{name},
				Title: "Title of " + name, Size: -1})
		}
		_ = checkm.WriteBatch(out, "http://uc3.cdlib.org/registry/ingest/manifest/mrt-batch-manifest", rows)
		return
	default:
		http.NotFound(out, r)
		return
	}
	_ = checkm.Write(out, "http://uc3.cdlib.org/registry/ingest/manifest/mrt-ingest-manifest", rows)
}

// TestReport: each job's line states what is preserved, file by file, or what to do.
func TestReport(t *testing.T) {
	w := newTwins(t)
	source := httptest.NewServer(http.HandlerFunc(reportSource))
	defer source.Close()
	in := ingest.Batch{Collection: "bench", Mode: "add", Note: "a note",
		Payload: ingest.Payload{URL: source.URL + "/batch", Type: ingest.TypeBatchManifest, Filename: "b"}}
	row, err := w.Machine.Queue.Submit(t.Context(), in, "", nil, "me")
	if err != nil {
		t.Fatal(err)
	}
	w.Drive()
	id := row.Batch.ID
	r := w.report(id)
	if r.Batch != id || r.Collection != "bench" || r.Note != "a note" ||
		r.Counts != (notify.Counts{Failed: 2, Completed: 3}) || len(r.Failed) != 2 || len(r.Completed) != 3 ||
		r.Open == nil {
		t.Fatalf("%+v", r)
	}
	good, job := r.Completed[0], w.Job(ingest.JobID(id, 1))
	if good.ARK != job.Primary || good.Version != 1 || good.InventoryDigest != job.Inventory ||
		good.Receipt != "/v1/jobs/"+job.Job.ID+"/receipt" || good.Title != "Title of good" ||
		len(good.Warnings) != 1 || !strings.Contains(good.Warnings[0], "file a.txt: the depositor's size is 99 bytes") {
		t.Errorf("%+v", good)
	}
	if f := good.FileDetails; len(f) != 1 || f[0].Path != "producer/a.txt" || f[0].Size != int64(len(reported)) ||
		f[0].Given == nil || f[0].Given.Algorithm != "md5" ||
		f[0].Given.Value != "3939143418786c525351edbd330b7769" || len(f[0].Digests["sha512"]) != 128 ||
		!strings.Contains(f[0].Warning, "99") {
		t.Errorf("%+v", f)
	}
	if many, twenty := r.Completed[1], r.Completed[2]; many.Files != 21 || len(many.FileDetails) != 0 ||
		many.Receipt == "" || len(twenty.FileDetails) != 20 {
		t.Errorf("%+v, %+v", many, twenty)
	}
	for i, says := range []string{"the depositor's md5 is 0000", "404"} {
		if f := r.Failed[i]; !strings.Contains(f.Message, says) || f.Recoverable != (i == 1) ||
			f.Next != notify.NextStep(false, f.Recoverable) || f.Receipt != "" {
			t.Errorf("%+v", f)
		}
	}
}

// TestNoCharsetIsGuessed: a text file's type is recorded without a charset, unless the
// depositor names one.
func TestNoCharsetIsGuessed(t *testing.T) {
	w := newTwins(t)
	j := w.Ended(w.Submit("latin1.txt"), 1, false)
	stored, err := w.Stages.Root.Head(t.Context(), j.Primary)
	if err != nil {
		t.Fatal(err)
	}
	files, _, err := aip.Of(w.Stages.Root, stored, 1).Files(t.Context(), 0, 1)
	if err != nil || len(files) != 1 || files[0].MediaType != "text/plain" {
		t.Errorf("%+v, %v", files, err)
	}
}

// failingJobs makes the twins' jobs fail at Estimate, n of a batch, without sources. title is
// the length of their titles.
func (w *twins) failingJobs(n, title int) {
	jobs := make([]ingest.Job, n)
	for i := range jobs {
		jobs[i] = ingest.Job{Collection: "bench",
			Metadata: ingest.Metadata{What: fmt.Sprint("object ", i+1, " ", strings.Repeat("x", title))}}
	}
	real := w.Machine.Step
	w.Machine.Step = func(st ingest.Stage) queue.Step {
		switch st.Name {
		case "unpack":
			return func(ctx context.Context, h *queue.Claim) (ingest.Result, error) {
				for h.Batch.Unpacked < n {
					left := jobs[h.Batch.Unpacked:]
					if err := h.Unpack(ctx, left[:queue.Chunk(left)], n); err != nil {
						return ingest.Result{}, err
					}
				}
				return ingest.Result{Outcome: ingest.StepNext}, nil
			}
		case "estimate":
			return func(_ context.Context, h *queue.Claim) (ingest.Result, error) {
				return ingest.Fail(true, h.Job.ID+" cannot be fetched"), nil
			}
		}
		return real(st)
	}
}

// TestReportInPages: a report of many jobs continues, through the state machine, from the
// page where its time was up. It has every job once, and no page is made twice.
func TestReportInPages(t *testing.T) {
	w := newTwins(t)
	const n = 1100
	w.failingJobs(n, 6000)
	w.Machine.Queue.Settings.MaxInFlight = n
	now := time.Now()
	w.Machine.Queue.Now, w.Stages.Now, w.Machine.Scheduler.Leases.Now = func() time.Time { return now },
		func() time.Time { return now }, func() time.Time { return now }
	pages, steps := map[string]int{}, 0
	step := w.Machine.Step
	w.Machine.Step = func(st ingest.Stage) queue.Step {
		if st.Name == "report" {
			steps++
		}
		return step(st)
	}
	w.S3.Before = func(op, name string) int {
		if op == "PUT object" && strings.Contains(name, "/report-") {
			pages[name]++
			now = now.Add(30 * time.Second) // two pages are more than the step's time
		}
		return 0
	}
	sent := w.Mails(func(string) error { return nil })
	send, largest := w.Stages.SendMail, 0
	w.Stages.SendMail = func(ctx context.Context, raw []byte) error {
		largest = max(largest, len(raw))
		return send(ctx, raw)
	}
	row, err := w.Machine.Queue.Submit(t.Context(),
		ingest.Batch{Collection: "bench", Mode: "add", Mail: []string{"me@example.org"}}, "", nil, "me")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Machine.Run(t.Context(), 4); err != nil {
		t.Fatal(err)
	}
	b, err := w.Machine.Queue.Batch(t.Context(), row.Batch.ID)
	if err != nil || b.State != ingest.BatchFailed || b.Repairs != 0 {
		t.Fatalf("the batch is %s after %d repairs, %v", b.State, b.Repairs, err)
	}
	if len(pages) != 5 || steps != 3 {
		t.Errorf("%d pages in %d steps", len(pages), steps)
	}
	for name, times := range pages {
		if times != 1 {
			t.Errorf("%s was made %d times", name, times)
		}
	}
	r := w.report(row.Batch.ID)
	if r.Counts.Failed != n || len(r.Failed) != n {
		t.Fatalf("%+v, %d lines", r.Counts, len(r.Failed))
	}
	for i, f := range r.Failed {
		if f.Job != ingest.JobID(row.Batch.ID, i+1) || !strings.Contains(f.Message, f.Job) {
			t.Fatalf("line %d is of %s: %s", i, f.Job, f.Message)
		}
	}
	if len(*sent) != 2 || !strings.Contains((*sent)[1], "1100 of 1100 objects failed") {
		t.Errorf("sent %q", *sent)
	}
	if info, err := w.Stages.Work.Head(t.Context(), b.Report); err != nil || info.Size < notify.MaxAttached ||
		largest > 500_000 {
		t.Errorf("the report has %d bytes, %v; its mail %d", info.Size, err, largest)
	}
}

// TestReportAgreesWithItsBatch: a job that is requeued and completed after its line of the report was read does not
// complete the batch: its only report says that the job has failed. The action update-report brings both up to date.
func TestReportAgreesWithItsBatch(t *testing.T) {
	w := newTwins(t)
	var there atomic.Bool
	source := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if !there.Load() {
			http.NotFound(out, r)
			return
		}
		_, _ = out.Write([]byte(reported))
	}))
	defer source.Close()

	raced := false
	w.S3.Before = func(op, name string) int {
		_, file, is := strings.Cut(name, "/"+workspace.Reports)
		if raced || op != "PUT object" || !is {
			return 0
		}
		raced = true // the lines of the report are read
		there.Store(true)
		id := ingest.JobID(strings.TrimSuffix(file, ".json"), 1)
		if _, err := queuetest.Requeue(w.Context(), w.Machine.Queue, id, "it is there now", "me"); err != nil {
			t.Error(err)
		}
		if err := w.Machine.Run(w.Context(), 12); err != nil {
			t.Error(err)
		}
		w.Ended(id, 1, false)
		return 0
	}
	id := w.Submit("late.txt", func(b *ingest.Batch) { b.URL = source.URL + "/late.txt" })
	b := w.BatchOf(id)
	if r := w.report(b.ID); !raced || b.State != ingest.BatchFailed || r.Counts != (notify.Counts{Failed: 1}) {
		t.Fatalf("raced %v: the batch is %s, its report has %+v", raced, b.State, r.Counts)
	}

	if _, err := queuetest.Act(w.Context(), w.Machine.Queue, ingest.ActUpdateReport, b.ID); err != nil {
		t.Fatal(err)
	}
	w.Drive()
	b = w.BatchOf(id)
	if r := w.report(b.ID); b.State != ingest.BatchCompleted || r.Counts != (notify.Counts{Completed: 1}) {
		t.Errorf("after the update: the batch is %s, its report has %+v", b.State, r.Counts)
	}
}
