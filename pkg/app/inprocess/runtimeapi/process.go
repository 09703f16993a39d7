package runtimeapi

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"syscall"
	"time"
)

// start starts a process. It does not wait until the process is ready. The process leads a
// group, by which kill finds what it has started.
func (f *Function) start() (*process, error) {
	if len(f.Command) == 0 {
		return nil, errors.New("the function " + f.Name + " has no command")
	}

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}

	// The port is taken before the process starts, and is told to it by a variable.
	p := &process{function: f, next: make(chan *invocation), ended: make(chan struct{})}
	p.server = &http.Server{Handler: p.handler(), ReadHeaderTimeout: time.Minute}
	p.cmd = exec.Command(f.Command[0], f.Command[1:]...)
	p.cmd.Dir, p.cmd.Env = f.Dir,
		append(f.Env[:len(f.Env):len(f.Env)], f.variables(listener.Addr().String())...)
	lines := &lineWriter{to: f.Output}
	p.cmd.Stdout, p.cmd.Stderr = lines, lines
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // it is ended with what it has started
	p.cmd.WaitDelay = time.Second                           // for output of what it has left running
	err = p.cmd.Start()
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}

	go func() { _ = p.server.Serve(listener) }() // until it is closed
	go func() {
		_ = p.cmd.Wait() // its state says how it ended
		lines.flush()
		_ = p.server.Close()
		f.gone(p)
		close(p.ended)
	}()

	return p, nil
}

// variables are those that Lambda sets ("Defined runtime environment variables" in the Lambda
// Developer Guide).
func (f *Function) variables(api string) []string {
	return []string{"AWS_LAMBDA_RUNTIME_API=" + api, "AWS_LAMBDA_FUNCTION_NAME=" + f.Name,
		"AWS_LAMBDA_FUNCTION_VERSION=$LATEST", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE=128",
		"_HANDLER=bootstrap",
		"AWS_LAMBDA_INITIALIZATION_TYPE=on-demand", "AWS_LAMBDA_LOG_GROUP_NAME=/aws/lambda/" +
			f.Name,
		"LAMBDA_TASK_ROOT=" + f.Dir, "AWS_REGION=us-east-1", "AWS_DEFAULT_REGION=us-east-1"}
}

// hand gives an invocation to the process when it asks for one. It is errEnded if the process
// has ended instead.
func (p *process) hand(ctx context.Context, in *invocation, limit time.Duration) error {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case p.next <- in:
		return nil
	case <-p.ended:
		return errEnded
	case <-timer.C:
		return failed("Sandbox.Timedout",
			"RequestId: %s Error: the process asked for no invocation within %s", in.id, limit)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// failedStart is the error of a process that ended before it took its first invocation.
func (p *process) failedStart(in *invocation) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.initErr != nil {
		return p.initErr
	}
	return p.exited(in)
}

// exited is the error of a process that ended without an answer. ended must be closed.
func (p *process) exited(in *invocation) error {
	why := "without providing a reason"
	if !p.cmd.ProcessState.Success() {
		why = "with error: " + p.cmd.ProcessState.String()
	}
	return failed("Runtime.ExitError", "RequestId: %s Error: Runtime exited %s", in.id, why)
}

// kill ends the process and what it has started.
func (p *process) kill() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // it has perhaps ended
}

// newID is an id of an invocation: a random UUID.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
