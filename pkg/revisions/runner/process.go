package runner

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// searchPath is where programs are looked for: that of Lambda, so layers can bring more.
const searchPath = "/usr/local/bin:/usr/bin:/bin:/opt/bin"

// shells are those that a message names if one is missing.
var shells = []string{"bash", "sh", "python3", "perl", "node", "ruby"}

// lookUp finds a program on a search path; "" if it is not there. The process's own PATH is not
// asked: a task gets another one.
func lookUp(search, name string) string {
	if filepath.IsAbs(name) && executable(name) {
		return name
	}
	for dir := range strings.SplitSeq(search, ":") {
		at := filepath.Join(dir, name)
		if name != "" && !strings.Contains(name, "/") && executable(at) {
			return at
		}
	}
	return ""
}

// executable reports whether a name is that of a file that can be run; links are followed.
func executable(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// there are the usual shells that can be used.
func there(search string) (names []string) {
	return slices.DeleteFunc(slices.Clone(shells),
		func(name string) bool { return lookUp(search, name) == "" })
}

// process is the process of a task, with all that it has started: its group, and those that have
// left it and are found by their environment.
type process struct {
	cmd   *exec.Cmd
	scope *folder
	pipes []*os.File    // their ends that are read
	read  chan struct{} // closed when all output is read
	done  chan struct{} // closed when the process has ended
}

// begin starts the process of a run, in a group of its own, so that a signal reaches all that it
// starts. It is not bound to the context: how it is ended is decided by watch. After an error
// nothing runs, and nothing is open.
func (x *run) begin() (*process, error) {
	cmd := exec.Command(x.argv[0], x.argv[1:]...)
	cmd.Dir, cmd.Env = x.scope.work, x.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p := &process{cmd: cmd, scope: x.scope, read: make(chan struct{}), done: make(chan struct{})}
	var writers []*os.File
	for range 2 {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, errors.Join(err, closeAll(p.pipes), closeAll(writers))
		}
		p.pipes, writers = append(p.pipes, r), append(writers, w)
	}

	// The command gets files, not writers: so its end does not wait for others that hold the pipes
	// open.
	cmd.Stdout, cmd.Stderr = writers[0], writers[1]
	err := cmd.Start()
	_ = closeAll(writers)
	if err != nil {
		return nil, errors.Join(err, closeAll(p.pipes))
	}

	go p.follow(x)
	go func() {
		_ = cmd.Wait() // ProcessState has how it ended
		close(p.done)
	}()

	return p, nil
}

// closeAll closes files, and returns all errors of that together.
func closeAll(files []*os.File) error {
	var all []error
	for _, f := range files {
		all = append(all, f.Close())
	}
	return errors.Join(all...)
}

// follow reads all output, both streams at the same time: a process that waits for one to be read
// would not go on.
func (p *process) follow(x *run) {
	ended := make(chan struct{})
	for i, stream := range []string{"stdout", "stderr"} {
		go func() {
			x.log.copy(stream, newMask(x.masked), p.pipes[i])
			ended <- struct{}{}
		}()
	}

	for range p.pipes {
		<-ended
	}

	close(p.read)
}

// copy adds all that a stream says to the output. What follows once the output is cut is read and
// dropped, so that who writes it is not held up.
func (o *output) copy(stream string, m *mask, r io.Reader) {
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		if n > 0 && !o.full() {
			o.add(stream, m.next(buf[:n], false))
		}
		if err != nil {
			o.add(stream, m.next(nil, true))
			return
		}
	}
}

// terminate asks all processes of the group to end (SIGTERM), and waits until they have, or the
// grace is over: then it ends them (SIGKILL). Those that have left the group are ended by sweep.
func (p *process) terminate(grace time.Duration) {
	group := p.cmd.Process.Pid
	_ = syscall.Kill(-group, syscall.SIGTERM)
	over := time.NewTimer(grace)
	defer over.Stop()
	for lives(group) {
		select {
		case <-over.C:
			_ = syscall.Kill(-group, syscall.SIGKILL)
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// sweep ends what the task has left behind once its process has ended, and closes its pipes. What
// is in the pipes is still read, for at most so long: a process that hides from us could hold them
// open for ever.
func (p *process) sweep(words time.Duration) {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	p.scope.sweep()
	late := time.AfterFunc(words, func() { _ = closeAll(p.pipes) }) // by who hides from us
	<-p.read
	if late.Stop() {
		_ = closeAll(p.pipes)
	}
}

// exitOf is the exit code of a process, -1 if a signal ended it, and the signal's name, "" for
// none.
func exitOf(state *os.ProcessState) (code int, signal string) {
	if state == nil {
		return -1, ""
	}
	status, ok := state.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		return -1, status.Signal().String()
	}
	return state.ExitCode(), ""
}
