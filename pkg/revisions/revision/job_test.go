package revision_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"archivist/pkg/kernel/bucket/buckettest"
	"archivist/pkg/revisions/revision"
	"archivist/pkg/revisions/runner"
	"archivist/pkg/revisions/workflow"
)

// payload is how many bytes Step Functions passes on ("Quotas related to state machine executions").
const payload = 256 << 10

// TestJobFits: what the runner of the largest task gets is passed on.
func TestJobFits(t *testing.T) {
	task := workflow.Task{Name: "t" + strings.Repeat("x", 59), Command: "x", Env: map[string]string{}}
	size := func() int {
		data, err := json.Marshal(task)
		if err != nil {
			t.Fatal(err)
		}
		return len(data)
	}
	task.Env["A"] = strings.Repeat("a", workflow.MaxTask-size()-len(`,"env":{"A":""}`))
	if size() != workflow.MaxTask {
		t.Fatalf("the task has %d bytes", size())
	}
	ref := "a" + strings.Repeat("b", 39) + "@999999999"
	in := revision.Instance{ID: fmt.Sprintf("%s/%d/%s/%d", ref, int64(revision.MaxRevision), task.Name, 999_999),
		Archive: ref, Revision: revision.MaxRevision, Base: revision.MaxRevision, Task: task.Name,
		Attempt: workflow.MaxAttempts, Exec: strings.Repeat("e", 64), Secret: strings.Repeat("s", 64)}
	in.Parameters = map[string]string{"A": strings.Repeat("a", workflow.MaxSet)}
	job := in.Job(&task, strings.Repeat("b", 63), strings.Repeat("k", 1024), time.Now())
	for range workflow.MaxDepends {
		job.Inputs = append(job.Inputs, runner.Input{Folder: "PREV/" + task.Name, Of: in.ID, Prefix: in.Prefix(),
			Files: runner.MaxOutputs, List: strings.Repeat("0", 64)})
	}
	data, err := json.Marshal(job)
	if err != nil || len(data) > runner.MaxPayload {
		t.Errorf("the job has %d bytes; at most %d are documented (%v)", len(data), runner.MaxPayload, err)
	}
	data, err = json.Marshal(runner.Begun{Next: runner.NextRun, Job: &job})
	if err != nil || len(data) > payload {
		t.Errorf("the answer has %d bytes (%v)", len(data), err)
	}
}

// TestLeaseOutlivesRun: a run that takes all its time can store its outputs and report; only after that it is taken
// for lost.
func TestLeaseOutlivesRun(t *testing.T) {
	w := newWorld(t)
	w.archive("maps", (&repository{}).add(1, "[{name: a, command: x, timeout: 10m}]"), 1)
	w.notify("maps", 1)
	w.pass("maps")
	_, buckets := buckettest.Open(t, "work")
	control := revision.Control{Store: w.store, Work: buckets[0]}
	var e revision.Execution
	for _, e = range w.begun {
	}
	began := w.now
	b, err := control.Begin(t.Context(), e.Input().Attempt, e.Exec)
	w.must(err)
	last := began.Add(revision.Default.Margin + 10*time.Minute) // it has begun as late as it may, and ends as late
	if b.Job == nil || b.Job.Deadline.Before(last) {
		t.Fatalf("the run is told to end before %s: %+v", last, b.Job)
	}
	x, err := w.store.Explain(t.Context(), "maps/1/a")
	w.must(err)
	if want := began.Add(10 * time.Minute).UnixMilli(); x.Until != want {
		t.Errorf("its time is over at %d, want %d", x.Until, want)
	}
	ended := b.Job.Deadline.Add(runner.Margin)
	w.now = ended.Add(-time.Millisecond)
	w.pass("maps")
	if got := w.state("maps/1/a"); got != workflow.Running {
		t.Fatalf("while it reports it is %s", got)
	}
	_, recorded, err := w.store.End(t.Context(), e, runner.Result{End: runner.TimedOut})
	if err != nil || !recorded {
		t.Errorf("its report was refused: %v", err)
	}
	in, err := w.store.Instance(t.Context(), "maps/1/a")
	w.must(err)
	if in.State != workflow.Failure || in.Last.End != runner.TimedOut {
		t.Errorf("it is %s, %+v", in.State, in.Last)
	}
}
