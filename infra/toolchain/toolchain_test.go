package toolchain

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"archivist/pkg/crash"
)

// TestNoCrashesInProduction: the functions that are deployed cannot be made to end
// their process; those of the local stack's tests can.
func TestNoCrashesInProduction(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	c := Checkout{Root: root, Log: t.Output()}
	for _, tags := range [][]string{nil, {"crash"}} {
		binary := filepath.Join(t.TempDir(), "bootstrap")
		if err := c.buildFunction(t.Context(), "run-stage", binary, runtime.GOARCH, tags...); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(binary)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []string{crash.Env, "(*Injector).points"} {
			if got, want := bytes.Contains(data, []byte(s)), len(tags) > 0; got != want {
				t.Errorf("with the tags %v the binary has %q: %v", tags, s, got)
			}
		}
	}
}
