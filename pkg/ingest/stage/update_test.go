package stage_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
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
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
)

// change writes a job's row as a person with access to the table could.
func (w *twins) change(job string, how func(row *queue.Job)) {
	w.Helper()
	row := w.Job(job)
	how(row)
	w.save(row)
}

func (w *twins) save(row table.Row) {
	w.Helper()
	tx := w.Machine.Queue.Table.Begin(w.Machine.Queue.NewID())
	tx.Save(row)
	if err := tx.Commit(w.Context()); err != nil {
		w.Fatal(err)
	}
}

// updateReport asks for a batch's report of what has changed.
func (w *twins) updateReport(batch string) {
	w.Helper()
	a := ingest.Action{Name: ingest.ActUpdateReport, Target: ingest.Target{Kind: ingest.TargetBatch, ID: batch},
		Reason: "the sources are corrected", Actor: "me", Role: ingest.Operator}
	if did, err := (queue.Admin{Queue: w.Machine.Queue}).Act(w.Context(), a); err != nil || !did.Changed {
		w.Fatalf("%+v, %v", did, err)
	}
}

// source answers manifests of one file each, and the batch that lists them. A file that is
// not given has status 404; of one that is given as "wrong" the digest differs.
type source struct {
	*httptest.Server
	names []string
	given atomic.Value // map[string]string
}

func newSource(t *testing.T, names ...string) *source {
	s := &source{names: names}
	s.given.Store(map[string]string{})
	s.Server = httptest.NewServer(http.HandlerFunc(s.answer))
	t.Cleanup(s.Close)
	return s
}

func (s *source) answer(out http.ResponseWriter, r *http.Request) {
	at := "http://" + r.Host + "/"
	if r.URL.Path == "/batch" {
		var rows []checkm.Row
		for _, name := range s.names {
			rows = append(rows, checkm.Row{URL: at + name, Name: name, Local: []string{name}, Size: -1})
		}
		_ = checkm.WriteBatch(out, "http://uc3.cdlib.org/registry/ingest/manifest/mrt-batch-manifest", rows)
		return
	}
	row := checkm.Row{URL: at + "file", Name: "a.txt", Size: -1}
	switch s.given.Load().(map[string]string)[strings.Trim(r.URL.Path, "/")] {
	case "good":
	case "wrong":
		row.Algorithm, row.Digest = "md5", strings.Repeat("0", 32)
	default:
		if r.URL.Path == "/file" {
			_, _ = out.Write([]byte("content"))
			return
		}
		http.NotFound(out, r)
		return
	}
	_ = checkm.Write(out, "http://uc3.cdlib.org/registry/ingest/manifest/mrt-ingest-manifest", []checkm.Row{row})
}

// deposit submits what is at a path of a source, runs what can run, and returns the batch.
func (w *twins) deposit(s *source, path, kind string) string {
	w.Helper()
	row, err := w.Machine.Queue.Submit(w.Context(), ingest.Batch{Collection: "bench", Mode: "add",
		Mail:    []string{"me@example.org"},
		Payload: ingest.Payload{URL: s.URL + path, Type: kind, Filename: "b"}}, "", nil, "me")
	if err != nil {
		w.Fatal(err)
	}
	w.Drive()
	return row.Batch.ID
}

func (w *twins) requeue(batch string, rows ...int) {
	w.Helper()
	for _, n := range rows {
		if _, err := queuetest.Requeue(w.Context(), w.Machine.Queue, ingest.JobID(batch, n), "again",
			"me"); err != nil {
			w.Fatal(err)
		}
	}
}

// TestUpdateReport: the second report has each job with what has changed for it, is saved
// beside the first, and its mail says the same; also if the first was saved before reports had
// numbers.
func TestUpdateReport(t *testing.T) {
	for _, old := range []bool{false, true} {
		w := newTwins(t)
		sent := w.Mails(func(string) error { return nil })
		s := newSource(t, "good", "fixed", "still", "worse", "deleted", "late")
		s.given.Store(map[string]string{"good": "good"})
		step, reports := w.Machine.Step, 0
		w.Machine.Step = func(st ingest.Stage) queue.Step {
			return func(ctx context.Context, c *queue.Claim) (ingest.Result, error) {
				if st.Name == "report" && reports == 0 {
					reports++
					w.requeue(c.Batch.ID, 6) // while the report is made
				}
				return step(st)(ctx, c)
			}
		}
		id := w.deposit(s, "/batch", ingest.TypeBatchManifest)
		first := w.report(id)
		if first.Counts != (notify.Counts{Completed: 1, Failed: 4, Open: 1}) || first.Changes != nil ||
			first.Number != 1 {
			t.Fatalf("%+v", first)
		}
		if old {
			w.asBefore(id)
		}

		s.given.Store(map[string]string{"good": "good", "fixed": "good", "worse": "wrong"})
		w.requeue(id, 2, 3, 4)
		w.Drive()
		w.change(ingest.JobID(id, 5), func(row *queue.Job) { row.State = ingest.Deleted })
		w.updateReport(id)
		w.Drive()
		w.checkUpdate(id, first, *sent)

		w.updateReport(id) // nothing has changed
		w.Drive()
		if r := w.report(id); r.Number != 3 || r.Changes.News() != 0 || r.Changes.StillFailed != 3 || len(*sent) != 3 {
			t.Errorf("report %d: %+v; sent %q", r.Number, r.Changes, *sent)
		}
	}
}

// checkUpdate checks the second report of TestUpdateReport.
func (w *twins) checkUpdate(id string, first notify.Report, sent []string) {
	w.Helper()
	b, r := w.BatchOf(ingest.JobID(id, 1)), w.report(id)
	if b.State != ingest.BatchFailed || b.LastReport() != 2 || b.Report != workspace.ReportKey(id, 2) ||
		r.Number != 2 || r.Since != first.At || r.Counts != (notify.Counts{Completed: 2, Failed: 3, Deleted: 1}) ||
		*r.Changes != (notify.Changes{NowPreserved: 1, NewlyFailed: 1, StillFailed: 2, NextStep: 1, Deleted: 1}) {
		w.Errorf("%s, report %d: %+v, %+v", b.State, b.LastReport(), r, r.Changes)
	}
	var changes []notify.Change
	for _, j := range slices.Concat(r.Completed, r.Failed, r.Deleted) {
		changes = append(changes, j.Change)
	}
	if !slices.Equal(changes, []notify.Change{"", "now preserved", "still failed", "still failed", "newly failed",
		"deleted"}) {
		w.Errorf("%q", changes)
	}
	if want := "me@example.org: Update: 1 now preserved, 1 newly failed, 2 still failed, 1 deleted: " + id +
		" to bench"; len(sent) != 3 || sent[2] != want {
		w.Errorf("sent %q", sent)
	}
	if again, _, err := w.Stages.Work.Read(w.Context(), workspace.ReportKey(id, 1)); err != nil ||
		strings.Contains(string(again), "still failed") {
		w.Errorf("the first report is %s, %v", again, err)
	}
}

// asBefore makes the first report of a batch as it was before reports had numbers.
func (w *twins) asBefore(batch string) {
	w.Helper()
	row, err := w.Machine.Queue.Batch(w.Context(), batch)
	if err != nil {
		w.Fatal(err)
	}
	row.Reports = 0
	w.save(row)
	var report map[string]any
	if err := w.Stages.Work.GetJSON(w.Context(), row.Report, &report); err != nil {
		w.Fatal(err)
	}
	delete(report, "number")
	delete(report, "deleted")
	delete(report["counts"].(map[string]any), "deleted")
	if err := w.Stages.Work.PutJSON(w.Context(), row.Report, report, bucket.Condition{}); err != nil {
		w.Fatal(err)
	}
}

// TestAllFixed: when no job is failed any more, update-report completes the batch; also if no
// earlier report was saved, or if it was removed by hand.
func TestAllFixed(t *testing.T) {
	for _, earlier := range []string{"saved", "not saved", "removed"} {
		w := newTwins(t)
		sent := w.Mails(func(string) error { return nil })
		s := newSource(t, "one")
		id := w.deposit(s, "/one", ingest.TypeObjectManifest)
		row, err := w.Machine.Queue.Batch(t.Context(), id)
		if err != nil || row.State != ingest.BatchFailed {
			t.Fatalf("the batch is %s, %v", row.State, err)
		}
		switch earlier {
		case "not saved":
			row.Report, row.Reports = "", 0
			w.save(row)
		case "removed":
			if err := w.Stages.Work.Delete(t.Context(), row.Report); err != nil {
				t.Fatal(err)
			}
		}
		s.given.Store(map[string]string{"one": "good"})
		w.requeue(id, 1)
		w.Drive()
		w.updateReport(id)
		w.Drive()
		b := w.BatchOf(ingest.JobID(id, 1))
		number := map[string]int{"saved": 2, "not saved": 1, "removed": 2}[earlier]
		if r := w.report(id); b.State != ingest.BatchCompleted || b.LastReport() != number ||
			(r.Since != "") != (earlier == "saved") || r.Changes.NowPreserved != 1 || len(*sent) != 3 ||
			!strings.Contains((*sent)[2], "Update: 1 now preserved") {
			t.Errorf("%s: the batch is %s with report %d: %+v; sent %q", earlier, b.State, b.LastReport(), r, *sent)
		}
	}
}

// TestReportOfCancelledBatch: it says by whom and why the batch was cancelled, and lists the jobs
// that were deleted.
func TestReportOfCancelledBatch(t *testing.T) {
	w := newTwins(t)
	sent := w.Mails(func(string) error { return nil })
	s := newSource(t, "one", "two")
	row, err := w.Machine.Queue.Submit(t.Context(), ingest.Batch{Collection: "bench", Mode: "add",
		Mail:    []string{"me@example.org"},
		Payload: ingest.Payload{URL: s.URL + "/batch", Type: ingest.TypeBatchManifest, Filename: "b"}}, "", nil, "me")
	if err == nil {
		err = w.Machine.One(t.Context()) // its jobs are Pending
	}
	if err != nil {
		t.Fatal(err)
	}
	did, err := queuetest.Act(t.Context(), w.Machine.Queue, ingest.ActCancel, row.Batch.ID)
	if err != nil || did.Operation == "" {
		t.Fatalf("%+v, %v", did, err)
	}
	admin := queue.Admin{Queue: w.Machine.Queue}
	for running := true; running; {
		op, err := admin.RunPage(t.Context(), did.Operation, 1, time.Now().Add(time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		running = op.RunsAs(1)
	}
	w.Drive()
	r := w.report(row.Batch.ID)
	if r.Incomplete != "cancelled by me: a test" ||
		r.Counts != (notify.Counts{Cancelled: 2}) || len(r.Cancelled) != 2 ||
		!strings.Contains(r.Cancelled[0].Message, "cancelled by me") {
		t.Errorf("%+v", r)
	}
	if len(*sent) != 2 || !strings.Contains((*sent)[1], "2 of 2 objects cancelled") {
		t.Errorf("sent %q", *sent)
	}
}

// TestUpdateReportInPages: a large report is compared page by page, continued where the time
// was up. The earlier report is read once.
func TestUpdateReportInPages(t *testing.T) {
	w := newTwins(t)
	const n = 1100
	w.failingJobs(n, 6000)
	w.Machine.Queue.Settings.MaxInFlight = n
	now := time.Now()
	w.clock(&now)
	sent := w.Mails(func(string) error { return nil })
	row, err := w.Machine.Queue.Submit(t.Context(),
		ingest.Batch{Collection: "bench", Mode: "add", Mail: []string{"me@example.org"}}, "", nil, "me")
	if err != nil {
		t.Fatal(err)
	}
	w.Drive()
	id := row.Batch.ID

	pages, read := map[string]int{}, 0
	w.S3.Before = func(op, name string) int {
		switch {
		case op == "GET object" && strings.HasSuffix(name, workspace.ReportKey(id, 1)):
			read++
			now = now.Add(50 * time.Second) // more than the step's time
		case op == "PUT object" && strings.Contains(name, "/report-"):
			pages[name]++
			now = now.Add(30 * time.Second) // two pages are more than the step's time
		}
		return 0
	}
	for _, n := range []int{1, 700} {
		w.change(ingest.JobID(id, n), func(row *queue.Job) { row.NotRecoverable = true })
	}
	w.updateReport(id)
	if err := w.Machine.Run(t.Context(), 4); err != nil {
		t.Fatal(err)
	}
	b := w.BatchOf(ingest.JobID(id, 1))
	if b.State != ingest.BatchFailed || b.Repairs != 0 || b.LastReport() != 2 {
		t.Fatalf("the batch is %s after %d repairs", b.State, b.Repairs)
	}
	if read != 1 || len(pages) != 6 {
		t.Errorf("the earlier report was read %d times; %d pages", read, len(pages))
	}
	for name, times := range pages {
		if times != 1 {
			t.Errorf("%s was made %d times", name, times)
		}
	}
	if r := w.report(id); *r.Changes != (notify.Changes{StillFailed: n, NextStep: 2}) || len(r.Failed) != n {
		t.Errorf("%+v, %d lines", r.Changes, len(r.Failed))
	}
	if len(*sent) != 3 || !strings.Contains((*sent)[2], "Update: 1100 still failed") {
		t.Errorf("sent %q", *sent)
	}
	var summary notify.Report
	if err := w.Stages.Work.GetJSON(t.Context(), workspace.SummaryKey(id, 2), &summary); err != nil ||
		len(summary.Failed) != notify.Shown || *summary.Changes != (notify.Changes{StillFailed: n, NextStep: 2}) {
		t.Errorf("%d lines, %+v, %v", len(summary.Failed), summary.Changes, err)
	}
}

// clock lets the twins use a time of the test.
func (w *twins) clock(now *time.Time) {
	tell := func() time.Time { return *now }
	w.Machine.Queue.Now, w.Stages.Now, w.Machine.Scheduler.Leases.Now = tell, tell, tell
}

// mortal is a process that dies at one of its calls, and the mails that it sent.
type mortal struct {
	calls int
	dies  int      // the call at which it dies; 0: it lives
	mails []string // ids
}

var errDead = errors.New("this process is dead")

func (m *mortal) call() error {
	m.calls++
	if m.dies > 0 && m.calls >= m.dies {
		return errDead
	}
	return nil
}

// mortal lets the twins' process die. Reads of rows are no calls at which it dies: without an
// effect between, to die before one or after it is the same.
func (w *twins) mortal() *mortal {
	m := &mortal{}
	w.Mails(func(string) error { return nil })
	w.Stages.SendMail = func(_ context.Context, raw []byte) error {
		if err := m.call(); err != nil {
			return err
		}
		_, id, _ := strings.Cut(string(raw), "Message-ID: ")
		id, _, _ = strings.Cut(id, "\r\n")
		m.mails = append(m.mails, id)
		return nil
	}
	w.S3.Before = func(string, string) int {
		if err := m.call(); err != nil {
			return http.StatusForbidden
		}
		return 0
	}
	do := func(op string, do func() error) error {
		if op != "GetItem" {
			if err := m.call(); err != nil {
				return err
			}
		}
		return do()
	}
	*w.Machine.Queue.Table = *tabletest.Table(&tabletest.Client{DynamoDBAPI: w.Rows, Do: do})
	w.Machine.Queue.Table.Wait = func(context.Context, time.Duration) error { return errDead }
	return m
}

// TestUpdateReportSurvivesEveryCrash: the process that makes the report and sends its mail dies
// at each of its calls. Afterwards the report is saved, and one mail with one id was sent.
func TestUpdateReportSurvivesEveryCrash(t *testing.T) {
	w := newTwins(t)
	const n = 260 // two pages
	w.failingJobs(n, 1)
	w.Machine.Queue.Settings.MaxInFlight = n
	now := time.Now()
	w.clock(&now)
	m := w.mortal()
	row, err := w.Machine.Queue.Submit(t.Context(),
		ingest.Batch{Collection: "bench", Mode: "add", Mail: []string{"me@example.org"}}, "", nil, "me")
	if err != nil {
		t.Fatal(err)
	}
	w.Drive()
	id, died := row.Batch.ID, true
	for at := 1; died; at++ {
		now = now.Add(time.Minute)
		w.change(ingest.JobID(id, 255), func(row *queue.Job) { row.NotRecoverable = !row.NotRecoverable })
		w.updateReport(id)
		*m = mortal{dies: at}
		_ = w.Machine.One(t.Context()) // the report, and its mail
		died, m.dies = m.calls >= at, 0
		b := w.BatchOf(ingest.JobID(id, 1))
		open := func() bool { return b.State != ingest.BatchFailed || b.Mails[len(b.Mails)-1].At < b.Entered }
		for ticks := 0; ticks < 10 && open(); ticks++ {
			now = now.Add(10 * time.Minute)
			if err := w.Machine.Run(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
			b = w.BatchOf(ingest.JobID(id, 1))
		}
		if r := w.report(id); b.State != ingest.BatchFailed || b.LastReport() != at+1 || r.Number != at+1 ||
			*r.Changes != (notify.Changes{StillFailed: n, NextStep: 1}) {
			t.Fatalf("died at call %d: the batch is %s with report %d: %+v", at, b.State, r.Number, r.Changes)
		}
		if distinct := slices.Compact(slices.Clone(m.mails)); len(distinct) != 1 || len(m.mails) > 2 {
			t.Fatalf("died at call %d: sent %q", at, m.mails)
		}
	}
}
