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

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/aws/cloudwatch"
	"archivist/pkg/events/event"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/queue/queuetest"
	"archivist/pkg/kernel/table/tabletest"
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
	b.AdminAction = &AdminAction{Admin: queue.Admin{Queue: m.Queue}, Budget: time.Minute,
		Metrics: &cloudwatch.Metrics{}, Log: slog.New(slog.DiscardHandler)}
	return b
}

// run makes a step of an execution, and returns it as the machine gets it.
func (b *adminBench) run(execution, input string) (step struct {
	Next, Error, Cause string
	Wait               int
	Result             struct {
		Target, Summary, To, ID, State string
		Changed, DryRun                bool
		Counts                         v1.OperationCounts
		Refusals                       []v1.Refusal
		Findings                       []v1.Finding
	}
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
	for n := range 2 {
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

// TestAdminBulk: an execution starts its bulk operation once, does its pages in steps of a
// bounded time, and shows what was done and refused.
func TestAdminBulk(t *testing.T) {
	b := newAdminBench(t, 3)
	batch, _, _ := strings.Cut(b.job, "-")
	input := fmt.Sprintf(`{"action": "requeue", "filter": {"batch": %q}, "reason": "the source is corrected"}`, batch)
	b.Budget = 0
	begun := b.run("person", input)
	id := begun.Result.ID
	if begun.Next != stepContinue || id == "" || begun.Result.State != "Running" || begun.Result.Counts.Planned != 3 {
		t.Fatalf("it begins with %+v", begun)
	}
	if s := b.run("person", input); s.Next != stepContinue || s.Result.ID != id || s.Result.Counts.Done != 0 {
		t.Errorf("a step without time: %+v", s)
	}
	b.Budget = time.Minute
	if _, err := b.Admin.Act(t.Context(), ingest.Action{Name: "requeue", Reason: "by hand",
		Target: ingest.Target{Kind: "job", ID: b.job}, Role: ingest.Operator}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		s := b.run("person", input)
		want := v1.OperationCounts{Planned: 3, Done: 2, Refused: 1}
		if s.Next != stepDone || s.Result.State != "Done" || s.Result.Counts != want ||
			len(s.Result.Refusals) != 1 || s.Result.Refusals[0].Job != b.job {
			t.Errorf("it ends with %+v", s)
		}
	}
	for input, says := range map[string]string{
		`{"action": "requeue", "filter": {"batsh": "x"}, "reason": "r"}`:           "filter.batsh: unknown field",
		`{"action": "requeue", "filter": "x", "reason": "r"}`:                      "filter: found \"x\"; expected an object",
		`{"action": "requeue", "filter": {}, "reason": "r"}`:                       "filter: expected a batch",
		`{"action": "pause", "filter": {"batch": "` + batch + `"}, "reason": "r"}`: `found "pause"`,
		`{"action": "requeue", "filter": {"batch": "` + batch + `"}}`:              "reason: none is given",
		`{"action": "requeue", "filter": {"state": "Failed", "before": 5}}`:        "filter.before: found 5",
		`{"action": "requeue", "filter": {"state": "Failed", "before": "monday"}}`: `filter.before: found "monday"`,
	} {
		if s := b.run("e", input); s.Next != stepRefused || s.Error != "Invalid" || !strings.Contains(s.Cause, says) {
			t.Errorf("%s gives %+v; expected %q", input, s, says)
		}
	}
	if s := b.run("e", `{"operation": "x", "exec": 1}`); s.Error != "NotFound" {
		t.Errorf("an operation that is not there: %+v", s)
	}
}

// checker finds a fault on each of two pages.
type checker struct{}

func (checker) Check(_ context.Context, cursor string, repair bool, _ time.Time) (queue.CheckedPage, error) {
	found := []queue.Finding{{Invariant: "batch-counts", Subject: "batch:" + cursor, Repaired: repair}}
	if cursor == "" {
		return queue.CheckedPage{Cursor: "second", Checked: 5, Findings: found}, nil
	}
	return queue.CheckedPage{Checked: 2, Findings: found}, nil
}

// TestAdminDoctor: an execution runs the doctor to its end, and shows what it has found.
func TestAdminDoctor(t *testing.T) {
	b := newAdminBench(t, 1)
	b.Admin.Checker = checker{}
	for range 2 {
		s := b.run("person", `{"action": "doctor", "repair": true, "reason": "monthly check"}`)
		want := v1.OperationCounts{Checked: 7, Findings: 2, Repaired: 2}
		if s.Next != stepDone || s.Result.State != "Done" || s.Result.Counts != want ||
			len(s.Result.Findings) != 2 || s.Result.Findings[1].Subject != "batch:second" {
			t.Errorf("it ends with %+v", s)
		}
	}
	if s := b.run("e", `{"action": "doctor"}`); s.Error != "Invalid" || !strings.Contains(s.Cause, "reason") {
		t.Errorf("without a reason: %+v", s)
	}
}

// TestAdminWaits: a person's execution waits for an operation whose pages another execution
// does: it looks less and less often, not for ever, and fails if the operation is interrupted.
func TestAdminWaits(t *testing.T) {
	b := newAdminBench(t, 1)
	now := time.Now()
	b.Admin.Queue.Now = func() time.Time { return now }
	input := `{"action": "requeue", "filter": {"collection": "maps"}, "reason": "r", "dryRun": true}`
	b.Budget = 0
	id := b.run("person", input).Result.ID
	for _, f := range []func(context.Context, string, string, string, ingest.Role) (*queue.Operation, error){
		b.Admin.Interrupt, b.Admin.Continue} {
		if _, err := f(t.Context(), id, "r", "me", ingest.Operator); err != nil {
			t.Fatal(err)
		}
	}
	for exec, want := range map[int]string{1: stepDone, 2: stepContinue} { // the system's executions
		if s := b.run(fmt.Sprint(id, "-", exec), fmt.Sprintf(`{"operation": %q, "exec": %d}`, id, exec)); s.Next != want {
			t.Errorf("execution %d: %+v", exec, s)
		}
	}
	events := 0
	for at := time.Duration(0); ; events += 9 { // of a step and a wait
		s, err := b.Handle(t.Context(), AdminRequest{Execution: "person", Started: now.Add(-at),
			Input: json.RawMessage(input)})
		if err != nil {
			t.Fatal(err)
		}
		if s.Next != stepWait {
			if s.Next != stepDone || at < longest || events > 20_000 {
				t.Errorf("after %s and %d events: %+v", at, events, s)
			}
			break
		}
		if s.Wait < 1 || s.Wait > 60 {
			t.Fatalf("after %s it waits %d s", at, s.Wait)
		}
		at += time.Duration(s.Wait) * time.Second
	}
	if _, err := b.Admin.Interrupt(t.Context(), id, "r", "me", ingest.Operator); err != nil {
		t.Fatal(err)
	}
	if s := b.run("person", input); s.Next != stepRefused || s.Error != "Conflict" || !strings.Contains(s.Cause, id) {
		t.Errorf("an interrupted operation ends the execution with %+v", s)
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
	for step, want := range map[string]string{stepDone: "Result", stepRefused: "Refused", stepContinue: "Act",
		stepWait: "Wait"} {
		if leads[step] != want {
			t.Errorf("%s leads to %q, want %q", step, leads[step], want)
		}
	}
}
