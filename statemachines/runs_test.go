package statemachines_test

import (
	"strings"
	"testing"
)

// jsonOf is an object.
type jsonOf = map[string]any

// TestComponentRunPlays: a run finds items, works on their lanes and finds the next, until it ends. What happens in
// a lane does not end the run.
func TestComponentRunPlays(t *testing.T) {
	calls, end := played(t, "component-run", `{"run":{"id":"r"}}`,
		jsonOf{"next": "Work", "run": jsonOf{"id": "r2"}, "lanes": []any{"a", "b"}}, nil, errorOf("Crash"),
		jsonOf{"next": "Work", "run": jsonOf{"id": "r3"}, "lanes": []any{"c"}}, late,
		jsonOf{"next": "End", "run": jsonOf{"id": "r4"}}, jsonOf{})
	lanes := []string{calls[1].in["lane"].(string), calls[2].in["lane"].(string)} // side by side
	if strings.Join(lanes, "") != "ab" && strings.Join(lanes, "") != "ba" {
		t.Errorf("%v", lanes)
	}
	wantCalls(t, append(calls[:1:1], calls[3:]...),
		`0s component {"action":"find","run":{"id":"r"}}`,
		`0s component {"action":"find","run":{"id":"r2"}}`,
		`0s component {"action":"work","lane":"c","run":{"id":"r3"}}`,
		`15m30s component {"action":"find","run":{"id":"r3"}}`, // after the time-out of the lane
		`15m30s component {"action":"end","run":{"id":"r4"}}`)
	if end.Status != "SUCCEEDED" {
		t.Errorf("%+v", end)
	}
	calls, end = played(t, "component-run", `{"run":{"id":"r"}}`, jsonOf{"next": "Stop"})
	wantCalls(t, calls, `0s component {"action":"find","run":{"id":"r"}}`)
	wantEnd(t, end, `{"next":"Stop"}`)
}

// TestComponentTaskPlays: a container works on the item of its lane. Its answer to its token is recorded, and so is
// that it could not be started, or that its time was over.
func TestComponentTaskPlays(t *testing.T) {
	page := jsonOf{"next": "Tasks", "run": jsonOf{"id": "r"}, "lanes": []any{"a"}, "seconds": 600,
		"task": jsonOf{"cluster": "c", "taskDefinition": "d", "subnets": []any{}, "securityGroups": []any{},
			"container": "n"}}
	taken := jsonOf{"is": true, "text": "work", "taken": jsonOf{"item": "i"}}
	stop, done := jsonOf{"next": "Stop"}, jsonOf{}
	for name, test := range map[string]struct {
		container any
		recorded  string
	}{
		"answered": {token{`{"ok":1}`}, `0s component {"action":"record","lane":"a","result":{"ok":1},"run":{"id":"r"},"taken":{"item":"i"}}`},
		"refused": {errorOf("ClientException"), `0s component {"action":"record","error":{"Cause":"","Error":"ECS.ClientException"},` +
			`"lane":"a","run":{"id":"r"},"taken":{"item":"i"}}`},
		"no answer": {jsonOf{}, `10m0s component {"action":"record","error":{"Cause":"","Error":"States.Timeout"},` +
			`"lane":"a","run":{"id":"r"},"taken":{"item":"i"}}`},
	} {
		calls, _ := played(t, "component-run", `{"run":{"id":"r"}}`, page, taken, test.container, done, stop)
		t.Run(name, func(t *testing.T) {
			if len(calls) != 5 {
				t.Fatalf("%d calls: %+v", len(calls), calls)
			}
			wantCalls(t, calls[3:4], test.recorded)
		})
	}
	calls, _ := played(t, "component-run", `{"run":{"id":"r"}}`, page,
		jsonOf{"is": false, "text": "", "taken": nil}, stop)
	wantCalls(t, calls, `0s component {"action":"find","run":{"id":"r"}}`,
		`0s component {"action":"take","lane":"a","run":{"id":"r"}}`, `0s component {"action":"find","run":{"id":"r"}}`)
}

// TestTaskRunPlays: an attempt is taken, its task run, and what came of it recorded.
func TestTaskRunPlays(t *testing.T) {
	const input = `{"attempt":"maps/12/build/1","exec":"x"}`
	const begin, ended = `0s control {"action":"begin","attempt":"maps/12/build/1","exec":"x"}`,
		` control {"action":"end","attempt":"maps/12/build/1","exec":"x",`
	run := jsonOf{"next": "Run", "job": jsonOf{"script": "s"}}
	container := jsonOf{"next": "Container", "container": jsonOf{"cluster": "c", "taskDefinition": "d",
		"subnets": []any{}, "securityGroups": []any{}, "publicIp": "DISABLED", "job": "j", "seconds": 600}}
	for name, test := range map[string]struct {
		answers []any
		want    []string // after the first call, without the container's
	}{
		"run": {[]any{run, jsonOf{"code": 0}, nil}, []string{`0s runner {"script":"s"}`, "0s" + ended + `"result":{"code":0}}`}},
		"crash": {[]any{run, errorOf("Runtime.ExitError"), nil}, []string{`0s runner {"script":"s"}`, "0s" + ended +
			`"failure":{"Cause":"{\"errorMessage\":\"it is so\",\"errorType\":\"Runtime.ExitError\"}","Error":"Runtime.ExitError"}}`}},
		"no answer": {[]any{run, late, nil}, []string{`0s runner {"script":"s"}`, "15m30s" + ended +
			`"failure":{"Cause":"","Error":"States.Timeout"}}`}},
		"stop": {[]any{jsonOf{"next": "Stop"}}, nil},
		"end":  {[]any{jsonOf{"next": "End", "result": jsonOf{"code": 7}}, nil}, []string{"0s" + ended + `"result":{"code":7}}`}},
		"container": {[]any{container, jsonOf{"stopCode": "0"}, nil},
			[]string{"0s" + ended + `"failure":{"Cause":"{\"stopCode\":\"0\"}","Error":"Container.Ended"}}`}},
		"container, no answer": {[]any{container, late, nil},
			[]string{"10m0s" + ended + `"failure":{"Cause":"","Error":"States.Timeout"}}`}},
	} {
		calls, end := played(t, "task-run", input, test.answers...)
		t.Run(name, func(t *testing.T) {
			if len(calls) > 1 && calls[1].to == "container" {
				calls = append(calls[:1], calls[2:]...)
			}
			wantCalls(t, calls, append([]string{begin}, test.want...)...)
			if end.Status != "SUCCEEDED" {
				t.Errorf("%+v", end)
			}
		})
	}
}
