package stage

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"

	"archivist/pkg/anvl"
	"archivist/pkg/bucket"
	"archivist/pkg/checkm"
	"archivist/pkg/fetch"
	"archivist/pkg/ingest"
	"archivist/pkg/ocfl"
	"archivist/pkg/spill"
)

func systemKey(job string) string { return workPrefix(job) + "system.json" }

// systemFiles writes the system files of a version to the work bucket, and notes
// which they are. They follow from the job's row and the ledger alone, so that a
// second try writes the same bytes.
func (s *Stages) systemFiles(ctx context.Context, j *ingest.Job, sorted *spill.Sorter[Entry]) error {
	var system []ocfl.File
	for _, f := range []struct {
		name  string
		write func(io.Writer) error
	}{
		{FilesName, func(w io.Writer) error { return fileLines(w, sorted) }},
		{"system/mrt-ingest.txt", bytesOf(ingestText(j))},
		{"system/mrt-mom.txt", bytesOf(momText(j))},
		{"system/mrt-owner.txt", bytesOf(lines(anvl.Element{Name: "owner", Value: j.Collection}))},
		{"system/mrt-membership.txt", bytesOf(lines(anvl.Element{Name: "collection", Value: j.Collection}))},
		{"system/mrt-erc.txt", bytesOf(ercText(j))},
		{"system/mrt-dc.xml", func(w io.Writer) error { return dcXML(w, j) }},
		{"system/premis.xml", preservation(j).Write},
		{"system/mrt-manifest.checkm", func(w io.Writer) error { return s.storageManifest(ctx, w, j) }},
		{"system/mrt-submission-manifest.checkm", func(w io.Writer) error { return s.submissionManifest(ctx, w, j) }},
	} {
		if f.name == "system/mrt-submission-manifest.checkm" && j.Payload.Type != ingest.TypeObjectManifest {
			continue
		}
		file, err := s.systemFile(ctx, j, f.name, f.write)
		if err != nil {
			return err
		}
		system = append(system, file)
	}
	return s.putJSON(ctx, systemKey(j.ID), system, bucket.Condition{})
}

func bytesOf(text []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	}
}

// systemFile writes one system file to the work bucket as a stream.
func (s *Stages) systemFile(ctx context.Context, j *ingest.Job, name string, write func(io.Writer) error) (ocfl.File, error) {
	key := workPrefix(j.ID) + name
	w, d := s.Work.Writer(ctx, key, bucket.Condition{}), fetch.NewDigester()
	if err := write(io.MultiWriter(w, d)); err != nil {
		_ = w.Abort() // what is left is removed by the bucket's own rule
		return ocfl.File{}, err
	}
	return ocfl.File{Path: name, Size: d.Size, Digests: d.Sums(), CRC64: d.CRC64NVME(), Source: key}, w.Close()
}

// fileLines lists the producer's files as JSON, one a line, in order of the paths.
func fileLines(w io.Writer, sorted *spill.Sorter[Entry]) error {
	b := bufio.NewWriter(w)
	enc := json.NewEncoder(b)
	for r, err := range sorted.Sorted() {
		if err != nil {
			return err
		}
		e := r.Value
		e.Source = "" // in the work bucket: it means nothing later
		if err := enc.Encode(e); err != nil {
			return err
		}
	}
	return b.Flush()
}

func lines(elements ...anvl.Element) []byte {
	var b bytes.Buffer
	_ = anvl.Write(&b, elements...) // a buffer takes everything
	return b.Bytes()
}

func stamp(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339) }

func ingestText(j *ingest.Job) []byte {
	return lines(anvl.Element{Name: "ingest", Value: "archivist"}, anvl.Element{Name: "batch", Value: j.Batch}, anvl.Element{Name: "job", Value: j.ID},
		anvl.Element{Name: "collection", Value: j.Collection}, anvl.Element{Name: "submitter", Value: j.Submitter}, anvl.Element{Name: "mode", Value: j.Mode},
		anvl.Element{Name: "payloadType", Value: j.Payload.Type}, anvl.Element{Name: "payloadURL", Value: fetch.Redact(j.URL)},
		anvl.Element{Name: "submissionDate", Value: stamp(j.Created)}, anvl.Element{Name: "processDate", Value: stamp(j.Stamp)})
}

func momText(j *ingest.Job) []byte {
	return lines(anvl.Element{Name: "primaryIdentifier", Value: j.Primary}, anvl.Element{Name: "type", Value: "MRT-curatorial"},
		anvl.Element{Name: "role", Value: "MRT-content"}, anvl.Element{Name: "localIdentifier", Value: strings.Join(j.LocalIDs, "; ")})
}

// ercText is the kernel record (ERC): unknown elements are "(:unas)", unassigned.
func ercText(j *ingest.Job) []byte {
	or := func(s string) string {
		if s == "" {
			return "(:unas)"
		}
		return s
	}
	elements := []anvl.Element{{Name: "who", Value: or(j.Who)}, {Name: "what", Value: or(j.What)}, {Name: "when", Value: or(j.When)}, {Name: "where", Value: j.Primary}}
	for _, id := range j.LocalIDs {
		elements = append(elements, anvl.Element{Name: "where", Value: id})
	}
	return append([]byte("erc:\n"), lines(elements...)...)
}

// dublinCore is a simple Dublin Core record (oai_dc).
type dublinCore struct {
	XMLName    xml.Name `xml:"http://www.openarchives.org/OAI/2.0/oai_dc/ dc"`
	Creator    []string `xml:"http://purl.org/dc/elements/1.1/ creator,omitempty"`
	Title      []string `xml:"http://purl.org/dc/elements/1.1/ title,omitempty"`
	Date       []string `xml:"http://purl.org/dc/elements/1.1/ date,omitempty"`
	Identifier []string `xml:"http://purl.org/dc/elements/1.1/ identifier"`
}

func dcXML(w io.Writer, j *ingest.Job) error {
	one := func(s string) []string {
		if s == "" {
			return nil
		}
		return []string{s}
	}
	dc := dublinCore{Creator: one(j.Who), Title: one(j.What), Date: one(j.When), Identifier: append([]string{j.Primary}, j.LocalIDs...)}
	body, err := xml.MarshalIndent(dc, "", "  ")
	if err == nil {
		_, err = fmt.Fprintf(w, "%s%s\n", xml.Header, body)
	}
	return err
}

const storageProfile = "http://uc3.cdlib.org/registry/store/manifest/mrt-add-manifest"

// storageManifest lists the producer's files with their sha256 and where they
// came from, in order of the paths.
func (s *Stages) storageManifest(ctx context.Context, w io.Writer, j *ingest.Job) error {
	body, _, err := s.Work.Open(ctx, workPrefix(j.ID)+FilesName)
	if err != nil {
		return err
	}
	defer body.Close()
	m := checkm.NewWriter(w, storageProfile)
	for in := json.NewDecoder(body); ; {
		var f Entry
		if err := in.Decode(&f); err == io.EOF {
			return m.Close()
		} else if err != nil {
			return err
		}
		if err := m.Row(checkm.Row{URL: f.URL, Algorithm: "sha256", Digest: f.Digests["sha256"], Size: f.Size, Modified: f.Modified, Name: f.Path, MediaType: f.MediaType}); err != nil {
			return err
		}
	}
}

// submissionManifest is the depositor's manifest as it is kept: credentials and
// signed queries are taken out, and the digest of what came is noted.
func (s *Stages) submissionManifest(ctx context.Context, w io.Writer, j *ingest.Job) error {
	clean, sums := true, fetch.NewDigester()
	if err := s.manifestLines(ctx, j, func(line string, row *checkm.Row) error {
		clean = clean && (row == nil || fetch.Redact(row.URL) == row.URL)
		_, _ = io.WriteString(sums, line) // a digester takes everything
		return nil
	}); err != nil {
		return err
	}
	if !clean {
		if _, err := fmt.Fprintf(w, "# redacted; the submitted manifest had sha256 %s\n", sums.Sums()["sha256"]); err != nil {
			return err
		}
	}
	return s.manifestLines(ctx, j, func(line string, row *checkm.Row) error {
		if row != nil {
			line = strings.ReplaceAll(line, row.URL, fetch.Redact(row.URL))
		}
		_, err := io.WriteString(w, line)
		return err
	})
}

// manifestLines gives each line of the job's manifest, with its row if it is one.
func (s *Stages) manifestLines(ctx context.Context, j *ingest.Job, each func(line string, row *checkm.Row) error) error {
	body, _, err := s.Work.Open(ctx, manifestKey(j.ID))
	if err != nil {
		return err
	}
	defer body.Close()
	text, n := bufio.NewReader(body), 0
	to := func(line int, row *checkm.Row) error {
		for n < line {
			n++
			text, err := text.ReadString('\n')
			if err != nil && err != io.EOF {
				return err
			}
			var of *checkm.Row
			if n == line {
				of = row
			}
			if err := each(text, of); err != nil {
				return err
			}
		}
		return nil
	}
	if err := s.rows(ctx, j, func(r checkm.Row) error { return to(r.Line, &r) }); err != nil {
		return err
	}
	for {
		line, err := text.ReadString('\n')
		if line != "" {
			if err := each(line, nil); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("stage: manifest of %s: %w", j.ID, err)
		}
	}
}
