package doctor_test

import "testing"

// TestHealthy: a world at rest, and one in the middle of its work, have no findings.
func TestHealthy(t *testing.T) {
	settled(t).finds(false)
	busy(t).finds(false)
}
