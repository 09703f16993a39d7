package e2e

import (
	"flag"
	"testing"
)

// The lanes: where the tests run.
const (
	process   = "process" // the system in this process
	ministack = "ministack"
	core      = "localstack" // LocalStack's open core
)

// A flag, no variable of the environment: go test would give the cached result of
// another lane.
var lane = flag.String("on", "", "where the system runs: process, ministack or localstack; none = run no test")

func onCore() bool    { return *lane == core }
func inProcess() bool { return *lane == process }

// miniStackOnly leaves the rest of a test out on LocalStack's core, for a reason.
func miniStackOnly(t *testing.T, why string) {
	t.Helper()
	if onCore() {
		t.Skip("runs on MiniStack only: " + why)
	}
}
