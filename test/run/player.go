package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/term"

	"archivist/test/plan"
)

// logs is where each part's whole output is kept.
const logs = ".local/test"

// result is how a part ended.
type result struct {
	part      plan.Part
	took, cpu time.Duration
	counts    counts
	err       error
	failure   string // what it printed, if it failed
}

// player plays parts and shows what runs.
type player struct {
	out      io.Writer
	parts    []plan.Part
	terminal bool

	mu      sync.Mutex
	running map[string]*run
	results []result
}

// run is a part that runs now.
type run struct {
	began  time.Time
	output *reader
}

func newPlayer(out *os.File, parts []plan.Part) *player {
	return &player{out: out, parts: parts, terminal: term.IsTerminal(int(out.Fd())), running: map[string]*run{}}
}

// play plays all parts: those of one lane one after another, lanes side by side.
func (p *player) play(ctx context.Context) []result {
	var lanes sync.WaitGroup
	for _, lane := range []plan.Lane{plan.Emulators, plan.Process} {
		lanes.Go(func() {
			for _, part := range p.parts {
				if part.Lane == lane && ctx.Err() == nil {
					p.playPart(ctx, part)
				}
			}
		})
	}
	stop := make(chan struct{})
	go p.show(stop)
	lanes.Wait()
	close(stop)
	return p.results
}

// playPart plays one part to its end.
func (p *player) playPart(ctx context.Context, part plan.Part) {
	r := &run{began: time.Now()}
	res := result{part: part}
	log, err := logOf(part)
	if err != nil {
		res.err = err
		p.end(res)
		return
	}
	defer log.Close()
	r.output = newReader(log)
	p.begin(part.Name, r)

	res.cpu, res.err = execute(ctx, part, r.output)
	res.took, res.counts = time.Since(r.began), r.output.now()
	if res.err == nil && res.counts.failed > 0 {
		res.err = errors.New("tests failed")
	}
	if res.err != nil {
		res.failure = r.output.failure()
	}
	p.end(res)
}

// logOf makes the file that keeps what a part prints.
func logOf(part plan.Part) (*os.File, error) {
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return nil, err
	}
	return os.Create(filepath.Join(logs, strings.ReplaceAll(part.Name, " ", "-")+".log"))
}

// execute runs the command of a part in a process group of its own, which is interrupted, and killed
// half a minute later, at the end of its time. It returns the time of processors that it took.
func execute(ctx context.Context, part plan.Part, to *reader) (cpu time.Duration, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, part.Limit, fmt.Errorf("it did not end in %s", part.Limit))
	defer cancel()
	words := counted(strings.Fields(part.Command))
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Env = append(os.Environ(), part.Env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = 30 * time.Second

	read, write := io.Pipe()
	cmd.Stdout, cmd.Stderr = write, write
	done := make(chan error, 1)
	go func() { done <- to.read(read) }()
	err = cmd.Run()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what it left
	}
	write.Close()
	if failed := <-done; err == nil {
		err = failed
	}
	if cmd.ProcessState != nil {
		cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return cpu, err
}

// counted makes go test print events, which are counted.
func counted(words []string) []string {
	for i := range len(words) - 1 {
		if words[i] == "go" && words[i+1] == "test" {
			return slices.Insert(words, i+2, "-json")
		}
	}
	return words
}

func (p *player) begin(name string, r *run) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running[name] = r
	p.say("%-9s %s", "starts", name)
}

func (p *player) end(r result) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.running, r.part.Name)
	p.results = append(p.results, r)
	word := "passed"
	if r.err != nil {
		word = "FAILED"
	}
	p.say("%-9s %s: %s in %s", word, r.part.Name, r.counts, r.took.Round(time.Second))
}

// say prints a line above the line that shows what runs.
func (p *player) say(format string, args ...any) {
	if p.terminal {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
	fmt.Fprintf(p.out, format+"\n", args...)
}

// show shows what runs: on a terminal each second in place, in a log each two minutes.
func (p *player) show(stop chan struct{}) {
	each := 2 * time.Minute
	if p.terminal {
		each = time.Second
	}
	tick := time.NewTicker(each)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		p.mu.Lock()
		if p.terminal {
			fmt.Fprintf(p.out, "\r\x1b[K%s", p.status())
		} else {
			fmt.Fprintln(p.out, p.status())
		}
		p.mu.Unlock()
	}
}

// status is what runs now, since when, and how many tests have ended.
func (p *player) status() string {
	var now []string
	for name, r := range p.running {
		c := r.output.now()
		now = append(now, fmt.Sprintf("%s %s (%d)", name, time.Since(r.began).Round(time.Second),
			c.passed+c.failed+c.skipped))
	}
	slices.Sort(now)
	return fmt.Sprintf("running [%d of %d done]: %s", len(p.results), len(p.parts), strings.Join(now, ", "))
}
