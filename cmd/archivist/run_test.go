package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"archivist/pkg/fault"
	"archivist/pkg/terminal"
)

// console is a computer for a test: its environment, and what a command wrote.
type console struct {
	ctx      context.Context
	env      map[string]string
	width    int // of the terminal; 0: it is none
	stdin    string
	now      time.Time
	onWait   func()
	out, err bytes.Buffer
	both     bytes.Buffer // as a terminal gets it
	waits    []time.Duration
}

// with makes a console for the API at a URL.
func with(t *testing.T, url string) *console {
	return &console{
		ctx: t.Context(),
		env: map[string]string{"ARCHIVIST_API": url},
		now: time.Date(2026, 11, 22, 6, 0, 0, 0, time.UTC),
	}
}

// run runs a command line, whose words are separated by blanks, and returns its exit
// code.
func (c *console) run(line string) int { return c.args(strings.Fields(line)...) }

func (c *console) args(args ...string) int {
	c.out.Reset()
	c.err.Reset()
	c.both.Reset()
	m := machine{in: strings.NewReader(c.stdin),
		out:    terminal.Stream{Writer: io.MultiWriter(&c.out, &c.both), Width: c.width},
		err:    terminal.Stream{Writer: io.MultiWriter(&c.err, &c.both), Width: c.width},
		getenv: func(name string) string { return c.env[name] },
		http:   http.DefaultClient,
		now:    func() time.Time { return c.now },
		wait: func(ctx context.Context, d time.Duration) error {
			c.waits, c.now = append(c.waits, d), c.now.Add(d)
			if c.onWait != nil {
				c.onWait()
			}
			return ctx.Err()
		}}
	return run(c.ctx, m, args)
}

// want runs a command line, which must end with a code, and write a text.
func (c *console) want(t *testing.T, line string, code int, says string) {
	t.Helper()
	got := c.run(line)
	if got != code || !strings.Contains(c.both.String(), says) {
		t.Errorf("%s: exit code %d, want %d and %q\n%s", line, got, code, says, &c.both)
	}
}

// seen is what stays on the terminal: of a line that was written again, the last.
func (c *console) seen() string {
	const again = "\r\x1b[K"
	var out strings.Builder
	for line := range strings.Lines(c.both.String()) {
		parts := strings.Split(line, again)
		out.WriteString(parts[len(parts)-1])
	}
	return out.String()
}

// write writes a file that is only the user's, with its folders.
func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// emptyHome keeps a test from the user's files, and from a stack that is up here.
func emptyHome(t *testing.T) string {
	home := t.TempDir()
	t.Chdir(home)
	t.Setenv("HOME", home)
	t.Setenv("XDG_CACHE_HOME", filepath.Join(home, "cache"))
	return home
}

// TestUsage: a command line that cannot be run is answered by exit code 2 and one line
// that says what to do next.
func TestUsage(t *testing.T) {
	emptyHome(t)
	for line, says := range map[string]string{
		"job list":                          "--collection=NAME or --batch=ID; run archivist job list --help",
		"job":                               "run archivist job --help",
		"nonsense":                          "unexpected argument nonsense; run archivist --help",
		"job show --foo":                    "unknown flag --foo; run archivist job show --help",
		"job show":                          "run archivist job show --help",
		"help nonsense":                     "topics: actions, config, environment, exit-codes, formatting, manifests",
		"job list -c maps --state faild":    `no state "faild"; expected one of Pending, Held`,
		"batch list -c maps --state notify": `"notify"; expected one of Pending, Held, Processing, Reporting`,
		"completion tcsh":                   `"bash","zsh","fish"`,
		"queue":                             "no API is set: run in the folder of `make run`, or set ARCHIVIST_API",
		"job list -c maps":                  "no API is set",
		"explain map-of-ghent --api http://127.0.0.1:1":   `"map-of-ghent" is not the id`,
		"object show doi:1/2 --api http://127.0.0.1:1":    "an ARK has the form",
		"object get ark:/99999/fk4x -o - --api http://x":  "name its path",
		"submit map.tif -c maps --api http://127.0.0.1:1": "put it on a web server first",
		"job list -c maps --json id,nope --api http://x":  `--json: there is no field "nope"; expected some of id, batch`,
		"completion bash --json all":                      "prints no JSON",
		"object reindex --api http://x":                   "give either an ARK or --all",
	} {
		c := with(t, "")
		if code := c.run(line); code != exitUsage || strings.Count(c.err.String(), "\n") != 1 ||
			!strings.Contains(c.err.String(), says) ||
			c.out.Len() > 0 {
			t.Errorf("%s: exit code %d\n%s%s", line, code, &c.out, &c.err)
		}
	}
}

// TestUnreachable: an API that does not answer is one line with the URL.
func TestUnreachable(t *testing.T) {
	c := with(t, "http://127.0.0.1:1/prod")
	if code := c.run("queue"); code != 7 || strings.Count(c.err.String(), "\n") != 1 ||
		!strings.Contains(c.err.String(), "does not answer at http://127.0.0.1:1/prod") {
		t.Errorf("%d %s", code, &c.err)
	}
}

// TestColours: colours are on a terminal that has some, and never with NO_COLOR.
func TestColours(t *testing.T) {
	const code = "\x1b[1m"
	for _, k := range []struct {
		width   int
		env     string
		colours bool
	}{{80, "", true}, {0, "", false}, {80, "NO_COLOR", false}, {80, "TERM", false}} {
		c := with(t, "")
		c.width = k.width
		c.env[k.env] = "dumb"
		c.want(t, "config", 0, "key")
		if got := strings.Contains(c.out.String(), code); got != k.colours {
			t.Errorf("%+v: %q", k, c.out.String())
		}
	}
}

// TestInterrupted: ^C ends a command quietly.
func TestInterrupted(t *testing.T) {
	c := with(t, "http://127.0.0.1:1")
	ctx, cancel := context.WithCancel(t.Context())
	c.ctx = ctx
	cancel()
	for _, line := range []string{"queue", "batch watch B", "object get ark:/99999/fk4x",
		"submit https://example.org/a -c maps"} {
		if code := c.run(line); code != exitInterrupted || c.err.Len()+c.out.Len() > 0 {
			t.Errorf("%s: exit code %d, %s%s", line, code, &c.out, &c.err)
		}
	}
}

// TestExitCodes: the topic lists each code, and no other.
func TestExitCodes(t *testing.T) {
	c := with(t, "")
	if code := c.run("help exit-codes"); code != 0 {
		t.Fatal(code, c.err.String())
	}
	documented := map[int]bool{}
	for line := range strings.Lines(c.out.String()) {
		if code, err := strconv.Atoi(strings.Fields(line + " x")[0]); err == nil {
			documented[code] = true
		}
	}
	want := map[int]bool{
		0:                  true,
		fault.Unknown.Exit: true,
		exitUsage:          true,
		exitOtherNames:     true,
		exitInterrupted:    true,
	}
	for _, edge := range fault.Edges {
		want[edge.Exit] = true
	}
	for code := range want {
		if !documented[code] {
			t.Errorf("the exit code %d is not documented", code)
		}
	}
	if len(documented) != len(want) {
		t.Errorf("documented are %v, there are %v", documented, want)
	}
}

// TestHelp: each command and topic has help, which says something of every argument.
func TestHelp(t *testing.T) {
	c := with(t, "")
	for _, line := range []string{"", "--help", "help", "help job list", "job list --help",
		"help config", "help manifests", "--version"} {
		if code := c.run(line); code != 0 || c.out.Len() == 0 || c.err.Len() > 0 {
			t.Errorf("%q: exit code %d, %s%s", line, code, &c.out, &c.err)
		}
		for text := range strings.Lines(c.out.String()) {
			if n := len([]rune(strings.TrimSpace(text))); n > 130 {
				t.Errorf("%q: a line of %d characters: %s", line, n, text)
			}
		}
	}
	c.want(t, "--version", 0, "archivist ")
}

// TestSettings: flags go before the environment, that before the config file, and that
// before the folder of make run; a profile's key goes to the profile's API only.
func TestSettings(t *testing.T) {
	home := emptyHome(t)
	file := filepath.Join(home, "xdg", "archivist", "config.yaml")
	write(t, file, "default: live\nprofiles:\n  live: {api: https://live, key: k-live}\n"+
		"  test: {api: https://test, key: k-test}\n  open: {api: https://open}\n")
	write(t, filepath.Join(home, outputsFile), `{"APIURL":"http://local"}`)
	below := filepath.Join(home, "docs")
	if err := os.Mkdir(below, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(below)
	const xdg, api, key, named = "XDG_CONFIG_HOME", "ARCHIVIST_API", "ARCHIVIST_API_KEY", "ARCHIVIST_PROFILE"
	with := map[string]string{xdg: filepath.Join(home, "xdg")}
	full := map[string]string{xdg: with[xdg], api: "https://env", key: "k-env"}
	for _, k := range []struct {
		env map[string]string
		cli cli
		api string
		key string
	}{
		{nil, cli{}, "http://local", ""},
		{map[string]string{key: "k-env"}, cli{}, "http://local", "k-env"},
		{with, cli{}, "https://live", "k-live"},
		{map[string]string{xdg: with[xdg], key: "k-env"}, cli{}, "https://live", "k-env"},
		{map[string]string{xdg: with[xdg], named: "test"}, cli{}, "https://test", "k-test"},
		{map[string]string{xdg: with[xdg], api: "https://env"}, cli{}, "https://env", ""},
		{full, cli{}, "https://env", "k-env"},
		{full, cli{Profile: "test"}, "https://test", "k-test"},
		{full, cli{Profile: "open"}, "https://open", "k-env"},
		{with, cli{API: "https://flag"}, "https://flag", ""},
		{with, cli{API: "https://flag", Profile: "test"}, "https://flag", ""},
		{with, cli{Profile: "test", APIKey: "k-flag"}, "https://test", "k-flag"},
	} {
		s, err := settle(&k.cli, machine{getenv: func(name string) string { return k.env[name] }})
		if err != nil || s.API != k.api || s.key != k.key || s.HasKey != (k.key != "") {
			t.Errorf("%v %+v: %q with the key %q, %v", k.env, k.cli, s.API, s.key, err)
		}
	}
	for content, says := range map[string]string{
		"profiles: [": "is not a valid config file", "profile: x": "unknown field",
		"profiles: {a: {api: https://a, key: [SECRET]}}": "is not a valid config file",
		"default: gone": `there is no profile "gone"`,
	} {
		write(t, file, content)
		_, err := settle(&cli{}, machine{getenv: func(name string) string { return with[name] }})
		if err == nil || exitCode(err) != exitUsage || !strings.Contains(err.Error(), says) ||
			strings.Contains(err.Error(), "SECRET") ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", content, err)
		}
	}
}

// TestBrokenConfig: a config file that cannot be used hinders only who needs it.
func TestBrokenConfig(t *testing.T) {
	home := emptyHome(t)
	c := with(t, "")
	c.env["HOME"], c.stdin = home, manifest1
	file := filepath.Join(home, ".config", "archivist", "config.yaml")
	for _, content := range []string{"profiles: [", "default: gone"} {
		write(t, file, content)
		c.want(t, "manifest check -", 0, "accepted")
		c.want(t, "help config", 0, "Config file")
		c.want(t, "queue", exitUsage, file)
	}
	c.want(t, "queue --api http://127.0.0.1:1", 7, "does not answer")
}

// TestKeyIsNotPrinted: archivist config says where the key is from, and a file that
// others can read is warned of.
func TestKeyIsNotPrinted(t *testing.T) {
	home := emptyHome(t)
	file := filepath.Join(home, ".config", "archivist", "config.yaml")
	write(t, file, "default: live\nprofiles:\n  live: {api: https://live, key: SECRET}\n")
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	c := &console{ctx: t.Context(), env: map[string]string{"HOME": home}}
	for _, line := range []string{"config", "config --json all", "--api-key SECRET config"} {
		code := c.run(line)
		if text := c.out.String() + c.err.String(); code != 0 || strings.Contains(text, "SECRET") ||
			!strings.Contains(text, "https://live") ||
			!strings.Contains(text, "chmod 600") {
			t.Errorf("%s: %d %s", line, code, text)
		}
	}
}
