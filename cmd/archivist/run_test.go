package main

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"archivist/cmd/archivist/command"
	"archivist/cmd/archivist/command/commandtest"
	"archivist/pkg/kernel/fault"
)

// with makes a console for the API at a URL.
func with(t *testing.T, url string) *commandtest.Console { return commandtest.New(t, url, newProgram) }

// TestUsage: a command line that cannot be run is answered by exit code 2 and one line
// that says what to do next.
func TestUsage(t *testing.T) {
	commandtest.EmptyHome(t)
	for line, says := range map[string]string{
		"job list -b x --message y --api http://x": "of the filters, --batch takes --state and --callback only",
		"job":                                   "run archivist job --help",
		"queue --api nonsense":                  `--api: "nonsense" is not the URL of an API; expected http://HOST`,
		"queue --api ftp://x/y":                 `"ftp://x/y" is not the URL of an API`,
		"job delete x --reason":                 "--reason: a value is missing; run archivist job delete --help",
		"nonsense":                              "unexpected argument nonsense; run archivist --help",
		"job show --foo":                        "unknown flag --foo; run archivist job show --help",
		"job show":                              "run archivist job show --help",
		"help nonsense":                         "topics: actions, config, environment, exit-codes, formatting",
		"job list -c maps --state faild":        `no state "faild"; expected one of Pending, Held`,
		"batch list -c maps --state notify":     `"notify"; expected one of Pending, Held, Processing, Reporting`,
		"completion tcsh":                       `"bash","zsh","fish"`,
		"queue":                                 "run in the folder of `make run` or `make demo`, or set ARCHIVIST_API",
		"demo --port 4666":                      "archivist-demo, which is not beside this one",
		"job list -c maps":                      "no API is set",
		"explain a//b --api http://127.0.0.1:1": `"a//b" is not the id of anything`,
		"batch show A B --api http://x":         "give one batch; several are followed with --watch",
		"operation show A -w --jobs":            "can't be used together",
		"object show doi:1/2 --api http://127.0.0.1:1":    "an ARK has the form",
		"object get ark:/99999/fk4x -o - --api http://x":  "name its path",
		"submit map.tif -c maps --api http://127.0.0.1:1": `there is no file or folder "map.tif" here`,
		"job list -c maps --json id,nope --api http://x":  `--json: there is no field "nope"; expected some of id, batch`,
		"completion bash --json all":                      "prints no JSON",
		"object reindex --api http://x":                   "give either an ARK or --all",
		"research review p e c --accept --lease l --reason r --hit 0 --api http://127.0.0.1:1": "--hit 0: " +
			"expected a number from 1",
	} {
		c := with(t, "")
		if code := c.Run(line); code != command.ExitUsage || strings.Count(c.Err.String(), "\n") != 1 ||
			!strings.Contains(c.Err.String(), says) ||
			c.Out.Len() > 0 {
			t.Errorf("%s: exit code %d\n%s%s", line, code, &c.Out, &c.Err)
		}
	}
}

// TestRenamed: a command of an earlier release is answered by the one that has come in its place, which there is.
func TestRenamed(t *testing.T) {
	commandtest.EmptyHome(t)
	old := []string{"batch watch A B", "job watch A", "operation watch A", "archive watch maps", "hold list -L 3",
		"storage pause --reason x", "storage resume --reason x", "manifest check -", "bag check b",
		"consumer dry-run X", "replay list s", "replay show R", "replay watch R", "replay cancel R --reason x",
		"researcher -p p", "statistics", "statistics -c maps --days 3", "hold", "storage", "replay --help", "manifest",
		"bag"}
	for group, commands := range map[string]string{
		"preservation": "status report verify", "workflow": "lint graph run plan schema",
		"item":     "list show history create change forget import event revoke restart stop prioritize release",
		"revision": "list show notify plan graph explain",
		"task":     "list show logs outputs output run start rerun cancel explain",
		"archive":  "explain", "component": "explain", "event": "explain", "research": "explain",
	} {
		for name := range strings.FieldsSeq(commands) {
			old = append(old, group+" "+name+" x/1", "--api http://x --profile y "+group+" "+name)
		}
	}

	model := newProgram().Parser(command.Machine{}, func(int) {}).Model.Node
	answered := map[string]bool{}
	for _, line := range old {
		c := with(t, "")
		code := c.Run(line)
		_, now, found := strings.Cut(strings.TrimSpace(c.Err.String()), " is now: archivist ")
		node, _ := commandOf(model, strings.Fields(now))
		isGroup := line == "storage" || line == "replay --help" // their commands have other names
		if code != command.ExitUsage || !found || node == model || len(node.Children) > 0 != isGroup {
			t.Errorf("%s: exit code %d, %s", line, code, &c.Err)
		}
		for name := range renamed {
			answered[name] = answered[name] || strings.Contains(c.Err.String(), "archivist "+name+" ")
		}
	}
	for name := range renamed {
		if !answered[name] {
			t.Errorf("no old command is answered by the entry of %s", name)
		}
	}

	c := with(t, "http://127.0.0.1:1")
	c.Want(t, "item show x", command.ExitUsage, "archivist item show is now: archivist component item show\n")
	c.Want(t, "item --help", command.ExitUsage, "archivist item is now: archivist component item\n")
	c.Want(t, "task explain maps/12/pdf", command.ExitUsage, "archivist explain ARCHIVE/REVISION/TASK")
	c.Want(t, "component show item --nope", command.ExitUsage, "unknown flag --nope")
}

// TestUnreachable: an API that does not answer is one line with the URL.
func TestUnreachable(t *testing.T) {
	c := with(t, "http://127.0.0.1:1/prod")
	if code := c.Run("queue"); code != 7 || strings.Count(c.Err.String(), "\n") != 1 ||
		!strings.Contains(c.Err.String(), "does not answer at http://127.0.0.1:1/prod") {
		t.Errorf("%d %s", code, &c.Err)
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
		c.Width = k.width
		c.Env[k.env] = "dumb"
		c.Want(t, "config", 0, "token")
		if got := strings.Contains(c.Out.String(), code); got != k.colours {
			t.Errorf("%+v: %q", k, c.Out.String())
		}
	}
}

// TestInterrupted: ^C ends a command quietly.
func TestInterrupted(t *testing.T) {
	c := with(t, "http://127.0.0.1:1")
	ctx, cancel := context.WithCancel(t.Context())
	c.Ctx = ctx
	cancel()
	for _, line := range []string{"queue", "batch show B --watch", "object get ark:/99999/fk4x",
		"submit https://example.org/a -c maps"} {
		if code := c.Run(line); code != command.ExitInterrupted || c.Err.Len()+c.Out.Len() > 0 {
			t.Errorf("%s: exit code %d, %s%s", line, code, &c.Out, &c.Err)
		}
	}
}

// TestExitCodes: the topic lists each code, and no other.
func TestExitCodes(t *testing.T) {
	c := with(t, "")
	if code := c.Run("help exit-codes"); code != 0 {
		t.Fatal(code, c.Err.String())
	}
	documented := map[int]bool{}
	for line := range strings.Lines(c.Out.String()) {
		if code, err := strconv.Atoi(strings.Fields(line + " x")[0]); err == nil {
			documented[code] = true
		}
	}
	want := map[int]bool{
		0:                       true,
		fault.Unknown.Exit:      true,
		command.ExitUsage:       true,
		command.ExitOtherNames:  true,
		command.ExitInterrupted: true,
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
		if code := c.Run(line); code != 0 || c.Out.Len() == 0 || c.Err.Len() > 0 {
			t.Errorf("%q: exit code %d, %s%s", line, code, &c.Out, &c.Err)
		}
		for text := range strings.Lines(c.Out.String()) {
			if n := len([]rune(strings.TrimSpace(text))); n > 130 {
				t.Errorf("%q: a line of %d characters: %s", line, n, text)
			}
		}
	}
	c.Want(t, "--version", 0, "archivist ")
}

// TestBrokenConfig: a config file that cannot be used hinders only who needs it.
func TestBrokenConfig(t *testing.T) {
	home := commandtest.EmptyHome(t)
	c := with(t, "")
	c.Env["HOME"], c.Stdin = home, manifest1
	file := filepath.Join(home, ".config", "archivist", "config.yaml")
	for _, content := range []string{"profiles: [", "default: gone"} {
		commandtest.Write(t, file, content)
		c.Want(t, "batch check-manifest -", 0, "accepted")
		c.Want(t, "help config", 0, "Config file")
		c.Want(t, "queue", command.ExitUsage, file)
	}
	c.Want(t, "queue --api http://127.0.0.1:1", 7, "does not answer")
}

// TestTokenIsNotPrinted: archivist config says where the token is from, and a file that
// others can read is warned of.
func TestTokenIsNotPrinted(t *testing.T) {
	home := commandtest.EmptyHome(t)
	file := filepath.Join(home, ".config", "archivist", "config.yaml")
	commandtest.Write(t, file, "default: live\nprofiles:\n  live: {api: https://live, token: SECRET}\n")
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	c := with(t, "")
	c.Env = map[string]string{"HOME": home}
	for _, line := range []string{"config", "config --json all"} {
		code := c.Run(line)
		if text := c.Out.String() + c.Err.String(); code != 0 || strings.Contains(text, "SECRET") ||
			!strings.Contains(text, "https://live") ||
			!strings.Contains(text, "chmod 600") {
			t.Errorf("%s: %d %s", line, code, text)
		}
	}
}
