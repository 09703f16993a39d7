package e2e

import "testing"

// miniStackOnly leaves a test out on LocalStack's core: what it tests is our own code, which
// calls no service there in a way that the other tests do not. The lane stays short.
func miniStackOnly(t *testing.T) {
	t.Helper()
	if *core {
		t.Skip("runs on MiniStack; nothing in it depends on the emulator")
	}
}
