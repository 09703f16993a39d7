package statemachines_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"archivist/pkg/ingest"
	"archivist/statemachines"
)

type state struct {
	Type           string
	Resource       string
	Next           string
	Default        string
	Error          string
	TimeoutSeconds int
	Seconds        int
	End            bool
	ResultPath     *string
	Parameters     struct {
		QueueUrl    string
		MessageBody map[string]string
	}
	ItemProcessor machine
	Choices       []struct {
		Variable, StringEquals, Next string
	}
	Catch []struct {
		ErrorEquals []string
		Next        string
	}
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

func (s state) leads() (out []string) {
	for _, n := range []string{s.Next, s.Default} {
		if n != "" {
			out = append(out, n)
		}
	}
	for _, c := range s.Choices {
		out = append(out, c.Next)
	}
	for _, c := range s.Catch {
		out = append(out, c.Next)
	}
	return out
}

// TestShape: every transition leads to a state that exists, every state is reached, and
// only end states lead nowhere.
func TestShape(t *testing.T) {
	all := map[string]machine{}
	for name, text := range statemachines.Definitions {
		all[name] = read(t, text)
		for inner, s := range all[name].States {
			if s.Type == "Map" {
				all[name+" "+inner] = s.ItemProcessor
			}
		}
	}
	for name, m := range all {
		reached := map[string]bool{m.StartAt: true}
		for range m.States {
			for s := range reached {
				for _, n := range m.States[s].leads() {
					reached[n] = true
				}
			}
		}
		for s := range reached {
			st, there := m.States[s]
			if !there {
				t.Errorf("%s: a transition leads to %q, which does not exist", name, s)
			}
			if ends := st.Type == "Succeed" || st.Type == "Fail" || st.End; ends != (len(st.leads()) == 0) {
				t.Errorf("%s: %q is of type %s and leads to %v", name, s, st.Type, st.leads())
			}
			if !slices.Contains([]string{"Task", "Choice", "Wait", "Pass", "Succeed", "Fail", "Map"}, st.Type) {
				t.Errorf("%s: %q has the type %q", name, s, st.Type)
			}
		}
		for s := range m.States {
			if !reached[s] {
				t.Errorf("%s: %q is never reached", name, s)
			}
		}
	}
}

// TestStages: the table of stages and the Task states are the same set. Each state sends to
// its stage's queue and has the time-out of the chain of times.
func TestStages(t *testing.T) {
	production := ingest.Timings["production"]
	tasks := map[string]string{} // queue → state
	for name, text := range statemachines.Definitions {
		for s, st := range read(t, text).States {
			if st.Type != "Task" || st.Parameters.QueueUrl == "" {
				continue
			}
			stage := strings.Trim(st.Parameters.QueueUrl, "${}")
			tasks[stage] = s
			row, known := ingest.StageNamed(stage)
			if !known {
				t.Errorf("%s: %q sends to %q, which is no stage", name, s, stage)
				continue
			}
			if want := production.Times(row).State; time.Duration(st.TimeoutSeconds)*time.Second != want {
				t.Errorf("%s: %q waits %d s, want %s", name, s, st.TimeoutSeconds, want)
			}
			body := st.Parameters.MessageBody
			if body["token.$"] != "$$.Task.Token" || body["exec.$"] != "$.exec" || row.Job != "" &&
				body["state"] != string(row.Job) || row.Batch != "" && body["step"] != stage {
				t.Errorf("%s: %q sends %v", name, s, body)
			}
		}
	}
	for _, row := range ingest.Stages {
		if tasks[row.Name] == "" {
			t.Errorf("no state sends to the stage %s", row.Name)
		}
	}
	if len(tasks) != len(ingest.Stages) {
		t.Errorf("%d states for %d stages", len(tasks), len(ingest.Stages))
	}
}

// TestPath: success follows the order of the job's states, a gate ends the execution, and
// each error name of an answer is caught.
func TestPath(t *testing.T) {
	m := read(t, statemachines.Definitions["ingest-job"])
	for s, st := range m.States {
		if st.Type != "Task" {
			continue
		}
		want := string(ingest.After(ingest.State(s)))
		if want == string(ingest.Provisioning) || want == string(ingest.Completed) {
			want = "Ended"
		}
		if st.Next != want {
			t.Errorf("%s leads to %q, want %q", s, st.Next, want)
		}
		to := map[string]string{}
		for _, c := range st.Catch {
			for _, e := range c.ErrorEquals {
				to[e] = c.Next
			}
		}
		for e, want := range map[ingest.Answer]string{ingest.Parked: "Ended", ingest.Superseded: "Ended",
			ingest.StageFail: "Failed", ingest.Continue: s + " again", "States.Timeout": s + " again", "States.ALL": s +
				" later"} {
			if to[string(e)] != want {
				t.Errorf("%s: %s is caught to %q, want %q", s, e, to[string(e)], want)
			}
		}
		if again := m.States[s+" again"]; again.Type != "Wait" || again.Seconds != 1 || again.Next != s {
			t.Errorf("%s again: %+v", s, again)
		}
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

// TestAdminAction: admin-action passes its input and the name of its execution to the
// function at each step, tries again what failed for a reason that may pass, and shows a
// refusal as its error and cause.
func TestAdminAction(t *testing.T) {
	type task struct {
		Resource, OutputPath string
		Parameters           struct {
			FunctionName string
			Payload      map[string]string
		}
		Retry []struct {
			ErrorEquals                  []string
			IntervalSeconds, MaxAttempts int
			BackoffRate                  float64
		}
		ErrorPath, CausePath string
	}
	var d struct{ States map[string]task }
	if err := json.Unmarshal([]byte(statemachines.Definitions["admin-action"]), &d); err != nil {
		t.Fatal(err)
	}
	act := d.States["Act"]
	want := map[string]string{"execution.$": "$$.Execution.Name", "started.$": "$$.Execution.StartTime",
		"input.$": "$$.Execution.Input"}
	if !maps.Equal(act.Parameters.Payload, want) || act.OutputPath != "$.Payload" ||
		act.Resource != "arn:aws:states:::lambda:invoke" || act.Parameters.FunctionName != "${admin}" {
		t.Errorf("the step is %+v", act)
	}
	if len(act.Retry) != 1 || !slices.Equal(act.Retry[0].ErrorEquals, []string{"States.ALL"}) ||
		act.Retry[0].MaxAttempts < 3 || act.Retry[0].BackoffRate < 2 || act.Retry[0].IntervalSeconds < 1 {
		t.Errorf("errors are tried again by %+v", act.Retry)
	}
	for name, paths := range map[string][2]string{"Refused": {"$.error", "$.cause"},
		"Failed": {"$.error", "$.said.errorMessage"}, "FunctionFailed": {"$.Error", "$.Cause"}, "TimedOut": {}} {
		if st := d.States[name]; st.ErrorPath != paths[0] || st.CausePath != paths[1] {
			t.Errorf("%s shows %s and %s", name, st.ErrorPath, st.CausePath)
		}
	}
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
