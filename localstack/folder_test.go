package localstack

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"archivist/pkg/formats/checkm"
)

// TestFolder: the manifest of a folder is accepted, names every file by a URL that
// answers with the file, and nothing outside of the folder is served.
func TestFolder(t *testing.T) {
	links, folder := t.TempDir(), t.TempDir()
	files := map[string]string{"letter.txt": "a letter", "scans/page 1?#.tif": "a page", "scans/ünï.tif": "another"}
	for name, text := range files {
		at := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(folder, filepath.Join(links, "my folder")); err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(FolderHandler(links))
	defer srv.Close()
	get := func(url string) (int, string) {
		t.Helper()
		resp, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(body)
	}

	_, text := get(srv.URL + "/folders/my%20folder.checkm")
	found := map[string]string{}
	_, problems, err := checkm.Read(strings.NewReader(text), checkm.Options{RequireDigest: true},
		func(r checkm.Row) error {
			_, found[r.Name] = get(r.URL)
			return nil
		})
	if err != nil || len(problems) > 0 {
		t.Fatalf("%v %v in\n%s", err, problems, text)
	}
	for name, want := range files {
		if found[name] != want {
			t.Errorf("%s is %q, expected %q", name, found[name], want)
		}
	}

	for path, want := range map[string]int{
		"/folders/unknown.checkm":             404,
		"/folders/my%20folder/unknown":        404,
		"/folders/..%2f..%2fetc/passwd":       404,
		"/folders/my%20folder/..%2f..%2fetc":  400, // net/http refuses dots
		"/folders/..%2fescape.checkm":         404,
		"/folders/my%20folder/scans%2f..%2f.": 400,
	} {
		if status, body := get(srv.URL + path); status != want {
			t.Errorf("%s: %d %q, expected %d", path, status, body, want)
		}
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(folder, "link")); err != nil {
		t.Fatal(err)
	}
	if status, body := get(srv.URL + "/folders/my%20folder/link"); status == 200 {
		t.Errorf("a link out of the folder is served: %q", body)
	}
	if _, err := FolderManifest(folder, "http://127.0.0.1/"); err == nil || !strings.Contains(err.Error(),
		"link is not a regular file") {
		t.Errorf("the manifest with a link: %v", err)
	}
}

func TestEmptyFolder(t *testing.T) {
	if _, err := FolderManifest(t.TempDir(), ""); err == nil || !strings.Contains(err.Error(), "has no files") {
		t.Errorf("an empty folder: %v", err)
	}
}

// TestServeNamesakes: two folders with one name are two objects: each has a URL and a local id of its own, and keeps
// them.
func TestServeNamesakes(t *testing.T) {
	state, home := t.TempDir(), t.TempDir()
	if err := os.Mkdir(filepath.Join(state, "folders"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{"a", "b"} {
		if err := os.MkdirAll(filepath.Join(home, at, "letters"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(home, at, "letters", "x.txt"), []byte(at), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	o := Outputs{State: state, SampleURL: "http://127.0.0.1:4580"}
	for _, k := range [][2]string{{"a", "letters"}, {"b", "letters-2"}, {"a", "letters"}, {"b", "letters-2"}} {
		var says strings.Builder
		if err := o.Serve(&says, filepath.Join(home, k[0], "letters")); err != nil {
			t.Fatal(err)
		}
		want := "folders/" + k[1] + ".checkm -c my-collection --local-id " + k[1] + " "
		if !strings.Contains(says.String(), want) {
			t.Errorf("%s: %s", k[0], &says)
		}
		data, err := os.ReadFile(filepath.Join(state, "folders", k[1], "x.txt"))
		if err != nil || string(data) != k[0] {
			t.Errorf("%s: %q, %v", k[1], data, err)
		}
	}
}
