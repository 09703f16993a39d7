package test

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"testing"
)

// TestMakefile: the commands of each target use no variable that nobody sets. Without
// this, a command whose program is such a variable is found by the target's first user.
func TestMakefile(t *testing.T) {
	text, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	var targets []string
	for _, m := range regexp.MustCompile(`(?m)^([a-z0-9-]+):`).FindAllStringSubmatch(string(text), -1) {
		targets = append(targets, m[1])
	}
	if len(targets) < 10 {
		t.Fatalf("found the targets %v only", targets)
	}

	given := []string{"ARGS", "CONTEXT", "FOLDER", "FUNCTION", "ONLY"} // by who calls make
	for _, target := range targets {
		out, err := exec.Command("make", "-C", "..", "-n", "--warn-undefined-variables", target).CombinedOutput()
		if err != nil {
			t.Errorf("make -n %s: %v\n%s", target, err, out)
		}
		for _, m := range regexp.MustCompile(`undefined variable .(\w+)`).FindAllStringSubmatch(string(out), -1) {
			if !slices.Contains(given, m[1]) {
				t.Errorf("make %s: the variable %s is not defined", target, m[1])
			}
		}
	}
}

// TestPipesFail: a failed test must not be hidden by the command that formats its output.
func TestPipesFail(t *testing.T) {
	text, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	pipes := regexp.MustCompile(`(?m)^\t.* \| .*$`).FindAllString(string(text), -1)
	if len(pipes) == 0 {
		t.Fatal("no pipe was found")
	}
	for _, line := range pipes {
		if !regexp.MustCompile(`^\t@?set -o pipefail; `).MatchString(line) {
			t.Errorf("the status of this pipe is that of its last command only: %s", line)
		}
	}
	if !regexp.MustCompile(`(?m)^SHELL = bash$`).Match(text) {
		t.Error("the shell must be bash, which has pipefail")
	}
}
