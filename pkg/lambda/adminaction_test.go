package lambda

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambda/messages"
	"github.com/aws/smithy-go"

	"archivist/pkg/cloudwatch"
	"archivist/pkg/event"
	"archivist/pkg/ingest"
	"archivist/pkg/queue"
	"archivist/pkg/queue/queuetest"
	"archivist/pkg/table/tabletest"
	"archivist/statemachines"
)

// adminBench is the function of admin-action on a queue whose jobs fail at Estimate.
type adminBench struct {
	*testing.T
	*AdminAction
	job  string // the first of a batch
	down error  // of each call of the table
}

func newAdminBench(t *testing.T, jobs int) *adminBench {
	b := &adminBench{T: t}
	client := &tabletest.Client{DynamoDBAPI: tabletest.New(), Do: func(_ string, call func() error) error {
		if b.down != nil {
			return b.down
		}
		return call()
	}}
	m := queuetest.New(tabletest.Table(client), time.Now, 10)
	m.Step = func(s ingest.Stage) queue.Step {
		return func(ctx context.Context, c *queue.Claim) (ingest.Result, error) {
			if s.Name == "unpack" {
				all := make([]ingest.Job, jobs)
				for i := range all {
					all[i] = ingest.Job{Collection: "maps", SizeKnown: true}
				}
				return ingest.Result{Outcome: ingest.StepNext}, c.Unpack(ctx, all, jobs)
			}
			return ingest.Fail(true, "the source answered 404"), nil
		}
	}
	batch, err := m.Queue.Submit(t.Context(), ingest.Batch{Collection: "maps"}, "", nil, "me")
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Run(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	b.job = ingest.JobID(batch.Batch.ID, 1)
	b.AdminAction = &AdminAction{Admin: queue.Admin{Queue: m.Queue}, Metrics: &cloudwatch.Metrics{},
		Log: slog.New(slog.DiscardHandler)}
	return b
}

// run makes a step of an execution, and returns it as the machine gets it.
func (b *adminBench) run(execution, input string) (step struct {
	Next, Error, Cause string
	Result             acted
}) {
	b.Helper()
	got, err := b.Handle(b.Context(), AdminRequest{Execution: execution, Started: time.Now(),
		Input: json.RawMessage(input)})
	if err != nil {
		b.Fatal(err)
	}
	data, err := json.Marshal(got)
	if err != nil {
		b.Fatal(err)
	}
	if err := json.Unmarshal(data, &step); err != nil {
		b.Fatal(err)
	}
	return step
}

// TestAdminActsOnce: an action is done by the person that the execution's name stands for,
// with the reason; a refusal says why; and a repeated step of the execution acts once.
func TestAdminActsOnce(t *testing.T) {
	b := newAdminBench(t, 1)
	input := fmt.Sprintf(`{"action": "requeue", "target": %q, "reason": "the source is corrected"}`, b.job)
	dry := strings.Replace(input, `"reason"`, `"dryRun": true, "reason"`, 1)
	if s := b.run("first", dry); s.Next != stepDone || s.Result.Changed || !s.Result.DryRun || s.Result.To == "" {
		t.Errorf("the dry run gives %+v", s)
	}
	for n := range 1 {
		s := b.run("second", input)
		if s.Next != stepDone || s.Result.Target != "job:"+b.job || s.Result.Summary == "" {
			t.Errorf("try %d gives %+v", n, s)
		}
	}
	history, err := b.Admin.Queue.Events(b.Context(), event.Subject{Type: event.Job, ID: b.job}, "")
	if err != nil {
		t.Fatal(err)
	}
	requeued := 0
	for _, e := range history.Items {
		if e.Type == "job.requeued" {
			requeued++
			if e.Actor != "console:second" || !strings.Contains(e.Detail, "the source is corrected") {
				t.Errorf("the event is by %s: %s", e.Actor, e.Detail)
			}
		}
	}
	if requeued != 1 {
		t.Errorf("the job was requeued %d times", requeued)
	}
	if s := b.run("third", input); s.Next != stepRefused || s.Error != "Conflict" || !strings.Contains(s.Cause, b.job) {
		t.Errorf("a requeue of a job that is not Failed gives %+v", s)
	}
}

// TestAdminRefuses: what is wrong with the input ends the execution with the kind of the
// error and the sentence, and changes nothing.
func TestAdminRefuses(t *testing.T) {
	b := newAdminBench(t, 1)
	before, err := b.Admin.Queue.Job(t.Context(), b.job)
	if err != nil {
		t.Fatal(err)
	}
	for input, want := range map[string][2]string{
		`{}`: {"Invalid", "action: none is given"},
		`{"action": "requeue", "target": "` + b.job + `"}`:                                       {"Invalid", "reason: none is given"},
		`{"action": "pause", "target": "` + b.job + `", "reason": "r"}`:                          {"Invalid", `found "pause"`},
		`{"action": "requeue", "target": "job:01M7ZBMEYHBB62YP6RY21T1GQ6-00007", "reason": "r"}`: {"NotFound", "-00007"},
	} {
		if s := b.run("e", input); s.Next != stepRefused || s.Error != want[0] || !strings.Contains(s.Cause, want[1]) {
			t.Errorf("%s gives %+v", input, s)
		}
	}
	after, err := b.Admin.Queue.Job(t.Context(), b.job)
	if err != nil || after.Rev != before.Rev {
		t.Errorf("the job was changed: %+v, %v", after, err)
	}
	if s := b.run("", `{}`); s.Error != "Invalid" || !strings.Contains(s.Cause, "start an execution") {
		t.Errorf("without an execution: %+v", s)
	}
}

// TestAdminTriesAgain: what may succeed at another try is an error of the function, under
// the name by which the definition knows it.
func TestAdminTriesAgain(t *testing.T) {
	b := newAdminBench(t, 1)
	b.down = &smithy.GenericAPIError{Code: "AccessDeniedException", Message: "not allowed"}
	_, err := b.Handle(t.Context(), AdminRequest{Execution: "e",
		Input: json.RawMessage(`{"action": "requeue", "target": "` + b.job + `", "reason": "r"}`)})
	var named messages.InvokeResponse_Error
	if !errors.As(err, &named) || named.Message == "" {
		t.Fatalf("the error is %v", err)
	}
	var d struct {
		States map[string]struct {
			Choices []struct{ StringEquals, Next string }
			Default string
			Catch   []struct{ ErrorEquals []string }
		}
	}
	if err := json.Unmarshal([]byte(statemachines.Definitions[queue.MachineAdmin]), &d); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(fmt.Sprint(d.States["Act"].Catch[0].ErrorEquals), named.Type) {
		t.Errorf("the definition does not know the error %s", named.Type)
	}
	// Each step that the function answers leads on.
	leads := map[string]string{stepRefused: d.States["Outcome"].Default}
	for _, c := range d.States["Outcome"].Choices {
		leads[c.StringEquals] = c.Next
	}
	for step, want := range map[string]string{stepDone: "Done", stepRefused: "Refused"} {
		if leads[step] != want {
			t.Errorf("%s leads to %q, want %q", step, leads[step], want)
		}
	}
}
