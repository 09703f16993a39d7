package statemachines_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"archivist/pkg/app/inprocess/states"
	"archivist/pkg/ingest"
	"archivist/statemachines"
)

type state struct {
	TimeoutSeconds int
	Parameters     struct{ QueueUrl string }
}

type machine struct {
	StartAt string
	States  map[string]state
}

func read(t *testing.T, text string) machine {
	t.Helper()
	var m machine
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestDefinitions: Step Functions would accept each definition: every transition leads to a state, every state is
// reached, and nothing is spelled wrong.
func TestDefinitions(t *testing.T) {
	for name, text := range statemachines.Definitions {
		if err := (&states.Machines{}).Add("arn", name, []byte(text)); err != nil {
			t.Error(err)
		}
	}
}

// TestStages: the queues of the definitions and those of the table of stages are the same.
func TestStages(t *testing.T) {
	var got, want []string
	for _, text := range statemachines.Definitions {
		for _, s := range read(t, text).States {
			if s.Parameters.QueueUrl != "" {
				got = append(got, s.Parameters.QueueUrl)
			}
		}
	}
	for _, row := range ingest.Stages {
		want = append(want, "${"+row.Name+"}")
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("queues %v, stages %v", got, want)
	}
}

func TestTimed(t *testing.T) {
	text, err := statemachines.Timed("ingest-job", func(stage string) time.Duration {
		if stage == "download" {
			return 7 * time.Second
		}
		return 3 * time.Second
	})
	if err != nil {
		t.Fatal(err)
	}
	m := read(t, text)
	if m.States["Downloading"].TimeoutSeconds != 7 || m.States["Notify"].TimeoutSeconds != 3 || m.StartAt != "Begin" {
		t.Errorf("timed: %+v", m.States["Downloading"])
	}
	if !strings.Contains(text, `"ResultPath":null`) {
		t.Error("a null path was lost")
	}
}

// TestTimedFunction: a state that invokes a function has the function's time-out. That of the file is the one of
// production.
func TestTimedFunction(t *testing.T) {
	text, err := statemachines.Timed("admin-action", func(placeholder string) time.Duration {
		return map[string]time.Duration{"admin": 9 * time.Second}[placeholder]
	})
	if err != nil || read(t, text).States["Act"].TimeoutSeconds != 9 {
		t.Errorf("the time-out is not set: %v, %v", text, err)
	}
	if wait := ingest.Timings["production"].Admin().State; read(t, statemachines.Definitions["admin-action"]).
		States["Act"].TimeoutSeconds != int(wait.Seconds()) {
		t.Errorf("the file waits for another time than %s", wait)
	}
}
