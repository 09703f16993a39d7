package stage_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"archivist/pkg/ingest"
)

// manifestOf submits an object manifest whose rows a function gives from the URL of
// the source; files below /gone are not there.
func (w *twins) manifestOf(rows func(url string) []string) string {
	w.Helper()
	w.s.Fetch.Tries = 1
	list := manifest("mrt-ingest-manifest", fileFields, rows(w.source.URL)...)
	w.source.Config.Handler = http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/list":
			_, _ = out.Write([]byte(list))
		case strings.HasPrefix(r.URL.Path, "/gone"):
			http.NotFound(out, r)
		default:
			_, _ = out.Write([]byte("content"))
		}
	})
	return w.submit("list", func(b *ingest.Batch) { b.Payload.Type = ingest.TypeObjectManifest })
}

// TestEveryWrongFileIsNamed: all files of a job that cannot be taken are named with
// what is wrong with each, in the manifest's order.
func TestEveryWrongFileIsNamed(t *testing.T) {
	w := newTwins(t)
	wrong := strings.Repeat("0", 32)
	j := w.job(w.manifestOf(func(url string) (rows []string) {
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
	for _, want := range []string{"5 of 1200 files cannot be taken: file digest7: the depositor's md5 is " + wrong, "; file digest407: ", "; file size: the depositor's size is 8 bytes, but 7 came",
		"; file digest807: ", "; file gone: " + w.source.URL + "/gone answered 404 Not Found", ". Correct the files or what is said of them, then submit it again"} {
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

// TestManyFilesAreGone: a source that is down is not asked for all of its files, and
// what is said of them is bounded.
func TestManyFilesAreGone(t *testing.T) {
	w := newTwins(t)
	long := strings.Repeat("long/", 200)
	j := w.job(w.manifestOf(func(url string) (rows []string) {
		for i := range 600 {
			rows = append(rows, fmt.Sprintf("%s/gone | | | | | %s%d |", url, long, i))
		}
		return rows
	}))
	if j.State != ingest.Failed || j.NotRecoverable || !strings.Contains(j.Message, "files were not tried") || !strings.Contains(j.Message, "Correct it at the source, then requeue") {
		t.Errorf("%s: %s", j.State, j.Message)
	}
	if n := strings.Count(j.Message, "answered 404"); n != 20 || len(j.Message) > 10_000 {
		t.Errorf("%d files are named in %d bytes", n, len(j.Message))
	}
}
