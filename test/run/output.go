package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
)

// counts are how many tests ended in which way, parts of tests included.
type counts struct{ passed, failed, skipped int }

func (c counts) plus(d counts) counts {
	return counts{c.passed + d.passed, c.failed + d.failed, c.skipped + d.skipped}
}

// String is the closing line of a run.
func (c counts) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", c.passed, c.failed, c.skipped)
}

// testEvent is a line of go test -json ("go doc test2json").
type testEvent struct {
	Action, Package, Test, ImportPath, Output string
}

// reader reads what a part prints: the lines of go test -json, or any text.
type reader struct {
	log io.Writer // gets everything as go test -v prints it

	mu     sync.Mutex
	counts counts
	said   map[string][]string // what each test has printed, until it passes
	wrong  []string            // what those have printed that failed
	last   []string            // the last lines of text
}

// kept is how many lines of a test, and of a command that is no test, are shown when it fails.
const kept = 200

func newReader(log io.Writer) *reader { return &reader{log: log, said: map[string][]string{}} }

// read reads until the end of the output.
func (r *reader) read(from io.Reader) error {
	in := bufio.NewReaderSize(from, 1<<16)
	for {
		line, err := in.ReadString('\n')
		if line != "" {
			r.line(line)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *reader) line(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var e testEvent
	if !strings.HasPrefix(line, "{") || json.Unmarshal([]byte(line), &e) != nil || e.Action == "" {
		r.last = tail(append(r.last, line))
		fmt.Fprint(r.log, line)
		return
	}
	fmt.Fprint(r.log, e.Output)
	name := e.Package + e.ImportPath + " " + e.Test
	if e.Output != "" {
		r.said[name] = tail(append(r.said[name], e.Output))
	}
	r.ended(name, e)
}

// ended counts a test that has ended.
func (r *reader) ended(name string, e testEvent) {
	switch e.Action {
	case "pass", "skip":
		delete(r.said, name)
	case "fail", "build-fail":
		r.wrong = append(r.wrong, fmt.Sprintf("--- %s\n%s", strings.TrimSpace(name), strings.Join(r.said[name], "")))
	}
	if e.Test == "" {
		return
	}
	switch e.Action {
	case "pass":
		r.counts.passed++
	case "fail":
		r.counts.failed++
	case "skip":
		r.counts.skipped++
	}
}

// failure is what a person has to read of a part that failed.
func (r *reader) failure() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(append(r.wrong, r.last...), "")
}

func (r *reader) now() counts {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts
}

func tail(lines []string) []string { return lines[max(0, len(lines)-kept):] }
