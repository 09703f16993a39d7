package docs

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// columns is the width of the terminal in which commands run.
const columns = 100

// session is a shell at a terminal, in which a reader types one command after another.
type session struct {
	in   io.Writer
	out  *bufio.Reader
	dir  string // of scripts
	next int

	styled bool // what is printed keeps its styles
}

// done ends the output of a command; its exit status follows.
const done = "----- done "

func newSession(t *testing.T, ctx context.Context, folder string, env []string) *session {
	t.Helper()
	terminal, ours := openTerminal(t)
	cmd := exec.CommandContext(ctx, "bash")
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = folder, env, terminal, terminal
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	terminal.Close()
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Wait() // its last command may have failed, as shown in the document
		ours.Close()
	})
	return &session{in: in, out: bufio.NewReader(ours), dir: t.TempDir()}
}

// openTerminal makes a pseudo-terminal: what a command prints depends on being at one.
func openTerminal(t *testing.T) (terminal, ours *os.File) {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	fd := int(ours.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		terminal, err = os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(int(terminal.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 50, Col: columns})
	}
	if err != nil {
		t.Fatal(err)
	}
	return terminal, ours
}

// run runs a command in the shell and returns what a reader sees of its output, and
// the exit status of the last command in it that failed, or 0.
func (s *session) run(text string) (output []string, status int, err error) {
	s.next++
	script := filepath.Join(s.dir, fmt.Sprintf("%d.sh", s.next))
	err = os.WriteFile(script, []byte(text+"\n"), 0o644)
	if err != nil {
		return nil, 0, err
	}
	_, err = fmt.Fprintf(s.in, "failed=0; set -E; trap 'failed=$?' ERR\n"+
		". %s </dev/null; trap - ERR; printf '\\n%s%%d\\n' $failed\n", script, done)
	if err != nil {
		return nil, 0, err
	}
	printed, status, err := s.untilDone()
	if err != nil {
		return nil, 0, fmt.Errorf("the shell ended: %w", err)
	}
	if !s.styled {
		printed = styles.ReplaceAllString(printed, "")
	}
	return lines(printed), status, nil
}

// untilDone reads what a command prints, and its exit status.
func (s *session) untilDone() (printed string, status int, err error) {
	for {
		line, err := s.out.ReadString('\n')
		if err != nil {
			return "", 0, err
		}
		code, ended := strings.CutPrefix(strings.TrimSpace(line), done)
		if ended {
			status, err = strconv.Atoi(code)
			return printed, status, err
		}
		printed += line
	}
}

// styles are the control codes of colours and bold text, moves all others.
var (
	styles = regexp.MustCompile("\x1b\\[[0-9;]*m")
	moves  = regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-ln-z]")
)

// lines are what a reader sees of an output in the end: of a line that was drawn several
// times the last drawing.
func lines(output string) (out []string) {
	for line := range strings.SplitSeq(moves.ReplaceAllString(output, ""), "\n") {
		line = strings.TrimSuffix(line, "\r")
		line = line[strings.LastIndexByte(line, '\r')+1:]
		out = append(out, strings.TrimRight(line, " "))
	}
	for len(out) > 0 && out[len(out)-1] == "" {
		out = out[:len(out)-1]
	}
	return out
}
