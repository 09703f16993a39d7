package inprocess

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	v1 "archivist/pkg/api/v1"
)

// signed makes a request by a signed URL, as it is or for another path.
func (w *world) signed(method, url, body string, headers map[string]string) (int, string) {
	w.Helper()
	r, err := http.NewRequestWithContext(w.Context(), method, url, strings.NewReader(body))
	w.must(err)
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	resp, err := w.HTTP().Do(r)
	w.must(err)
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	w.must(err)
	return resp.StatusCode, string(data)
}

// TestForeignSignatures: who has a signed URL of the own collection, and puts another path in it, reads and writes
// nothing of another collection; and whose upload it is not cannot submit it, by its id or by its URL.
func TestForeignSignatures(t *testing.T) {
	w, is := guarded(t)
	own, path := v1.ObjectPath(is.theirARK), "/versions/1/content?path=producer/marker-letters.txt"
	_, location := w.asked("other", http.MethodGet, own+path, "")
	location = location[strings.Index(location, "http"):]
	if end := strings.IndexAny(location, "\"<\n "); end > 0 {
		location = location[:end]
	}
	if status, text := w.signed(http.MethodGet, location, "", nil); status != http.StatusOK ||
		text != "content of letters" {
		t.Fatalf("the own file: %d %s", status, text)
	}
	_, foreign := w.asked("viewer", http.MethodGet, v1.ObjectPath(is.ark)+
		"/versions/1/content?path=producer/marker-maps.txt", "")
	foreign = foreign[strings.Index(foreign, "http"):]
	keyOf, _, _ := strings.Cut(foreign, "?")
	_, query, _ := strings.Cut(location, "?")
	if status, text := w.signed(http.MethodGet, keyOf+"?"+query, "", nil); status < 400 ||
		strings.Contains(text, "content of maps") {
		t.Errorf("a file of another collection: %d %s", status, text)
	}

	c := w.with(w.tokens["other"])
	up, err := c.OpenUpload(t.Context(), v1.UploadRequest{Collection: "letters", Files: 1, Bytes: 1}, "")
	w.must(err)
	sum := "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881" // of x
	list, err := c.ListFiles(t.Context(), up.ID, []v1.ListedFile{{SHA256: sum, Size: 1}})
	w.must(err)
	put := list[0].Put
	to := strings.Replace(strings.Replace(put.URL, "/letters/", "/maps/", 1), up.ID, is.upload, 1)
	if to == put.URL || !strings.Contains(to, "/maps/"+is.upload+"/") {
		t.Fatalf("the URL is %s", put.URL)
	}
	if status, text := w.signed(http.MethodPut, to, "x", put.Headers); status < 400 {
		t.Errorf("a file for the upload of another collection: %d %s", status, text)
	}
	if status, text := w.signed(http.MethodPut, put.URL, "x", put.Headers); status != http.StatusOK {
		t.Errorf("the own upload: %d %s", status, text)
	}

	for _, payload := range []string{fmt.Sprintf(`{"upload": %q, "file": %q}`, is.upload, sum),
		fmt.Sprintf(`{"url": "upload://%s/%s"}`, is.upload, sum)} {
		submit := func(payload string) (int, string) {
			return w.asked("other", http.MethodPost, "/v1/batches",
				`{"collection": "letters", "payload": `+payload+`}`)
		}
		status, text := submit(payload)
		none := strings.Replace(is.upload, is.upload[:4], "0000", 1)
		noStatus, noText := submit(strings.ReplaceAll(payload, is.upload, none))
		if status != http.StatusUnprocessableEntity || noStatus != status ||
			strings.ReplaceAll(text, is.upload, none) != noText {
			t.Errorf("%s: %d %s; one that does not exist: %d %s", payload, status, text, noStatus, noText)
		}
	}
}
