package storagesim

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"archivist/infra/toolchain"
	"archivist/localstack"
	"archivist/test/adversary/seeds"
)

var outside = flag.Bool("outside", false, "have a validator that is not ours validate both roots of each seed")

// TestOutsideValidator: what is left in both roots, after damage and its repair, is valid by a validator that is
// not ours.
func TestOutsideValidator(t *testing.T) {
	if !*outside {
		t.Skip("without -outside")
	}
	checkout, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	stack := &localstack.Stack{Checkout: toolchain.Checkout{Root: checkout, Log: os.Stderr}}
	if err := stack.InstallPython(t.Context()); err != nil {
		t.Fatal(err)
	}

	var roots []string
	played := seeds.Play(t, func(seed uint64) *world { return simulate(t, seed, mutant{damage: true, keeper: true}) },
		func(_ uint64, w *world) error {
			for _, root := range []string{storageRoot, copyRoot} {
				if len(w.twin.Names(root+"/"+prefixOf(ark))) > 0 {
					roots = append(roots, w.export(t, root))
				}
			}
			return w.check.err
		})
	objects, err := stack.Validate(t.Context(), roots...)
	if err != nil || objects != len(roots) || objects == 0 {
		t.Errorf("%d objects in %d roots: %v", objects, len(roots), err)
	}
	t.Logf("%s: %d objects are valid", played, objects)
}

// export writes a root into a folder.
func (w *world) export(t *testing.T, root string) string {
	dir := t.TempDir()
	for _, name := range w.twin.Names(root + "/") {
		data, _ := w.twin.Object(name)
		to := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, root)
}
