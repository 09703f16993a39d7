package main

import (
	"bytes"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/fault"
)

// archive serves one object's files; the content of a path is the path.
func archive(t *testing.T, wrong string, paths ...string) *app {
	t.Helper()
	answer := func(w http.ResponseWriter, v any) { _ = json.NewEncoder(w).Encode(v) }
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/objects/99999/fk4x", func(w http.ResponseWriter, _ *http.Request) { answer(w, v1.Object{ARK: "ark:/99999/fk4x", Version: 1}) })
	mux.HandleFunc("GET /v1/objects/99999/fk4x/versions/1/files", func(w http.ResponseWriter, _ *http.Request) {
		var list v1.List[v1.File]
		for _, p := range paths {
			sum := sha512.Sum512([]byte(p))
			list.Items = append(list.Items, v1.File{Path: p, Size: int64(len(p)), Digests: map[string]string{"sha512": hex.EncodeToString(sum[:])}})
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
	return &app{ctx: t.Context(), client: &v1.Client{URL: srv.URL, HTTP: srv.Client()}, out: &bytes.Buffer{}}
}

// TestGetOtherNames: a name that the file system cannot hold does not keep the other
// files from coming, nor its own content.
func TestGetOtherNames(t *testing.T) {
	segment, long := "producer/"+strings.Repeat("s", 304)+".txt", "producer"+strings.Repeat("/"+strings.Repeat("d", 200), 25)+"/x"
	paths := []string{segment, "producer/fits.txt", long}
	dir := t.TempDir()
	get := &objectGetCmd{version: version{ARK: "ark:/99999/fk4x"}, Dir: dir}
	err := get.Run(archive(t, "", paths...))
	if exitCode(err) != exitRenamed || !strings.Contains(err.Error(), "2 files have names") {
		t.Fatalf("code %d: %v", exitCode(err), err)
	}
	list, err := os.ReadFile(filepath.Join(dir, namesFile))
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
		content, err := os.ReadFile(filepath.Join(dir, names[p]))
		if err != nil || string(content) != p {
			t.Errorf("%.30s… is at %q: %.30q, %v", p, names[p], content, err)
		}
	}
	if !strings.HasSuffix(names[segment], ".txt") || otherName(segment) == otherName(segment+"2") {
		t.Errorf("%s is written as %s", segment, names[segment])
	}
}

// TestGetGoesOn: a file that does not come as it is stored is told, and the others come.
func TestGetGoesOn(t *testing.T) {
	a, dir := archive(t, "producer/a.txt", "producer/a.txt", "producer/b.txt"), t.TempDir()
	err := (&objectGetCmd{version: version{ARK: "ark:/99999/fk4x"}, Dir: dir}).Run(a)
	if exitCode(err) != 1 || !strings.Contains(err.Error(), "producer/a.txt: the downloaded content has the sha512") {
		t.Errorf("code %d: %v", exitCode(err), err)
	}
	if entries, err := os.ReadDir(filepath.Join(dir, "producer")); err != nil || len(entries) != 1 || entries[0].Name() != "b.txt" {
		t.Errorf("%v, %v", entries, err)
	}
	err = (&objectGetCmd{version: version{ARK: "ark:/99999/fk4x"}, Dir: dir, Paths: []string{"producer/none", "producer/b.txt"}}).Run(a)
	if exitCode(err) != fault.Edges[fault.NotFound].Exit {
		t.Errorf("a file that is not there: %d, %v", exitCode(err), err)
	}
}
