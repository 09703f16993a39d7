package stage_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"archivist/pkg/formats/checkm"
	"archivist/pkg/ingest"
	"archivist/pkg/objects/formats"
	"archivist/pkg/objects/formats/pronom"
)

// TestFormatsBeforeTheReceipt: a file whose content is not what its name says is named in the warnings of its job, in
// the report and in the receipt, also if it is not in memory as a whole; a right one is not.
func TestFormatsBeforeTheReceipt(t *testing.T) {
	for _, part := range []int64{16 << 20, 5 << 20} {
		w := newTwins(t)
		identify, _, err := pronom.OpenBrief()
		if err != nil {
			t.Fatal(err)
		}
		w.Stages.Identify = identify
		w.Stages.Work.Limits.Part = part
		tiff := "II*\x00\x08\x00\x00\x00\x00\x00" + strings.Repeat("\x00", 6<<20)
		source := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/list" {
				_, _ = io.WriteString(out, tiff)
				return
			}
			var rows []checkm.Row
			for _, name := range []string{"photo.tif", "photo.pdf"} {
				rows = append(rows, checkm.Row{URL: "http://" + r.Host + "/" + name, Name: name,
					Size: int64(len(tiff))})
			}
			_ = checkm.Write(out, "http://uc3.cdlib.org/registry/ingest/manifest/mrt-ingest-manifest", rows)
		}))
		id := w.Submit("list", func(b *ingest.Batch) {
			b.Payload = ingest.Payload{URL: source.URL + "/list", Type: ingest.TypeObjectManifest, Filename: "list"}
		})
		source.Close()
		const says = `its content is Tagged Image File Format (fmt/353), although its name ends in ".pdf"`
		j := w.Ended(id, 1, false)
		if len(j.FileWarnings) != 1 || j.FileWarnings[0] != "file photo.pdf: "+says {
			t.Errorf("parts of %d bytes: %q", part, j.FileWarnings)
		}
		report, err := json.Marshal(w.report(j.Batch))
		if err != nil || strings.Count(string(report), `although its name ends in \".pdf\"`) < 1 {
			t.Errorf("parts of %d bytes: the report is %s, %v", part, report, err)
		}
	}
}

// TestFailedIdentification: what goes wrong with the formats of received files does not concern their jobs.
func TestFailedIdentification(t *testing.T) {
	for name, identify := range map[string]formats.Identify{
		"a panic": func(context.Context, string, io.ReaderAt, int64) ([]formats.Match, error) {
			panic("hostile content")
		},
		"an error": func(context.Context, string, io.ReaderAt, int64) ([]formats.Match, error) {
			return nil, errors.New("no signatures")
		},
	} {
		w := newTwins(t)
		w.Stages.Identify = identify
		if j := w.Ended(w.Submit("photo.tif"), 1, false); len(j.FileWarnings) > 0 {
			t.Errorf("%s: %q", name, j.FileWarnings)
		}
	}
}
