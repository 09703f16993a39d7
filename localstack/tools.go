package localstack

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
)

// tools are the programs that the local AWS and the CDK need, beside Go.
var tools = []struct {
	command      string
	major, minor int
	name         string
}{
	{"python3", 3, 10, "Python"},
	{"node", 20, 0, "Node.js"},
	{"npm", 9, 0, "npm (it comes with Node.js)"},
}

// CheckTools fails with the first program that is missing or too old. It is cheap, and comes before
// installations that would fail in the middle with another message.
func CheckTools(ctx context.Context) error {
	for _, t := range tools {
		out, err := exec.CommandContext(ctx, t.command, "--version").Output()
		if err != nil {
			return fmt.Errorf("%s was not found; install %s %d.%d or newer", t.command, t.name,
				t.major, t.minor)
		}

		if major, minor := versionIn(string(out)); major < t.major || major == t.major &&
			minor < t.minor {
			return fmt.Errorf("%s is version %d.%d; install %s %d.%d or newer", t.command, major,
				minor, t.name,
				t.major, t.minor)
		}
	}
	return nil
}

// version is the first version that a program names: its major and its minor number.
var version = regexp.MustCompile(`(\d+)\.(\d+)`)

// versionIn finds the version in what a program says of itself, e.g. "Python 3.12.3" or "v20.11.0"; 0.0 if there
// is none, which is always too old.
func versionIn(text string) (major, minor int) {
	if m := version.FindStringSubmatch(text); m != nil {
		major, _ = strconv.Atoi(m[1])
		minor, _ = strconv.Atoi(m[2])
	}
	return major, minor
}
