package states

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"
)

// nameForm is what the name of an execution may be (API reference, "StartExecution").
var nameForm = regexp.MustCompile("^[^\\s<>{}\\[\\]?*\"#%\\\\^|~`$&,;:/\\x00-\\x1f\\x7f-\\x9f]{1,80}$")

// StartExecution begins an execution. The name and input of one that runs return that one;
// its name with another input, and the name of one that has ended, are an
// ExecutionAlreadyExists (API reference, "StartExecution"). Without a name, the execution
// gets a random one. The input is "{}" if none is given.
func (m *Machines) StartExecution(_ context.Context,
	in *sfn.StartExecutionInput) (*sfn.StartExecutionOutput, error) {
	name, input := aws.ToString(in.Name), "{}"
	if in.Name == nil {
		name = strings.ToLower(rand.Text())
	}

	if in.Input != nil {
		input = *in.Input
	}

	// The request itself is checked first.
	data, err := decode([]byte(input))
	switch {
	case !nameForm.MatchString(name):
		return nil, &types.InvalidName{Message: aws.String("Invalid Name: '" + name + "'")}
	case err != nil || len(input) > most:
		return nil, &types.InvalidExecutionInput{Message: aws.String("the input is no JSON, or too large")}
	}

	x, err := m.startOrFind(aws.ToString(in.StateMachineArn), name, input, data)
	if err != nil {
		return nil, err
	}
	return &sfn.StartExecutionOutput{ExecutionArn: &x.ExecutionARN, StartDate: &x.Started}, nil
}

// startOrFind is a new execution, or the one that runs with that name and input. What it
// returns is a copy of the execution's state.
func (m *Machines) startOrFind(machineARN, name, input string,
	data any) (x ChangeEvent, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	machine := m.machines[machineARN]
	switch {
	case m.closed:
		return x, errors.New("states: the machines are closed")
	case machine == nil:
		return x, &types.StateMachineDoesNotExist{
			Message: aws.String("State Machine Does Not Exist: '" + machineARN + "'")}
	}

	arn := strings.Replace(machineARN, ":stateMachine:", ":execution:", 1) + ":" + name

	// A name stays used after its execution has ended and was forgotten.
	old := m.executions[arn]
	switch {
	case old == nil:
	case old.Status == types.ExecutionStatusRunning && old.Input == input:
		return old.ChangeEvent, nil
	default:
		return x, &types.ExecutionAlreadyExists{
			Message: aws.String("Execution Already Exists: '" + arn + "'")}
	}

	x = ChangeEvent{
		ExecutionARN: arn,
		MachineARN:   machineARN,
		Name:         name,
		Status:       types.ExecutionStatusRunning,
		Started:      time.Now(),
		Input:        input,
	}

	m.put(&execution{ChangeEvent: x, machine: machine, data: data})
	return x, nil
}

// StopExecution ends an execution. One that has ended stays as it is. Tasks that wait are
// ended with it; a function that runs is not.
func (m *Machines) StopExecution(_ context.Context,
	in *sfn.StopExecutionInput) (*sfn.StopExecutionOutput, error) {
	x, err := m.find(in.ExecutionArn)
	if err != nil {
		return nil, err
	}
	m.end(x, types.ExecutionStatusAborted, "", aws.ToString(in.Error), aws.ToString(in.Cause))
	m.mu.Lock()
	defer m.mu.Unlock()

	// It is set by now, by this call or before.
	stopped := x.Stopped
	return &sfn.StopExecutionOutput{StopDate: &stopped}, nil
}

// find is an execution. One that is forgotten does not exist any more, but its name stays
// used.
func (m *Machines) find(arn *string) (*execution, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	x := m.executions[aws.ToString(arn)]
	if x == nil || x.forgotten {
		return nil, &types.ExecutionDoesNotExist{
			Message: aws.String("Execution Does Not Exist: '" + aws.ToString(arn) + "'")}
	}
	return x, nil
}

// DescribeExecution says how an execution is. The answer is a copy, which later changes do
// not touch.
func (m *Machines) DescribeExecution(_ context.Context,
	in *sfn.DescribeExecutionInput) (*sfn.DescribeExecutionOutput, error) {
	x, err := m.find(in.ExecutionArn)
	if err != nil {
		return nil, err
	}

	m.mu.Lock()
	c := x.ChangeEvent
	m.mu.Unlock()
	out := &sfn.DescribeExecutionOutput{
		ExecutionArn:    &c.ExecutionARN,
		StateMachineArn: &c.MachineARN,
		Name:            &c.Name,
		Status:          c.Status,
		StartDate:       &c.Started,
		Input:           &c.Input,
	}

	if c.Status != types.ExecutionStatusRunning {
		out.StopDate = &c.Stopped
	}

	// What is empty is left out of the answer.
	for _, field := range []struct {
		of string
		to **string
	}{{c.Output, &out.Output}, {c.Error, &out.Error}, {c.Cause, &out.Cause}} {
		if field.of != "" {
			*field.to = &field.of
		}
	}
	return out, nil
}

// GetExecutionHistory lists the events of an execution. They are complete up to now, also of
// one that runs.
func (m *Machines) GetExecutionHistory(_ context.Context, in *sfn.GetExecutionHistoryInput) (
	*sfn.GetExecutionHistoryOutput, error) {
	x, err := m.find(in.ExecutionArn)
	if err != nil {
		return nil, err
	}

	m.mu.Lock()
	events := slices.Clone(x.events)
	m.mu.Unlock()
	if in.ReverseOrder {
		slices.Reverse(events)
	}

	events, next, err := page(events, in.MaxResults, in.NextToken,
		func(e types.HistoryEvent) int64 { return e.Id })
	if err != nil {
		return nil, err
	}
	return &sfn.GetExecutionHistoryOutput{Events: events, NextToken: next}, nil
}

// ListExecutions lists the executions of a machine, the newest first.
func (m *Machines) ListExecutions(_ context.Context,
	in *sfn.ListExecutionsInput) (*sfn.ListExecutionsOutput, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	arn := aws.ToString(in.StateMachineArn)
	if m.machines[arn] == nil {
		return nil, &types.StateMachineDoesNotExist{Message: aws.String("State Machine Does Not Exist: '" + arn + "'")}
	}

	var all []*execution
	for _, x := range m.executions {
		if x.MachineARN == arn && !x.forgotten &&
			(in.StatusFilter == "" || in.StatusFilter == x.Status) {
			all = append(all, x)
		}
	}

	slices.SortFunc(all, func(a, b *execution) int { return cmp.Compare(b.number, a.number) })
	all, next, err := page(all, in.MaxResults, in.NextToken,
		func(x *execution) int64 { return int64(x.number) })
	if err != nil {
		return nil, err
	}

	out := &sfn.ListExecutionsOutput{NextToken: next}
	for _, x := range all {
		c := x.ChangeEvent
		item := types.ExecutionListItem{
			ExecutionArn:    &c.ExecutionARN,
			StateMachineArn: &c.MachineARN,
			Name:            &c.Name,
			Status:          c.Status,
			StartDate:       &c.Started,
		}

		if c.Status != types.ExecutionStatusRunning {
			item.StopDate = &c.Stopped
		}

		out.Executions = append(out.Executions, item)
	}
	return out, nil
}

// page is a page of a list: at most 1,000 entries, 100 by default, from the entry whose
// number is the token. The token is nil at the end. An entry that is gone makes its token
// invalid.
func page[T any](all []T, limit int32, token *string, number func(T) int64) ([]T, *string, error) {
	if token != nil {
		start := slices.IndexFunc(all,
			func(one T) bool { return strconv.FormatInt(number(one), 10) == *token })
		if start < 0 {
			return nil, nil,
				&types.InvalidToken{Message: aws.String("Invalid Token: '" + *token + "'")}
		}
		all = all[start:]
	}

	if limit <= 0 || limit > 1000 {
		limit = 100
	}

	if len(all) <= int(limit) {
		return all, nil, nil
	}
	return all[:limit], aws.String(strconv.FormatInt(number(all[limit]), 10)), nil
}

// SendTaskSuccess ends a task that waits for the answer to its token, with a result. A token
// whose task has ended, or whose execution has, is a TaskTimedOut; one of an execution that is
// not known any more a TaskDoesNotExist; any other an InvalidToken (API reference,
// "SendTaskSuccess").
func (m *Machines) SendTaskSuccess(_ context.Context,
	in *sfn.SendTaskSuccessInput) (*sfn.SendTaskSuccessOutput, error) {
	data, err := decode([]byte(aws.ToString(in.Output)))
	if err != nil || len(*in.Output) > most {
		return nil, &types.InvalidOutput{Message: aws.String("Invalid Output: it is no JSON, or too large")}
	}
	if !m.settle(aws.ToString(in.TaskToken), outcome{data: data}) {
		return nil, m.refuse(aws.ToString(in.TaskToken))
	}
	return &sfn.SendTaskSuccessOutput{}, nil
}

// SendTaskFailure ends a task that waits for the answer to its token, with an error. It refuses
// tokens as SendTaskSuccess does.
func (m *Machines) SendTaskFailure(_ context.Context,
	in *sfn.SendTaskFailureInput) (*sfn.SendTaskFailureOutput, error) {
	failed := &failure{aws.ToString(in.Error), aws.ToString(in.Cause)}
	if !m.settle(aws.ToString(in.TaskToken), outcome{err: failed}) {
		return nil, m.refuse(aws.ToString(in.TaskToken))
	}
	return &sfn.SendTaskFailureOutput{}, nil
}
