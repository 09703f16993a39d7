package objects

import (
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"archivist/cmd/archivist/command/commandtest"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/formats/bagit"
)

// exporting serves objects of the collection maps, each with two files whose content is their path. One of them can
// be withdrawn.
func exporting(t *testing.T, withdrawn string, names ...string) *commandtest.Console {
	t.Helper()
	mux := http.NewServeMux()
	answer := func(pattern string, v any) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(v) })
	}
	var objects v1.List[v1.Object]
	for _, name := range names {
		o := v1.Object{ARK: "ark:/99999/" + name, Version: 2, Title: "Map of\nthe harbour", Collection: "maps",
			LocalIDs: []string{"id-" + name}}
		objects.Items = append(objects.Items, o)
		path := "GET /v1/objects/99999/" + name
		answer(path, o)
		var files v1.List[v1.File]
		for _, p := range []string{"producer/100%.txt", "system/mrt-erc.txt"} {
			sum := sha512.Sum512([]byte(p))
			files.Items = append(files.Items, v1.File{Path: p, Size: int64(len(p)),
				Digests: map[string]string{"sha512": hex.EncodeToString(sum[:])}})
		}
		answer(path+"/versions/2/files", files)
		mux.HandleFunc(path+"/versions/2/content", func(w http.ResponseWriter, r *http.Request) {
			if name == withdrawn {
				w.Header().Set("Content-Type", "application/problem+json")
				w.WriteHeader(http.StatusConflict)
				_, _ = w.Write([]byte(`{"title": "Conflict", "status": 409, "detail": "it is withdrawn"}`))
				return
			}
			_, _ = w.Write([]byte(r.URL.Query().Get("path")))
		})
		mux.HandleFunc(path+"/history", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/xml")
			_, _ = w.Write([]byte(`<premis xmlns="http://www.loc.gov/premis/v3" version="3.0"></premis>`))
		})
	}
	answer("GET /v1/objects", objects)
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	t.Chdir(t.TempDir())
	return with(t, srv.URL)
}

// valid checks a bag as others do.
func valid(t *testing.T, folder string) *bagit.Report {
	t.Helper()
	r, err := bagit.Check(t.Context(), os.DirFS(folder), nil)
	if err != nil || len(r.Problems) > 0 || r.Files != 2 {
		t.Fatalf("%s: %+v, %v", folder, r, err)
	}
	return r
}

// TestExport: an object is a valid bag with its identifiers, and again after a part of it was lost; a file that does
// not belong there is found.
func TestExport(t *testing.T) {
	c := exporting(t, "", "fk4x")
	const folder = "ark_99999_fk4x"
	for _, lost := range []string{"", "data/producer/100%.txt", "manifest-sha512.txt"} {
		if lost != "" {
			if err := os.Remove(filepath.Join(folder, lost)); err != nil {
				t.Fatal(err)
			}
		}
		c.Want(t, "object export ark:/99999/fk4x", 0, folder)
		r := valid(t, folder)
		if r.Info[0].Value != "ark:/99999/fk4x" || r.Info[2].Value != "Map of the harbour" {
			t.Errorf("%+v", r.Info)
		}
	}
	if err := os.WriteFile(filepath.Join(folder, "data", "other"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	c.Want(t, "object export ark:/99999/fk4x", 4, "data/other: no manifest lists it")
}

// TestExportCollection: each object of a collection is exported; one that cannot be does not prevent the others.
func TestExportCollection(t *testing.T) {
	c := exporting(t, "fk4y", "fk4x", "fk4y", "fk4z")
	c.Want(t, "object export -c maps -o out", 4, "1 of 3 objects were not exported")
	for _, name := range []string{"fk4x", "fk4z"} {
		valid(t, "out/ark_99999_"+name)
	}
	for _, wrong := range []string{"object export", "object export -c maps --number 2"} {
		c.Want(t, wrong, 2, "")
	}
}
