package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"archivist/pkg/app/boot"
	"archivist/pkg/components/component"
)

// TestComponentMachine: the state machine component-run may invoke its function and nothing else, has the
// name by which all functions know it, and waits longer for the function than that may run. A lane ends
// before its function is ended.
func TestComponentMachine(t *testing.T) {
	all := synth(t, production)
	f := find(t, all, "AWS::Lambda::Function", "component")
	if secs(f.Properties["Timeout"]) != component.FunctionTime || component.FunctionTime > 15*time.Minute {
		t.Errorf("the function has %v", f.Properties["Timeout"])
	}
	found := 0
	for id, m := range of(all, "AWS::StepFunctions::StateMachine") {
		if m.Properties["StateMachineName"] != "Archivist-"+component.Machine {
			continue
		}
		found++
		definition, _ := m.Properties["DefinitionString"].(string)
		var d any
		if err := json.Unmarshal([]byte(definition), &d); err != nil {
			t.Fatalf("%s: %v in %s", id, err, text(m.Properties["DefinitionString"]))
		}
		waits := timeouts(d)
		if len(waits) != 6 || slices.Min(waits) <= component.FunctionTime.Seconds() {
			t.Errorf("the states wait %v s", waits)
		}
	}
	if found != 1 {
		t.Errorf("%d state machines", found)
	}
	for id, f := range of(all, "AWS::Lambda::Function") {
		if env := text(f.Properties["Environment"]); !strings.HasPrefix(id, "authorizer") &&
			(!strings.Contains(env, boot.EnvRunMachine) ||
				!strings.Contains(env, ":stateMachine:Archivist-component-run")) {
			t.Errorf("%s does not know the state machine: %s", id, env)
		}
	}
}

// timeouts are those of all states of a definition, also those within others.
func timeouts(v any) (all []float64) {
	switch v := v.(type) {
	case map[string]any:
		for name, inner := range v {
			if s, is := inner.(float64); is && name == "TimeoutSeconds" {
				all = append(all, s)
			}
			all = append(all, timeouts(inner)...)
		}
	case []any:
		for _, inner := range v {
			all = append(all, timeouts(inner)...)
		}
	}
	return all
}

// TestWhoStartsComponents: the functions in which an item can become ready, and no others, may start
// runs of components.
func TestWhoStartsComponents(t *testing.T) {
	var may []string
	for _, g := range grants(t, synth(t, production)) {
		on, _ := json.Marshal(g.resource)
		if slices.Contains(g.actions, "states:StartExecution") && (strings.Contains(string(on), "componentrun") ||
			strings.Contains(string(on), "component-run")) {
			may = append(may, strings.ToLower(g.policy[:6]))
		}
	}
	slices.Sort(may)
	if got := strings.Join(slices.Compact(may), " "); got != "apiser compon consum schedu" {
		t.Errorf("%s may start runs", got)
	}
}

// TestTasks: the state machine may run the containers that the settings name with their roles, and no
// others; other texts are refused.
func TestTasks(t *testing.T) {
	s := production
	if wrong := s.readTasks("arn:aws:ecs:eu-west-1:111122223333:task-definition/ocr:7, " +
		"arn:aws:iam::111122223333:role/ocr"); wrong != nil {
		t.Fatal(wrong)
	}
	for _, text := range []string{"arn:aws:ecs:eu-west-1:111122223333:task-definition/ocr", "arn:aws:iam::1:role/x",
		"*"} {
		if (&Settings{}).readTasks(text) == nil {
			t.Errorf("%q is accepted", text)
		}
	}
	var granted []string
	for _, g := range grants(t, synth(t, s)) {
		if strings.HasPrefix(g.policy, "componentrun") && (slices.Contains(g.actions, "ecs:RunTask") ||
			slices.Contains(g.actions, "iam:PassRole")) {
			granted = append(granted, strings.Join(g.actions, " ")+" "+text(g.resource)+" "+g.condition)
		}
	}
	slices.Sort(granted)
	want := []string{`ecs:RunTask "arn:aws:ecs:eu-west-1:111122223333:task-definition/ocr:7" `,
		`iam:PassRole "arn:aws:iam::111122223333:role/ocr" ` +
			`{"StringEquals":{"iam:PassedToService":"ecs-tasks.amazonaws.com"}}`}
	if !slices.Equal(granted, want) {
		t.Errorf("it may %q", granted)
	}
}

// TestReplicaIsKnown: the function that copies objects knows the second bucket, and so does the scheduler,
// which installs the component.
func TestReplicaIsKnown(t *testing.T) {
	s := production
	s.ReplicaBucket, s.ReplicaRegion = "archive-copy", "eu-west-1"
	all := synth(t, s)
	for _, id := range []string{"component", "scheduler", "api"} {
		env := text(find(t, all, "AWS::Lambda::Function", id).Properties["Environment"])
		if !strings.Contains(env, `"`+boot.EnvReplica+`":"archive-copy"`) {
			t.Errorf("%s has %s", id, env)
		}
	}
}
