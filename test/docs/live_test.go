package docs

import (
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

// port is where the local AWS of these tests listens, and sources where its web server
// for local content does; the documents have the usual ones.
const (
	port, sources           = "4766", "4780"
	usualPort, usualSources = "4566", "4580"
	usualHome               = "/home/you/archivist"
	more                    = "…" // stands for lines of output that are not shown
	limit                   = 18 * time.Minute
	startStack, endStack    = "make run", "make stop"
)

// TestCommands follows the documents as a newcomer does, in a fresh copy of the
// repository: every command that needs no AWS account is run, and prints what the
// document shows. A stack that is up is not started again by the next document, and is
// stopped at the end.
func TestCommands(t *testing.T) {
	if *on != "ministack" {
		t.Skip("deploys to a local stack; run it with -on ministack")
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	home := freshCopy(t)
	env := append(withoutMake(os.Environ()), "NO_COLOR=1", "TERM=xterm", "PORT="+port, "GOFLAGS=-trimpath",
		"XDG_CONFIG_HOME="+t.TempDir())
	r := reader{home: home, env: env}
	t.Cleanup(func() {
		stop := exec.Command("make", "stop")
		stop.Dir, stop.Env = home, env
		if said, err := stop.CombinedOutput(); err != nil {
			t.Errorf("make stop: %v\n%s", err, said)
		}
	})
	for _, document := range documents(t) {
		t.Run(document, func(t *testing.T) { r.follow(t, ctx, document) })
	}
	if r.started == nil || r.commands < 25 {
		t.Errorf("%d commands were run; make run printed %q", r.commands, r.started)
	}
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
			if c.text == endStack {
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
	output, status, err := shell.run(strings.ReplaceAll(c.text, ":"+usualSources, ":"+sources))
	if err != nil {
		t.Fatalf("%s: %v", c.text, err)
	}
	t.Logf("%.1f s  %s", time.Since(started).Seconds(), c.text)
	r.commands++
	r.status = status
	usual := strings.NewReplacer(r.home, usualHome,
		":"+sources, ":"+usualSources, ":"+port, ":"+usualPort, "port "+port, "port "+usualPort)
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
