package objects

import (
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"archivist/cmd/archivist/command/commandtest"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/formats/ocflspec"
)

const ocflPlace = "1a2/b3c/4d5/ark%3a%2f99999%2ffk4x/"

// stored serves an object of two versions as it is in a storage root, and counts what is asked for.
func storedObject(t *testing.T) (c *commandtest.Console, files map[string]string, asked *atomic.Int32) {
	t.Helper()
	files, asked = map[string]string{}, new(atomic.Int32)
	sum := func(text string) string {
		s := sha512.Sum512([]byte(text))
		return hex.EncodeToString(s[:])
	}
	manifest := map[string][]string{}
	var versions v1.List[v1.Version]
	for n := 1; n <= 2; n++ {
		path := fmt.Sprintf("v%d/content/B-00001/producer/%d ä.txt", n, n)
		files[path] = path
		manifest[sum(path)] = []string{path}
		text, _ := json.Marshal(map[string]any{"id": "ark:/99999/fk4x", "head": fmt.Sprintf("v%d", n),
			"manifest": manifest})
		folder := fmt.Sprintf("v%d/", n)
		files[folder+ocflspec.InventoryName] = string(text)
		files[folder+ocflspec.SidecarName] = string(ocflspec.Sidecar(sum(string(text))))
		versions.Items = append(versions.Items, v1.Version{Version: n, InventoryDigest: sum(string(text))})
	}
	mux := http.NewServeMux()
	answer := func(pattern string, v any) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(v) })
	}
	answer("GET /v1/objects/99999/fk4x", v1.Object{ARK: "ark:/99999/fk4x", Version: 2, Stored: ocflPlace})
	answer("GET /v1/objects/99999/fk4x/versions", versions)
	mux.HandleFunc("GET /v1/objects/99999/fk4x/stored", func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		text, is := files[r.URL.Query().Get("path")]
		if !is {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(text))
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	t.Chdir(t.TempDir())
	return with(t, srv.URL), files, asked
}

// TestExportOCFL: an object is in a storage root as it is stored, and again only what is missing is downloaded; content
// that is not that of the inventory, and an inventory that is not the one on record, are refused.
func TestExportOCFL(t *testing.T) {
	c, files, asked := storedObject(t)
	const export = "object export ark:/99999/fk4x --as ocfl -o root"
	folder := filepath.Join("root", filepath.FromSlash(ocflPlace))
	c.Want(t, export, 0, "ark:/99999/fk4x")
	want := map[string]string{"inventory.json": files["v2/inventory.json"],
		"inventory.json.sha512": files["v2/inventory.json.sha512"], "0=ocfl_object_1.1": "ocfl_object_1.1\n",
		"../../../../0=ocfl_1.1": "ocfl_1.1\n"}
	for path, text := range files {
		want[path] = text
	}
	for path, text := range want {
		if got, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(path))); err != nil || string(got) != text {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
	first := asked.Swap(0)
	c.Want(t, export, 0, "ark:/99999/fk4x")
	if again := asked.Load(); first != 6 || again != 0 {
		t.Errorf("%d files were downloaded, then %d", first, again)
	}

	for name, exit := range map[string]int{".part-123": 0, "notes.txt": 4} {
		if err := os.WriteFile(filepath.Join(folder, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		c.Want(t, export, exit, map[int]string{4: name + " is not a file of the object"}[exit])
		if _, err := os.Stat(filepath.Join(folder, name)); (err == nil) != (exit == 4) {
			t.Errorf("%s: %v", name, err)
		}
		_ = os.Remove(filepath.Join(folder, name))
	}

	for path, says := range map[string]string{"v1/content/B-00001/producer/1 ä.txt": "has the sha512",
		"v2/inventory.json": "has the sha512", "v1/inventory.json.sha512": "has the sha512"} {
		if err := os.RemoveAll("root"); err != nil {
			t.Fatal(err)
		}
		was := files[path]
		files[path] = strings.Replace(was, "v", "w", 1) + "x"
		c.Want(t, export, 1, says)
		if _, err := os.Stat(filepath.Join(folder, "0=ocfl_object_1.1")); err == nil {
			t.Errorf("%s is damaged, and the object is declared", path)
		}
		files[path] = was
	}

	if err := os.MkdirAll("other/things", 0o755); err != nil {
		t.Fatal(err)
	}
	c.Want(t, "object export ark:/99999/fk4x --as ocfl -o other", 2, "neither empty nor a storage root")
	c.Want(t, "object export ark:/99999/fk4x --as ocfl --number 1", 2, "all versions")
}
