package stage_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/collection"
	"archivist/pkg/ingest/workspace"
)

// manifestOf submits an object manifest; a function makes its rows from the URL of the
// source. Files below /gone are missing.
func (w *twins) manifestOf(rows func(url string) []string) string {
	w.Helper()
	w.Stages.Fetch.Tries = 1
	list := manifest("mrt-ingest-manifest", fileFields, rows(w.Source.URL)...)
	w.Source.Config.Handler = http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/list":
			_, _ = out.Write([]byte(list))
		case strings.HasPrefix(r.URL.Path, "/gone"):
			http.NotFound(out, r)
		default:
			_, _ = out.Write([]byte("content"))
		}
	})
	return w.Submit("list", func(b *ingest.Batch) { b.Payload.Type = ingest.TypeObjectManifest })
}

// TestEveryWrongFileIsNamed: the message names all bad files of a job, with what is wrong
// with each, in the manifest's order.
func TestEveryWrongFileIsNamed(t *testing.T) {
	w := newTwins(t)
	wrong := strings.Repeat("0", 32)
	j := w.Job(w.manifestOf(func(url string) (rows []string) {
		for i := range 1200 {
			row := fmt.Sprintf("%s/a | | | | | right%d |", url, i)
			switch {
			case i%400 == 7:
				row = fmt.Sprintf("%s/a | md5 | %s | | | digest%d |", url, wrong, i)
			case i == 600:
				row = url + "/a | | | 8 | | size |"
			case i == 1100:
				row = url + "/gone | | | | | gone |"
			}
			rows = append(rows, row)
		}
		return rows
	}))
	at := 0
	for _, want := range []string{"5 of 1200 files failed: file digest7: the depositor's md5 is " + wrong,
		"; file digest407: ", "; file size: the depositor's size is 8 bytes, but 7 were received",
		"; file digest807: ", "; file gone: " + w.Source.URL + "/gone answered 404 Not Found",
		". Correct the files or the manifest, then submit it again"} {
		i := strings.Index(j.Message[at:], want)
		if i < 0 {
			t.Fatalf("%q does not say %q after byte %d", j.Message, want, at)
		}
		at += i
	}
	if j.State != ingest.Failed || !j.NotRecoverable || strings.Contains(j.Message, "not tried") {
		t.Errorf("%s: %s", j.State, j.Message)
	}
}

// TestManyFilesAreGone: a source that is down is not asked for all of its files, and the
// message has a limited length.
func TestManyFilesAreGone(t *testing.T) {
	w := newTwins(t)
	long := strings.Repeat("long/", 200)
	j := w.Job(w.manifestOf(func(url string) (rows []string) {
		for i := range 600 {
			rows = append(rows, fmt.Sprintf("%s/gone | | | | | %s%d |", url, long, i))
		}
		return rows
	}))
	if j.State != ingest.Failed || j.NotRecoverable || !strings.Contains(j.Message, "; not tried: ") ||
		!strings.Contains(j.Message, "Correct the source, then requeue") {
		t.Errorf("%s: %s", j.State, j.Message)
	}
	if n := strings.Count(j.Message, "answered 404"); n != 20 || len(j.Message) > 10_000 {
		t.Errorf("%d files are named in %d bytes", n, len(j.Message))
	}
}

// TestRowsThatCannotBeHeld: a batch manifest with a row that a later step could not
// hold makes no job, and the message names its line and column.
func TestRowsThatCannotBeHeld(t *testing.T) {
	w := newTwins(t)
	list := func(local, title string) string {
		url := w.Source.URL + "/a"
		return manifest("mrt-batch-manifest", batchFields, url+" | | | | | a | | fine | | |",
			url+" | | | | | b | | "+local+" | | "+title+" |")
	}
	for text, says := range map[string]string{
		list(strings.Repeat("é", 251), ""):              "line 6, column 42: the local id that begins with",
		list(strings.Join(ids(21), ";"), ""):            "at most 20 local ids",
		list("x\x07", ""):                               "the column localidentifier has the character U+0007",
		list("a", strings.Repeat("é", 2001)):            "the title has 4002 bytes; at most 4000 are allowed",
		manifest("mrt-batch-manifest", batchFields, ""): "has no rows",
	} {
		w.Source.Config.Handler = http.HandlerFunc(func(out http.ResponseWriter,
			_ *http.Request) {
			_, _ = out.Write([]byte(text))
		})
		id := w.Submit("list", func(b *ingest.Batch) { b.Payload.Type, b.LocalIDs = ingest.TypeBatchManifest, nil })
		b, err := w.Machine.Queue.Batch(t.Context(), strings.TrimSuffix(id, "-00001"))
		if err != nil || b.State != ingest.BatchFailed || b.Unpacked != 0 || !strings.Contains(b.Message, says) {
			t.Errorf("%s, %d jobs: %s, %v; expected %q", b.State, b.Unpacked, b.Message, err, says)
		}
	}
}

func ids(n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprint("id", i))
	}
	return out
}

// TestRequiredDigest: a collection that requires digests refuses a file without one,
// whether its type was given or detected.
func TestRequiredDigest(t *testing.T) {
	w := newTwins(t)
	if err := w.Stages.Collections.Put(t.Context(), "bench", collection.Profile{RequireDigest: true},
		collection.By{Actor: "me"},
		0); err != nil {
		t.Fatal(err)
	}
	for _, given := range []string{ingest.TypeFile, ""} {
		id := w.Submit("a.txt", func(b *ingest.Batch) { b.Payload.Type = given })
		b, err := w.Machine.Queue.Batch(t.Context(), strings.TrimSuffix(id, "-00001"))
		if err != nil || b.State != ingest.BatchFailed || !strings.Contains(b.Message, "the file has no digest") {
			t.Errorf("type %q: %s: %s, %v", given, b.State, b.Message, err)
		}
		w.Ended(w.Submit("a.txt", func(b *ingest.Batch) {
			b.Payload.Type, b.Payload.Algorithm, b.Payload.Digest = given, "md5", "cf275be45a385bbd6adf00aa6d2edbef"
		}), 1, given == "")
	}
}

// TestOneObjectOnly: a submission of many objects is refused if it has fields that
// describe one object; they are not ignored.
func TestOneObjectOnly(t *testing.T) {
	w := newTwins(t)
	text := manifest("mrt-batch-manifest", batchFields, w.Source.URL+"/a | | | | | a | | fine | | |")
	w.Source.Config.Handler = http.HandlerFunc(func(out http.ResponseWriter,
		_ *http.Request) {
		_, _ = out.Write([]byte(text))
	})
	for _, given := range []string{ingest.TypeBatchManifest, ""} {
		id := w.Submit("list", func(b *ingest.Batch) { b.Payload.Type, b.IfVersion = given, 2 })
		b, err := w.Machine.Queue.Batch(t.Context(), strings.TrimSuffix(id, "-00001"))
		if err != nil || b.State != ingest.BatchFailed ||
			!strings.Contains(b.Message, "identifiers.local, ifVersion name one object") ||
			strings.Contains(b.Message, "several") { // the manifest has one row
			t.Errorf("type %q: %s: %s, %v", given, b.State, b.Message, err)
		}
	}
}

// TestSizeZero: a size of 0 is a size.
func TestSizeZero(t *testing.T) {
	w := newTwins(t)
	w.Refused(w.Submit("a.txt", func(b *ingest.Batch) { b.Empty = true }),
		"the depositor's size is 0 bytes, but 17 were received")
}

// TestReportOfNothing: the report of an empty file says that it has 0 bytes.
func TestReportOfNothing(t *testing.T) {
	w := newTwins(t)
	w.Source.Config.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	j := w.Ended(w.Submit("empty.txt"), 1, false)
	report, _, err := w.Stages.Work.Read(t.Context(), workspace.ReportKey(j.Batch, 1))
	if err != nil || !strings.Contains(string(report), `"files":1,"bytes":0,`) {
		t.Errorf("the report is %s, %v", report, err)
	}
}
