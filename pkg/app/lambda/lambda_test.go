package lambda

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	lambdaevents "github.com/aws/aws-lambda-go/events"

	"archivist/events"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/revisions/runner"
)

// sample decodes a sample.
func sample(t *testing.T, name string, into any) {
	t.Helper()
	data, err := events.Files.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

func TestSamplePayloads(t *testing.T) {
	var in lambdaevents.SQSEvent
	sample(t, "run-stage.message.json", &in)
	dec := json.NewDecoder(strings.NewReader(in.Records[0].Body))
	dec.DisallowUnknownFields()
	var m queue.Message
	if err := dec.Decode(&m); err != nil || m.Exec != 2 || m.State != "Downloading" || m.Token == "" {
		t.Errorf("the message is %+v, %v", m, err)
	}
	for name, want := range map[string]struct {
		records int
		kind    string
		exec    string
	}{
		"scheduler.minute.json":  {0, "Scheduled Event", ""},
		"scheduler.wake.json":    {1, "", ""},
		"scheduler.stopped.json": {0, "Step Functions Execution Status Change", "01M7ZBMEYHBB62YP6RY21T1GQ6-00001-2"},
	} {
		var c SchedulerEvent
		sample(t, name, &c)
		if len(c.Records) != want.records || c.DetailType != want.kind || c.Detail.Name != want.exec {
			t.Errorf("%s: %+v", name, c)
		}
	}
	var request lambdaevents.APIGatewayProxyRequest
	sample(t, "api.request.json", &request)
	if request.HTTPMethod != "GET" || request.PathParameters["proxy"] == "" ||
		request.RequestContext.Identity.SourceIP == "" {
		t.Errorf("the request is %+v", request)
	}
	var step AdminRequest
	sample(t, "admin-action.requeue.json", &step)
	asked, err := readInput(step.Input)
	if err != nil || asked.Action != "requeue" || step.Execution == "" || step.Started.IsZero() {
		t.Errorf("the request is %+v, %v", step, err)
	}
	var stream, minute RelayEvent
	sample(t, "relay.stream.json", &stream)
	sample(t, "relay.minute.json", &minute)
	if len(stream.Records) != 2 || len(minute.Records) != 0 {
		t.Errorf("the stream's records are %+v, the minute's %+v", stream, minute)
	}
	var wake WakeUp
	sample(t, "consumer.wake.json", &wake)
	if wake != (WakeUp{Consumer: "search", Partition: "maps"}) {
		t.Errorf("the wake-up is %+v", wake)
	}
	var work ComponentRequest
	sample(t, "run-component.work.json", &work)
	if work.Action != "work" || work.Run.Component != "fixity" || len(work.Lane.Items) != 1 {
		t.Errorf("the step is %+v", work)
	}
	var job runner.Job
	sample(t, "task-runner.job.json", &job)
	if job.Task.Name != "build-PDF" || job.Task.Script == "" || job.Prefix != "runs/maps/12/build-PDF/000001-x/" ||
		job.Deadline.IsZero() {
		t.Errorf("the job is %+v", job)
	}
	var control runner.Control
	sample(t, "task-control.begin.json", &control)
	if control.Action != runner.ActionBegin || control.Attempt != "maps/12/build-PDF/1" || control.Exec == "" {
		t.Errorf("the step of task-run is %+v", control)
	}
	files, err := events.Files.ReadDir(".")
	if err != nil || len(files) != 17 {
		t.Errorf("%d samples, %v: each has a test here", len(files), err)
	}
}

// TestWakeUpsEnd: a wake-up that arrives during another tick each time is done before it is
// received so often that it becomes a dead letter.
func TestWakeUpsEnd(t *testing.T) {
	for name, timing := range ingest.Timings {
		sent := time.UnixMilli(1000)
		now, last := sent, time.Duration(0)
		for n := 1; ; n++ {
			r := lambdaevents.SQSMessage{Attributes: map[string]string{
				"ApproximateReceiveCount": fmt.Sprint(n), "SentTimestamp": "1000"}}
			keep := delay(r, now, timing.Scheduler+timing.Margin)
			if keep == 0 {
				break
			}
			if n >= timing.Wake().Receives || keep <= last {
				t.Fatalf("%s: after %d times it waits %s", name, n, keep)
			}
			now, last = now.Add(keep), keep
		}
		if began := now.Add(-timing.Scheduler - timing.Margin); began.Before(sent) {
			t.Errorf("%s: answered by a tick that can have begun before it was sent", name)
		}
	}
	if keep := delay(lambdaevents.SQSMessage{}, time.Now(), time.Minute); keep != busy {
		t.Errorf("a wake-up without attributes waits %s", keep)
	}
}

func TestExecutionName(t *testing.T) {
	name := queue.ExecutionName("01M7-00001", 12)
	if job, exec, ok := executionName(name); !ok || job != "01M7-00001" || exec != 12 {
		t.Errorf("%s became %s, %d, %v", name, job, exec, ok)
	}
	if _, _, ok := executionName("byhand"); ok {
		t.Error("a name that the system did not make was accepted")
	}
}
