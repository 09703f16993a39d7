package runner

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"archivist/pkg/revisions/workflow"
)

// running reports whether the process whose id is in a file runs.
func running(t *testing.T, file string) bool {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid := strings.TrimSpace(string(data))
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

// end kills the process whose id is in a file.
func end(t *testing.T, file string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err == nil {
		err = syscall.Kill(pid, syscall.SIGKILL)
	}
	if err != nil {
		t.Error(err)
	}
}

// TestNothingIsLeft: a task that has ended, however it has, leaves no process, and is not waited for longer than
// its first process.
func TestNothingIsLeft(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		end  string
		exit int
		said string
	}{
		"in the background": {`sleep 900 & echo $! >$A; echo a`, Succeeded, 0, "a\n"},
		"group of its own":  {`setsid sleep 900 & echo $! >$A; sleep .1; echo a`, Succeeded, 0, "a\n"},
		"daemon":            {`(setsid bash -c 'echo $$ >$A; exec sleep 900' &) ; until [ -s $A ]; do sleep .02; done; echo a`, Succeeded, 0, "a\n"},
		"without variables": {`env -i sleep 900 & echo $! >$A; echo a`, Succeeded, 0, "a\n"},
		"goes on writing": {`(setsid bash -c 'echo $$ >$A; while :; do echo x >>$ARCHIVIST_OUTPUTS/x; done' &); until [ -s $A ] && [ -s $ARCHIVIST_OUTPUTS/x ]; do sleep .02; done; echo a`,
			Succeeded, 0, "a\n"},
		"hidden":          {`(setsid env -i A=$A bash -c 'echo $$ >$A; exec sleep 300' &) ; until [ -s $A ]; do sleep .02; done; echo a`, Succeeded, 0, "a\n"},
		"time-out":        {`sleep 900 & echo $! >$A; echo a; wait`, TimedOut, -1, "a\n"},
		"ignores SIGTERM": {`trap '' TERM; echo $$ >$A; echo a; while :; do sleep .05; done`, TimedOut, -1, "a\n"},
		"tidies up":       {`trap 'sleep .1; echo b; exit 7' TERM; echo $$ >$A; echo a; sleep 900 & wait`, TimedOut, 7, "a\nb\n"},
		"child tidies up": {`bash -c 'trap "sleep .1; echo b; exit 7" TERM; echo $$ >$A; echo a; while :; do sleep .05; done'; true`, TimedOut, -1, "a\nb\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			file := filepath.Join(t.TempDir(), "pid")
			job := of(workflow.Task{Script: c.text, Shell: "bash", Env: map[string]string{"A": file}})
			if c.end == TimedOut {
				job.Task.Timeout = 5 * time.Second // ten times what it takes to begin
			}
			if c.end == TimedOut && name != "ignores SIGTERM" {
				w.pace.grace = time.Minute // it ends long before
			}
			r := w.run(job)
			w.expect(r, c.end, c.exit, "")
			if c.end == TimedOut && r.Reason != "timed out after 5s" {
				t.Errorf("because %q", r.Reason)
			}
			if said := w.output("stdout"); said != c.said {
				t.Errorf("it said %q, want %q", said, c.said)
			}
			if name == "hidden" { // it cannot be found, and does not hold us up
				if !running(t, file) {
					t.Error("its end was waited for")
				}
				end(t, file)
				return
			}
			// A busy machine kills it a moment later. By itself it would run for longer than is waited.
			w.eventually("no process is left", func() bool { return !running(t, file) })
		})
	}
}

// TestDeadline: a run is told to end at its deadline, and has ended before that of the call, whatever the time-out;
// if nothing is left, it does not begin.
func TestDeadline(t *testing.T) {
	t.Parallel()                 // it waits
	const some = 5 * time.Second // ten times what it takes to begin
	w := newWorld(t)
	job := command("echo a; sleep 600")
	job.Deadline = time.Now().Add(some)
	r := w.run(job)
	w.expect(r, TimedOut, -1, "the time that was left to run it has passed")
	if r.Ended.Before(job.Deadline) || r.Ended.After(job.Deadline.Add(10*some)) {
		t.Errorf("it ended after %s", r.Ended.Sub(job.Deadline))
	}

	w = newWorld(t)
	ctx, cancel := context.WithTimeout(t.Context(), quick.grace+quick.reserve+some)
	defer cancel()
	r, err := w.Runner.Run(ctx, command("echo a; sleep 600"))
	if err != nil || ctx.Err() != nil {
		t.Fatal(err)
	}
	w.expect(r, TimedOut, -1, "the time that was left to run it has passed")

	w = newWorld(t)
	job.Deadline = time.Now()
	w.expect(w.run(job), TimedOut, -1, "no time was left to run it")
	if len(w.parts()) > 0 {
		t.Error("it ran")
	}
}

// TestCancel: a run that is to end is ended, with the reason; one that has not begun does not.
func TestCancel(t *testing.T) {
	w := newWorld(t)
	w.put(CancelKey, []byte("superseded by revision 8\n"))
	w.expect(w.run(command("echo a")), Cancelled, -1, "superseded by revision 8")
	if len(w.parts()) > 0 {
		t.Error("it ran")
	}

	w = newWorld(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.eventually("it runs", func() bool { return strings.Contains(w.output("stdout"), "a") })
		w.put(CancelKey, []byte("superseded by revision 8\n"))
	}()
	r := w.run(script("bash", "echo a; echo x >$ARCHIVIST_OUTPUTS/x; sleep 60"))
	<-done
	w.expect(r, Cancelled, -1, "superseded by revision 8")
	if len(r.Outputs) > 0 {
		t.Errorf("outputs of a run that nobody wants: %v", r.Outputs)
	}
}

// TestStopped: a call that is told to end ends the task, and says so.
func TestStopped(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		w.eventually("it runs", func() bool { return w.output("stdout") != "" })
		cancel()
	}()
	r, err := w.Runner.Run(ctx, command("echo a; sleep 60"))
	if err != nil {
		t.Fatal(err)
	}
	w.expect(r, Broken, -1, "the runner was asked to stop")
}

// TestLive: what a task says is there while it runs.
func TestLive(t *testing.T) {
	w := newWorld(t)
	go func() {
		w.eventually("the first line is there", func() bool { return w.output("stdout") == "a\n" })
		file := w.output("stderr")
		_ = os.WriteFile(strings.TrimSpace(file), nil, 0o600)
	}()
	file := filepath.Join(t.TempDir(), "go")
	r := w.run(script("bash", "echo "+file+" >&2; echo a; while ! [ -e "+file+" ]; do sleep .02; done; echo b"))
	w.expect(r, Succeeded, 0, "")
	if said := w.output("stdout"); said != "a\nb\n" {
		t.Errorf("it said %q", said)
	}
}

// TestMuchOutput: output is kept up to the limit, in parts that can be read at once, and the task goes on.
func TestMuchOutput(t *testing.T) {
	w := newWorld(t)
	job := script("bash", "yes é | head -c 100000000; echo z >&2; exit 5")
	job.Task.Timeout = 5 * time.Minute // on a busy machine
	r := w.run(job)
	w.expect(r, Failed, 5, "")
	said, note := w.output("stdout"), w.output(Note)
	if n := int64(len(said)); n > MaxLog || n < MaxLog-4 || !r.Cut || r.LogSize != n+int64(len(note)) ||
		!strings.Contains(note, "longer than 10 MiB") {
		t.Errorf("%d bytes, %q: %+v", n, note, r)
	}
	for _, name := range w.S3.Names("work/runs/maps/7/build/1/log/") {
		if data, _ := w.S3.Object(name); len(data) > 2*partSize {
			t.Errorf("%s has %d bytes", name, len(data))
		}
	}
	names := w.S3.Names("work/runs/maps/7/build/1/log/")
	if names[0] != "work/runs/maps/7/build/1/log/000001" || len(names) < MaxLog/partSize {
		t.Errorf("%d parts from %s on", len(names), names[0])
	}
}

// TestScratch: the folder of a call is removed, also what is read-only in it; a call removes what others left
// that have died, with their processes, and nothing of those that go on.
func TestScratch(t *testing.T) {
	w := newWorld(t)
	first := command("mkdir -p a/b; echo x >a/b/c; chmod 0 a/b/c a/b a; chmod 0 $TMPDIR")
	first.Prefix = "runs/first/"
	w.expect(w.run(first), Succeeded, 0, "")

	old, err := w.scratch()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sleep", "60")
	cmd.Env = []string{old.mark()}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	w.expect(w.run(command("ls ../..")), Succeeded, 0, "") // the other goes on
	if said := w.output("stdout"); !strings.Contains(said, filepath.Base(old.dir)) {
		t.Errorf("there is %q", said)
	}
	if err := syscall.Kill(cmd.Process.Pid, 0); err != nil {
		t.Errorf("the process %s of a call that goes on: %v", strconv.Itoa(cmd.Process.Pid), err)
	}
	_ = old.lock.Close() // it dies
	job := command("true")
	job.Prefix = "runs/other/"
	w.expect(w.run(job), Succeeded, 0, "")
	<-ended
	if _, err := os.Stat(old.dir); err == nil {
		t.Error("the folder of a dead call is left")
	}
}
