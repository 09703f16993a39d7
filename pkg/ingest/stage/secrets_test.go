package stage_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/bucket"
)

// secret is in every URL of the submissions below.
const secret = "SECRET"

// signed is a URL of the twins' source with everything in it that may be secret.
func (w *twins) signed(path string) string {
	return strings.Replace(w.Source.URL, "http://", "http://me:"+secret+"@", 1) + path + ";token=" + secret +
		"?X-Amz-Signature=" + secret
}

// serveSigned serves a manifest of each kind, files, and errors, to requests with the
// credentials.
func (w *twins) serveSigned() {
	files := manifest("mrt-ingest-manifest", fileFields, w.signed("/inside.txt")+" | | | | | inside.txt |")
	texts := map[string]string{
		"/object.checkm": files,
		"/batch.checkm": manifest("mrt-batch-manifest", batchFields,
			w.signed("/object.checkm")+" | | | | | o.checkm | | a1 | | |",
			w.signed("/single.txt")+" | | | | | o.checkm | | a2 | | |"),
		"/refused.checkm": manifest("mrt-batch-manifest", batchFields,
			w.signed("/object.checkm")+" | "+w.signed("/")+" | | | | o.checkm | | a1 | | |"),
		"/broken.checkm": manifest("mrt-ingest-manifest", fileFields, w.signed("/404")+" | | | | | inside.txt |"),
	}
	w.Source.Config.Handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		path, _, _ := strings.Cut(r.URL.Path, ";")
		_, password, _ := r.BasicAuth()
		text, known := texts[path]
		switch {
		case password != secret || r.URL.Query().Get("X-Amz-Signature") != secret || path == "/404":
			http.NotFound(rw, r)
		case path == "/moved":
			rw.Header().Set("Location", "/%zz?sig="+secret)
			rw.WriteHeader(http.StatusFound)
		case known:
			_, _ = rw.Write([]byte(text))
		default:
			_, _ = fmt.Fprint(rw, "content of "+path)
		}
	})
}

// kept lists the rows, with the attribute, and the files that contain the secret.
func (w *twins) kept() (out []string) {
	w.Helper()
	for _, row := range w.Rows.All() {
		for name, value := range row {
			data, err := json.Marshal(value)
			if err != nil {
				w.Fatal(err)
			}
			if bytes.Contains(data, []byte(secret)) {
				key, _ := json.Marshal(row["pk"])
				out = append(out, fmt.Sprintf("row %s %s", key, name))
			}
		}
	}
	for _, in := range []bucket.Bucket{w.Stages.Work.Bucket, w.Stages.Root.Bucket} {
		err := in.List(w.Context(), "", func(o bucket.Listed) error {
			data, _, err := in.Read(w.Context(), o.Key)
			if bytes.Contains(data, []byte(secret)) || strings.Contains(o.Key, secret) {
				out = append(out, "file "+o.Key)
			}
			return err
		})
		if err != nil {
			w.Fatal(err)
		}
	}
	return out
}

// TestSecretsDoNotStay: when a batch has ended, no row, file, mail or log line contains a
// secret of a URL. Only a failed job keeps its URLs, for a requeue.
func TestSecretsDoNotStay(t *testing.T) {
	for name, c := range map[string]struct {
		path, kind string
		jobs       int
		keeps      []string // parts of what is kept for a requeue
	}{
		"file":            {"/a.txt", ingest.TypeFile, 1, nil},
		"detected":        {"/object.checkm", "", 1, nil},
		"object manifest": {"/object.checkm", ingest.TypeObjectManifest, 1, nil},
		"batch manifest":  {"/batch.checkm", ingest.TypeBatchManifest, 2, []string{"JOB#", "file jobs/"}},
		// the second is no manifest
		"refused manifest": {"/refused.checkm", ingest.TypeBatchManifest, 0, nil},
		"wrong digest":     {"/wrong.txt", ingest.TypeFile, 1, nil},
		"not there":        {"/404", ingest.TypeFile, 1, []string{"JOB#"}},
		"bad redirect":     {"/moved", ingest.TypeFile, 1, []string{"JOB#"}},
		"broken manifest":  {"/broken.checkm", ingest.TypeObjectManifest, 1, []string{"JOB#", "file jobs/"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTwins(t)
			w.serveSigned()
			var mu sync.Mutex
			var said bytes.Buffer // logs and mails
			w.Machine.Queue.Log = slog.New(slog.NewTextHandler(&said, nil))
			w.Stages.MailFrom, w.Stages.API = "archive@example.org", "https://example.org"
			w.Stages.Fetch.Wait = func(context.Context, time.Duration) error { return nil }
			w.Stages.SendMail = func(_ context.Context, raw []byte) error {
				mu.Lock()
				defer mu.Unlock()
				said.Write(raw)
				return nil
			}
			in := ingest.Batch{Collection: "bench", Mode: "add", Mail: []string{"me@example.org"},
				Payload: ingest.Payload{URL: w.signed(c.path), Type: c.kind, Filename: "a.txt"}}
			if c.path == "/wrong.txt" {
				in.Payload.Algorithm, in.Payload.Digest = "md5", strings.Repeat("0", 32)
			}
			b, err := w.Machine.Queue.Submit(t.Context(), in, "key", []byte(w.signed(c.path)), "me")
			if err != nil {
				t.Fatal(err)
			}
			w.Drive()
			row, err := w.Machine.Queue.Batch(t.Context(), b.ID)
			if err != nil || row.State != ingest.BatchCompleted && row.State != ingest.BatchFailed ||
				row.Unpacked != c.jobs {
				t.Fatalf("the batch is %s with %d jobs: %s, %v", row.State, row.Unpacked, row.Message, err)
			}
			for _, place := range w.kept() {
				expected := false
				for _, part := range c.keeps {
					expected = expected || strings.Contains(place, part)
				}
				if !expected {
					t.Errorf("%s has a secret", place)
				}
			}
			mu.Lock()
			if strings.Contains(said.String(), secret) || said.Len() == 0 {
				t.Errorf("a mail or the log says %s", said.String())
			}
			mu.Unlock()
		})
	}
}
