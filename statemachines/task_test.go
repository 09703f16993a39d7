package statemachines_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"archivist/pkg/revisions/runner"
	"archivist/statemachines"
)

// taskStep is a state of task-run.
type taskStep struct {
	Type, Resource, Next, Default, OutputPath string
	ResultPath                                *string
	ResultSelector                            map[string]string
	TimeoutSeconds                            int
	TimeoutSecondsPath                        string
	Parameters                                struct {
		FunctionName string
		Payload      map[string]string
		Job          string `json:"Payload.$"`
	}
	Choices []struct{ Variable, StringEquals, Next string }
	Catch   []struct {
		ErrorEquals []string
		Next        string
		ResultPath  *string
	}
	Retry []struct {
		ErrorEquals []string
		MaxAttempts int
	}
}

// TestTaskRun: what the control function answers leads to the state that does it; whatever happens to a run is
// recorded, with the attempt and the execution that it is for.
func TestTaskRun(t *testing.T) {
	var d struct{ States map[string]taskStep }
	if err := json.Unmarshal([]byte(statemachines.Definitions[runner.Machine]), &d); err != nil {
		t.Fatal(err)
	}
	next := map[string]string{runner.NextStop: d.States["Begun"].Default}
	for _, c := range d.States["Begun"].Choices {
		if c.Variable != "$.next" {
			t.Errorf("%+v", c)
		}
		next[c.StringEquals] = c.Next
	}
	for answer, want := range map[string]string{runner.NextRun: "Run", runner.NextContainer: "Container",
		runner.NextEnd: "End", runner.NextStop: "Done"} {
		if next[answer] != want || len(next) != 4 {
			t.Errorf("%s leads to %v, want %s", answer, next, want)
		}
	}
	for name, want := range map[string]map[string]string{
		"Begin": {"action": runner.ActionBegin},
		"End":   {"action": runner.ActionEnd, "result.$": "$.result"},
		"Look":  {"action": runner.ActionEnd, "failure.$": "$"},
	} {
		want["attempt.$"], want["exec.$"] = "$$.Execution.Input.attempt", "$$.Execution.Input.exec"
		s := d.States[name]
		for k, v := range want {
			if s.Parameters.Payload[k] != v {
				t.Errorf("%s asks %v, want %v", name, s.Parameters.Payload, want)
			}
		}
		if s.Parameters.FunctionName != "${control}" || len(s.Parameters.Payload) != len(want) ||
			s.OutputPath != "$.Payload" || s.TimeoutSeconds <= 900 || s.Retry[0].ErrorEquals[0] != "States.ALL" {
			t.Errorf("%s: %+v", name, s)
		}
	}
	for name, next := range map[string]string{"Run": "End", "Container": "Look"} {
		s := d.States[name]
		if s.Next != next || s.ResultPath != nil || len(s.Catch) != 1 || s.Catch[0].Next != "Look" ||
			s.Catch[0].ResultPath != nil || !slices.Equal(s.Catch[0].ErrorEquals, []string{"States.ALL"}) {
			t.Errorf("%s: %+v", name, s)
		}
	}
	if s := d.States["Run"].ResultSelector; s["result.$"] != "$.Payload" || len(s) != 1 {
		t.Errorf("of a run %v is passed on", s)
	}
	// A call is repeated for what the service says, or the function that it has begun nothing. What the task did is
	// not repeated here: whether there is another attempt is decided where attempts are counted.
	run := d.States["Run"]
	if run.Parameters.FunctionName != "${runner}" || run.Parameters.Job != "$.job" || run.TimeoutSeconds <= 900 ||
		len(run.Retry) != 1 || slices.ContainsFunc(run.Retry[0].ErrorEquals, func(name string) bool {
		return name != "Unavailable" && !strings.HasPrefix(name, "Lambda.")
	}) || slices.Contains(run.Retry[0].ErrorEquals, "Lambda.Unknown") {
		t.Errorf("%+v", run)
	}
}

// TestTaskContainer: a container gets its job, in the network and for the time that the control function says. The
// state waits for its end, so that Step Functions stops the container with the execution (source: Developer Guide,
// "Run a Job (.sync)"), and passes the end on as a failure, which a result in the bucket outdoes. Nothing but a call
// that ECS did not accept is repeated.
func TestTaskContainer(t *testing.T) {
	var d struct {
		States struct {
			Container struct {
				taskStep
				Parameters map[string]any
			}
		}
	}
	if err := json.Unmarshal([]byte(statemachines.Definitions[runner.Machine]), &d); err != nil {
		t.Fatal(err)
	}
	s := d.States.Container
	if s.Resource != "arn:aws:states:::ecs:runTask.sync" || s.TimeoutSecondsPath != "$.container.seconds" ||
		s.ResultSelector["Error"] != runner.ContainerEnded ||
		s.ResultSelector["Cause.$"] != "States.JsonToString($)" || len(s.ResultSelector) != 2 {
		t.Errorf("%+v", s)
	}
	if len(s.Retry) != 1 || slices.ContainsFunc(s.Retry[0].ErrorEquals, func(name string) bool {
		return !strings.HasPrefix(name, "ECS.")
	}) {
		t.Errorf("it is repeated for %+v", s.Retry)
	}
	want := `{"Cluster.$":"$.container.cluster","LaunchType":"FARGATE","NetworkConfiguration":{"AwsvpcConfiguration":{` +
		`"AssignPublicIp.$":"$.container.publicIp","SecurityGroups.$":"$.container.securityGroups",` +
		`"Subnets.$":"$.container.subnets"}},"Overrides":{"ContainerOverrides":[{"Environment":[{"Name":` +
		`"ARCHIVIST_JOB","Value.$":"$.container.job"}],"Name":"` + runner.ContainerName + `"}]},` +
		`"TaskDefinition.$":"$.container.taskDefinition"}`
	if got, _ := json.Marshal(s.Parameters); string(got) != want {
		t.Errorf("%s", got)
	}
	// Each field that is read is one of a Begun, and a Begun has no other.
	var answer struct{ Container map[string]any }
	data, err := json.Marshal(runner.Begun{Container: &runner.Container{}})
	if err == nil {
		err = json.Unmarshal(data, &answer)
	}
	if err != nil || len(answer.Container) != 7 {
		t.Errorf("%s, %v", data, err)
	}
	for name := range answer.Container {
		if !strings.Contains(want+s.TimeoutSecondsPath+`"`, `$.container.`+name) {
			t.Errorf("%s is not read", name)
		}
	}
}
