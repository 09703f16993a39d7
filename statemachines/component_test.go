package statemachines_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"archivist/pkg/components/component"
	"archivist/statemachines"
)

// step is a state of component-run.
type step struct {
	Type, Resource, Next, Default  string
	End                            bool
	TimeoutSeconds, MaxConcurrency int
	TimeoutSecondsPath             string
	ItemsPath, OutputPath          string
	ResultPath                     json.RawMessage
	Result                         json.RawMessage
	ItemSelector                   map[string]string
	Parameters                     struct {
		FunctionName string
		Payload      map[string]string
		Overrides    json.RawMessage
	}
	Choices []struct {
		Variable, StringEquals, Next string
		BooleanEquals                bool
	}
	Catch, Retry []struct {
		ErrorEquals []string
		Next        string
		MaxAttempts int
	}
	ItemProcessor struct {
		StartAt string
		States  map[string]step
	}
}

func componentRun(t *testing.T) map[string]step {
	t.Helper()
	var d struct{ States map[string]step }
	if err := json.Unmarshal([]byte(statemachines.Definitions[component.Machine]), &d); err != nil {
		t.Fatal(err)
	}
	return d.States
}

// TestComponentRun: what Find answers leads to the states that do it; after the items, Find is asked
// again; and nothing that happens to an item ends the run.
func TestComponentRun(t *testing.T) {
	states := componentRun(t)
	next := map[string]string{}
	for _, c := range states["Found"].Choices {
		next[c.StringEquals] = c.Next
	}
	want := map[string]string{component.NextWork: "Work", component.NextTask: "Tasks", component.NextEnd: "End"}
	if !maps.Equal(next, want) || states["Found"].Default != "Done" || states["Find"].OutputPath != "$.Payload" {
		t.Errorf("Found leads to %v, %s", next, states["Found"].Default)
	}
	for _, name := range []string{"Work", "Tasks"} {
		m := states[name]
		if m.Next != "Find" || m.MaxConcurrency != component.MaxConcurrency || m.ItemsPath != "$.lanes" ||
			string(m.ResultPath) != "null" || m.ItemSelector["run.$"] != "$.run" ||
			m.ItemSelector["lane.$"] != "$$.Map.Item.Value" {
			t.Errorf("%s: %+v", name, m)
		}
		for inner, s := range m.ItemProcessor.States {
			if s.Type == "Pass" && (!s.End || string(s.Result) != "{}") {
				t.Errorf("%s passes on the data of an item: %+v", inner, s)
			}
			if s.Type != "Task" {
				continue
			}
			if n := len(s.Catch); n == 0 || !slices.Equal(s.Catch[n-1].ErrorEquals, []string{"States.ALL"}) {
				t.Errorf("%s: an error of one item ends the run: %+v", inner, s.Catch)
			}
		}
	}
	actions := map[string]string{"Find": "find", "End": "end", "WorkLane": "work", "Take": "take", "Record": "record",
		"TaskFailed": "record"}
	for name, s := range everyStep(states) {
		action, is := actions[name]
		if is != (s.Resource == "arn:aws:states:::lambda:invoke") || s.Parameters.Payload["action"] != action ||
			is && s.Parameters.Payload["run.$"] != "$.run" {
			t.Errorf("%s invokes %+v", name, s.Parameters)
		}
		if is && time.Duration(s.TimeoutSeconds)*time.Second <= component.FunctionTime {
			t.Errorf("%s waits %d s", name, s.TimeoutSeconds)
		}
	}
}

// everyStep are all states, also those within Map states.
func everyStep(states map[string]step) map[string]step {
	all := maps.Clone(states)
	for _, s := range states {
		maps.Copy(all, s.ItemProcessor.States)
	}
	return all
}

// TestComponentTask: a container gets its work and its token, has the time of the item, and its answer
// and its failure are both recorded.
func TestComponentTask(t *testing.T) {
	states := componentRun(t)["Tasks"].ItemProcessor.States
	task := states["Task"]
	if task.Resource != "arn:aws:states:::ecs:runTask.waitForTaskToken" || task.TimeoutSecondsPath != "$.seconds" ||
		task.Next != "Record" || task.Catch[0].Next != "TaskFailed" {
		t.Errorf("%+v", task)
	}
	for _, part := range []string{`"ARCHIVIST_WORK"`, `"$.taken.text"`, `"ARCHIVIST_TOKEN"`, `"$$.Task.Token"`} {
		if !strings.Contains(string(task.Parameters.Overrides), part) {
			t.Errorf("the container does not get %s: %s", part, task.Parameters.Overrides)
		}
	}
	taken := states["Taken"]
	if len(taken.Choices) != 1 || taken.Choices[0].Variable != "$.taken.is" || !taken.Choices[0].BooleanEquals ||
		taken.Choices[0].Next != "Task" || taken.Default != "TaskDone" {
		t.Errorf("%+v", taken)
	}
	if states["Record"].Parameters.Payload["result.$"] != "$.result" ||
		states["TaskFailed"].Parameters.Payload["error.$"] != "$.error" {
		t.Errorf("%+v, %+v", states["Record"], states["TaskFailed"])
	}
}

// TestTimedWithin: the time-outs of states within others are set too, but not one that comes with the
// input.
func TestTimedWithin(t *testing.T) {
	text, err := statemachines.Timed(component.Machine, func(string) time.Duration { return 7 * time.Second })
	if err != nil || strings.Count(text, `"TimeoutSeconds":7`) != 6 || strings.Contains(text, `"TimeoutSeconds":930`) ||
		strings.Count(text, `"TimeoutSecondsPath"`) != 1 {
		t.Errorf("%v: %s", err, text)
	}
}
