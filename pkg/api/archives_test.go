package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"archivist/pkg/api"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/bucket/buckettest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/revisions/archive"
	"archivist/pkg/revisions/revision"
	"archivist/pkg/revisions/runner"
	"archivist/pkg/revisions/workflow"
)

// commitHash is the transaction of each revision of one.
const commitHash = "9fceb02d0ae598e95dc970b74767f19372d61af8"

// one is an archive whose revisions all have the same definition.
type one struct{ text string }

func (o one) Head(context.Context) (int64, error) { return 9, nil }
func (o one) Revision(_ context.Context, n int64) (archive.Revision, error) {
	return archive.Revision{Number: n, Transaction: commitHash}, nil
}
func (o one) Workflows(context.Context, int64) ([]workflow.File, error) {
	return []workflow.File{{Path: workflow.Folder + "/all.yaml", Data: []byte(o.text)}}, nil
}
func (o one) Changed(context.Context, int64, int64) ([]string, error) { return nil, nil }
func (o one) Checkout(context.Context, int64, string) error           { return nil }

// begun are the executions that a queue has started, by the instance.
type begun map[string]revision.Execution

// revisions serves the API with an archive "maps", whose executions the test runs.
func revisions(t *testing.T) (*v1.Client, *api.API, begun) {
	a, _ := service(through)
	started := begun{}
	_, buckets := buckettest.Open(t, "work")
	a.Work = buckets[0]
	a.Revisions.Open = func(context.Context, archive.Location) (archive.Source, error) {
		return one{"[{name: index, command: x, depends: [PREV]}, {name: pdf, command: x, depends: [index]}]"}, nil
	}
	a.Preview = a.Revisions.Preview
	a.Revisions.Start = func(_ context.Context, e revision.Execution) error { started[e.Instance] = e; return nil }
	srv := httptest.NewServer(a.Handler())
	t.Cleanup(srv.Close)
	return &v1.Client{URL: srv.URL, HTTP: srv.Client()}, a, started
}

var mapsArchive = v1.ArchiveDefinition{Title: "Maps", Baseline: 1, Location: v1.ArchiveLocation{Kind: "git",
	URL: "https://git.example.org/maps.git", Branch: "main"}}

// passOnce makes a pass of the queue.
func passOnce(t *testing.T, a *api.API) {
	t.Helper()
	_, err := a.Revisions.Pass(t.Context(), "maps", time.Now().Add(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
}

// TestArchive: an archive is registered, notified, planned, run, watched and acted on.
func TestArchive(t *testing.T) {
	c, a, started := revisions(t)
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := c.PutArchive(ctx, "maps", mapsArchive)
	must(err)
	for _, n := range []int64{2, 1} {
		_, err = c.NotifyRevision(ctx, "maps", v1.RevisionNotice{Revision: n, Transaction: commitHash}, "")
		must(err)
	}
	passOnce(t, a)
	p, err := c.RevisionPlan(ctx, "maps", 2, "")
	must(err)
	if len(p.Plan) != 3 || p.Tasks != 3 || p.Ended != 1 || p.Plan[1].Edges[1].ID != "maps/1/index" ||
		p.Plan[1].Edges[1].Verdict != "open" {
		t.Errorf("the plan is %+v", p)
	}
	x, err := c.Explain(ctx, "maps/2/pdf")
	must(err)
	if x.WaitsFor != "edge" || len(x.Chain) != 3 || x.Chain[2].ID != "maps/1/index" || x.Chain[2].WaitsFor != "start" {
		t.Errorf("the explanation is %+v", x)
	}
	logs(t, c, a, started)
	passOnce(t, a)
	run, err := c.ActOnTask(ctx, "maps/1/index", v1.TaskAction{Action: "rerun", Reason: "again"}, "k1")
	must(err)
	again, err := c.ActOnTask(ctx, "maps/1/index", v1.TaskAction{Action: "rerun", Reason: "again"}, "k1")
	must(err)
	if run.ID != "maps/1/index/1" || again.ID != run.ID || run.Trigger != "manual" {
		t.Errorf("the new run is %+v, then %+v", run, again)
	}
	tasks, err := c.Tasks(ctx, "maps", v1.TaskFilter{Task: "index"})
	must(err)
	if len(tasks) != 3 || tasks[0].ID != "maps/2/index" {
		t.Errorf("found the tasks %+v", tasks)
	}
	preview, err := c.PreviewRevision(ctx, "maps", 3)
	must(err)
	if len(preview.Tasks) != 3 || preview.Tasks[1].Awaits[1].Revision != 2 {
		t.Errorf("the preview is %+v", preview)
	}
	_, err = c.ActOnArchive(ctx, "maps", v1.ArchiveAction{Action: "pause", Reason: "moved"})
	must(err)
	st, err := c.Archive(ctx, "maps")
	must(err)
	if st.Mode != "paused" || st.Why != "moved" || st.Watermark != 2 || st.Open["blocked"] == 0 {
		t.Errorf("the archive is %+v", st)
	}
	for _, read := range []func() ([]v1.Event, error){
		func() ([]v1.Event, error) { return c.ArchiveEvents(ctx, "maps") },
		func() ([]v1.Event, error) { return c.RevisionEvents(ctx, "maps", 1) },
		func() ([]v1.Event, error) { return c.TaskEvents(ctx, "maps/1/index") }} {
		events, err := read()
		if err != nil || len(events) < 2 {
			t.Errorf("found the events %+v, %v", events, err)
		}
	}
}

// logs runs maps/1/index, with output and a file that it leaves.
func logs(t *testing.T, c *v1.Client, a *api.API, started begun) {
	t.Helper()
	ctx := t.Context()
	e := started["maps/1/index"]
	in, _, _, err := a.Revisions.Begin(ctx, e)
	if err != nil {
		t.Fatal(err)
	}
	put := func(key, text string) {
		err := a.Work.Put(ctx, in.Prefix()+key, []byte(text), bucket.Condition{})
		if err != nil {
			t.Fatal(err)
		}
	}
	part, _ := json.Marshal(runner.Part{Time: time.Unix(1_790_000_000, 0), Stream: "stdout", Text: "one\n"})
	put("log/000001", string(part)+"\n")
	log, err := c.TaskLog(ctx, "maps/1/index", 0, "")
	if err != nil || len(log.Parts) != 1 || log.Parts[0].Text != "one\n" || log.Ended || log.Next != "000001" {
		t.Errorf("the log is %+v, %v", log, err)
	}
	put("log/000002", string(part)+"\n"+string(part)+"\n")
	put("outputs/a/b.txt", "hello")
	_, _, err = a.Revisions.End(ctx, e, runner.Result{End: runner.Succeeded,
		Outputs: []runner.Output{{Path: "a/b.txt", Size: 5, SHA256: "x"}}})
	if err != nil {
		t.Fatal(err)
	}
	log, err = c.TaskLog(ctx, "maps/1/index", 1, log.Next)
	if err != nil || len(log.Parts) != 2 || !log.Ended || log.Next != "000002" {
		t.Errorf("the rest of the log is %+v, %v", log, err)
	}
	outputs, err := c.TaskOutputs(ctx, "maps/1/index", 0)
	if err != nil || len(outputs) != 1 || outputs[0].Path != "a/b.txt" {
		t.Errorf("the outputs are %+v, %v", outputs, err)
	}
	for path, want := range map[string]int{"a/b.txt": http.StatusFound, "../../../secret": http.StatusNotFound} {
		got := unfollowed(t, c.URL+"/v1/task/output?id=maps/1/index&path="+path)
		if got != want {
			t.Errorf("the output %s: %d, want %d", path, got, want)
		}
	}
	d, err := c.Task(ctx, "maps/1/index")
	if err != nil || len(d.Attempts) != 1 || d.Attempts[0].End != "succeeded" || d.Attempts[0].Outputs != 1 {
		t.Errorf("the task is %+v, %v", d, err)
	}
}

// unfollowed is the status of a response; a redirect is not followed.
func unfollowed(t *testing.T, url string) int {
	t.Helper()
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

// TestArchiveRefusals: what cannot be is refused, with the field and the reason.
func TestArchiveRefusals(t *testing.T) {
	c, a, started := revisions(t)
	ctx := t.Context()
	for field, change := range map[string]func(d *v1.ArchiveDefinition){
		"location.url: ":     func(d *v1.ArchiveDefinition) { d.Location.URL = "file:///etc" },
		"location.branch: ":  func(d *v1.ArchiveDefinition) { d.Location.Branch = "" },
		"reconcileSeconds: ": func(d *v1.ArchiveDefinition) { d.ReconcileSeconds = 5 },
		"running: ":          func(d *v1.ArchiveDefinition) { d.Running = 501 },
		"baseline: ":         func(d *v1.ArchiveDefinition) { d.Baseline = 1 << 50 },
	} {
		d := mapsArchive
		change(&d)
		_, err := c.PutArchive(ctx, "maps", d)
		if !fault.Is(err, fault.Invalid) || err.Error()[:len(field)] != field {
			t.Errorf("%s%v", field, err)
		}
	}
	_, err := c.PutArchive(ctx, "maps", mapsArchive)
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range []v1.ArchiveAction{{Action: "pause", Restart: 1}, {Action: "skip"},
		{Action: "backfill", From: 1}, {Action: "delete", Revision: 2}} {
		in.Reason = "why"
		_, err := c.ActOnArchive(ctx, "maps", in)
		if !fault.Is(err, fault.Invalid) {
			t.Errorf("%+v: %v", in, err)
		}
	}
	_, err = c.StartTask(ctx, "maps", "index", v1.TaskRun{}, "")
	if !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "of the archive maps is planned yet") {
		t.Errorf("a run where nothing is planned: %v", err)
	}
	_, err = c.NotifyRevision(ctx, "maps", v1.RevisionNotice{Revision: 1, Transaction: commitHash[:8]}, "")
	if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "transaction: ") {
		t.Errorf("a part of a hash: %v", err)
	}
	_, err = c.NotifyRevision(ctx, "maps", v1.RevisionNotice{Revision: 1}, "maps/1/index:forged")
	if !fault.Is(err, fault.Denied) {
		t.Errorf("a forged token: %v", err)
	}
	_, err = c.NotifyRevision(ctx, "maps", v1.RevisionNotice{Revision: 1}, "")
	if err != nil {
		t.Fatal(err)
	}
	passOnce(t, a)
	in, task, _, err := a.Revisions.Begin(ctx, started["maps/1/index"])
	if err != nil {
		t.Fatal(err)
	}
	token := in.Job(task, "", "", time.Now()).Token
	if _, err := c.RevisionPlan(ctx, "maps", 1, token); !fault.Is(err, fault.Conflict) {
		t.Errorf("a run that waits for itself: %v", err)
	}
	for _, id := range []string{"maps", "maps/1", "maps/1/none", "none/1/index"} {
		if _, err := c.Task(ctx, id); err == nil {
			t.Errorf("%s is no task", id)
		}
	}
	if _, err := c.ActOnTask(ctx, "maps/1/index", v1.TaskAction{Action: "rerun", Reason: "x"}, ""); !fault.Is(err,
		fault.Conflict) {
		t.Errorf("a rerun of a task that runs: %v", err)
	}
	if _, err := c.Archive(ctx, "none"); !fault.Is(err, fault.NotFound) {
		t.Errorf("an archive that there is not: %v", err)
	}
}

// TestNoRevisionQueue: a deployment without the revision queue says so, whatever is asked of it.
func TestNoRevisionQueue(t *testing.T) {
	_, a, _ := revisions(t)
	a.Revisions = nil
	srv := httptest.NewServer(a.Handler())
	t.Cleanup(srv.Close)
	for _, path := range []string{"/v1/archives", "/v1/archives/maps", "/v1/task?id=maps/1/index"} {
		resp, text := ask(t, "GET", srv.URL+path, "")
		if resp.StatusCode != http.StatusConflict || !strings.Contains(text, "revisionQueue") {
			t.Errorf("%s: %d %s", path, resp.StatusCode, text)
		}
	}
}

// TestNewestOutput: the newest output is found among any number of parts, in few calls, and what precedes it page by
// page to the begin; each part is in one page.
func TestNewestOutput(t *testing.T) {
	for _, n := range []int{0, 1, 51, 1000, 1001, 2600} {
		c, a, started := revisions(t)
		if _, err := c.PutArchive(t.Context(), "maps", mapsArchive); err != nil {
			t.Fatal(err)
		}
		notice := v1.RevisionNotice{Revision: 1, Transaction: commitHash}
		if _, err := c.NotifyRevision(t.Context(), "maps", notice, ""); err != nil {
			t.Fatal(err)
		}
		passOnce(t, a)
		in, _, _, err := a.Revisions.Begin(t.Context(), started["maps/1/index"])
		if err != nil {
			t.Fatal(err)
		}
		folder := in.Prefix() + runner.LogFolder
		for i := range n {
			part, _ := json.Marshal(runner.Part{Stream: "stdout", Text: fmt.Sprintln(i + 1)})
			err := a.Work.Put(t.Context(), fmt.Sprintf("%s%06d", folder, i+1), part, bucket.Condition{})
			if err != nil {
				t.Fatal(err)
			}
		}
		left := n
		for before := ""; ; {
			log, err := c.TaskLogBefore(t.Context(), "maps/1/index", 0, before)
			if err != nil || len(log.Parts) != min(left, 50) || log.Next != fmt.Sprintf("%06d", left) {
				t.Fatalf("of %d parts, before %q: %d, %+v, %v", n, before, len(log.Parts), log.Next, err)
			}
			for i, p := range log.Parts {
				if want := left - len(log.Parts) + i + 1; p.Text != fmt.Sprintln(want) {
					t.Fatalf("of %d parts, before %q: %q, want %d", n, before, p.Text, want)
				}
			}
			left -= len(log.Parts)
			before = log.First
			if before == "" {
				break
			}
		}
		if left != 0 {
			t.Errorf("of %d parts, %d were not shown", n, left)
		}
	}
}
