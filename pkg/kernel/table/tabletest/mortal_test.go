package tabletest

import (
	"errors"
	"net/http"
	"testing"
)

// TestMortal: calls before that of its death have their effects, that one has it if it is to, later ones have none.
func TestMortal(t *testing.T) {
	for _, after := range []bool{false, true} {
		m, effects := &Mortal{At: 3, After: after}, 0
		want := 2
		if after {
			want = 3
		}
		for n := 1; n <= 5; n++ {
			err := m.Do("", func() error { effects++; return nil })
			if died := n >= 3; errors.Is(err, ErrDead) != died || m.Dead() != died {
				t.Errorf("call %d, after it %v: %v, dead %v", n, after, err, m.Dead())
			}
		}
		if effects != want || m.Calls() != 5 || m.Status("GET object", "a") != http.StatusServiceUnavailable {
			t.Errorf("after it %v: %d effects of %d calls, want %d", after, effects, m.Calls(), want)
		}
	}
	lives := &Mortal{}
	if err := lives.Do("", func() error { return nil }); err != nil || lives.Dead() || lives.Status("", "") != 0 {
		t.Errorf("without a call at which it dies: %v, dead %v", err, lives.Dead())
	}
}

// TestCrashes: a process of three calls dies before and after each of them, and then lives.
func TestCrashes(t *testing.T) {
	var died []int
	effects := 0
	Crashes(t, 3, func(_ *testing.T, m *Mortal) {
		for range 3 {
			_ = m.Do("", func() error { effects++; return nil })
		}
		if m.Dead() {
			died = append(died, m.At)
		}
	})
	if len(died) != 6 || died[0] != 1 || died[5] != 3 || effects != 0+1+1+2+2+3+3+3 {
		t.Errorf("died at %v, with %d effects", died, effects)
	}
}
