package states

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// branch plays states one after the other: those of an execution, or of one item of a Map
// state. It belongs to one goroutine.
type branch struct {
	m    *Machines
	x    *execution
	item any   // of the context object, $$.Map.Item
	last int64 // the branch's last event in the history
}

// visit is one visit of a branch to a state. A state that is tried again stays one visit:
// retries counts.
type visit struct {
	*branch
	*state
	name    string
	entered time.Time
	input   any
	retries int
}

// context is the context object of a state. A task that waits for an answer has a token. It
// has what Step Functions documents ("Accessing execution data from the Context object"),
// without the redrive count.
func (v *visit) context(token string) any {
	out := map[string]any{
		"Execution": map[string]any{"Id": v.x.ExecutionARN, "Name": v.x.Name, "Input": v.x.data,
			"StartTime": stamp(v.x.Started)},
		"State": map[string]any{"Name": v.name, "EnteredTime": stamp(v.entered),
			"RetryCount": json.Number(strconv.Itoa(v.retries))},
		"StateMachine": map[string]any{"Id": v.x.machine.arn, "Name": v.x.machine.name},
	}

	if v.item != nil {
		out["Map"] = map[string]any{"Item": v.item}
	}

	if token != "" {
		out["Task"] = map[string]any{"Token": token}
	}
	return out
}

// stamp writes a time as the context object has it.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// number are the seconds of a field, or those to which its path leads. What the path leads to
// must be a whole number from 0 to longestTask, else the execution fails.
func (v *visit) number(field *int64, at path) (int64, error) {
	if field != nil {
		return *field, nil
	}

	read, err := at.of(v.input, v.context(""))
	if err != nil {
		return 0, err
	}

	number, _ := read.(json.Number)
	n, err := strconv.ParseInt(number.String(), 10, 64)
	if err != nil || n < 0 || n > longestTask {
		return 0, &failure{runtimeFailure, fmt.Sprintf("%v is no number of seconds", read)}
	}
	return n, nil
}
