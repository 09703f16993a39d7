package objects

import (
	"bytes"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"archivist/cmd/archivist/command"
	"archivist/cmd/archivist/command/commandtest"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/fault"
)

// archive serves one object's files; the content of a path is the path. It returns a
// console for it, in an empty folder.
func archive(t *testing.T, wrong string, paths ...string) *commandtest.Console {
	t.Helper()
	answer := func(w http.ResponseWriter, v any) { _ = json.NewEncoder(w).Encode(v) }
	mux := http.NewServeMux()
	mux.HandleFunc(
		"GET /v1/objects/99999/fk4x",
		func(w http.ResponseWriter, _ *http.Request) { answer(w, v1.Object{ARK: "ark:/99999/fk4x", Version: 1}) },
	)
	mux.HandleFunc("GET /v1/objects/99999/fk4x/versions/1/files", func(w http.ResponseWriter, _ *http.Request) {
		var list v1.List[v1.File]
		for _, p := range paths {
			sum := sha512.Sum512([]byte(p))
			list.Items = append(
				list.Items,
				v1.File{
					Path:    p,
					Size:    int64(len(p)),
					Digests: map[string]string{"sha512": hex.EncodeToString(sum[:])},
				},
			)
		}
		answer(w, list)
	})
	mux.HandleFunc("GET /v1/objects/99999/fk4x/versions/1/content", func(w http.ResponseWriter, r *http.Request) {
		p := r.URL.Query().Get("path")
		if p == wrong {
			p += "!"
		}
		_, _ = w.Write([]byte(p))
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	t.Chdir(t.TempDir())
	return with(t, srv.URL)
}

const getAll = "object get ark:/99999/fk4x"

// TestGetOtherNames: a name that the file system cannot hold does not keep the other
// files from coming, nor its own content.
func TestGetOtherNames(t *testing.T) {
	segment, long := "producer/"+strings.Repeat(
		"s",
		304,
	)+".txt", "producer"+strings.Repeat(
		"/"+strings.Repeat("d", 200),
		25,
	)+"/x"
	paths := []string{segment, "producer/fits.txt", long}
	c := archive(t, "", paths...)
	if code := c.Run(getAll + " -o out"); code != command.ExitOtherNames ||
		!strings.Contains(c.Err.String(), "2 files with names") {
		t.Fatalf("code %d: %s", code, &c.Err)
	}
	list, err := os.ReadFile(filepath.Join("out", namesFile))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{"producer/fits.txt": "producer/fits.txt"}
	for line := range strings.Lines(string(list)) {
		var n struct{ Path, Local string }
		if err := json.Unmarshal([]byte(line), &n); err != nil {
			t.Fatal(err)
		}
		names[n.Path] = n.Local
	}
	for _, p := range paths {
		content, err := os.ReadFile(filepath.Join("out", names[p]))
		if err != nil || string(content) != p {
			t.Errorf("%.30s… is at %q: %.30q, %v", p, names[p], content, err)
		}
	}
	if !strings.HasSuffix(names[segment], ".txt") || otherName(segment) == otherName(segment+"2") {
		t.Errorf("%s is written as %s", segment, names[segment])
	}
}

// TestGetGoesOn: a file that does not come as it is stored is told at the end, and the
// others come.
func TestGetGoesOn(t *testing.T) {
	c := archive(t, "producer/a.txt", "producer/a.txt", "producer/b.txt")
	if code := c.Run(getAll); code != 1 ||
		!strings.Contains(
			c.Err.String(),
			"1 of 2 files were not written:\n  producer/a.txt: the downloaded content has the sha512",
		) {
		t.Errorf("code %d: %s", code, &c.Err)
	}
	if entries, err := os.ReadDir("producer"); err != nil || len(entries) != 1 || entries[0].Name() != "b.txt" {
		t.Errorf("%v, %v", entries, err)
	}
	if code := c.Run(getAll + " producer/none producer/b.txt"); code != fault.Edges[fault.NotFound].Exit ||
		!strings.Contains(c.Err.String(), "archivist object files") {
		t.Errorf("a file that is not there: %d, %s", code, &c.Err)
	}
}

// TestGetOverwritesOnlyByForce: an existing file with other content stays, one with
// the same content is not downloaded again.
func TestGetOverwritesOnlyByForce(t *testing.T) {
	c := archive(t, "", "a.txt", "b.txt")
	if code := c.Run(getAll); code != 0 || c.Err.Len() > 0 {
		t.Fatal(code, c.Err.String())
	}
	if err := os.WriteFile("a.txt", []byte("mine!"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code := c.Run(getAll); code != fault.Edges[fault.Conflict].Exit ||
		!strings.Contains(c.Err.String(), "a.txt exists with other content; --force overwrites it") {
		t.Errorf("code %d: %s", code, &c.Err)
	}
	if mine, err := os.ReadFile("a.txt"); err != nil || string(mine) != "mine!" {
		t.Errorf("%q, %v", mine, err)
	}
	if code := c.Run(getAll + " --force --json path,kept"); code != 0 ||
		!strings.Contains(
			strings.Join(strings.Fields(c.Out.String()), ""),
			`{"path":"a.txt","kept":false},{"path":"b.txt","kept":true}`,
		) {
		t.Errorf("code %d: %s%s", code, &c.Out, &c.Err)
	}
	if stored, err := os.ReadFile("a.txt"); err != nil || string(stored) != "a.txt" {
		t.Errorf("%q, %v", stored, err)
	}
}

// TestGetSums: what is printed in a pipe is what sha512sum checks, with names that it
// must quote, and nothing else.
func TestGetSums(t *testing.T) {
	c := archive(t, "", "producer/a.txt", `producer/back\slash`, "producer/two words")
	if code := c.Run(getAll); code != 0 || c.Err.Len() > 0 {
		t.Fatal(code, c.Err.String())
	}
	tool, err := exec.LookPath("sha512sum")
	if err != nil {
		t.Skip("there is no sha512sum here")
	}
	check := exec.CommandContext(t.Context(), tool, "--check", "--strict")
	check.Stdin = bytes.NewReader(c.Out.Bytes())
	if out, err := check.CombinedOutput(); err != nil || strings.Count(string(out), ": OK") != 3 {
		t.Errorf("%v: %s of\n%s", err, out, &c.Out)
	}
}

// TestGetToStandardOutput: one file goes to the standard output and nowhere else.
func TestGetToStandardOutput(t *testing.T) {
	c := archive(t, "wrong", "producer/a.txt", "wrong")
	if code := c.Run(getAll + " producer/a.txt -o -"); code != 0 || c.Out.String() != "producer/a.txt" ||
		c.Err.Len() > 0 {
		t.Errorf("code %d: %q %s", code, c.Out.String(), &c.Err)
	}
	if code := c.Run(getAll + " wrong -o -"); code != 1 ||
		!strings.Contains(c.Err.String(), "report it to the archive's operator") {
		t.Errorf("code %d: %s", code, &c.Err)
	}
	if entries, err := os.ReadDir("."); err != nil || len(entries) > 0 {
		t.Errorf("%v, %v", entries, err)
	}
}
