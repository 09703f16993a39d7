package systemfile_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"archivist/pkg/formats/checkm"
	"archivist/pkg/formats/erc"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/description"
	"archivist/pkg/ingest/provenance"
	"archivist/pkg/ingest/systemfile"
	"archivist/pkg/objects/aip"
	"archivist/pkg/objects/inventory"
	"archivist/pkg/objects/ocfl"
)

const submitted = "#%checkm_0.7\n" +
	"#%profile | http://uc3.cdlib.org/registry/ingest/manifest/mrt-ingest-manifest\n" +
	"http://example.org/a%20b | | | 3 | | a b |\n\n" +
	"#%eof\n"

// version is a version of two files with the description of a package.
func version() systemfile.Version {
	return systemfile.Version{
		Number: 2,
		Job: &ingest.Job{
			ID: "job-1", Batch: "batch-1", Collection: "maps", Mode: "add", Submitter: "Ada",
			Primary: "ark:/99999/fk4a", LocalIDs: []string{"notebook 7", "doi:10.1/x"},
			Created: 1_800_000_000_000, Stamp: 1_800_000_060_000,
			Payload: ingest.Payload{Type: ingest.TypeObjectManifest,
				URL: "https://user:secret@example.org/m.checkm?sig=x"},
		},
		Description: description.Description{Kernel: erc.Kernel{
			Who: []string{"Ada", "Luigi & Co"}, What: []string{"Notes"},
			More: map[string][]string{"rights": {"CC0"}},
		}},
		Entries: func(yield func(aip.Entry, error) bool) {
			sums := map[string]string{"sha256": strings.Repeat("a", 64), "sha512": strings.Repeat("b", 128)}
			_ = yield(aip.Entry{URL: "http://example.org/a%20b", MediaType: "text/plain",
				File: ocfl.File{Path: "producer/a b", Size: 3, Digests: sums}}, nil)
		},
		Manifest: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(submitted)), nil },
		Archive:  provenance.Archive{NAAN: "99999", Version: "v1"},
	}
}

// texts are the system files by path.
func texts(t *testing.T, v systemfile.Version) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, f := range v.Files() {
		var text bytes.Buffer
		if err := f.Write(&text); err != nil {
			t.Fatalf("%s: %v", f.Path, err)
		}
		out[f.Path] = text.String()
	}
	return out
}

// TestFiles: the small system files, as they are stored.
func TestFiles(t *testing.T) {
	got := texts(t, version())
	for path, want := range map[string]string{
		"system/mrt-ingest.txt": `ingest: archivist
batch: batch-1
job: job-1
collection: maps
submitter: Ada
mode: add
payloadType: object-manifest
payloadURL: https://example.org/m.checkm?redacted
submissionDate: 2027-01-15T08:00:00Z
processDate: 2027-01-15T08:01:00Z
`,
		"system/mrt-mom.txt": `primaryIdentifier: ark:/99999/fk4a
type: MRT-curatorial
role: MRT-content
localIdentifier: notebook 7; doi:10.1/x
`,
		"system/mrt-owner.txt":      "owner: maps\n",
		"system/mrt-membership.txt": "collection: maps\n",
		"system/mrt-erc.txt": `erc:
who: Ada
who: Luigi & Co
what: Notes
when: (:unas)
where: ark:/99999/fk4a
where: notebook 7
where: doi:10.1/x
`,
		"system/mrt-dc.xml": `<?xml version="1.0" encoding="UTF-8"?>
<dc xmlns="http://www.openarchives.org/OAI/2.0/oai_dc/" xmlns:dc="http://purl.org/dc/elements/1.1/">
  <dc:title>Notes</dc:title>
  <dc:creator>Ada</dc:creator>
  <dc:creator>Luigi &amp; Co</dc:creator>
  <dc:rights>CC0</dc:rights>
  <dc:identifier>ark:/99999/fk4a</dc:identifier>
  <dc:identifier>notebook 7</dc:identifier>
  <dc:identifier>doi:10.1/x</dc:identifier>
</dc>
`,
		"system/mrt-submission-manifest.checkm": submitted,
	} {
		if got[path] != want {
			t.Errorf("%s is\n%s\nwant\n%s", path, got[path], want)
		}
	}
	if !strings.Contains(got["system/premis.xml"], "ark:/99999/fk4a/v2/producer/a b<") {
		t.Errorf("the provenance does not name the file:\n%s", got["system/premis.xml"])
	}
	manifest := strings.NewReader(got["system/mrt-manifest.checkm"])
	_, rows, problems, err := checkm.ReadAll(manifest, checkm.Options{Stored: true})
	if err != nil || len(problems) > 0 || len(rows) != 1 || rows[0].Name != "producer/a b" || rows[0].Size != 3 {
		t.Errorf("the storage manifest is read as %+v, %v, %v", rows, problems, err)
	}
}

// TestDescriptionIsReadTheSame: a description is read as it was written.
func TestDescriptionIsReadTheSame(t *testing.T) {
	v := version()
	v.Description.When = []string{"1843"}
	v.Description.More["subject"] = []string{"  maths\nand engines "}
	got := texts(t, v)
	fromERC, err := erc.ReadERC(strings.NewReader(got["system/mrt-erc.txt"]))
	if err != nil {
		t.Fatal(err)
	}
	fromDC, err := erc.ReadDC(strings.NewReader(got["system/mrt-dc.xml"]))
	if err != nil {
		t.Fatal(err)
	}
	read, want := fromERC.Or(fromDC), v.Description.Kernel
	want.Where = []string{"ark:/99999/fk4a", "notebook 7", "doi:10.1/x"}
	want.More["subject"] = []string{"maths\nand engines"}
	if fmt.Sprint(read) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", read, want)
	}
}

// TestRedacted: a manifest with secrets is kept without them, with the digest of the original.
func TestRedacted(t *testing.T) {
	v := version()
	secret := strings.Replace(submitted, "http://example.org/a%20b", "http://user:secret@example.org/a%20b?sig=1", 1)
	v.Manifest = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(secret)), nil }
	lines := strings.SplitAfter(texts(t, v)["system/mrt-submission-manifest.checkm"], "\n")
	const note = "# redacted; the submitted manifest had sha256 "
	if len(lines[1]) != len(note)+64+1 || !strings.HasPrefix(lines[1], note) {
		t.Errorf("the second line is %q", lines[1])
	}
	want := strings.Replace(submitted, "a%20b", "a%20b?redacted", 1)
	if kept := strings.Join(slices.Delete(lines, 1, 2), ""); kept != want {
		t.Errorf("kept is\n%s\nwant\n%s", kept, want)
	}
}

// TestManifestWithoutEnd: every line is kept, whatever follows the last row.
func TestManifestWithoutEnd(t *testing.T) {
	rows, _, _ := strings.Cut(submitted, "\n\n")
	for _, text := range []string{submitted, rows + "\n", rows, rows + "\n#%eof\n\n# the end"} {
		v := version()
		v.Manifest = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }
		if kept := texts(t, v)["system/mrt-submission-manifest.checkm"]; kept != text {
			t.Errorf("kept is\n%q\nwant\n%q", kept, text)
		}
	}
}

// TestFails: input that cannot be read is an error of each file that needs it.
func TestFails(t *testing.T) {
	broken := errors.New("the bucket does not answer")
	v := version()
	v.Entries = func(yield func(aip.Entry, error) bool) { yield(aip.Entry{}, broken) }
	v.Manifest = func() (io.ReadCloser, error) { return nil, broken }
	var failed []string
	for _, f := range v.Files() {
		err := f.Write(io.Discard)
		if err != nil && !errors.Is(err, broken) {
			t.Errorf("%s: %v", f.Path, err)
		}
		if err != nil {
			failed = append(failed, f.Path)
		}
	}
	want := []string{"system/premis.xml", "system/mrt-manifest.checkm", "system/mrt-submission-manifest.checkm"}
	if !slices.Equal(failed, want) {
		t.Errorf("%q failed, want %q", failed, want)
	}
}

// TestCounts: what differs only in how it was made is no new version.
func TestCounts(t *testing.T) {
	for path, want := range map[string]bool{
		"producer/a": true, "system/mrt-erc.txt": true, "system/mrt-dc.xml": true, "system/mrt-mom.txt": true,
		"system/mrt-owner.txt": true, "system/mrt-membership.txt": true,
		"system/mrt-ingest.txt": false, "system/premis.xml": false, "system/archivist-files.jsonl": false,
		"system/mrt-manifest.checkm": false, "system/mrt-submission-manifest.checkm": false,
	} {
		if got := systemfile.Counts(path); got != want {
			t.Errorf("%s: got %v, want %v", path, got, want)
		}
	}
}

// TestDecided: each decision about an object is a file of its own, whose change makes a version.
func TestDecided(t *testing.T) {
	v := version()
	said := inventory.Decision{Reason: "case 17", By: "Ada", At: "2026-11-27T09:00:00Z"}
	until := said
	until.Until = "2036-12-31"
	v.Policies = inventory.Policies{Withdrawal: &said, LegalHold: &said, Retention: &until}
	written, without := texts(t, v), texts(t, version())
	for path, want := range map[string]string{
		"system/archivist-withdrawal.txt": "withdrawn: 2026-11-27T09:00:00Z\nby: Ada\nreason: case 17\n",
		"system/archivist-legal-hold.txt": "held: 2026-11-27T09:00:00Z\nby: Ada\nreason: case 17\n",
		"system/archivist-retention.txt": "retained: 2026-11-27T09:00:00Z\nby: Ada\nreason: case 17\n" +
			"until: 2036-12-31\n",
	} {
		if _, there := without[path]; written[path] != want || there || !systemfile.Counts(path) {
			t.Errorf("%s is %q; that it is there without the decision is %v", path, written[path], there)
		}
	}
}

// TestRefused: a value that would not be read the same is refused with its name.
func TestRefused(t *testing.T) {
	for want, change := range map[string]func(*ingest.Job, *description.Description){
		"":                   func(*ingest.Job, *description.Description) {},
		`collection "a\x01"`: func(j *ingest.Job, _ *description.Description) { j.Collection = "a\x01" },
		`submitter "\ufffe"`: func(j *ingest.Job, _ *description.Description) { j.Submitter = "\ufffe" },
		`local id "x\uffff"`: func(j *ingest.Job, _ *description.Description) {
			j.LocalIDs = []string{"ok",
				"x\uffff"}
		},
		`title (what) "a\nb"`: func(_ *ingest.Job, d *description.Description) { d.What = []string{"a\nb"} },
		`rights of the description "` + "\ufffd": func(_ *ingest.Job, d *description.Description) {
			d.More = map[string][]string{"rights": {"\ufffd"}}
		},
	} {
		v := version()
		change(v.Job, &v.Description)
		got := systemfile.Refused(v.Job, v.Description)
		if !strings.Contains(got, want) || (want == "") != (got == "") {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// The description of a version, as it is stored with the files.
func Example() {
	v := systemfile.Version{
		Job:         &ingest.Job{Primary: "ark:/99999/fk4a"},
		Description: description.Description{Kernel: erc.Kernel{What: []string{"Notes"}}},
	}
	var text bytes.Buffer
	for _, f := range v.Files() {
		if f.Path == "system/mrt-erc.txt" {
			fmt.Println(f.Write(&text))
		}
	}
	fmt.Print(text.String())
	// Output:
	// <nil>
	// erc:
	// who: (:unas)
	// what: Notes
	// when: (:unas)
	// where: ark:/99999/fk4a
}
