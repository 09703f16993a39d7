// Package statemachines holds the definitions of the state machines, as JSON in Amazon
// States Language.
//
// ingest-job drives a job from its state to a gate or to its end, ingest-batch one step of
// a batch. A state that has a stage sends a message with a task token to the stage's queue
// and waits until the stage's function answers the token. After success the execution
// continues. "Continue" sends the message again after a second, and so does a time-out.
// "Parked" and "Superseded" end the execution with success; "StageFailed" fails it. The
// answers are those of ingest.Answer, and the states those of ingest.Stages; a test compares
// them.
//
// admin-action does what a person asks for: a function of the same name makes one step after
// another until the result or the refusal is there. What can be started is in its comment.
//
// component-run does one run of a component: its function finds items, works on them, and finds the
// next, until the run ends.
//
// task-run is one execution of an attempt to run a task of the revision queue: a function takes
// the attempt, another, or a container, runs the task, and the first records what came of it.
//
// An execution holds no state of its own: it can be stopped, lost or started again at any
// moment, and the row of the job says where it continues.
//
// Placeholders ("${name}") stand for queues and functions, which infra, and the system in one
// process, fill in. Time-outs are not written in the definitions: they follow from the chain
// of times (Timed).
package statemachines

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

//go:embed ingest-job.asl.json
var ingestJob string

//go:embed ingest-batch.asl.json
var ingestBatch string

//go:embed admin-action.asl.json
var adminAction string

//go:embed component-run.asl.json
var componentRun string

//go:embed task-run.asl.json
var taskRun string

// Definitions by the machine's name. The names are those of the machines in the code.
var Definitions = map[string]string{"ingest-job": ingestJob, "ingest-batch": ingestBatch,
	"admin-action": adminAction, "component-run": componentRun, "task-run": taskRun}

// Timed returns a definition whose Task states have the time-out of the stage to whose queue
// they send, or of the function that they invoke. Queues and functions stay placeholders, as
// "${stage}". A machine that does not exist is an error. timeout is asked with the name in
// the placeholder; its result is cut to whole seconds.
func Timed(name string, timeout func(placeholder string) time.Duration) (string, error) {
	var d struct {
		Comment string
		StartAt string
		States  map[string]map[string]any
	}

	if err := json.Unmarshal([]byte(Definitions[name]), &d); err != nil {
		return "", fmt.Errorf("statemachines: %s: %w", name, err)
	}

	setTimeouts(d.States, timeout)
	out, err := json.Marshal(d)
	return string(out), err
}

// setTimeouts sets the time-outs of the Task states, also of those within a Map state. One that
// takes its time-out from its input keeps that.
func setTimeouts(states map[string]map[string]any, timeout func(placeholder string) time.Duration) {
	for _, s := range states {
		if processor, ok := s["ItemProcessor"].(map[string]any); ok {
			setTimeouts(statesOf(processor), timeout)
		}

		if s["Type"] != "Task" || s["TimeoutSecondsPath"] != nil {
			continue
		}

		parameters, _ := s["Parameters"].(map[string]any)
		target, _ := parameters["QueueUrl"].(string)
		if function, ok := parameters["FunctionName"].(string); ok {
			target = function
		}

		s["TimeoutSeconds"] = int(timeout(strings.Trim(target, "${}")).Seconds())
	}
}

// statesOf are the states of the processor of a Map state, which are those of the definition.
func statesOf(processor map[string]any) map[string]map[string]any {
	all := map[string]map[string]any{}
	states, _ := processor["States"].(map[string]any)
	for name, s := range states {
		all[name], _ = s.(map[string]any)
	}
	return all
}
