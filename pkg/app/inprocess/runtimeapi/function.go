// Package runtimeapi runs programs of this machine as Lambda functions: it serves each process
// the runtime API of Lambda ("Using the Lambda runtime API for custom runtimes" in the Lambda
// Developer Guide).
//
//	f := &runtimeapi.Function{Name: "words", ARN: arn, Command: []string{"./words"}}
//	defer f.Close()
//	out, err := f.Invoke(ctx, payload)
//
// A process is started when an invocation finds none idle, and kept for the next ones. It has
// one invocation at a time. It is killed, with all that it has started, after a time-out and
// at Close, so nothing of it is left.
package runtimeapi

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/lambda/messages"
)

// Usual values of a Function.
const (
	UsualLimit     = 5 * time.Second  // of make function, too
	UsualInit      = 60 * time.Second // Lambda's is 10 s; here programs are perhaps compiled when they start
	UsualProcesses = 10
)

// maxPayload is the most bytes of a request and of a response (Lambda quotas, synchronous
// invocations).
const maxPayload = 6 << 20

// Function is a program that is run as a function. It is safe for concurrent use.
type Function struct {
	Name, ARN string
	Command   []string      // the program and its arguments
	Dir       string        // in which it runs
	Env       []string      // of the process: "NAME=value". The variables that Lambda sets are added
	Limit     time.Duration // of an invocation; 0 = UsualLimit
	Init      time.Duration // until a new process asks for its first invocation; 0 = UsualInit
	Processes int           // at once, one invocation each; more invocations wait; 0 = UsualProcesses
	Output    io.Writer     // what the processes print, whole lines; nil = nowhere

	// slots bounds the invocations at once; mu guards what follows.
	once   sync.Once
	slots  chan struct{}
	mu     sync.Mutex
	idle   []*process
	alive  map[*process]bool
	closed bool
}

// invocation is one call of a function. id is a UUID, which the process gets and has to name
// in its answer.
type invocation struct {
	id      string
	payload []byte
	answer  chan answer // holds one
}

// An error is one of the function, not of the process.
type answer struct {
	out []byte
	err error
}

// gone forgets a process that has ended.
func (f *Function) gone(p *process) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.alive, p)
}

// failed is an error as Lambda returns it.
func failed(kind, format string, args ...any) error {
	return messages.InvokeResponse_Error{Type: kind, Message: fmt.Sprintf(format, args...)}
}

// process is a process of a function, with a runtime API of its own. Its runtime API is on a
// port of its own, so that an answer can only be of its own invocation.
type process struct {
	function *Function
	cmd      *exec.Cmd
	server   *http.Server
	next     chan *invocation // taken by the process when it is ready
	ended    chan struct{}    // closed when the process has ended

	mu      sync.Mutex
	current *invocation
	initErr error // what the process reported of its start
}

// errEnded is the end of a process before it has taken an invocation.
var errEnded = errors.New("the process ended")
