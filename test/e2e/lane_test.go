package e2e

import (
	"flag"
	"testing"
)

// The lanes: the emulators on which the tests run.
const (
	ministack = "ministack"
	core      = "localstack" // LocalStack's open core
)

// A flag, no variable of the environment: go test would give the cached result of
// another lane.
var lane = flag.String("on", "", "emulator to deploy to: ministack or localstack; none = run no test")

func onCore() bool { return *lane == core }

// ownCode is why most tests run on one emulator only: they call no service in a way that
// others do not, and LocalStack's core takes several times as long for them.
const ownCode = "it tests code that does not depend on the emulator"

// miniStackOnly leaves a test out on LocalStack's core, for a reason.
func miniStackOnly(t *testing.T, why string) {
	t.Helper()
	if onCore() {
		t.Skip("runs on MiniStack only: " + why)
	}
}
