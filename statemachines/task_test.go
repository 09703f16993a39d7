package statemachines_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"archivist/pkg/runner"
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
		Overrides    json.RawMessage
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
		"Begin":  {"action": runner.ActionBegin},
		"End":    {"action": runner.ActionEnd, "result.$": "$.result"},
		"Failed": {"action": runner.ActionEnd, "failure.$": "$"},
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
	for name, result := range map[string]string{"Run": "$.Payload", "Container": "$"} {
		s := d.States[name]
		if s.Next != "End" || s.ResultSelector["result.$"] != result || len(s.ResultSelector) != 1 ||
			s.ResultPath != nil || len(s.Catch) != 1 || s.Catch[0].Next != "Failed" || s.Catch[0].ResultPath != nil ||
			!slices.Equal(s.Catch[0].ErrorEquals, []string{"States.ALL"}) {
			t.Errorf("%s: %+v", name, s)
		}
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
	container := d.States["Container"]
	if container.Resource != "arn:aws:states:::ecs:runTask.waitForTaskToken" ||
		container.TimeoutSecondsPath != "$.container.seconds" || len(container.Retry) != 0 {
		t.Errorf("%+v", container)
	}
	for _, part := range []string{`"ARCHIVIST_JOB"`, `"$.container.job"`, `"ARCHIVIST_TOKEN"`, `"$$.Task.Token"`} {
		if !strings.Contains(string(container.Parameters.Overrides), part) {
			t.Errorf("the container does not get %s", part)
		}
	}
}
