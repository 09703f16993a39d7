// Package localstack is the local AWS on which the system is developed and tested: it
// installs and starts an emulator, deploys the real CDK app to it, and stops it.
//
// There are two emulators. MiniStack is quick, and evaluates policies: each function runs
// with the session of its own role. LocalStack's open core is slower, and runs the same
// end-to-end tests as a second opinion. DynamoDB Local can be started alone, for tests of
// the table. None of them needs Docker: functions are processes of this machine.
//
//	stack := &localstack.Stack{Checkout: checkout, Name: "run", Port: 4566, Enforce: true}
//	outputs, err := stack.Up(ctx)
//	defer stack.Stop(ctx)
package localstack

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"archivist/infra/toolchain"
)

// Stack is one local AWS with the system deployed to it. Several can be up at once, with names and ports of
// their own.
type Stack struct {
	toolchain.Checkout
	// Name is that of the folder below .local that holds its state: logs, ids of processes, outputs.
	Name string
	// Port is on loopback. What belongs to the stack has ports that are counted from it.
	Port    int
	Core    bool              // LocalStack's open core instead of MiniStack
	Context map[string]string // of the CDK app
	Env     []string          // of the emulator, in addition to what it needs
	// Tags are those of the functions' build, e.g. "crash"; each set of them has zip files of its own.
	Tags []string
	// Enforce: policies are evaluated, and every function has its own role's session (MiniStack only).
	Enforce bool
}

// Region is where everything is locally. The emulators have others, too, but each has resources of its own.
const Region = "us-east-1"

// State is a path below the stack's own folder; Stop removes all of it.
func (s *Stack) State(parts ...string) string {
	return s.Path(append([]string{".local", s.Name}, parts...)...)
}

// Environment is the environment in which AWS's tools find the local AWS.
func (s *Stack) Environment() []string { return toolchain.Environment(s.Endpoint(), Region) }

// Endpoint is the local AWS's URL.
func (s *Stack) Endpoint() string { return fmt.Sprintf("http://127.0.0.1:%d", s.Port) }

// Python is the interpreter of the project's own environment.
func (s *Stack) Python() string { return s.Path(".local", "venv", "bin", "python") }

// InstallPython makes the Python environment with MiniStack and ocfl-py, unless it is there and requirements.txt
// has not changed since. Each package is pinned by version and digest.
func (s *Stack) InstallPython(ctx context.Context) error {
	venv, wanted := s.Path(".local", "venv"), s.Path("localstack", "requirements.txt")
	return s.Once(filepath.Join(s.Path(".local"), "venv.done"), wanted, func() error {
		s.Say("installing MiniStack (Python) …")
		return s.Venv(ctx, "python3", venv, wanted)
	})
}

// await waits until something is ready, a minute at most. The error names the folder in which the log says why
// not.
func (s *Stack) await(ctx context.Context, what string, ready func() bool) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	ctx, cancel := context.WithTimeout(ctx, 60*time.Second)
	defer cancel()
	for !ready() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s does not come up; its log is in %s", what, s.State())
		case <-tick.C:
		}
	}
	return nil
}

// Detach starts a process that outlives this one, in a session of its own, so that ^C does not reach it, and
// Stop ends it with its children. Its output goes to NAME.log and its process id to NAME.pid; both are in the
// folder of the stack, in which it runs.
func (s *Stack) Detach(name string, env []string, command ...string) error {
	if err := os.MkdirAll(s.State(), 0o755); err != nil {
		return err
	}

	log, err := os.Create(s.State(name + ".log"))
	if err != nil {
		return err
	}

	defer log.Close()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = s.State(), env, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	return os.WriteFile(s.State(name+".pid"), []byte(strconv.Itoa(cmd.Process.Pid)), 0o644)
}
