package main

import (
	"os"
	"strings"
	"testing"
)

// TestMutantsApply: what each mutant replaces is in its file, once. Otherwise it would break nothing.
func TestMutantsApply(t *testing.T) {
	all, err := parse(list)
	if err != nil || len(all) < 100 {
		t.Fatalf("%d mutants, %v", len(all), err)
	}
	for _, m := range all {
		code, err := os.ReadFile("../../" + m.file)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(code), m.old); n != 1 {
			t.Errorf("%s: what %q replaces is there %d times", m.file, m.wrong, n)
		}
	}
}
