package localstack

import (
	"crypto/md5"
	"crypto/sha256"
	"crypto/sha512"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"net/http"
	"net/url"
	"path"
	"strings"

	"archivist/pkg/checkm"
)

// SampleCollection is the collection of the sample content.
const SampleCollection = "sample"

//go:embed sample
var sample embed.FS

// SampleObject is one object of the sample.
type SampleObject struct {
	LocalID   string   `json:"localId"`
	Who       string   `json:"who"`
	What      string   `json:"what"`
	When      string   `json:"when"`
	Algorithm string   `json:"algorithm"` // of the digests in its manifest
	Files     []string `json:"files"`     // below sample/files
}

// SampleObjects lists the sample's objects.
func SampleObjects() (out []SampleObject, err error) {
	data, err := sample.ReadFile("sample/objects.json")
	if err != nil {
		return nil, err
	}
	return out, json.Unmarshal(data, &out)
}

var hashes = map[string]func() hash.Hash{"md5": md5.New, "sha256": sha256.New, "sha512": sha512.New}

// SampleHandler serves the sample's files below /files/, and for each object a
// manifest at /manifests/LOCALID.checkm?round=N, which names a note about its
// round beside the files: so each round is a change worth a version.
func SampleHandler() (http.Handler, error) {
	objects, err := SampleObjects()
	if err != nil {
		return nil, err
	}
	byID := map[string]SampleObject{}
	for _, o := range objects {
		byID[o.LocalID] = o
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /files/", func(w http.ResponseWriter, r *http.Request) {
		http.ServeFileFS(w, r, sample, path.Join("sample", r.URL.Path))
	})
	mux.HandleFunc("GET /notes/{round}", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, note(r.PathValue("round")))
	})
	mux.HandleFunc("GET /manifests/{name}", func(w http.ResponseWriter, r *http.Request) {
		o, known := byID[strings.TrimSuffix(r.PathValue("name"), ".checkm")]
		if !known {
			http.NotFound(w, r)
			return
		}
		rows, err := manifest(o, "http://"+r.Host, r.URL.Query().Get("round"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_ = checkm.Write(w, "http://uc3.cdlib.org/registry/ingest/manifest/mrt-ingest-manifest", rows)
	})
	return mux, nil
}

func note(round string) string {
	return fmt.Sprintf("This note came with round %s of the sample.\n", round)
}

func manifest(o SampleObject, base, round string) ([]checkm.Row, error) {
	var rows []checkm.Row
	add := func(at, name string, data []byte) {
		h := hashes[o.Algorithm]()
		h.Write(data)
		rows = append(rows, checkm.Row{URL: base + at, Algorithm: o.Algorithm, Digest: hex.EncodeToString(h.Sum(nil)),
			Size: int64(len(data)), Name: name})
	}
	for _, f := range o.Files {
		data, err := sample.ReadFile("sample/files/" + f)
		if err != nil {
			return nil, err
		}
		add("/files/"+(&url.URL{Path: f}).EscapedPath(), f, data)
	}
	add("/notes/"+url.PathEscape(round), "about-this-deposit.txt", []byte(note(round)))
	return rows, nil
}
