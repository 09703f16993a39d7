package localstack

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCheckTools: a missing or old program is named, with the version that is needed.
func TestCheckTools(t *testing.T) {
	for _, c := range []struct {
		python, want string // what python3 --version says; "" if there is none
	}{
		{"Python 3.10.0", ""},
		{"Python 3.9.2", "python3 is version 3.9; install Python 3.10 or newer"},
		{"Python 2.7.18", "python3 is version 2.7; install Python 3.10 or newer"},
		{"", "python3 was not found; install Python 3.10 or newer"},
	} {
		bin := t.TempDir()
		for command, says := range map[string]string{"python3": c.python, "node": "v22.1.0", "npm": "10.2.3"} {
			if says == "" {
				continue
			}
			if err := os.WriteFile(filepath.Join(bin, command), []byte("#!/bin/sh\necho "+says+"\n"),
				0o755); err != nil {
				t.Fatal(err)
			}
		}
		t.Setenv("PATH", bin)
		got := ""
		if err := CheckTools(t.Context()); err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%q: %q, expected %q", c.python, got, c.want)
		}
	}
}
