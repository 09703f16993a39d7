package states

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"
)

// TestRefuses: what is not supported, or wrong, is refused with its place.
func TestRefuses(t *testing.T) {
	for want, definition := range map[string]string{
		"unexpected EOF":          `{"StartAt": "X"`,
		"more follows":            one(`{"Type": "Succeed"}`) + "{}",
		`unknown field "Version"`: `{"Version": "1.0", "StartAt": "X", "States": {}}`,
		`a transition leads to "", which does not exist`:   `{}`,
		`a transition leads to "Y", which does not exist`:  one(`{"Type": "Pass", "Next": "Y"}`),
		"m.States: never reached: OK, Z":                   one(`{"Type": "Succeed"}`, toOK, `"Z": {"Type": "Succeed"}`),
		`m.States.X.Type: "Parallel" is not supported`:     one(`{"Type": "Parallel", "Branches": []}`),
		"m.States.X.Type:  is not supported":               one(`{}`),
		"m.States.X.InputPath: a state of the type Pass":   one(`{"Type": "Pass", "InputPath": "$.a", "End": true}`),
		"m.States.X.HeartbeatSeconds: a state of":          one(task(`, "HeartbeatSeconds": 5` + ends)),
		"m.States.X: it needs one of Next and End":         one(`{"Type": "Pass"}`),
		`m.States.X.Resource: "arn:aws:states:::sns:pu`:    one(`{"Type": "Task", "Resource": "arn:aws:states:::sns:publish", "Parameters": {}, "End": true}`),
		"m.States.X.Resource:":                             one(`{"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "End": true}`),
		"m.States.X: it needs one of Seconds":              one(`{"Type": "Wait", "End": true}`),
		"m.States.X.Choices: there is none":                one(`{"Type": "Choice", "Default": "OK"}`, toOK),
		`m.States.X.Choices: json: unknown field "And"`:    one(`{"Type": "Choice", "Choices": [{"And": [], "Next": "OK"}]}`, toOK),
		"m.States.X.Choices[0]: it needs a Variable":       one(`{"Type": "Choice", "Choices": [{"Variable": "$.a", "Next": "OK"}]}`, toOK),
		"m.States.X: a number of seconds is too small, or": one(task(`, "TimeoutSeconds": 0` + ends)),
		"m.States.X.TimeoutSeconds: there is TimeoutSec":   one(task(`, "TimeoutSeconds": 5, "TimeoutSecondsPath": "$.a"` + ends)),
		"m.States.X: a number of seconds is too small":     one(`{"Type": "Wait", "Seconds": -1, "End": true}`),
		"m.States.X.Retry[0]: ErrorEquals needs names":     one(task(`, "Retry": [{"ErrorEquals": ["States.ALL"]}, {"ErrorEquals": ["A"]}]` + ends)),
		"m.States.X.Catch[0]: ErrorEquals needs names":     one(task(`, "Catch": [{"ErrorEquals": ["States.ALL", "A"], "Next": "OK"}]`+ends), toOK),
		"m.States.X.Retry[0]: the JitterStrategy HALF":     one(task(`, "Retry": [{"ErrorEquals": ["A"], "JitterStrategy": "HALF"}]` + ends)),
		"m.States.X.Retry[0]: a number is too small":       one(task(`, "Retry": [{"ErrorEquals": ["A"], "BackoffRate": 0.5}]` + ends)),
		`m.States.X.OutputPath: the path "$..a" is not`:    one(`{"Type": "Pass", "OutputPath": "$..a", "End": true}`),
		`m.States.X.ResultPath: the path "$$.a" is not`:    one(`{"Type": "Pass", "ResultPath": "$$.a", "End": true}`),
		`m.States.X.ResultPath: the path "$.a[0]" is not`:  one(`{"Type": "Pass", "ResultPath": "$.a[0]", "End": true}`),
		`m.States.X.Parameters: a: [1]: b.$: the path "x`:  one(`{"Type": "Pass", "Parameters": {"a": [1, {"b.$": "x"}]}, "End": true}`),
		"m.States.X.Parameters: a: the field is there tw":  one(`{"Type": "Pass", "Parameters": {"a": 1, "a.$": "$"}, "End": true}`),
		"the intrinsic function States.UUID is not suppo":  one(`{"Type": "Pass", "Parameters": {"a.$": "States.UUID()"}, "End": true}`),
		"m.States.X.ItemProcessor.ProcessorConfig.Mode":    one(`{"Type": "Map", "ItemProcessor": {"ProcessorConfig": {"Mode": "DISTRIBUTED"}}, "End": true}`),
		"m.States.X.ItemProcessor.States.I.Type":           one(`{"Type": "Map", "ItemProcessor": {"StartAt": "I", "States": {"I": {"Type": "?"}}}, "End": true}`),
		"m.States.X.ItemProcessor:":                        one(`{"Type": "Map", "End": true}`),
	} {
		err := (&Machines{}).Add(machineARN, "m", []byte(definition))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n%v, want %s", definition, err, want)
		}
	}
}

// TestHistory: the events of an execution, in pages and in both directions.
func TestHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &mailbox{}
		m := &Machines{Invoke: echo, Send: b.send}
		defer m.Close()
		arn := started(t, m, one(waits(`, "Next": "Y"`), `"Y": `+task(`, "TimeoutSeconds": 9, "Retry": [{"ErrorEquals": ["States.ALL"], "MaxAttempts": 1}], "Catch": [{"ErrorEquals": ["E"], "Next": "Z"}]`+ends), `"Z": {"Type": "Fail", "Error": "F"}`), "e", `{}`)
		synctest.Wait()
		if refused := succeed(t, m, b.tokens[0], `{"fail": "E"}`); refused != "" {
			t.Fatal(refused)
		}
		time.Sleep(time.Hour)
		all := history(t, m, arn, false, 1000)
		var got []string
		for i, e := range all {
			if e.Id != int64(i+1) || i > 1 && e.PreviousEventId != int64(i) || e.Timestamp == nil {
				t.Errorf("%+v", e)
			}
			got = append(got, string(e.Type))
		}
		want := "ExecutionStarted TaskStateEntered TaskScheduled TaskStarted TaskSubmitted TaskSucceeded " +
			"TaskStateExited TaskStateEntered TaskScheduled TaskStarted TaskFailed TaskScheduled TaskStarted " +
			"TaskFailed TaskStateExited FailStateEntered ExecutionFailed"
		if strings.Join(got, " ") != want {
			t.Errorf("%s", got)
		}
		if d := all[2].TaskScheduledEventDetails; *d.ResourceType != "sqs" ||
			*d.Resource != "sendMessage.waitForTaskToken" {
			t.Errorf("%+v", d)
		}
		if d := all[10].TaskFailedEventDetails; *d.Error != "E" || *d.Cause != `{"errorMessage":"it is so","errorType":"E"}` {
			t.Errorf("%+v", d)
		}
		back := history(t, m, arn, true, 2)
		for i, e := range back {
			if len(back) != len(all) || e.Id != int64(len(all)-i) {
				t.Errorf("%d is event %d of %d", i, e.Id, len(back))
			}
		}
		_, err := m.GetExecutionHistory(t.Context(), &sfn.GetExecutionHistoryInput{ExecutionArn: arn,
			NextToken: aws.String("x")})
		if code(err) != "InvalidToken" {
			t.Errorf("%v", err)
		}
	})
}

// history is an execution's, read in pages.
func history(t *testing.T, m *Machines, arn *string, reverse bool, page int32) (all []types.HistoryEvent) {
	t.Helper()
	in := &sfn.GetExecutionHistoryInput{ExecutionArn: arn, ReverseOrder: reverse, MaxResults: page}
	for {
		out, err := m.GetExecutionHistory(t.Context(), in)
		if err != nil || len(out.Events) == 0 {
			t.Fatalf("%v, %+v", err, out)
		}
		all = append(all, out.Events...)
		in.NextToken = out.NextToken
		if in.NextToken == nil {
			return all
		}
	}
}

// TestList: executions of a machine, the newest first, by status and in pages.
func TestList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &Machines{}
		defer m.Close()
		started(t, m, one(`{"Type": "Wait", "SecondsPath": "$", "End": true}`), "a", `1`)
		begun(t, m, "b", `3600`)
		begun(t, m, "c", `1`)
		time.Sleep(minute)
		list := func(status types.ExecutionStatus, page int32) (names string) {
			in := &sfn.ListExecutionsInput{StateMachineArn: aws.String(machineARN), StatusFilter: status,
				MaxResults: page}
			for {
				out, err := m.ListExecutions(t.Context(), in)
				if err != nil {
					t.Fatal(err)
				}
				for _, x := range out.Executions {
					if (x.StopDate == nil) != (x.Status == types.ExecutionStatusRunning) {
						t.Errorf("%+v", x)
					}
					names += *x.Name
				}
				in.NextToken = out.NextToken
				if in.NextToken == nil {
					return names
				}
				names += "|"
			}
		}
		for want, got := range map[string]string{"cba": list("", 0), "b": list(types.ExecutionStatusRunning, 0),
			"c|a": list(types.ExecutionStatusSucceeded, 1), "": list(types.ExecutionStatusFailed, 0)} {
			if got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
		_, err := m.ListExecutions(t.Context(), &sfn.ListExecutionsInput{StateMachineArn: aws.String("arn")})
		if code(err) != "StateMachineDoesNotExist" {
			t.Errorf("%v", err)
		}
	})
}

// FuzzAdd: a definition is refused or plays, whatever it is given. Nothing panics, and the bubble ends.
func FuzzAdd(f *testing.F) {
	f.Add(one(`{"Type": "Pass", "Parameters": {"a.$": "$.b[0].c", "b.$": "States.StringToJson($)"}, "ResultPath": "$.x.y", "End": true}`), `{"b": [{"c": 1}]}`)
	f.Add(one(task(`, "Retry": [{"ErrorEquals": ["A"], "IntervalSeconds": 1e300}], "TimeoutSecondsPath": "$.t"`+ends)), `{"t": 5, "fail": "A"}`)
	f.Add(one(`{"Type": "Map", "ItemsPath": "$.l", "ItemSelector": {"a.$": "$$.Map.Item.Value"}, "ItemProcessor": {"StartAt": "I", "States": {"I": {"Type": "Succeed"}}}, "End": true}`), `{"l": [1]}`)
	f.Add(one(`{"Type": "Choice", "Choices": [{"Variable": "$$.State.Name", "BooleanEquals": true, "Next": "OK"}]}`, toOK), `null`)
	f.Add(one(`{"Type": "Wait", "SecondsPath": "$[99999999]", "End": true}`), `[1e9]`)
	f.Fuzz(func(t *testing.T, definition, input string) {
		synctest.Test(t, func(t *testing.T) {
			m := &Machines{Invoke: echo, Send: (&mailbox{}).send}
			defer m.Close()
			if err := m.Add(machineARN, "m", []byte(definition)); err != nil {
				return
			}
			out, err := m.StartExecution(t.Context(), &sfn.StartExecutionInput{StateMachineArn: aws.String(machineARN),
				Input: &input})
			if err != nil {
				return
			}
			synctest.Wait()
			if x := described(t, m, out.ExecutionArn); x.Status == types.ExecutionStatusSucceeded && x.Output == nil {
				t.Errorf("%+v", x)
			}
		})
	})
}

// FuzzPath: a path is refused or read, and what a result path puts is read again.
func FuzzPath(f *testing.F) {
	for _, path := range []string{"$", "$.a", "$$.a.b[0]", "$.a['b']", "$.a[*]", "$.ä_-9",
		"$.a[18446744073709551616]", "$.a.", "a"} {
		f.Add(path, `{"a": [{"b": 1}]}`)
	}
	f.Fuzz(func(t *testing.T, path, data string) {
		at, err := parsePath(path)
		v, invalid := decode([]byte(data))
		if err != nil || invalid != nil {
			return
		}
		_, _ = at(v, v)
		var to target
		if to.UnmarshalJSON([]byte(`"`+path+`"`)) != nil {
			return
		}
		changed, err := to.put(v, "new")
		if err != nil {
			return
		}
		if got, err := at(changed, nil); err != nil || got != "new" {
			t.Errorf("%s of %s: %v, %v", path, data, got, err)
		}
	})
}
