//go:build linux

package runner

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

const envShielded = "RUNNER_TEST_SHIELDED"

// TestShield: a process that a task started cannot read the environment of the runner. Root can read all, so the
// test gives that up, in a process of its own.
func TestShield(t *testing.T) {
	if os.Getenv(envShielded) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestShield$", "-test.v")
		cmd.Env = append(os.Environ(), envShielded+"=secret")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	if os.Getuid() == 0 {
		if err := syscall.Setuid(65534); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, code := syscall.RawSyscall(syscall.SYS_PRCTL, prSetDumpable, 1, 0); code != 0 {
		t.Fatal(code)
	}
	look := func() string {
		cmd := exec.Command("cat", "/proc/"+strconv.Itoa(os.Getpid())+"/environ")
		cmd.Dir, cmd.Env = "/", []string{}
		out, _ := cmd.CombinedOutput()
		return string(out)
	}
	if !strings.Contains(look(), envShielded+"=secret") {
		t.Fatal("without a shield a child does not see the environment: the test shows nothing")
	}
	if err := Shield(); err != nil {
		t.Fatal(err)
	}
	if seen := look(); !strings.Contains(seen, "Permission denied") {
		t.Errorf("a child sees %q", seen)
	}
}
