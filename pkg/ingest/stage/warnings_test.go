package stage_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"archivist/pkg/ingest"
)

// expectTexts fails unless the texts contain what is wanted, in order.
func expectTexts(t *testing.T, where string, got []string, want ...string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %q; expected %d", where, got, len(want))
		return
	}
	for i, says := range want {
		if !strings.Contains(got[i], says) {
			t.Errorf("%s: %q; expected %q", where, got[i], says)
		}
	}
}

// TestWarnings: warnings of the manifest and of the files are on the job's row, in its
// report, and next to each preserved file, for the receipt; also after several tries.
func TestWarnings(t *testing.T) {
	w := newTwins(t)
	list := manifest("mrt-ingest-manifest", fileFields,
		w.Source.URL+"/plain | md5 | 9a0364b9e99bb480dd25e1f0284c8555 | 8 | | caf\u00e9/a |",
		w.Source.URL+"/plain | md5 | 9a0364b9e99bb480dd25e1f0284c8555 | 7 | | cafe\u0301/a |",
		w.Source.URL+"/gzip | md5 | 9a0364b9e99bb480dd25e1f0284c8555 | 7 | | packed |") + "\n"
	w.Source.Config.Handler = http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/list":
			_, _ = out.Write([]byte(list))
			return
		case "/gzip":
			out.Header().Set("Content-Encoding", "gzip")
		}
		_, _ = out.Write([]byte("content"))
	})

	id := w.Submit("list", func(b *ingest.Batch) { b.Payload.Type = ingest.TypeObjectManifest })
	j := w.Ended(id, 1, false)
	says := []string{"differs from that of line 5 in case or in Unicode normalization only", "after #%eof",
		"file café/a: the depositor's size is 8 bytes, but 7 were received; the digest matched",
		"file packed: the source sent it with the Content-Encoding \"gzip\""}
	expectTexts(t, "the job", j.Warnings(), says...)
	r := w.report(j.Batch)
	expectTexts(t, "the report", r.Completed[0].Warnings, says...)
	files := r.Completed[0].FileDetails
	if len(files) != 3 || files[1].Warning == "" || files[2].Warning == "" || j.Warned != 2 {
		t.Errorf("%d files have a warning: %+v", j.Warned, files)
	}
}

// TestPageInPlaceOfAFile: a web page that came in place of another file is preserved, since that was asked for, and
// its depositor is told in the job and in the receipt.
func TestPageInPlaceOfAFile(t *testing.T) {
	const page = "<!DOCTYPE html><html><body>Please sign in</body></html>"
	for name, warned := range map[string]bool{"photo.tif": true, "photo.html": false, "readme.txt": false} {
		w := newTwins(t)
		server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
			_, _ = out.Write([]byte(page))
		}))
		t.Cleanup(server.Close)
		j := w.Ended(w.Submit(name, func(b *ingest.Batch) { b.URL = server.URL }), 1, false)
		if got := strings.Contains(strings.Join(j.FileWarnings, " "), "web page"); got != warned {
			t.Errorf("%s: %q", name, j.FileWarnings)
		}
	}
}

// TestWarningsOfBatch: a limited number of the warnings of a batch's manifest is on its row
// and in its report.
func TestWarningsOfBatch(t *testing.T) {
	w := newTwins(t)
	rows := []string{}
	for range 15 {
		rows = append(rows, w.Source.URL+"/a | | | | | a | | same")
	}
	list := manifest("mrt-single-file-batch-manifest", batchFields, rows...)
	w.Source.Config.Handler = http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/list" {
			_, _ = out.Write([]byte(list))
			return
		}
		_, _ = out.Write([]byte("content"))
	})

	id := w.Submit("list", func(b *ingest.Batch) {
		b.Payload.Type, b.LocalIDs = ingest.TypeSingleFileBatch, nil
	})
	b, err := w.Machine.Queue.Batch(t.Context(), w.Job(id).Batch)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(b.Warnings); n != ingest.MaxWarnings+1 ||
		!strings.Contains(b.Warnings[n-1], "19 more warnings: archivist batch check-manifest") ||
		!strings.Contains(strings.Join(b.Warnings, "\n"), `the localIdentifier "same" is that of line 5 too`) {
		t.Errorf("%d: %q", n, b.Warnings)
	}
	for range 15 {
		w.Drive()
	}
	expectTexts(t, "the report", w.report(b.Batch.ID).Warnings, b.Warnings...)
}

// TestSourceAsksToWait: a source that asks to wait an hour, for the manifest or for a
// file, is asked again after that. Until then nothing runs; what was downloaded stays.
func TestSourceAsksToWait(t *testing.T) {
	for _, busy := range []string{"/list", "/two"} {
		t.Run(busy, func(t *testing.T) {
			w := newTwins(t)
			asked := map[string]int{}
			list := manifest("mrt-ingest-manifest", fileFields,
				w.Source.URL+"/one | | | | | one |", w.Source.URL+"/two | | | | | two |")
			w.Source.Config.Handler = http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodHead {
					out.Header().Set("Content-Length", "7")
					return
				}
				asked[r.URL.Path]++
				if r.URL.Path == busy && asked[busy] == 1 {
					out.Header().Set("Retry-After", "3600")
					out.WriteHeader(http.StatusServiceUnavailable)
					return
				}
				if r.URL.Path == "/list" {
					_, _ = out.Write([]byte(list))
					return
				}
				_, _ = out.Write([]byte("content"))
			})

			id := w.Submit("list", func(b *ingest.Batch) { b.Payload.Type = ingest.TypeObjectManifest })
			w.Drive()
			j := w.Job(id)
			const says = " answered 503 Service Unavailable and asks to wait 3600 s"
			if !j.Deferred() || j.HasSlot || !strings.Contains(j.Message, busy+says) {
				t.Fatalf("%s, deferred %v: %s", j.State, j.Deferred(), j.Message)
			}

			later := func() time.Time { return time.Now().Add(time.Hour + time.Minute) }
			w.Machine.Queue.Now, w.Stages.Now = later, later
			w.Drive()
			w.Drive()
			w.Ended(id, 1, false)
			if asked[busy] != 2 || asked["/one"] != 1 {
				t.Errorf("%v", asked)
			}
		})
	}
}

// TestUTF16Manifest: a manifest in UTF-16 whose type was not given is no plain file: it is
// refused with the reason, with and without a byte order mark.
func TestUTF16Manifest(t *testing.T) {
	for _, mark := range []string{"\xff\xfe", ""} {
		w := newTwins(t)
		list, text := mark, manifest("mrt-ingest-manifest", fileFields, w.Source.URL+"/a | | | | | a |")
		for _, u := range utf16.Encode([]rune(text)) {
			list += string([]byte{byte(u), byte(u >> 8)})
		}
		w.Source.Config.Handler = http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
			_, _ = out.Write([]byte(list))
		})
		id := w.Submit("list", func(b *ingest.Batch) { b.Payload.Type = "" })
		w.Refused(id, "line 1, column 1: the manifest is in UTF-16; save it as UTF-8")
	}
}
