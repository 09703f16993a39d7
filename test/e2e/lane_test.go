package e2e

import "testing"

// ownCode is why most tests run on one emulator only: they call no service in a way that
// others do not, and LocalStack's core takes several times as long for them.
const ownCode = "it tests code that does not depend on the emulator"

// miniStackOnly leaves a test out on LocalStack's core, for a reason.
func miniStackOnly(t *testing.T, why string) {
	t.Helper()
	if *core {
		t.Skip("runs on MiniStack only: " + why)
	}
}
