package statemachines_test

import (
	"cmp"
	"fmt"
	"testing"
	"time"

	"archivist/pkg/ingest"
)

// TestJobGoesThrough: from each of its states a job goes through those that follow, to a gate or to the end.
func TestJobGoesThrough(t *testing.T) {
	const input = `{"exec":3,"job":"b-1","state":"%s"}`
	for _, row := range ingest.Stages {
		var want []string
		var answers []any
		for s := row.Job; s != ""; s = ingest.After(s) {
			stage, driven := ingest.StageOf(s)
			if !driven {
				break
			}
			want = append(want, "0s "+stage.Name+" "+fmt.Sprintf(input, s))
			answers = append(answers, nil)
		}
		if row.Job == "" {
			continue
		}
		calls, end := played(t, "ingest-job", fmt.Sprintf(input, row.Job), answers...)
		wantCalls(t, calls, want...)
		wantEnd(t, end, fmt.Sprintf(input, row.Job))
	}
	_, end := played(t, "ingest-job", fmt.Sprintf(input, "Held"))
	wantEnd(t, end, "FAILED UnknownState the input does not name a state of this machine")
}

// TestAnswersOfStages: what each answer of a stage leads to, and after which time: the same state again, the end, or
// a failure.
func TestAnswersOfStages(t *testing.T) {
	for name, test := range map[string]struct {
		answer errorOf
		again  time.Duration // 0: never
		end    string
	}{
		"parked":     {errorOf(ingest.Parked), 0, ""},
		"superseded": {errorOf(ingest.Superseded), 0, ""},
		"failed":     {errorOf(ingest.StageFail), 0, "FAILED StageFailed why"},
		"continue":   {errorOf(ingest.Continue), time.Second, ""},
		"unknown":    {"Else", 30 * time.Second, ""},
		"not sent":   {"SQS.SqsException", 30 * time.Second, ""},
		"no answer":  {late, 1, ""}, // after its time-out and a second
	} {
		for _, row := range ingest.Stages {
			machine, input := "ingest-job", fmt.Sprintf(`{"exec":3,"job":"b-1","state":"%s"}`, row.Job)
			if row.Batch != "" {
				machine, input = "ingest-batch", fmt.Sprintf(`{"batch":"b","exec":3,"step":"%s"}`, row.Name)
			}
			again := test.again
			if test.answer == late {
				again = ingest.Timings["production"].Times(row).State + time.Second
			}
			calls, end := played(t, machine, input, test.answer, errorOf(ingest.Parked))
			want := []string{"0s " + row.Name + " " + input}
			if again > 0 {
				want = append(want, again.String()+" "+row.Name+" "+input)
			}
			t.Run(name+" "+row.Name, func(t *testing.T) {
				wantCalls(t, calls, want...)
				wantEnd(t, end, cmp.Or(test.end, input))
			})
		}
	}
}

// TestAdminActionPlays: an action goes on step by step, waits, and ends with its result or its refusal; what may
// pass is tried again.
func TestAdminActionPlays(t *testing.T) {
	const step = ` admin {"execution":"e","input":{"action":"pause"},"started":"2000-01-01T00:00:00.000Z"}`
	for name, test := range map[string]struct {
		answers []any
		at      []string
		end     string
	}{
		"done": {[]any{map[string]any{"next": "Continue"}, map[string]any{"next": "Wait", "wait": 90},
			map[string]any{"next": "Done", "result": map[string]any{"jobs": 7}}}, []string{"0s", "0s", "1m30s"}, `{"jobs":7}`},
		"refused": {[]any{map[string]any{"next": "Refused", "error": "Conflict", "cause": "it is paused"}},
			[]string{"0s"}, "FAILED Conflict it is paused"},
	} {
		calls, end := played(t, "admin-action", `{"action":"pause"}`, test.answers...)
		for i, at := range test.at {
			test.at[i] = at + step
		}
		t.Run(name, func(t *testing.T) {
			wantCalls(t, calls, test.at...)
			wantEnd(t, end, test.end)
		})
	}
	for _, test := range []struct {
		answer errorOf
		end    string
	}{
		{"Unavailable", "FAILED Unavailable it is so"},
		{"Stale", "FAILED Stale it is so"},
		{"Unknown", "FAILED Unknown it is so"},
		{"Runtime.ExitError", `FAILED Runtime.ExitError {"errorMessage":"it is so","errorType":"Runtime.ExitError"}`},
		{late, "FAILED States.Timeout The function did not end in time; its log says more"},
	} {
		answers := []any{test.answer, test.answer, test.answer, test.answer, test.answer, test.answer, test.answer}
		calls, end := played(t, "admin-action", `{"action":"pause"}`, answers...)
		if len(calls) != 7 {
			t.Errorf("%s: called %d times", test.answer, len(calls))
		}
		wantEnd(t, end, test.end)
		calls, end = played(t, "admin-action", `{"action":"pause"}`, test.answer, map[string]any{"next": "Done", "result": 1})
		if len(calls) != 2 {
			t.Errorf("%s: called %d times", test.answer, len(calls))
		}
		wantEnd(t, end, "1")
	}
}
