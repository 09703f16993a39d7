package archives

import (
	"os"
	"path/filepath"
	"testing"

	"archivist/pkg/kernel/fault"
)

// TestLintLinks: what an archive does not follow is not taken for a definition.
func TestLintLinks(t *testing.T) {
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	file, folder, tasks := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "tasks")
	must(os.MkdirAll(filepath.Join(file, "_workflows"), 0o755))
	must(os.MkdirAll(tasks, 0o755))
	must(os.WriteFile(filepath.Join(tasks, "a.yaml"), []byte("- name: a\n"), 0o644))
	must(os.WriteFile(filepath.Join(file, "_workflows", "b.yaml"), []byte("- name: b\n"), 0o644))
	must(os.Symlink(filepath.Join(tasks, "a.yaml"), filepath.Join(file, "_workflows", "a.yaml")))
	must(os.Symlink(tasks, filepath.Join(folder, "_workflows")))
	for _, dir := range []string{file, folder} {
		with(t, "http://127.0.0.1:1").Want(t, "archive workflow lint "+dir, fault.Edges[fault.Invalid].Exit,
			"is a link")
	}
	with(t, "http://127.0.0.1:1").Want(t, "archive workflow lint "+tasks, 0, "")
}
