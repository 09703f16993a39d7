package main

import "testing"

// TestHasPrograms: the layer of programs for tasks is made for each deployment that has it, however the setting is
// given.
func TestHasPrograms(t *testing.T) {
	for _, c := range []struct {
		args []string
		has  bool
	}{
		{[]string{"-c", "naan=99999"}, false},
		{[]string{"-c", "naan=99999", "-c", "revisionQueue=true"}, true},
		{[]string{"--context", "revisionQueue=true"}, true},
		{[]string{"--context=revisionQueue=true"}, true},
		{[]string{"-crevisionQueue=true"}, true},
		{[]string{"-c", "revisionQueue=true", "-c", "taskPrograms=none"}, false},
	} {
		if got := hasPrograms(c.args); got != c.has {
			t.Errorf("%q: %v", c.args, got)
		}
	}
}
