package journal

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// records opens a journal and returns what it has.
func records(t *testing.T, path string) (*Journal, []string) {
	t.Helper()
	var got []string
	j, err := Open(path, func(record []byte) error { got = append(got, string(record)); return nil })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j, got
}

// TestCutAtEachByte: however much of the file is there, the complete records are found, and what is appended after
// that is found, too.
func TestCutAtEachByte(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	all := []string{"one", "", "three: ü", strings.Repeat("x", 50)}
	j, _ := records(t, path)
	for _, r := range all {
		if err := j.Append([]byte(r)); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(data) + 1 {
		cut := filepath.Join(t.TempDir(), "journal")
		if err := os.WriteFile(cut, data[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		want := slices.Clone(all[:bytes.Count(data[:n], []byte("\n"))])
		j, got := records(t, cut)
		if !slices.Equal(got, want) {
			t.Fatalf("of %d bytes: %q, want %q", n, got, want)
		}
		if err := j.Append([]byte("later")); err != nil {
			t.Fatal(err)
		}
		if _, got := records(t, cut); !slices.Equal(got, append(want, "later")) {
			t.Fatalf("of %d bytes, and one more record: %q", n, got)
		}
	}
}

// TestCompact: the new records are there, and later ones follow them. If they cannot be written, all old ones are
// there.
func TestCompact(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j, _ := records(t, path)
	for n := range 3 {
		if err := j.Append(fmt.Append(nil, n)); err != nil {
			t.Fatal(err)
		}
	}
	broken := errors.New("broken")
	err := j.Compact(func(yield func([]byte, error) bool) { _ = yield([]byte("half"), nil) && yield(nil, broken) })
	if !errors.Is(err, broken) {
		t.Errorf("a compaction that fails: %v", err)
	}
	if _, got := records(t, path); len(got) != 3 {
		t.Errorf("after a compaction that failed: %q", got)
	}
	err = j.Compact(func(yield func([]byte, error) bool) { yield([]byte("all"), nil) })
	if err == nil {
		err = j.Append([]byte("more"))
	}
	if _, got := records(t, path); err != nil || !slices.Equal(got, []string{"all", "more"}) {
		t.Errorf("after a compaction: %q, %v", got, err)
	}
}

// TestRefused: a record with a line break is refused, and one that its reader refuses is named by its line.
func TestRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j, _ := records(t, path)
	if err := j.Append([]byte("a\nb")); err == nil {
		t.Error("a record with a line break was appended")
	}
	if err := errors.Join(j.Append([]byte("good")), j.Append([]byte("bad"))); err != nil {
		t.Fatal(err)
	}
	_, err := Open(path, func(record []byte) error {
		if string(record) == "bad" {
			return errors.New("not understood")
		}
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "line 2: not understood") {
		t.Errorf("a record that is not understood: %v", err)
	}
}
