package localstack

import (
	"context"
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

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/formats/checkm"
)

// SampleCollection is the collection of the sample content.
const SampleCollection = "sample"

//go:embed sample
var sample embed.FS

// SampleObject is one object of the sample, as sample/objects.json lists it.
type SampleObject struct {
	LocalID   string   `json:"localId"`
	Who       string   `json:"who"`
	What      string   `json:"what"`
	When      string   `json:"when"`
	Algorithm string   `json:"algorithm"` // of the digests in its manifest
	Files     []string `json:"files"`     // below sample/files
}

// SampleObjects lists the sample's objects, in the order in which they are submitted.
func SampleObjects() (out []SampleObject, err error) {
	data, err := sample.ReadFile("sample/objects.json")
	if err != nil {
		return nil, err
	}
	return out, json.Unmarshal(data, &out)
}

// SubmitSample submits each object of the sample, whose files are served at url, and returns the ids of the
// batches. If the objects are there already, another note beside the files makes the next version. The key of a
// submission names its round, so a repeat before it is stored gives the same batch.
func SubmitSample(ctx context.Context, client *v1.Client, url,
	submitter string) (batches []string, err error) {
	objects, err := SampleObjects()
	if err != nil {
		return nil, err
	}

	for _, o := range objects {
		known, err := client.Objects(ctx,
			v1.Filter{Collection: SampleCollection, LocalID: o.LocalID})
		if err != nil {
			return nil, err
		}

		// The round is the version that it makes, so each run has one of its own.
		round := 1
		if len(known) > 0 {
			round = known[0].Version + 1
		}

		b, err := client.Submit(ctx, v1.BatchRequest{
			Collection: SampleCollection,
			Submitter:  submitter,
			Payload: v1.Payload{Type: "object-manifest",
				URL: fmt.Sprintf("%s/manifests/%s.checkm?round=%d", url, o.LocalID, round)},
			Identifiers: &v1.Identifiers{Local: []string{o.LocalID}},
			Metadata:    &v1.Metadata{Who: o.Who, What: o.What, When: o.When},
		}, fmt.Sprintf("sample-%s-%d", o.LocalID, round))
		if err != nil {
			return nil, err
		}

		batches = append(batches, b.ID)
	}
	return batches, nil
}

// hashes are the algorithms of the sample's manifests: depositors use different ones.
var hashes = map[string]func() hash.Hash{"md5": md5.New, "sha256": sha256.New, "sha512": sha512.New}

// SampleHandler serves the sample's files below /files/, and for each object a manifest at
// /manifests/LOCALID.checkm?round=N, which names a note about its round beside the files: so each round is a
// change worth a version. The URLs in a manifest are those of the host that was asked.
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

// note is the text of the note of a round.
func note(round string) string {
	return fmt.Sprintf("This note came with round %s of the sample.\n", round)
}

// manifest is the rows of an object's manifest, with the note of the round at the end. base is the URL of the
// server.
func manifest(o SampleObject, base, round string) ([]checkm.Row, error) {
	var rows []checkm.Row
	add := func(at, name string, data []byte) {
		h := hashes[o.Algorithm]()
		h.Write(data)
		rows = append(rows, checkm.Row{
			URL:       base + at,
			Algorithm: o.Algorithm,
			Digest:    hex.EncodeToString(h.Sum(nil)),
			Size:      int64(len(data)),
			Name:      name,
		})
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
