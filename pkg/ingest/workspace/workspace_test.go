package workspace_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"archivist/pkg/formats/checkm"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/workspace"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/bucket/buckettest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/aip"
	"archivist/pkg/objects/ocfl"
)

// Example shows where the first job of a batch keeps its files.
func Example() {
	job := &ingest.Job{ID: "01M7ZBMEYHBB62YP6R00000001-00001"}
	for _, key := range []string{
		workspace.ManifestKey(job),
		workspace.FileKey(job.ID, 0),
		workspace.SystemKey(job.ID),
		workspace.PlanKey(job.ID),
		workspace.ReportKey("01M7ZBMEYHBB62YP6R00000001", 1),
		workspace.ReportKey("01M7ZBMEYHBB62YP6R00000001", 2),
	} {
		fmt.Println(key)
	}
	// Output:
	// jobs/01M7ZBMEYHBB62YP6R00000001-00001/manifest.checkm
	// jobs/01M7ZBMEYHBB62YP6R00000001-00001/files/000000
	// jobs/01M7ZBMEYHBB62YP6R00000001-00001/version.json
	// jobs/01M7ZBMEYHBB62YP6R00000001-00001/plan.json
	// reports/01M7ZBMEYHBB62YP6R00000001.json
	// reports/01M7ZBMEYHBB62YP6R00000001.2.json
}

// work is a work bucket on a twin of S3.
func work(t *testing.T) workspace.Store {
	server := httptest.NewServer(buckettest.New(t.TempDir()))
	t.Cleanup(server.Close)
	client := buckettest.Client(server.URL)
	return workspace.Store{Bucket: bucket.Bucket{Client: client, Name: "work", Limits: bucket.DefaultLimits}}
}

// list is a job with a manifest of n files.
func list(t *testing.T, s workspace.Store, n int) *ingest.Job {
	var text strings.Builder
	text.WriteString("#%checkm_0.7\n" +
		"#%profile | http://uc3.cdlib.org/registry/ingest/manifest/mrt-ingest-manifest\n" +
		"#%prefix | nfo: | http://www.semanticdesktop.org/ontologies/2007/03/22/nfo#\n" +
		"#%fields | nfo:fileUrl | nfo:hashAlgorithm | nfo:hashValue | nfo:fileSize | nfo:fileLastModified | " +
		"nfo:fileName\n")
	for i := range n {
		fmt.Fprintf(&text, "http://example.org/%d | | | | | file%d\n", i, i)
	}
	text.WriteString("#%eof\n")
	j := &ingest.Job{ID: "B-00001", Files: n, Payload: ingest.Payload{Type: ingest.TypeObjectManifest}}
	if err := s.Put(t.Context(), workspace.ManifestKey(j), []byte(text.String()), bucket.Condition{}); err != nil {
		t.Fatal(err)
	}
	return j
}

// TestLedger: the files of a manifest are in segments, in order. An unfinished segment is
// read again, and a finished one is never overwritten.
func TestLedger(t *testing.T) {
	s := work(t)
	j := list(t, s, 2*workspace.SegmentFiles+1)
	var sizes []int
	err := s.Segments(t.Context(), j, func(n int, rows []checkm.Row) error {
		sizes = append(sizes, len(rows))
		entries, err := s.Unfinished(t.Context(), j.ID, n, len(rows))
		if err != nil || len(entries) != len(rows) || entries[0] != nil {
			t.Errorf("segment %d begins with %d entries, %v", n, len(entries), err)
		}
		for i, row := range rows {
			entries[i] = &aip.Entry{File: ocfl.File{Path: row.Name}}
		}
		return s.PutSegment(t.Context(), j.ID, n, entries)
	})
	if err != nil || fmt.Sprint(sizes) != "[500 500 1]" {
		t.Fatal(sizes, err)
	}
	if err := s.PutSegment(t.Context(), j.ID, 1, []*aip.Entry{{}}); !fault.Is(err, fault.Stale) {
		t.Errorf("a finished segment is written again: %v", err)
	}
	n := 0
	for e, err := range s.Entries(t.Context(), j) {
		if want := fmt.Sprintf("file%d", n); err != nil || e.Path != want {
			t.Fatalf("entry %d is %q, not %q: %v", n, e.Path, want, err)
		}
		n++
	}
	done, err := s.FinishedSegments(t.Context(), j.ID)
	if err != nil || n != j.Files || len(done) != 3 || !done[2] {
		t.Errorf("%d entries in the segments %v, %v", n, done, err)
	}
}

// TestUnfinishedSegment: the files that are there are kept, and the others are not.
func TestUnfinishedSegment(t *testing.T) {
	s := work(t)
	entries := []*aip.Entry{nil, {URL: "http://example.org/1"}, nil}
	if err := s.PutUnfinished(t.Context(), "B-00001", 4, entries); err != nil {
		t.Fatal(err)
	}
	got, err := s.Unfinished(t.Context(), "B-00001", 4, 3)
	if err != nil || len(got) != 3 || got[0] != nil || got[2] != nil || got[1].URL != entries[1].URL {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestPlan: of two workers that plan a version at once, one succeeds.
func TestPlan(t *testing.T) {
	s, j := work(t), &ingest.Job{ID: "B-00001", Primary: "ark:/99999/fk4x"}
	none, err := s.Plan(t.Context(), j.ID)
	if err != nil || none.IsOf(j) {
		t.Fatal(none, err)
	}
	first, second := none.Replacing(j, "one", 1), none.Replacing(j, "two", 2)
	first.ID, second.ID = j.Primary, j.Primary
	if err := s.PutPlan(t.Context(), j.ID, first); err != nil {
		t.Fatal(err)
	}
	if err := s.PutPlan(t.Context(), j.ID, second); !fault.Is(err, fault.Stale) {
		t.Errorf("the plan of another worker is replaced: %v", err)
	}
	got, err := s.Plan(t.Context(), j.ID)
	if err != nil || !got.IsOf(j) || got.Attempt != "one" || got.Fresh {
		t.Errorf("%+v, %v", got, err)
	}
	if err := s.PutPlan(t.Context(), j.ID, got.Replacing(j, "three", 3)); err != nil {
		t.Error(err)
	}
}

// TestContents: a list of new content is in the plan if it is one segment, else in files
// next to it.
func TestContents(t *testing.T) {
	for _, n := range []int{0, 1, workspace.SegmentFiles, workspace.SegmentFiles + 1} {
		s, p := work(t), &workspace.Plan{Attempt: "one"}
		w := s.CreateContents("B-00001", p)
		for i := range n {
			if err := w.Add(t.Context(), ocfl.Content{To: fmt.Sprint(i)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.Contents = n
		read := 0
		for segment := range p.Segments() {
			list, err := s.Contents(t.Context(), "B-00001", p, segment)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range list {
				if c.To != fmt.Sprint(read) {
					t.Errorf("of %d, file %d is %s", n, read, c.To)
				}
				read++
			}
		}
		if read != n || (len(p.List) > 0) != (n > 0 && n <= workspace.SegmentFiles) {
			t.Errorf("%d of %d files were read, %d are in the plan", read, n, len(p.List))
		}
	}
}

// TestText: a small text is returned, a large one is an object; both read the same.
func TestText(t *testing.T) {
	const key = "jobs/B-00001/text"
	for _, size := range []int{0, 10, 11, 2 << 20} {
		s, text := work(t), bytes.Repeat([]byte("x"), size)
		w := s.Create(t.Context(), key, 10)
		for part := range bytes.SplitSeq(text, []byte("")) {
			if _, err := w.Write(part); err != nil {
				t.Fatal(err)
			}
		}
		small, large, err := w.Close()
		if err != nil || large != (size > 10) {
			t.Fatalf("%d bytes: large %v, %v", size, large, err)
		}
		f := ocfl.File{Data: small}
		if large {
			f.Source = key
		}
		open := s.TextOf(f)
		for range 2 {
			body, err := open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(body); err != nil || !bytes.Equal(got, text) {
				t.Errorf("%d of %d bytes, %v", len(got), size, err)
			}
			body.Close()
		}
	}
}

// TestClean: the files of a job are removed, and no others.
func TestClean(t *testing.T) {
	s := work(t)
	for _, key := range []string{workspace.PlanKey("B-00001"), workspace.PlanKey("B-000011")} {
		if err := s.PutJSON(t.Context(), key, 1, bucket.Condition{}); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Unix(100, 0)
	clean := func(until time.Time) bool {
		all, err := s.Clean(t.Context(), "B-00001", until, func() time.Time { return now })
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	if clean(now) || !clean(now.Add(time.Second)) {
		t.Error("files were removed after the time was up")
	}
	var n int
	err := s.GetJSON(t.Context(), workspace.PlanKey("B-00001"), &n)
	if !fault.Is(err, fault.NotFound) {
		t.Errorf("the plan is there still: %v", err)
	}
	if err := s.GetJSON(t.Context(), workspace.PlanKey("B-000011"), &n); err != nil || n != 1 {
		t.Errorf("another job's plan is gone: %v", err)
	}
}
