package provenance_test

import (
	"bytes"
	"encoding/xml"
	"flag"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/provenance"
	"archivist/pkg/objects/aip"
	"archivist/pkg/objects/ocfl"
)

var update = flag.Bool("update", false, "write the expected documents again")

var archive = provenance.Archive{NAAN: "99999", Version: "v1.2.3"}

const ark = "ark:/99999/fk4tq65d6k"

// job is one whose two files were downloaded.
func job() *ingest.Job {
	return &ingest.Job{
		ID: "20261122-abc-00001", Batch: "20261122-abc", Primary: ark, LocalIDs: []string{"notes & more"},
		Submitter: "ada@example.org", Payload: ingest.Payload{Type: ingest.TypeObjectManifest},
		Files: 2, Bytes: 12, Checked: 1, Warned: 1, Fetched: 1_800_000_000_000, Stamp: 1_800_000_060_000,
	}
}

func files(yield func(aip.Entry, error) bool) {
	full := aip.Entry{MediaType: "text/plain; charset=utf-8", Given: "md5", File: ocfl.File{
		Path: "producer/a <b>.txt", Size: 5,
		Digests: map[string]string{"sha512": "aa", "sha256": "ab", "md5": "ac"},
	}}
	plain := aip.Entry{File: ocfl.File{
		Path: "producer/c", Size: 7,
		Digests: map[string]string{"sha512": "ca", "sha256": "cb"},
	}}
	_ = yield(full, nil) && yield(plain, nil)
}

// golden compares a document with the expected one.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is another (run with -update if that is meant):\n%s", path, got)
	}
}

// TestDocument: the whole document of a version, as it is stored.
func TestDocument(t *testing.T) {
	var doc bytes.Buffer
	if err := archive.Document(&doc, job(), 2, files); err != nil {
		t.Fatal(err)
	}
	golden(t, "document.xml", doc.Bytes())
}

// TestDocumentFails: an error of the list of files ends the document.
func TestDocumentFails(t *testing.T) {
	broken := fmt.Errorf("the bucket does not answer")
	for _, at := range []int{1, 2} {
		read := 0
		var list iter.Seq2[aip.Entry, error] = func(yield func(aip.Entry, error) bool) {
			read++
			if read == at {
				yield(aip.Entry{}, broken)
				return
			}
			files(yield)
		}
		if err := archive.Document(&bytes.Buffer{}, job(), 1, list); err != broken {
			t.Errorf("the list fails when it is read for the %d. time, and the document says %v", at, err)
		}
	}
}

// TestTerms: every event has a type of the vocabulary, with its URI. There are no events
// of what did not happen.
func TestTerms(t *testing.T) {
	plain := job()
	plain.Payload.Type, plain.Checked, plain.Warned, plain.Submitter = ingest.TypeFile, 0, 0, ""
	var doc, rich bytes.Buffer
	if err := archive.Document(&doc, plain, 1, files); err != nil {
		t.Fatal(err)
	}
	for _, not := range []string{">validation<", ">fixity check<", ">warning<", ">authorizer<", "submitter"} {
		if strings.Contains(doc.String(), not) {
			t.Errorf("%s is in the document of a job without it", not)
		}
	}
	if err := archive.Document(&rich, job(), 1, files); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{doc.String(), rich.String()} {
		events := strings.Count(text, "<eventType ")
		if known := strings.Count(text,
			`valueURI="http://id.loc.gov/vocabulary/preservation/eventType/`); known != events || events < 3 {
			t.Errorf("%d of %d event types are terms of the vocabulary", known, events)
		}
	}
}

// TestTransfers: the event of the transfer says how the files came: who uploaded them, or that they were downloaded.
func TestTransfers(t *testing.T) {
	url := "upload://01M7ZBMEYHBB62YP6RY21T1GQ7/" + strings.Repeat("0", 64)
	box := ingest.Container{Name: "box.zip", Bytes: 7}
	uploaded := func(kind, by string) ingest.Payload {
		return ingest.Payload{Type: kind, Uploader: by, URL: url, Filename: "a.txt"}
	}
	const ann = "4711 (Ada)"
	for says, job := range map[string]ingest.Job{
		"Files downloaded from the URLs in the submission: 2 (12 bytes).": {
			Payload: ingest.Payload{Type: ingest.TypeObjectManifest}},
		"Files uploaded by 4711 (Ada): 2 (12 bytes).": {Sent: 2,
			Payload: uploaded(ingest.TypeObjectManifest, ann)},
		"Files uploaded by 4711 (Ada): 1. Files downloaded from the URLs in the submission: 1. " +
			"They have 12 bytes in all.": {Sent: 1,
			Payload: uploaded(ingest.TypeObjectManifest, ann)},
		"The file a.txt was uploaded by 4711 (Ada) (12 bytes).": {Sent: 1,
			Payload: uploaded(ingest.TypeFile, ann)},
		// Of an earlier release, which did not keep who that was.
		"The file a.txt was uploaded by the depositor (12 bytes).": {Sent: 1,
			Payload: uploaded(ingest.TypeFile, "")},
		"The container box.zip was uploaded by 4711 (Ada) (7 bytes).": {Unpacked: &box,
			Payload: uploaded(ingest.TypeContainer, ann)},
		"The container box.zip was downloaded from the URL in the submission (7 bytes).": {
			Unpacked: &box,
			Payload:  ingest.Payload{Type: ingest.TypeContainer, URL: "https://example.org/b.zip"}},
	} {
		job.ID, job.Primary, job.Files, job.Bytes, job.Fetched = "B-00001", ark, 2, 12, 1_800_000_000_000
		var doc bytes.Buffer
		if err := archive.Document(&doc, &job, 1, files); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(doc.String(), ">"+says+"<") {
			t.Errorf("%q is not in the document:\n%s", says, &doc)
		}
	}
}

// TestOriginators: who calculated each digest of a file first.
func TestOriginators(t *testing.T) {
	for given, want := range map[string]string{
		"":       "aa archivist",
		"sha512": "aa depositor",
		"md5":    "aa archivist, ac depositor",
	} {
		one := func(yield func(aip.Entry, error) bool) {
			yield(aip.Entry{Given: given, File: ocfl.File{Path: "producer/a",
				Digests: map[string]string{"sha512": "aa", "md5": "ac"}}}, nil)
		}
		var doc bytes.Buffer
		if err := archive.Document(&doc, job(), 1, one); err != nil {
			t.Fatal(err)
		}
		var read struct {
			Fixity []struct {
				Digest     string `xml:"messageDigest"`
				Originator string `xml:"messageDigestOriginator"`
			} `xml:"object>objectCharacteristics>fixity"`
		}
		if err := xml.Unmarshal(doc.Bytes(), &read); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range read.Fixity {
			got = append(got, f.Digest+" "+f.Originator)
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%q: got %q, want %s", given, got, want)
		}
	}
}

// TestOCFL: the version's message is the depositor's note, else names the job; a
// submitter has an address in any case, always the same.
func TestOCFL(t *testing.T) {
	for _, c := range []struct{ submitter, note, message, name, address string }{
		{"ada@example.org", "as agreed", "as agreed", "ada@example.org", "mailto:ada@example.org"},
		{"Ada", "", "ingest of job 20261122-abc-00001, batch 20261122-abc", "Ada",
			"urn:uuid:f762a3d0-85ed-5fd5-a711-b223a5a0295d"},
		{"", "", "ingest of job 20261122-abc-00001, batch 20261122-abc", "unknown submitter",
			"urn:uuid:9a66983e-6b87-5119-a4cf-93ecf2436357"},
	} {
		j := job()
		j.Submitter, j.Note = c.submitter, c.note
		v := provenance.OCFL(j)
		if user := (ocfl.User{Name: c.name, Address: c.address}); v.Message != c.message || *v.User != user {
			t.Errorf("%q: got %q by %+v", c.submitter, v.Message, *v.User)
		}
		if v.Created.UnixMilli() != j.Stamp {
			t.Errorf("%q: created at %s", c.submitter, v.Created)
		}
	}
}

// The inventory states when a version was made, why, and by whom.
func ExampleOCFL() {
	v := provenance.OCFL(&ingest.Job{
		ID: "j-1", Note: "as agreed", Submitter: "ada@example.org", Stamp: 1_800_000_000_000,
	})
	fmt.Println(v.Created.Format("2006-01-02"), v.Message, v.User.Address)
	// Output: 2027-01-15 as agreed mailto:ada@example.org
}
