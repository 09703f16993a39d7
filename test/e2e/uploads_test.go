package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"html"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/formats/checkm"
	"archivist/pkg/ingest"
)

// sendTo sends a signed request, and returns the status of the answer.
func sendTo(t *testing.T, url string, headers map[string]string, data []byte) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, url, bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range headers {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// TestUploads: files that are on no server are sent, one of them in parts, and preserved by a manifest that names them.
// A file that has changed is refused.
func TestUploads(t *testing.T) {
	begin(t)
	large := bytes.Repeat([]byte("0123456789abcdef"), 65<<20/16)
	small := []byte("a small file")
	contents := map[string][]byte{sha256Of(large): large, sha256Of(small): small}
	put := func(id string, files ...[]byte) {
		t.Helper()
		var listed []v1.ListedFile
		var sums []string
		for _, data := range files {
			listed = append(listed, v1.ListedFile{SHA256: sha256Of(data), Size: int64(len(data))})
			sums = append(sums, sha256Of(data))
		}
		sends, err := client.ListFiles(t.Context(), id, listed)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range sends {
			data := contents[s.SHA256]
			if s.Put != nil {
				changed := bytes.ToUpper(data)
				if got := sendTo(t, s.Put.URL, s.Put.Headers, changed); got < 400 {
					t.Errorf("a changed file is answered %d", got)
				}
				if got := sendTo(t, s.Put.URL, s.Put.Headers, data); got != http.StatusOK {
					t.Fatalf("answered %d", got)
				}
				continue
			}
			for _, p := range s.Parts.URLs {
				from := int64(p.Number-1) * s.Parts.PartSize
				part := data[from:min(from+s.Parts.PartSize, int64(len(data)))]
				if got := sendTo(t, p.URL, nil, part); got != http.StatusOK {
					t.Fatalf("part %d is answered %d", p.Number, got)
				}
			}
		}
		out, err := client.StoredFiles(t.Context(), id, sums)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range out {
			if !one.Stored {
				t.Fatalf("%+v", one)
			}
		}
	}

	u, manifest := openFor(t, large, small)
	contents[sha256Of(manifest)] = manifest
	put(u.ID, large, small, manifest)
	b, err := client.Submit(t.Context(), v1.BatchRequest{Collection: "e2e", Submitter: t.Name(),
		// Without a type, which the archive then tells from the content.
		Payload:     v1.Payload{Upload: u.ID, File: sha256Of(manifest), Filename: "manifest.checkm"},
		Identifiers: &v1.Identifiers{Local: []string{"uploaded"}}}, "")
	if err != nil {
		t.Fatal(err)
	}
	j := ends(t, ingest.JobID(b.ID, 1), v1.Completed, soon)
	for name, data := range map[string][]byte{"producer/small.txt": small, "producer/large.bin": large} {
		if got := content(t, j, name); !bytes.Equal(got, data) {
			t.Errorf("%s has %d bytes", name, len(got))
		}
	}
	saysUploader(t, u.ID, j)
}

// saysUploader: what is kept of a job says who uploaded its files, also when the upload is gone.
func saysUploader(t *testing.T, upload string, j v1.Job) {
	t.Helper()
	by := uploaderOf(t, upload)
	if want := "manifest.checkm, uploaded by " + by; j.Source != want {
		t.Errorf("the source is %q, expected %q", j.Source, want)
	}
	for name, says := range map[string]string{"system/premis.xml": "Files uploaded by " + by + ": 2 (",
		"system/mrt-ingest.txt":        "uploadedBy: " + by,
		"system/archivist-files.jsonl": `"uploadedBy":"` + by + `"`} {
		if got := string(content(t, j, name)); !strings.Contains(html.UnescapeString(got), says) {
			t.Errorf("%s does not say %q:\n%s", name, says, got)
		}
	}
}

// uploaderOf is the actor of the event by which an upload was opened.
func uploaderOf(t *testing.T, id string) string {
	t.Helper()
	var page v1.List[v1.Event]
	err := client.Call(t.Context(), http.MethodGet, "/v1/uploads/"+id+"/events", nil, &page)
	if err != nil || len(page.Items) == 0 || page.Items[0].Type != v1.EventUploadOpened || page.Items[0].Actor == "" {
		t.Fatalf("%+v, %v", page, err)
	}
	return page.Items[0].Actor
}

// openFor opens an upload for a large and a small file, and for a manifest that names them by it.
func openFor(t *testing.T, large, small []byte) (v1.Upload, []byte) {
	t.Helper()
	write := func(id string) []byte {
		var b bytes.Buffer
		err := checkm.Write(&b, "http://uc3.cdlib.org/registry/ingest/manifest/mrt-ingest-manifest", []checkm.Row{
			{URL: "upload://" + id + "/" + sha256Of(large), Algorithm: "sha256", Digest: sha256Of(large),
				Size: int64(len(large)), Name: "large.bin"},
			{URL: "upload://" + id + "/" + sha256Of(small), Algorithm: "sha256", Digest: sha256Of(small),
				Size: int64(len(small)), Name: "small.txt"}})
		if err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	size := len(write("01M7ZBMEYHBB62YP6RY21T1GQ7")) + len(large) + len(small) // ids have one length
	u, err := client.OpenUpload(t.Context(), v1.UploadRequest{Collection: "e2e", Files: 3, Bytes: int64(size)},
		fmt.Sprint(t.Name(), time.Now().UnixNano()))
	if err != nil {
		t.Fatal(err)
	}
	return u, write(u.ID)
}

// sha256Of is the SHA-256 of a content.
func sha256Of(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
