package states

import (
	"strings"
	"time"
)

const (
	toOK   = `"OK": {"Type": "Succeed"}`
	toPass = `"OK": {"Type": "Pass", "End": true}`
	ends   = `, "End": true`
	broken = "FAILED States.Runtime An error occurred while executing the state 'X': "
	// payload is as ends, with what the function answered as output.
	payload = `, "OutputPath": "$.Payload", "End": true`
)

// choose is a definition with one choice, whose output is "yes" or "no".
func choose(rule string) string {
	return one(`{"Type": "Choice", "Choices": [`+rule+`], "Default": "No"}`,
		`"OK": {"Type": "Pass", "Result": "yes", "End": true}`, `"No": {"Type": "Pass", "Result": "no", "End": true}`)
}

// mapOf is a definition with a Map state whose processor has one state.
func mapOf(fields, inner string) string {
	return one(`{"Type": "Map", "End": true, "ItemProcessor": {"ProcessorConfig": {"Mode": "INLINE"}, "StartAt": "I",
		"States": {"I": ` + inner + `}}` + fields + `}`)
}

// stateTests are definitions, what comes of an input, and how long it takes.
var stateTests = map[string]struct {
	definition, input, want string
	took                    time.Duration
}{
	"Succeed":        {one(`{"Type": "Succeed"}`), `{"a": 1.50}`, `{"a":1.50}`, 0},
	"Fail":           {one(`{"Type": "Fail", "Error": "E", "Cause": "c"}`), `{}`, "FAILED E c", 0},
	"Fail by paths":  {one(`{"Type": "Fail", "ErrorPath": "$.e", "CausePath": "$.c.d"}`), `{"e": "E", "c": {"d": "why"}}`, "FAILED E why", 0},
	"Fail, no text":  {one(`{"Type": "Fail", "ErrorPath": "$.e"}`), `{"e": 1}`, broken + "1 is no text of an error", 0},
	"Wait":           {one(`{"Type": "Wait", "Seconds": 90, "End": true}`), `[1]`, `[1]`, 90 * time.Second},
	"Wait by a path": {one(`{"Type": "Wait", "SecondsPath": "$.w", "Next": "OK"}`, toOK), `{"w": 3600}`, `{"w":3600}`, time.Hour},
	"Wait for a text": {one(`{"Type": "Wait", "SecondsPath": "$.w", "End": true}`), `{"w": "3600"}`,
		broken + "3600 is no number of seconds", 0},
	"Wait for nothing": {one(`{"Type": "Wait", "SecondsPath": "$.w", "End": true}`), `{}`,
		broken + "the JSONPath '$.w' could not be found in the input", 0},
	"Pass":            {one(`{"Type": "Pass", "Next": "OK"}`, toPass), `"a<b"`, `"a<b"`, 0},
	"Pass a result":   {one(`{"Type": "Pass", "Result": {"a.$": "$.b"}, "ResultPath": "$.r.s", "End": true}`), `{"b": 1, "r": {"t": 2}}`, `{"b":1,"r":{"s":{"a.$":"$.b"},"t":2}}`, 0},
	"Pass null":       {one(`{"Type": "Pass", "Result": null, "End": true}`), `{}`, `null`, 0},
	"Pass parameters": {one(`{"Type": "Pass", "Parameters": {"l": [{"x.$": "$.i[1].y"}, 7], "n.$": "$$.Execution.Name"}, "End": true}`), `{"i": [0, {"y": true}]}`, `{"l":[{"x":true},7],"n":"e"}`, 0},
	"Pass a part":     {one(`{"Type": "Pass", "OutputPath": "$.a", "End": true}`), `{"a": {"b": 1}}`, `{"b":1}`, 0},
	"Pass nowhere": {one(`{"Type": "Pass", "Result": 1, "ResultPath": "$.a.b", "End": true}`),
		`{"a": 1}`, "FAILED States.ResultPathMatchFailure the result has no place in the input: no field b", 0},
	"Pass to null":    {one(`{"Type": "Pass", "Result": 1, "ResultPath": "$.a.b", "End": true}`), `{"a": null}`, `{"a":{"b":1}}`, 0},
	"Pass, no result": {one(`{"Type": "Pass", "Result": 1, "ResultPath": null, "End": true}`), `{"a": 1}`, `{"a":1}`, 0},
	"StringToJson":    {one(`{"Type": "Pass", "Parameters": {"s.$": "States.StringToJson($.t)"}, "End": true}`), `{"t": "{\"m\":[1]}"}`, `{"s":{"m":[1]}}`, 0},
	"StringToJson, odd": {one(`{"Type": "Pass", "Parameters": {"s.$": "States.StringToJson($.t)"}, "End": true}`),
		`{"t": "}"}`, "FAILED States.IntrinsicFailure States.StringToJson was not given JSON in a string", 0},
	"JsonToString": {one(`{"Type": "Pass", "Parameters": {"s.$": "States.JsonToString($)"}, "End": true}`), `{"m": [1, "a"]}`, `{"s":"{\"m\":[1,\"a\"]}"}`, 0},
	"context": {one(`{"Type": "Pass", "Parameters": {"in.$": "$$.Execution.Input.a", "id.$": "$$.Execution.Id", "at.$": "$$.Execution.StartTime",
			"s.$": "$$.State.Name", "m.$": "$$.StateMachine.Name"}, "End": true}`), `{"a": 5}`,
		`{"at":"2000-01-01T00:00:00.000Z","id":"arn:aws:states:us-east-1:000000000000:execution:m:e","in":5,"m":"m","s":"X"}`, 0},

	"StringEquals":        {choose(`{"Variable": "$.s", "StringEquals": "a", "Next": "OK"}`), `{"s": "a"}`, `"yes"`, 0},
	"StringEquals not":    {choose(`{"Variable": "$.s", "StringEquals": "a", "Next": "OK"}`), `{"s": "b"}`, `"no"`, 0},
	"StringEquals number": {choose(`{"Variable": "$.s", "StringEquals": "1", "Next": "OK"}`), `{"s": 1}`, `"no"`, 0},
	"BooleanEquals":       {choose(`{"Variable": "$.s", "BooleanEquals": false, "Next": "OK"}`), `{"s": false}`, `"yes"`, 0},
	"BooleanEquals not":   {choose(`{"Variable": "$.s", "BooleanEquals": false, "Next": "OK"}`), `{"s": true}`, `"no"`, 0},
	"Choice of nothing": {choose(`{"Variable": "$.s", "StringEquals": "a", "Next": "OK"}`), `{}`,
		broken + "the JSONPath '$.s' could not be found in the input", 0},
	"Choice without default": {one(`{"Type": "Choice", "Choices": [{"Variable": "$.s", "StringEquals": "a", "Next": "OK"}]}`, toOK),
		`{"s": "b"}`, "FAILED States.NoChoiceMatched no choice of the state X fits its input", 0},

	"Task":                {one(task(ends)), `{"a": 1}`, `{"ExecutedVersion":"$LATEST","Payload":{"a":1},"StatusCode":200}`, 0},
	"Task, a part":        {one(task(payload)), `{"seconds": 5}`, `{"seconds":5}`, 5 * time.Second},
	"Task, selected":      {one(task(`, "ResultSelector": {"p.$": "$.Payload.a"}, "ResultPath": "$.r"` + ends)), `{"a": 1}`, `{"a":1,"r":{"p":1}}`, 0},
	"Task, thrown away":   {one(task(`, "ResultPath": null` + ends)), `{"a": 1}`, `{"a":1}`, 0},
	"Task fails":          {one(task(ends)), `{"fail": "Stale"}`, `FAILED Stale {"errorMessage":"it is so","errorType":"Stale"}`, 0},
	"Task refused":        {one(task(ends)), `{"refuse": "TooManyRequestsException"}`, "FAILED Lambda.TooManyRequestsException not now", 0},
	"Task times out":      {one(task(`, "TimeoutSeconds": 60` + ends)), `{"seconds": 61}`, "FAILED States.Timeout", minute},
	"Task by path":        {one(task(`, "TimeoutSecondsPath": "$.t"` + ends)), `{"seconds": 61, "t": 2}`, "FAILED States.Timeout", 2 * time.Second},
	"Task just in time":   {one(task(`, "TimeoutSeconds": 62` + payload)), `{"seconds": 61}`, `{"seconds":61}`, 61 * time.Second},
	"container":           {one(`{"Type": "Task", "Resource": "arn:aws:states:::ecs:runTask.sync", "Parameters": {}, "End": true}`), `{}`, "FAILED ECS.ClientException containers are not run here", 0},
	"Catch":               {one(task(`, "Catch": [{"ErrorEquals": ["A", "B"], "Next": "OK"}]`+ends), toPass), `{"fail": "B"}`, `{"Cause":"{\"errorMessage\":\"it is so\",\"errorType\":\"B\"}","Error":"B"}`, 0},
	"Catch by order":      {one(task(`, "Catch": [{"ErrorEquals": ["A"], "Next": "OK"}, {"ErrorEquals": ["States.ALL"], "ResultPath": null, "Next": "OK"}]`+ends), toPass), `{"fail": "B"}`, `{"fail":"B"}`, 0},
	"Catch beside":        {one(task(`, "TimeoutSeconds": 1, "Catch": [{"ErrorEquals": ["States.ALL"], "ResultPath": "$.f", "Next": "OK"}]`+ends), toPass), `{"seconds": 2}`, `{"f":{"Cause":"","Error":"States.Timeout"},"seconds":2}`, time.Second},
	"Catch TaskFailed":    {one(task(`, "Catch": [{"ErrorEquals": ["States.TaskFailed"], "ResultPath": null, "Next": "OK"}]`+ends), toPass), `{"fail": "B"}`, `{"fail":"B"}`, 0},
	"TaskFailed, Timeout": {one(task(`, "TimeoutSeconds": 1, "Catch": [{"ErrorEquals": ["States.TaskFailed"], "Next": "OK"}]`+ends), toPass), `{"seconds": 2}`, "FAILED States.Timeout", time.Second},
	"Runtime, not caught": {one(task(`, "OutputPath": "$.no", "Retry": [{"ErrorEquals": ["States.ALL"]}], "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "OK"}]`+ends), toPass), `{}`,
		broken + "the JSONPath '$.no' could not be found in the input", 0},

	// By default a state is tried again 3 times, after 1, 2 and 4 seconds.
	"Retry":          {one(task(`, "Retry": [{"ErrorEquals": ["B"]}]` + ends)), `{"fail": "B"}`, `FAILED B {"errorMessage":"it is so","errorType":"B"}`, 7 * time.Second},
	"Retry, bounded": {one(task(`, "Retry": [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 2, "BackoffRate": 3, "MaxAttempts": 4, "MaxDelaySeconds": 10}]` + ends)), `{"refuse": "B"}`, "FAILED Lambda.B not now", (2 + 6 + 10 + 10) * time.Second},
	"Retry, other":   {one(task(`, "Retry": [{"ErrorEquals": ["A"]}]` + ends)), `{"refuse": "B"}`, "FAILED Lambda.B not now", 0},
	"Retry, never":   {one(task(`, "Retry": [{"ErrorEquals": ["States.ALL"], "MaxAttempts": 0}]` + ends)), `{"refuse": "B"}`, "FAILED Lambda.B not now", 0},
	"Retry, catch":   {one(task(`, "Retry": [{"ErrorEquals": ["States.Timeout"], "MaxAttempts": 1}], "TimeoutSeconds": 60, "Catch": [{"ErrorEquals": ["States.ALL"], "ResultPath": null, "Next": "OK"}]`+ends), toPass), `{"seconds": 90}`, `{"seconds":90}`, 121 * time.Second},

	"Map":            {mapOf("", task(payload)), `[1, {"seconds": 3}, "c"]`, `[1,{"seconds":3},"c"]`, 3 * time.Second},
	"Map of none":    {mapOf(`, "ItemsPath": "$.l"`, task(payload)), `{"l": []}`, `[]`, 0},
	"Map, selected":  {mapOf(`, "ItemsPath": "$.l", "ItemSelector": {"r.$": "$.r", "v.$": "$$.Map.Item.Value", "i.$": "$$.Map.Item.Index"}, "ResultPath": "$.l"`, task(payload)), `{"l": ["a", "b"], "r": 7}`, `{"l":[{"i":0,"r":7,"v":"a"},{"i":1,"r":7,"v":"b"}],"r":7}`, 0},
	"Map, in turns":  {mapOf(`, "MaxConcurrency": 2`, task(`, "ResultPath": null`+ends)), `[{"seconds": 5}, {"seconds": 5}, {"seconds": 5}]`, `[{"seconds":5},{"seconds":5},{"seconds":5}]`, 10 * time.Second},
	"Map fails":      {mapOf("", task(payload)), `[{"seconds": 50}, {"seconds": 5, "fail": "B"}]`, `FAILED B {"errorMessage":"it is so","errorType":"B"}`, 5 * time.Second},
	"Map again":      {mapOf(`, "Retry": [{"ErrorEquals": ["B"], "MaxAttempts": 1}]`, task(payload)), `[{"seconds": 5, "fail": "B"}]`, `FAILED B {"errorMessage":"it is so","errorType":"B"}`, 11 * time.Second},
	"Map of nothing": {mapOf("", task(payload)), `{}`, broken + "the items are no array", 0},

	"without end": {one(`{"Type": "Pass", "Next": "OK"}`, `"OK": {"Type": "Pass", "Next": "X"}`), `{}`,
		"FAILED States.Runtime The execution reached the maximum number of history events (25000).", 0},
	"too large": {one(`{"Type": "Pass", "Parameters": {"a.$": "$", "b.$": "$"}, "Next": "OK"}`, toPass), `"` + strings.Repeat("a", most/2) + `"`,
		"FAILED States.DataLimitExceeded data of 262159 bytes is larger than 262144", 0},
}
