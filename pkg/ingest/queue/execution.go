package queue

import (
	"context"
	"fmt"
)

// Executions starts and stops the state machines' executions. These are wake-ups: nothing
// is decided from them, except that a person has stopped one.
type Executions interface {
	// Start starts an execution of a machine. A Conflict means that its name was used before, in the last 90 days.
	Start(ctx context.Context, machine, name string, input Message) error
	// Stop stops an execution. It is no error if the execution has ended.
	Stop(ctx context.Context, machine, name, why string) error
	// StoppedByHand reports whether a person stopped the execution, and the reason given.
	StoppedByHand(ctx context.Context, machine, name string) (why string, stopped bool, err error)
	// Problem returns which call an execution could not make at its last try, and why; "" if
	// it could, or if that is not known.
	Problem(ctx context.Context, machine, name string) (string, error)
}

// The machines.
const (
	MachineJob   = "ingest-job"
	MachineBatch = "ingest-batch"
	MachineAdmin = "admin-action"
)

// Message is the message of a stage's queue, and the input of an execution: the item or
// operation, the number of the execution, the state or step, and the token to answer.
type Message struct {
	Job       string `json:"job,omitempty"`
	Batch     string `json:"batch,omitempty"`
	Operation string `json:"operation,omitempty"`

	Exec  int64  `json:"exec"`
	State string `json:"state,omitempty"`
	Step  string `json:"step,omitempty"`
	Token string `json:"token,omitempty"`
}

// ExecutionName is the name of the execution that drives an item: unique, since
// exec only rises.
func ExecutionName(id string, exec int64) string { return fmt.Sprintf("%s-%d", id, exec) }
