package plan

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestParts: every part says what only it can find, and ends.
func TestParts(t *testing.T) {
	for _, s := range Sets() {
		var names []string
		for _, p := range Of(s, Commit{Hash: "0123456789"}) {
			if p.Name == "" || p.Command == "" || p.Finds == "" || p.Limit == 0 {
				t.Errorf("%s: %q lacks a field", s, p.Name)
			}
			if strings.Contains(p.Command, "$") {
				t.Errorf("%s: %s: the command has an unknown variable: %s", s, p.Name, p.Command)
			}
			if slices.Contains(names, p.Name) {
				t.Errorf("%s: there are two parts %q", s, p.Name)
			}
			names = append(names, p.Name)
		}
	}
}

// TestEveryTestIsPlayed: there is no test that neither make test nor make test-more runs.
func TestEveryTestIsPlayed(t *testing.T) {
	const root = "../.."
	declared := regexp.MustCompile(`(?m)^func (Test[A-Z0-9]\w*)\(t \*testing\.T\)`)
	tests := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		hidden := strings.HasPrefix(d.Name(), ".") && path != root
		if d.IsDir() && (hidden || d.Name() == "node_modules" || d.Name() == "testdata" || d.Name() == "cdk.out") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		for _, m := range declared.FindAllStringSubmatch(string(text), -1) {
			tests++
			if !Plays(filepath.ToSlash(dir), m[1]) {
				t.Errorf("no part plays %s of %s", m[1], dir)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if tests < 1000 {
		t.Fatalf("found only %d tests", tests)
	}
}

// TestPlays: patterns of packages and of tests are read as go test does.
func TestPlays(t *testing.T) {
	p := Part{Command: "tool with dynamodb go test -v -run ^TestA|TestB/part -skip TestAll ./pkg/... ./test"}
	for _, c := range []struct {
		dir, test string
		want      bool
	}{
		{"pkg/ingest/queue", "TestA", true}, {"pkg", "TestB", true}, {"test", "TestA", true},
		{"pkg/ingest/queue", "TestC", false}, {"pkg/ingest/queue", "TestAll", false},
		{"test/e2e", "TestA", false}, {"pkgs", "TestA", false},
	} {
		if got := p.plays(c.dir, c.test); got != c.want {
			t.Errorf("%s %s: %t, want %t", c.dir, c.test, got, c.want)
		}
	}
	if (Part{Command: "go vet ./..."}).plays("pkg/ingest/queue", "TestA") {
		t.Error("vet plays no test")
	}
}

// TestSeeds: commits have seeds of their own.
func TestSeeds(t *testing.T) {
	for hash, want := range map[string]uint64{"": 1, "00000000ff": 1, "00000001ff": 100_001,
		"ffffffff": 429496729500001} {
		if got := (Commit{hash}).Seed(); got != want {
			t.Errorf("%q: first seed %d, want %d", hash, got, want)
		}
	}
	if got := (Commit{"00000006"}).Quarter(); got != 2 {
		t.Errorf("quarter %d, want 2", got)
	}
}
