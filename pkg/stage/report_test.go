package stage_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"archivist/pkg/checkm"
	"archivist/pkg/ingest"
	"archivist/pkg/notify"
)

// report reads a batch's saved report.
func (w *twins) report(batch string) (r notify.Report) {
	w.Helper()
	b, err := w.m.Queue.Batch(w.Context(), batch)
	if err != nil {
		w.Fatal(err)
	}
	data, _, err := w.s.Work.Read(w.Context(), b.Report)
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err != nil {
		w.Fatalf("the report of %s (%s): %v", batch, b.State, err)
	}
	return r
}

// TestReport: each job's line says what is preserved, file by file, or what to do.
func TestReport(t *testing.T) {
	w := newTwins(t)
	const content = "content of a"
	source := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		var rows []checkm.Row
		row := checkm.Row{URL: "http://" + r.Host + "/a", Name: "a.txt", Algorithm: "md5", Digest: "3939143418786c525351edbd330b7769", Size: 99}
		switch r.URL.Path {
		case "/a":
			_, _ = out.Write([]byte(content))
			return
		case "/good":
			rows = []checkm.Row{row}
		case "/many":
			for n := range 21 {
				rows = append(rows, checkm.Row{URL: row.URL, Name: fmt.Sprintf("%d.txt", n), Size: -1})
			}
		case "/wrong":
			row.Digest = strings.Repeat("0", 32)
			rows = []checkm.Row{row}
		case "/batch":
			for _, name := range []string{"good", "many", "wrong", "gone"} {
				rows = append(rows, checkm.Row{URL: "http://" + r.Host + "/" + name, Name: name, Local: []string{name}, Title: "Title of " + name, Size: -1})
			}
			_ = checkm.WriteBatch(out, "http://uc3.cdlib.org/registry/ingest/manifest/mrt-batch-manifest", rows)
			return
		default:
			http.NotFound(out, r)
			return
		}
		_ = checkm.Write(out, "http://uc3.cdlib.org/registry/ingest/manifest/mrt-ingest-manifest", rows)
	}))
	defer source.Close()
	in := ingest.Batch{Collection: "bench", Mode: "add", Note: "a note", Payload: ingest.Payload{URL: source.URL + "/batch", Type: ingest.TypeBatchManifest, Filename: "b"}}
	row, err := w.m.Queue.Submit(t.Context(), in, "", nil, "me")
	if err != nil {
		t.Fatal(err)
	}
	w.run()
	id := row.Batch.ID
	r := w.report(id)
	if r.Batch != id || r.Collection != "bench" || r.Note != "a note" || r.Counts != (notify.Counts{Failed: 2, Completed: 2}) || len(r.Failed) != 2 || len(r.Completed) != 2 || r.Open == nil {
		t.Fatalf("%+v", r)
	}
	good, job := r.Completed[0], w.job(ingest.JobID(id, 1))
	if good.ARK != job.Primary || good.Version != 1 || good.InventoryDigest != job.Inventory || good.Receipt != "/v1/jobs/"+job.Job.ID+"/receipt" || good.Title != "Title of good" || good.Warnings != 1 {
		t.Errorf("%+v", good)
	}
	if f := good.FileDetails; len(f) != 1 || f[0].Path != "producer/a.txt" || f[0].Size != int64(len(content)) || f[0].Given == nil || f[0].Given.Algorithm != "md5" ||
		f[0].Given.Value != "3939143418786c525351edbd330b7769" || len(f[0].Digests["sha512"]) != 128 || !strings.Contains(f[0].Warning, "99") {
		t.Errorf("%+v", f)
	}
	if many := r.Completed[1]; many.Files != 21 || len(many.FileDetails) != 0 || many.Receipt == "" {
		t.Errorf("%+v", many)
	}
	for i, says := range []string{"the depositor's md5 is 0000", "404"} {
		if f := r.Failed[i]; !strings.Contains(f.Message, says) || f.Recoverable != (i == 1) || f.Next != notify.NextStep(f.Recoverable) || f.Receipt != "" {
			t.Errorf("%+v", f)
		}
	}
}

// TestNoCharsetIsMadeUp: a text file's type is recorded without a charset, unless the
// depositor names one.
func TestNoCharsetIsMadeUp(t *testing.T) {
	w := newTwins(t)
	j := w.ended(w.submit("latin1.txt"), 1, false)
	stored, err := w.s.Root.Head(t.Context(), j.Primary)
	if err != nil {
		t.Fatal(err)
	}
	files, _, err := w.s.Files(t.Context(), stored, 1, 0, 1)
	if err != nil || len(files) != 1 || files[0].MediaType != "text/plain" {
		t.Errorf("%+v, %v", files, err)
	}
}
