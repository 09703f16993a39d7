package api_test

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"strings"
	"testing"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/fault"
)

// fileOf is a content as a client lists it.
func fileOf(content string) v1.ListedFile {
	sum := sha256.Sum256([]byte(content))
	return v1.ListedFile{SHA256: hex.EncodeToString(sum[:]), Size: int64(len(content))}
}

// uploaded makes an upload with contents, as a client does.
func uploaded(t *testing.T, c *v1.Client, contents ...string) v1.Upload {
	t.Helper()
	in := v1.UploadRequest{Collection: "maps", Files: len(contents)}
	var files []v1.ListedFile
	var sums []string
	for _, content := range contents {
		f := fileOf(content)
		in.Bytes, files, sums = in.Bytes+f.Size, append(files, f), append(sums, f.SHA256)
	}
	u, err := c.OpenUpload(t.Context(), in, "")
	if err != nil {
		t.Fatal(err)
	}
	sends, err := c.ListFiles(t.Context(), u.ID, files)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range sends {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, s.Put.URL, strings.NewReader(contents[i]))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range s.Put.Headers {
			req.Header.Set(name, value)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Fatal(resp.Status)
		}
	}
	out, err := c.StoredFiles(t.Context(), u.ID, sums)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range out {
		if !one.Stored {
			t.Fatalf("%+v", one)
		}
	}
	return u
}

// TestSubmitUpload: a submission claims an upload: the batch has it, with the digest and the size of the file, and
// nobody else gets it. The same request with its key is answered again.
func TestSubmitUpload(t *testing.T) {
	c, q := serve(t, through)
	u := uploaded(t, c, "the content")
	in := v1.BatchRequest{Collection: "maps", Payload: v1.Payload{Upload: u.ID, Filename: "a.txt", Type: "file"}}
	out, err := c.Submit(t.Context(), in, "key")
	if err != nil {
		t.Fatal(err)
	}
	again, err := c.Submit(t.Context(), in, "key")
	if err != nil || again.ID != out.ID {
		t.Errorf("%+v, %v", again, err)
	}
	_, err = c.Submit(t.Context(), in, "")
	if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), out.ID) {
		t.Errorf("another submission: %v", err)
	}

	row, err := q.Batch(t.Context(), out.ID)
	f := fileOf("the content")
	if err != nil || row.URL != "upload://"+u.ID+"/"+f.SHA256 || row.Digest != f.SHA256 || row.Size != f.Size ||
		row.Uploader != "an operator" || row.Payload.Source() != "a.txt, uploaded by an operator" {
		t.Errorf("%+v, %v", row, err)
	}
	b, err := c.Batch(t.Context(), out.ID)
	if err != nil || b.Upload != u.ID {
		t.Errorf("%+v, %v", b, err)
	}
	if u, err = c.Upload(t.Context(), u.ID); err != nil || u.State != v1.UploadSubmitted || u.Batch != out.ID {
		t.Errorf("%+v, %v", u, err)
	}
	x, err := c.Explain(t.Context(), u.ID)
	if err != nil || len(x.Chain) < 2 || x.Chain[1].ID != out.ID {
		t.Errorf("%+v, %v", x, err)
	}
	all, err := c.Uploads(t.Context(), v1.Filter{Collection: "maps", State: "submitted"})
	if err != nil || len(all) != 1 {
		t.Errorf("%+v, %v", all, err)
	}
	files, err := c.UploadFiles(t.Context(), u.ID)
	if err != nil || len(files) != 1 || !files[0].Stored || files[0].ListedFile != f {
		t.Errorf("%+v, %v", files, err)
	}
	if _, err := c.DiscardUpload(t.Context(), u.ID, "no"); !fault.Is(err, fault.Conflict) {
		t.Errorf("discarded: %v", err)
	}
}

// TestUploadRefused: what does not fit together is refused with the field, and claims nothing.
func TestUploadRefused(t *testing.T) {
	c, _ := serve(t, through)
	u := uploaded(t, c, "one", "two")
	one := fileOf("one").SHA256
	size := int64(4)
	for says, p := range map[string]v1.Payload{
		"payload.upload: the payload has a url": {URL: "https://example.org/a", Upload: u.ID},
		"payload.file: it names a file":         {URL: "https://example.org/a", File: one},
		"payload.filename":                      {Upload: u.ID, File: one, Type: "file"},
		"payload.file: the upload":              {Upload: u.ID, Filename: "a"},
		"payload.upload: there is no upload":    {Upload: "other", Filename: "a"},
		"payload.size: found 4":                 {Upload: u.ID, File: one, Filename: "a", Size: &size},
		"payload.digest: the file": {Upload: u.ID, File: one, Filename: "a",
			Digest: &v1.Digest{Algorithm: "SHA-256", Value: fileOf("two").SHA256}},
		"payload.url: the submission has no upload": {URL: "upload://" + u.ID + "/" + one, Filename: "a"},
		"payload.url: found":                        {},
	} {
		_, err := c.Submit(t.Context(), v1.BatchRequest{Collection: "maps", Payload: p}, "")
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), says) {
			t.Errorf("%v; expected %q", err, says)
		}
	}
	if u, err := c.Upload(t.Context(), u.ID); err != nil || u.State != v1.UploadOpen {
		t.Errorf("%+v, %v", u, err)
	}
	if u, err := c.DiscardUpload(t.Context(), u.ID, "wrong"); err != nil || u.State != v1.UploadDiscarded {
		t.Errorf("%+v, %v", u, err)
	}
}
