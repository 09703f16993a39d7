package states

import (
	"context"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sfn/types"
)

// Machines are state machines and their executions. Set the functions before the first execution
// starts.
type Machines struct {
	// Invoke calls a Lambda function and waits for its answer (lambda:invoke). If the function
	// failed, functionError is not empty, and out is Lambda's error document. An error is the
	// service's, which did not run the function. The context ends with Close only: on AWS, too, a
	// function goes on when its execution is stopped.
	Invoke func(ctx context.Context, function string, payload []byte) (out []byte,
		functionError string, err error)
	// Send sends a message (sqs:sendMessage).
	Send func(ctx context.Context, queueURL, body string) error
	// RunTask starts a container (ecs:runTask.waitForTaskToken), or runs it to its end (.sync).
	// The context ends with the execution and with the state's time-out. Without it such a state
	// fails with ECS.ClientException.
	RunTask func(ctx context.Context, parameters []byte) (out []byte, err error)
	// Changed is told of each change of an execution's status, with no lock held. It must return
	// at once.
	Changed func(ChangeEvent)

	mu         sync.Mutex
	machines   map[string]*machine   // by ARN
	executions map[string]*execution // by ARN; of those that were forgotten only the name is left
	ended      []string              // ARNs of executions, the first that ended first
	started    int                   // executions, so far
	open       map[string]*attempt   // tasks under way, by their tokens
	ctx        context.Context       // ends with Close; nil before the first execution
	cancel     context.CancelFunc
	closed     bool
	running    sync.WaitGroup
}

// ChangeEvent says that the status of an execution changed, as EventBridge's event "Step
// Functions Execution Status Change" does.
type ChangeEvent struct {
	ExecutionARN, MachineARN, Name string
	Status                         types.ExecutionStatus
	Started, Stopped               time.Time // Stopped is zero while it runs
	Input, Output, Error, Cause    string
}

// machine is a state machine that was added. name is that in the context object.
type machine struct {
	arn, name string
	flow      *flow
}

// execution is one of a machine. Its fields are guarded by the lock of Machines.
type execution struct {
	ChangeEvent
	number    int // counts the executions of all machines
	machine   *machine
	data      any // the input, decoded
	events    []types.HistoryEvent
	cancel    context.CancelFunc
	forgotten bool
}

// attempt is a task that is under way: a state that is tried again has another. Its token is
// never used again.
type attempt struct {
	x      *execution
	result chan outcome // takes one
}

// outcome is a task's result or its error, which is a *failure.
type outcome struct {
	data any
	err  error
}
