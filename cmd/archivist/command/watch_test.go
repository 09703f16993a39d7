package command

import (
	"testing"
	"time"
)

func TestPause(t *testing.T) {
	total := time.Duration(0)
	for n := range 100 {
		if Pause(n) < 500*time.Millisecond || Pause(n) > 10*time.Second || n > 0 && Pause(n) < Pause(n-1) {
			t.Errorf("%d: %s", n, Pause(n))
		}
		total += Pause(n)
	}
	if total < 10*time.Minute {
		t.Errorf("100 looks in %s", total)
	}
}
