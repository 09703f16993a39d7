// Package states runs state machines in the process: an interpreter of the Amazon States
// Language, as far as the definitions of the system use it, with the operations of Step
// Functions.
//
//	machines := &states.Machines{Invoke: invoke, Send: send}
//	defer machines.Close()
//	err := machines.Add(arn, "ingest-job", definition)
//	…
//	out, err := machines.StartExecution(ctx, &sfn.StartExecutionInput{StateMachineArn: &arn, Input: &input})
//
// What a definition needs and the interpreter lacks is refused when the definition is added. Time
// is that of package time, so that an execution of an hour takes none in a bubble of
// testing/synctest.
//
// What passes through it is plain JSON (see path.go), and each state is played by one
// goroutine of its branch. History, names that are used only once, limits of sizes and the
// void tokens of ended executions are as on AWS, because the system relies on them.
package states

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sfn/types"
)

// Bounds of what is kept of executions that have ended. Step Functions keeps both for 90 days.
const (
	keptExecutions = 1_000   // with their histories
	keptNames      = 100_000 // that are not used again
)

// Add makes a state machine of a definition, or replaces it for executions that start from
// now on. It returns an error with the place in the definition if something there is wrong or
// not supported. Executions that run keep the former definition.
func (m *Machines) Add(arn, name string, definition []byte) error {
	if _, err := decode(definition); err != nil {
		return fmt.Errorf("states: %s: %w", name, err)
	}

	f, err := parse(definition, name)
	if err != nil {
		return fmt.Errorf("states: %w", err)
	}

	m.mu.Lock()
	defer m.mu.Unlock()
	if m.machines == nil {
		m.machines = map[string]*machine{}
	}

	m.machines[arn] = &machine{arn, name, f}
	return nil
}

// Close ends everything that runs, without a change of any status, and returns when nothing
// runs any more. After it no execution can be started.
func (m *Machines) Close() {
	m.mu.Lock()
	m.closed = true
	if m.cancel != nil {
		m.cancel()
	}
	m.mu.Unlock()
	m.running.Wait()
}

// put adds an execution. The lock is held. The first change of its status is told by its own
// goroutine, before its first state.
func (m *Machines) put(x *execution) {
	if m.ctx == nil {
		m.ctx, m.cancel = context.WithCancel(context.Background())
		m.executions, m.open = map[string]*execution{}, map[string]*attempt{}
	}

	var ctx context.Context
	ctx, x.cancel = context.WithCancel(m.ctx)
	m.started++
	x.number = m.started
	m.executions[x.ExecutionARN] = x
	m.add(x, nil, types.HistoryEvent{Type: types.HistoryEventTypeExecutionStarted,
		ExecutionStartedEventDetails: &types.ExecutionStartedEventDetails{Input: &x.Input}})
	started := x.ChangeEvent
	m.running.Go(func() {
		m.tell(started)
		m.play(ctx, x)
	})
}

// play plays an execution to its end.
func (m *Machines) play(ctx context.Context, x *execution) {
	data, err := (&branch{m: m, x: x}).play(ctx, x.machine.flow, x.data)
	if err != nil {
		m.fail(x, err)
		return
	}

	output, err := encode(data)
	if err != nil {
		m.fail(x, err)
		return
	}
	m.end(x, types.ExecutionStatusSucceeded, output, "", "")
}

// fail ends an execution with a failure. Any other error means that it was stopped, or that all
// is closed: then there is nothing to end.
func (m *Machines) fail(x *execution, err error) {
	var failed *failure
	if errors.As(err, &failed) {
		m.end(x, types.ExecutionStatusFailed, "", failed.name, failed.cause)
	}
}

// end ends an execution, unless it has ended. Its task tokens are void from now on. The first
// end counts: what its branches still do is dropped.
func (m *Machines) end(x *execution, status types.ExecutionStatus, output, code, cause string) {
	m.mu.Lock()
	if x.Status != types.ExecutionStatusRunning {
		m.mu.Unlock()
		return
	}

	x.Status, x.Stopped, x.Output, x.Error, x.Cause = status, time.Now(), output, code, cause
	last := int64(len(x.events))
	m.add(x, &last, endEvent(x))
	x.cancel()
	m.forget(x.ExecutionARN)
	change := x.ChangeEvent
	m.mu.Unlock()
	m.tell(change)
}

// forget keeps the number of executions that have ended, of which this is the newest, within its
// bounds.
func (m *Machines) forget(ended string) {
	m.ended = append(m.ended, ended)
	if n := len(m.ended) - keptExecutions; n > 0 {
		x := m.executions[m.ended[n-1]]
		x.forgotten, x.events, x.Input, x.Output = true, nil, "", ""
	}
	if len(m.ended) > keptNames {
		delete(m.executions, m.ended[0])
		m.ended = m.ended[1:]
	}
}

// tell calls Changed, if it is set.
func (m *Machines) tell(c ChangeEvent) {
	if m.Changed != nil {
		m.Changed(c)
	}
}
