package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestContainers: the files of containers made by other programs become those of objects, and a wrong one is refused
// with the name of the entry.
func TestContainers(t *testing.T) {
	begin(t)
	src, from := newSource(t), t.TempDir()
	files := map[string]string{"letters/1.txt": "Dear Anna", "letters/Zürich.txt": "Dear Bert", "empty.txt": "",
		"map.bin": strings.Repeat("0123456789abcdef", 200_000)}
	for name, text := range files {
		path := filepath.Join(from, "deposit", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}

	packed := map[string][]string{
		"deposit.zip":     {"python3", "-m", "zipfile", "-c", "deposit.zip", "deposit"},
		"deposit.tar.bz2": {"python3", "-m", "tarfile", "-c", "deposit.tar.bz2", "deposit"},
		"deposit.tgz":     {"tar", "-czf", "deposit.tgz", "deposit"},
	}
	jobs := map[string]string{}
	for name, command := range packed {
		cmd := exec.Command(command[0], command[1:]...)
		cmd.Dir = from
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", name, err, out)
		}
		data, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			t.Fatal(err)
		}
		_, jobs[name] = submit(t, src.put("/"+name, data), "")
	}
	_, jobs["cut.zip"] = submit(t, src.put("/cut.zip", []byte("PK\x03\x04 and no more")), "")

	for name := range packed {
		until(t, name+" is preserved", soon, func() bool { return jobOf(t, jobs[name]).State == "Completed" })
		j := jobOf(t, jobs[name])
		for file, text := range files {
			if got := content(t, j, "producer/deposit/"+file); !bytes.Equal(got, []byte(text)) {
				t.Errorf("%s: %s has %d bytes; expected %d", name, file, len(got), len(text))
			}
		}
	}
	until(t, "the wrong one fails", soon, func() bool { return jobOf(t, jobs["cut.zip"]).State == "Failed" })
	if j := jobOf(t, jobs["cut.zip"]); !strings.Contains(j.Message, "not a complete zip file") {
		t.Errorf("the message is %q", j.Message)
	}
}
