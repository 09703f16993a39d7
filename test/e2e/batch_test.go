package e2e

import (
	"strings"
	"testing"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/formats/checkm"
	"archivist/pkg/ingest"
)

// list puts a batch manifest of object manifests, and returns its URL.
func (s *source) list(t *testing.T, path, profile string, rows ...checkm.Row) string {
	t.Helper()
	var b strings.Builder
	if err := checkm.WriteBatch(&b, "http://uc3.cdlib.org/registry/ingest/manifest/"+profile, rows); err != nil {
		t.Fatal(err)
	}
	return s.put(path, []byte(b.String()))
}

// TestBatchFailuresAreIsolated: of five objects in a batch manifest three are wrong. They
// fail alone, each with its reason, and the one whose source is corrected is requeued.
func TestBatchFailuresAreIsolated(t *testing.T) {
	begin(t)
	src := newSource(t)
	src.put("/good.txt", []byte("good content"))
	wrong, missing := src.row("/good.txt"), src.row("/good.txt")
	wrong.Digest = strings.Repeat("0", 32)
	missing.URL = src.URL + "/late.txt"
	src.manifest(t, "/wrong.checkm", wrong)
	src.manifest(t, "/missing.checkm", missing)
	src.manifest(t, "/one.checkm", src.row("/good.txt"))
	src.manifest(t, "/two.checkm", src.row("/good.txt"))
	src.put("/cut.checkm", []byte(strings.TrimSuffix(string(src.files["/one.checkm"]), "#%eof\n")))
	var rows []checkm.Row
	for _, m := range []string{"/wrong.checkm", "/missing.checkm", "/cut.checkm", "/one.checkm", "/two.checkm"} {
		r := src.row(m)
		r.Local, r.Title, r.Creator, r.Date = []string{"five" + m}, "Object "+m, "Me; You", "2026"
		rows = append(rows, r)
	}
	batch, _ := submit(t, src.list(t, "/batch.checkm", "mrt-batch-manifest", rows...), "")
	until(t, "the batch reports", 2*soon, func() bool { return batchOf(t, batch).State == "Failed" })
	b, report := batchOf(t, batch), reportOf(t, batch)
	if want := (v1.Counts{Expected: 5, Failed: 3, Completed: 2}); b.Counts != want {
		t.Errorf("the counts are %+v", b.Counts)
	}
	for n, says := range map[int]string{1: "the depositor's md5 is 0000", 2: "404", 3: "#%eof"} {
		j := jobOf(t, ingest.JobID(batch, n))
		if j.State != "Failed" || !strings.Contains(j.Message, says) || !strings.Contains(report, says) {
			t.Errorf("job %d: %s %q", n, j.State, j.Message)
		}
	}
	for n := 4; n <= 5; n++ {
		j := jobOf(t, ingest.JobID(batch, n))
		if j.State != "Completed" || j.Priority != ingest.BatchPriority(5) ||
			string(content(t, j, "producer/good.txt")) != "good content" {
			t.Errorf("job %d: %+v", n, j)
		}
		if erc := string(content(t, j, "system/mrt-erc.txt")); !strings.Contains(erc, "what: Object /") ||
			!strings.Contains(erc, "who: Me; You") {
			t.Errorf("job %d: %s", n, erc)
		}
	}
	var mail []string
	until(t, "the report is mailed", soon, func() bool {
		mail = mails(t, "3 of 5 objects failed: "+batch)
		return len(mail) > 0
	})
	if len(mail) != 1 {
		t.Fatalf("%d mails", len(mail))
	}
	for _, says := range []string{"md5 is 0000", "404", "#%eof", "PRESERVED", "requeue the job",
		"a new submission is needed"} {
		if !strings.Contains(mail[0], says) {
			t.Errorf("the mail does not say %q: %s", says, mail[0])
		}
	}
	src.put("/late.txt", []byte("good content"))
	if err := requeue(t, ingest.JobID(batch, 2)); err != nil {
		t.Fatal(err)
	}
	ends(t, ingest.JobID(batch, 2), "Completed", soon)
	if want := (v1.Counts{Expected: 5, Failed: 2, Completed: 3}); batchOf(t, batch).Counts != want {
		t.Errorf("after the requeue the counts are %+v", batchOf(t, batch).Counts)
	}
}

// TestSingleFileBatchMakesAnObjectOfEachRow: each row of a single-file batch becomes an
// object, and an invalid batch manifest makes no job.
func TestSingleFileBatchMakesAnObjectOfEachRow(t *testing.T) {
	begin(t)
	src := newSource(t)
	var rows []checkm.Row
	for _, name := range []string{"/a b.txt", "/c.txt"} {
		src.put(name, []byte("content of "+name))
		r := src.row(name)
		r.URL = src.URL + strings.ReplaceAll(name, " ", "%20")
		rows = append(rows, r)
	}
	batch, job := submit(t, src.list(t, "/files.checkm", "mrt-single-file-batch-manifest", rows...), "")
	until(t, "the batch completes", soon, func() bool { return batchOf(t, batch).State == "Completed" })
	if got := string(content(t, jobOf(t, job), "producer/a b.txt")); got != "content of /a b.txt" {
		t.Errorf("stored %q", got)
	}
	rows[0].Algorithm, rows[1].URL = "md2", "nowhere"
	batch, _ = submit(t, src.list(t, "/bad.checkm", "mrt-single-file-batch-manifest", rows...), "")
	until(t, "the batch fails", soon, func() bool { return batchOf(t, batch).State == "Failed" })
	b := batchOf(t, batch)
	until(t, "the mail says that the submission failed", soon,
		func() bool { return len(mails(t, "Submission failed")) == 1 })
	if b.Counts != (v1.Counts{}) || !strings.Contains(b.Message, "md2") || !strings.Contains(b.Message, "nowhere") {
		t.Errorf("%+v", b)
	}
}
