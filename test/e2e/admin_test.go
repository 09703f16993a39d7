package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/formats/checkm"
	"archivist/pkg/ingest"
)

// execution starts an execution of admin-action with an input, as a person does in the AWS
// console, and returns it when it has ended.
func execution(t *testing.T, input string) *sfn.DescribeExecutionOutput {
	t.Helper()
	name := fmt.Sprintf("by-hand-%d", time.Now().UnixNano())
	started, err := machines().StartExecution(t.Context(), &sfn.StartExecutionInput{Name: &name, Input: &input,
		StateMachineArn: aws.String(out.All["adminMachine"])})
	if err != nil {
		t.Fatal(err)
	}
	var x *sfn.DescribeExecutionOutput
	until(t, "the execution of "+input+" ends", soon, func() bool {
		x, err = machines().DescribeExecution(t.Context(),
			&sfn.DescribeExecutionInput{ExecutionArn: started.ExecutionArn})
		if err != nil {
			t.Fatal(err)
		}
		return x.Status != types.ExecutionStatusRunning
	})
	return x
}

// TestAdminAction: the state machine admin-action, from its JSON alone, does an action, and
// refuses another with its kind and the reason.
func TestAdminAction(t *testing.T) {
	begin(t)
	src := newSource(t)
	_, job := submit(t, src.URL+"/late.txt", "file", "admin")
	ends(t, job, "Failed", soon)
	src.put("/late.txt", []byte("late content"))

	requeue := fmt.Sprintf(`{"action": "requeue", "target": %q, "reason": "the source is corrected"}`, job)
	for input, want := range map[string][2]string{
		`{}`: {"Invalid", "action: none is given"},
		strings.Replace(requeue, "target", "job", 1):    {"Invalid", "job: unknown field"},
		strings.Replace(requeue, "requeue", "pause", 1): {"Invalid", `action: found "pause"`},
		strings.Replace(requeue, job, job+"9", 1):       {"NotFound", job + "9"},
	} {
		x := execution(t, input)
		if x.Status != types.ExecutionStatusFailed || aws.ToString(x.Error) != want[0] ||
			!strings.Contains(aws.ToString(x.Cause), want[1]) {
			t.Errorf("%s ends %s, %s: %s", input, x.Status, aws.ToString(x.Error), aws.ToString(x.Cause))
		}
	}
	if j := jobOf(t, job); j.State != "Failed" || j.RetryCount != 0 {
		t.Errorf("a refused action changed the job: %+v", j)
	}

	x := execution(t, requeue)
	var did struct {
		Action, Target, Summary, From, To string
		Changed                           bool
	}
	if err := json.Unmarshal([]byte(aws.ToString(x.Output)), &did); err != nil {
		t.Fatalf("%s: %s, %s", x.Status, aws.ToString(x.Output), aws.ToString(x.Cause))
	}
	if x.Status != types.ExecutionStatusSucceeded || !did.Changed || did.Target != "job:"+job || did.From != "Failed" ||
		did.To == "" || !strings.Contains(did.Summary, job) {
		t.Errorf("the requeue ends %s: %+v", x.Status, did)
	}
	ends(t, job, "Completed", soon)
	by := ""
	for _, e := range eventsOf(t, job) {
		if e.Type == "job.requeued" {
			by = e.Actor
		}
	}
	if want := "console:" + aws.ToString(x.Name); by != want {
		t.Errorf("the requeue is by %q, want %q", by, want)
	}
}

// TestAdminActionOnMany: a bulk operation, from its JSON alone: a dry run that says what it
// would do, then the operation, whose execution ends with the counts.
func TestAdminActionOnMany(t *testing.T) {
	begin(t)
	const n = 3
	src := newSource(t)
	var rows []checkm.Row
	for i := range n {
		path := fmt.Sprintf("/many-%d.txt", i)
		src.put(path, fmt.Appendf(nil, "content %d", i))
		rows = append(rows, src.row(path))
		src.remove(path)
	}
	batch, _ := submit(t, src.list(t, "/many.checkm", "mrt-single-file-batch-manifest", rows...), "")
	until(t, "all jobs fail", 2*soon, func() bool { return batchOf(t, batch).State == "Failed" })
	for i := range n {
		src.put(fmt.Sprintf("/many-%d.txt", i), fmt.Appendf(nil, "content %d", i))
	}

	requeue := fmt.Sprintf(`{"action": "requeue", "filter": {"batch": %q}, "reason": "the source is corrected"}`, batch)
	for _, dry := range []bool{true, false} {
		x := execution(t, strings.Replace(requeue, `"reason"`, fmt.Sprintf(`"dryRun": %t, "reason"`, dry), 1))
		var did struct {
			ID, State string
			DryRun    bool
			Counts    v1.OperationCounts
		}
		if err := json.Unmarshal([]byte(aws.ToString(x.Output)), &did); err != nil {
			t.Fatalf("%s: %s, %s", x.Status, aws.ToString(x.Output), aws.ToString(x.Cause))
		}
		if x.Status != types.ExecutionStatusSucceeded || did.State != "Done" || did.DryRun != dry ||
			did.Counts != (v1.OperationCounts{Planned: n, Done: n}) {
			t.Errorf("dry run %v: %s: %+v", dry, x.Status, did)
		}
		for i := range n {
			if j := jobOf(t, ingest.JobID(batch, i+1)); (j.RetryCount > 0) == dry {
				t.Errorf("dry run %v: job %s was requeued %d times", dry, j.ID, j.RetryCount)
			}
		}
	}
	for i := range n {
		ends(t, ingest.JobID(batch, i+1), "Completed", 2*soon)
	}
	// By the list of a collection, and by the place where what is held waits: of neither there is any.
	for _, all := range []string{
		`{"action": "clean-up", "filter": {"collection": "e2e", "message": "not of any job"}, "reason": "r"}`,
		`{"action": "release", "filter": {"collection": "e2e"}, "reason": "r"}`} {
		if x := execution(t, all); x.Status != types.ExecutionStatusSucceeded {
			t.Errorf("%s ends %s: %s", all, x.Status, aws.ToString(x.Cause))
		}
	}
}

// TestAdminActionThatTakesLong: an action that an operation completes ends the execution
// when the operation is done.
func TestAdminActionThatTakesLong(t *testing.T) {
	begin(t)
	src := newSource(t)
	url := src.put("/wrong.txt", []byte("the wrong file"))
	release := src.hold("/wrong.txt")
	batch, job := submit(t, url, "file")
	until(t, "the job downloads", soon, func() bool { return src.underWay() > 0 })
	x := execution(t, fmt.Sprintf(`{"action": "cancel", "target": "batch:%s", "reason": "the wrong file"}`, batch))
	release()
	var did struct {
		Changed    bool
		Completion v1.Operation
	}
	if err := json.Unmarshal([]byte(aws.ToString(x.Output)), &did); err != nil {
		t.Fatalf("%s: %s, %s", x.Status, aws.ToString(x.Output), aws.ToString(x.Cause))
	}
	if o := did.Completion; !did.Changed || o.State != "Done" || o.Counts != (v1.OperationCounts{Planned: 1, Done: 1}) {
		t.Errorf("the cancellation ends with %+v", did)
	}
	if j := jobOf(t, job); j.State != "Failed" || !strings.Contains(j.Message, "the wrong file") {
		t.Errorf("the job is %s: %s", j.State, j.Message)
	}
	until(t, "the batch reports", 2*soon, func() bool { return batchOf(t, batch).State == "Failed" })
}
