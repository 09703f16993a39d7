package archives

import (
	"os"
	"strings"
	"testing"

	"archivist/cmd/archivist/command/commandtest"
)

// played are tasks of which one hands its outputs to the other.
const played = `
- name: index
  script: |
    cd "$ARCHIVIST_CHECKOUT" && cat chapter.txt >"$ARCHIVIST_OUTPUTS/index"; ls -A; readlink link
    echo "$FORMAT $PASSWORD of $ARCHIVIST_ARCHIVE at $ARCHIVIST_REVISION"
  shell: sh
  secrets: {PASSWORD: archivist/tasks/maps/password}
  parameters: {FORMAT: {options: [pdf, epub], default: pdf}}
- name: site
  command: cat "$ARCHIVIST_INPUTS/index/index"; echo wrong >&2; exit 3
  depends: index
  inputs: index
- name: none
`

// TestWorkflowRun: a task is played with the files of the working copy, its parameters and secrets, and what it leaves
// is found by another one. What cannot be played is refused before it begins.
func TestWorkflowRun(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("TMPDIR", t.TempDir())
	for _, folder := range []string{"maps/_workflows", "maps/.git"} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	commandtest.Write(t, "maps/_workflows/all.yaml", played)
	commandtest.Write(t, "maps/.git/config", "of Git")
	commandtest.Write(t, "maps/chapter.txt", "The harbour\n")
	if err := os.Symlink("chapter.txt", "maps/link"); err != nil {
		t.Fatal(err)
	}
	console := with(t, "")
	console.Env["PATH"] = os.Getenv("PATH")

	const index = "archive workflow run index maps --outputs out --revision 7 --set FORMAT=epub"
	console.Want(t, index, 4, "the secret archivist/tasks/maps/password for PASSWORD: it is read from the environment")
	console.Env["PASSWORD"] = "very secret"
	console.Want(t, index, 0, "_workflows\nchapter.txt\nlink\nchapter.txt\nepub *** of maps at 7\n")
	console.Want(t, index, 4, "--outputs: out/index is not empty; remove it first")
	console.Want(t, "archive workflow run site maps --inputs out", 4, "The harbour\n")
	console.Want(t, "archive workflow run site maps --inputs out", 4, "wrong\n")
	console.Want(t, "archive workflow run site maps", 4, "the input index is an empty folder")
	console.Want(t, "archive workflow run site maps --inputs other", 3, "there is no folder other/index")
	console.Want(t, "archive workflow run sit maps", 3, "did you mean site?")
	console.Want(t, "archive workflow run none maps", 4, "nothing to run here")
	console.Want(t, "archive workflow run index maps --set FORMAT=doc", 2, "expected one of pdf, epub")
	console.Want(t, "archive workflow run index maps --revision 0", 2, "--revision: expected at least 1")
	data, err := os.ReadFile("out/index/index")
	if err != nil || string(data) != "The harbour\n" {
		t.Errorf("kept: %q, %v", data, err)
	}
	left, err := os.ReadDir(os.TempDir())
	for _, e := range left {
		if strings.HasPrefix(e.Name(), "archivist-workflow-") {
			t.Errorf("%s is left, %v", e.Name(), err)
		}
	}
}
