package toolchain

import (
	"archive/zip"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"archivist/pkg/app/crash"
)

// TestNoCrashesInProduction: the functions that are deployed cannot be made to end
// their process; those of the local stack's tests can.
func TestNoCrashesInProduction(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	c := Checkout{Root: root, Log: t.Output()}
	for _, tags := range [][]string{{"lambda.norpc"}, {"lambda.norpc", "crash"}} {
		binary := filepath.Join(t.TempDir(), "bootstrap")
		if err := c.static(t.Context(), "./functions/run-stage", binary, runtime.GOARCH, tags...); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(binary)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []string{crash.Env, "(*Injector).points"} {
			if got, want := bytes.Contains(data, []byte(s)), len(tags) > 1; got != want {
				t.Errorf("with the tags %v the binary has %q: %v", tags, s, got)
			}
		}
	}
}

// TestAllFunctionsAreBuilt: each folder of functions is one that is deployed.
func TestAllFunctionsAreBuilt(t *testing.T) {
	folders, err := os.ReadDir("../../functions")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, f := range folders {
		found = append(found, f.Name())
	}
	if !slices.Equal(found, functions) {
		t.Errorf("the folders are %q, built are %q", found, functions)
	}
}

// TestZipped: a program is the file bootstrap of its zip file, which is made again only after a change.
func TestZipped(t *testing.T) {
	program, into := filepath.Join(t.TempDir(), "api"), filepath.Join(t.TempDir(), "api.zip")
	for _, text := range []string{"one", "another"} {
		if err := os.WriteFile(program, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := zipped(program, into); err != nil {
			t.Fatal(err)
		}
		if err := zipped(program, into); err != nil {
			t.Fatal(err)
		}
		z, err := zip.OpenReader(into)
		if err != nil {
			t.Fatal(err)
		}
		f, err := z.Open("bootstrap")
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(f)
		if err != nil || string(got) != text || z.File[0].Mode().Perm() != 0o755 {
			t.Errorf("it has %q with %s, %v", got, z.File[0].Mode(), err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOnce: of those who begin at once, one does it and the others wait; again, it is done after a change.
func TestOnce(t *testing.T) {
	c := Checkout{Root: t.TempDir()}
	mark, file := c.Path("deep", "mark"), c.Path("wanted")
	for round, text := range []string{"one", "one", "another"} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		var done, under atomic.Int64
		for range 5 {
			all.Go(func() {
				err := c.Once(mark, file, func() error {
					if under.Add(1) > 1 {
						t.Error("two do it at once")
					}
					done.Add(1)
					under.Add(-1)
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if want := int64([]int{1, 0, 1}[round]); done.Load() != want {
			t.Errorf("round %d: it was done %d times, expected %d", round, done.Load(), want)
		}
	}
}
