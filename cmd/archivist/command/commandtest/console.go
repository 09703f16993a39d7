// Package commandtest has a computer for tests of commands: its environment, its clock, its terminal.
package commandtest

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"archivist/cmd/archivist/command"
	"archivist/pkg/kernel/terminal"
)

// Console is a computer for a test: its environment, and what the last command wrote. Its clock stands still but
// for Wait, which moves it at once.
type Console struct {
	// Program makes the commands anew for each command line.
	Program func() command.Program
	Ctx     context.Context
	// Env is the whole environment.
	Env   map[string]string
	Width int // of the terminal; 0: it is none
	Stdin string
	Now   time.Time
	// HTTP makes all requests; nil = http.DefaultClient.
	HTTP *http.Client
	// Browse is the browser; nil: there is none.
	Browse func(url string) error
	// OnWait is called in each wait: what happens meanwhile.
	OnWait   func()
	Out, Err bytes.Buffer
	Both     bytes.Buffer // as a terminal gets it
	// Waits are all waits of the console, also of commands before.
	Waits []time.Duration
}

// New makes a console of a program for the API at a URL.
func New(t *testing.T, url string, p func() command.Program) *Console {
	return &Console{
		Program: p,
		Ctx:     t.Context(),
		Env:     map[string]string{"ARCHIVIST_API": url},
		Now:     time.Date(2026, 11, 22, 6, 0, 0, 0, time.UTC),
	}
}

// Run runs a command line, whose words are separated by blanks, and returns its exit
// code.
func (c *Console) Run(line string) int { return c.Args(strings.Fields(line)...) }

// Args runs a command line of some words, which may have blanks, and returns its exit code. What the command
// before has written is forgotten.
func (c *Console) Args(args ...string) int {
	c.Out.Reset()
	c.Err.Reset()
	c.Both.Reset()
	m := command.Machine{In: strings.NewReader(c.Stdin),
		Out:    terminal.Stream{Writer: io.MultiWriter(&c.Out, &c.Both), Width: c.Width},
		Err:    terminal.Stream{Writer: io.MultiWriter(&c.Err, &c.Both), Width: c.Width},
		Getenv: func(name string) string { return c.Env[name] },
		HTTP:   cmp.Or(c.HTTP, http.DefaultClient),
		Browse: c.Browse,
		Now:    func() time.Time { return c.Now },
		Wait: func(ctx context.Context, d time.Duration) error {
			c.Waits, c.Now = append(c.Waits, d), c.Now.Add(d)
			if c.OnWait != nil {
				c.OnWait()
			}
			return ctx.Err()
		}}
	return command.Run(c.Ctx, c.Program(), m, args)
}

// Want runs a command line, which must end with a code, and write a text to one of its streams.
func (c *Console) Want(t *testing.T, line string, code int, says string) {
	t.Helper()
	got := c.Run(line)
	if got != code || !strings.Contains(c.Both.String(), says) {
		t.Errorf("%s: exit code %d, want %d and %q\n%s", line, got, code, says, &c.Both)
	}
}

// Seen is what stays on the terminal: of a line that was written again, the last.
func (c *Console) Seen() string {
	const again = "\r\x1b[K"
	var out strings.Builder
	for line := range strings.Lines(c.Both.String()) {
		parts := strings.Split(line, again)
		out.WriteString(parts[len(parts)-1])
	}
	return out.String()
}

// Write writes a file that is only the user's, with its folders.
func Write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// EmptyHome keeps a test from the user's files, and from a stack that is up here: the test runs in an empty
// folder, which is also its home. It returns the folder.
func EmptyHome(t *testing.T) string {
	home := t.TempDir()
	t.Chdir(home)
	t.Setenv("HOME", home)
	t.Setenv("XDG_CACHE_HOME", filepath.Join(home, "cache"))
	return home
}
