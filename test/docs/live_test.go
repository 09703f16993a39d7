package docs

import (
	"bufio"
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// port is where the API or the local AWS of these tests listens; the documents have the usual one.
const (
	port                 = "4766"
	usualPort            = "4566"
	usualHome            = "/home/you/archivist"
	more                 = "…" // stands for lines of output that are not shown
	limit                = 18 * time.Minute
	startStack, endStack = "make run", "make stop"
	startDemo            = "make demo"
)

// TestCommands follows the documents as a newcomer does, in a fresh copy of the
// repository: every command that needs no AWS account is run, and prints what the
// document shows. What is up is not started again by the next document, and is
// stopped at the end. Where a document says make run, the demo does: only for the README
// the local AWS is started, too, with -on ministack.
func TestCommands(t *testing.T) {
	read := documents(t)
	switch *on {
	case "demo":
	case "ministack":
		read = []string{"README.md"}
	default:
		t.Skip("runs Archivist; run it with -on demo, and -on ministack")
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	home := freshCopy(t)
	env := append(withoutMake(os.Environ()), "NO_COLOR=1", "TERM=xterm", "PORT="+port, "GOFLAGS=-trimpath",
		"XDG_CONFIG_HOME="+t.TempDir())
	r := reader{home: home, env: env}
	t.Cleanup(func() { r.stop(t) })
	if *on == "demo" {
		r.startDemo(t, ctx)
		t.Run(screens, func(t *testing.T) { r.record(t, ctx) })
	}
	for _, document := range read {
		t.Run(document, func(t *testing.T) { r.follow(t, ctx, document) })
	}
	if r.started == nil || r.commands < 8 || *on == "demo" && r.commands < 60 {
		t.Errorf("%d commands were run; the start printed %q", r.commands, r.started)
	}
}

// stop stops what is up, if anything is.
func (r *reader) stop(t *testing.T) {
	t.Helper()
	stop := exec.Command("make", "stop")
	stop.Dir, stop.Env = r.home, r.env
	if said, err := stop.CombinedOutput(); err != nil {
		t.Errorf("make stop: %v\n%s", err, said)
	}
}

// startDemo starts the demo in another terminal, as a reader does.
func (r *reader) startDemo(t *testing.T, ctx context.Context) {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(ctx), "make", "demo") // it ends by make stop
	cmd.Dir, cmd.Env, cmd.Stderr = r.home, r.env, os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	t.Cleanup(func() {
		r.stop(t)
		if err := <-ended; err != nil {
			t.Errorf("make demo: %v", err)
		}
	})
	ready := make(chan bool)
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if r.started == nil || !isReady(r.started) {
				r.started = append(r.started, lines.Text())
				if isReady(r.started) {
					close(ready)
				}
			}
		}
		ended <- cmd.Wait()
	}()
	select {
	case <-ready:
	case err := <-ended:
		ended <- err
		t.Fatalf("make demo ended: %v\n%s", err, strings.Join(r.started, "\n"))
	}
}

// isReady reports whether the demo has said its last line.
func isReady(said []string) bool { return strings.HasSuffix(said[len(said)-1], "Ctrl-C ends it.") }

// elsewhere is a command that is left out: it starts or ends what is up, or is a part of make test itself.
func elsewhere(text string) bool {
	ofTests := strings.HasPrefix(text, "go test ./test/e2e ")
	return ofTests || text == endStack || text == startDemo || *on == "demo" && text == startStack
}

// withoutMake leaves out what make sets for the commands of a target: a newcomer's make
// is not called by another, and prints nothing of it.
func withoutMake(env []string) []string {
	return slices.DeleteFunc(env, func(v string) bool {
		return strings.HasPrefix(v, "MAKE") || strings.HasPrefix(v, "MFLAGS=")
	})
}

// reader follows documents.
type reader struct {
	home     string
	env      []string
	started  []string // what make run printed
	status   int      // of the last command
	commands int
}

func (r *reader) follow(t *testing.T, ctx context.Context, document string) {
	shell := newSession(t, ctx, r.home, r.env)
	for _, b := range blocksOf(t, document) {
		if b.remote || b.language != "sh" && b.language != "console" {
			continue
		}
		var shown []string
		for _, c := range b.commands() {
			if elsewhere(c.text) {
				shown = append(append(shown, typed(c.text)...), c.want...)
				continue
			}
			output := r.started
			if c.text != startStack || output == nil {
				output = r.try(t, shell, c)
			}
			r.check(t, b, c, output)
			shown = append(append(shown, typed(c.text)...), recorded(c, output)...)
		}
		if b.language == "console" && *update {
			rewrite(t, b, shown)
		}
	}
}

// try runs a command, and returns its output as it would be in the usual place.
func (r *reader) try(t *testing.T, shell *session, c command) []string {
	t.Helper()
	started := time.Now()
	output, status, err := shell.run(c.text)
	if err != nil {
		t.Fatalf("%s: %v", c.text, err)
	}
	t.Logf("%.1f s  %s", time.Since(started).Seconds(), c.text)
	r.commands++
	r.status = status
	usual := strings.NewReplacer(r.home, usualHome,
		":"+port, ":"+usualPort, "port "+port, "port "+usualPort)
	for i, line := range output {
		output[i] = usual.Replace(line)
	}
	if c.text == startStack {
		output = slices.DeleteFunc(output, installing.MatchString)
		r.started = output
	}
	return output
}

// installing are the lines of make run that only a first run prints.
var installing = regexp.MustCompile(`^ *[0-9]+ s  installing `)

// check holds the outcome of a command against the document: a script succeeds, and a
// console shows what is printed.
func (r *reader) check(t *testing.T, b block, c command, output []string) {
	t.Helper()
	switch {
	case b.language == "sh" && r.status != 0:
		t.Errorf("%s:%d: exit status %d:\n%s", b.document, b.line, r.status, strings.Join(output, "\n"))
	case b.language == "console" && !*update:
		compare(t, b, c, output)
	}
}

// typed is a command as a console block shows it.
func typed(text string) []string {
	return strings.Split("$ "+strings.ReplaceAll(text, "\n", "\n> "), "\n")
}

// recorded is the output to be shown below a command: where the document leaves lines
// out, what it shows stays.
func recorded(c command, output []string) []string {
	if slices.Contains(c.want, more) {
		return c.want
	}
	return output
}

// rewrite replaces the lines of a block in its document.
func rewrite(t *testing.T, b block, shown []string) {
	t.Helper()
	path := filepath.Join(root, b.document)
	now := blocksOf(t, b.document) // earlier blocks may have grown
	i := slices.IndexFunc(now, func(o block) bool { return slices.Equal(o.lines, b.lines) })
	if i < 0 {
		t.Fatalf("%s:%d: the block is not there any more", b.document, b.line)
	}
	text := strings.Split(read(t, path), "\n")
	for j, line := range shown {
		shown[j] = strings.TrimRight(b.indent+line, " ")
	}
	from := now[i].line - 1
	text = slices.Replace(text, from, from+len(b.lines), shown...)
	if err := os.WriteFile(path, []byte(strings.Join(text, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
}

// masks hide what differs between two runs.
var masks = []struct {
	pattern *regexp.Regexp
	mask    string
}{
	{regexp.MustCompile(`\b[0-9A-HJKMNP-TV-Z]{26}\b`), "ID"},
	{regexp.MustCompile(`ark:/[0-9]+/[0-9a-z]+`), "ARK"},
	{regexp.MustCompile(`([0-9a-f]{3}/){3}ark%3a%2f[0-9]+%2f[0-9a-z]+/`), "STORED"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[T ][0-9:.]+Z?`), "TIME"},
	{regexp.MustCompile(`\b[0-9a-f]{8,}\b…?`), "HEX"},
	{regexp.MustCompile(`\b[0-9.]+(ms|s|m[0-9]+s)\b`), "DURATION"},
	{regexp.MustCompile(`[0-9]+([.,][0-9]+)?`), "N"},
	{regexp.MustCompile(`[ ─┄-]{2,}|─`), " "},
}

func masked(line string) string {
	for _, m := range masks {
		line = m.pattern.ReplaceAllString(line, m.mask)
	}
	return strings.TrimSpace(line)
}

// compare holds the output of a command against what the document shows. Lines may
// come in another order: some lists are sorted by time.
func compare(t *testing.T, b block, c command, output []string) {
	t.Helper()
	left := map[string]int{}
	for _, line := range output {
		left[masked(line)]++
	}
	var wrong []string
	for _, line := range c.want {
		left[masked(line)]--
		if line != more && left[masked(line)] < 0 {
			wrong = append(wrong, "is not in the output: "+line)
		}
	}
	delete(left, "")
	for line, n := range left {
		if n > 0 && !slices.Contains(c.want, more) {
			wrong = append(wrong, "is not in the document: "+line)
		}
	}
	if len(wrong) > 0 {
		t.Errorf("%s:%d: $ %s\n%s\nthe output:\n%s", b.document, b.line, c.text,
			strings.Join(wrong, "\n"), strings.Join(output, "\n"))
	}
}

// freshCopy is the repository as a newcomer has it, but for the packages that are
// installed already.
func freshCopy(t *testing.T) string {
	t.Helper()
	from, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(t.TempDir(), "archivist")
	err = filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(from, path)
		switch {
		case d.IsDir() && slices.Contains([]string{".git", ".local", "dist"}, name):
			return filepath.SkipDir
		case d.IsDir():
			return os.MkdirAll(filepath.Join(home, name), 0o755)
		case d.Type().IsRegular():
			return copyFile(filepath.Join(home, name), path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"venv", "cdk"} {
		share(t, filepath.Join(home, ".local", name), filepath.Join(from, ".local", name))
	}
	return home
}

// share makes an installed folder that of the copy, too. One that is not installed is
// left to the copy.
func share(t *testing.T, to, installed string) {
	t.Helper()
	_, missing := os.Stat(installed + ".done")
	if missing != nil {
		return
	}
	err := os.MkdirAll(filepath.Dir(to), 0o755)
	if err == nil {
		err = copyFile(to+".done", installed+".done")
	}
	if err == nil {
		err = os.Symlink(installed, to)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func copyFile(to, from string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, info.Mode().Perm())
}
