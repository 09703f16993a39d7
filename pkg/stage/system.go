package stage

import (
	"bufio"
	"context"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"archivist/pkg/aip"
	"archivist/pkg/anvl"
	"archivist/pkg/checkm"
	"archivist/pkg/description"
	"archivist/pkg/erc"
	"archivist/pkg/fetch"
	"archivist/pkg/ingest"
	"archivist/pkg/ocfl"
	"archivist/pkg/spill"
	"archivist/pkg/workspace"
)

// systemFiles are those of a version. Follows is the ETag of the root inventory that
// they were written for. If the producer's files are few, they are there too.
type systemFiles struct {
	Follows  string      `json:"follows"`
	Files    []ocfl.File `json:"files"`
	Producer []ocfl.File `json:"producer,omitempty"`
}

// packager writes the system files of one version. They follow from the job's row, its
// description and the ledger alone, so that a second try writes the same bytes; but no
// other try writes to the same keys.
type packager struct {
	s       *Stages
	job     *ingest.Job
	version int
	attempt string
	listed  ocfl.Text // the list of the producer's files, once it is written
	out     systemFiles
}

// write writes every system file. Small ones are carried along.
func (p *packager) write(ctx context.Context, d description.Description, sorted *spill.Sorter[aip.Entry]) error {
	j := p.job
	manifest := p.s.Work.Text(workspace.ManifestKey(j))
	for _, f := range []struct {
		name  string
		write func(io.Writer) error
	}{
		{aip.ListName, func(w io.Writer) error { return p.fileLines(w, sorted) }},
		{"system/mrt-ingest.txt", linesOf(ingestText(j))},
		{"system/mrt-mom.txt", linesOf(momText(j))},
		{"system/mrt-owner.txt", linesOf([]anvl.Element{{Name: "owner", Value: j.Collection}})},
		{"system/mrt-membership.txt", linesOf([]anvl.Element{{Name: "collection", Value: j.Collection}})},
		{"system/mrt-erc.txt", func(w io.Writer) error { return writeERC(w, j, d) }},
		{"system/mrt-dc.xml", func(w io.Writer) error { return writeDC(w, j, d) }},
		{"system/premis.xml", func(w io.Writer) error { return p.preservation(ctx, w) }},
		{"system/mrt-manifest.checkm", func(w io.Writer) error { return p.storageManifest(ctx, w) }},
		{"system/mrt-submission-manifest.checkm", func(w io.Writer) error { return submissionManifest(ctx, w, j, manifest) }},
	} {
		if f.name == "system/mrt-submission-manifest.checkm" && j.Payload.Type != ingest.TypeObjectManifest {
			continue
		}
		file, err := p.file(ctx, f.name, f.write)
		if err != nil {
			return err
		}
		p.out.Files = append(p.out.Files, file)
		if f.name == aip.ListName {
			p.listed = p.s.Work.TextOf(file)
		}
	}
	return nil
}

// counts reports whether a file of a version makes it another than the one before:
// the producer's files do, and the system files that say what the object is and
// whose. The others say how this version came about.
func counts(path string) bool {
	switch path {
	case "system/mrt-mom.txt", "system/mrt-owner.txt", "system/mrt-membership.txt", "system/mrt-erc.txt", "system/mrt-dc.xml":
		return true
	}
	return strings.HasPrefix(path, "producer/")
}

func linesOf(elements []anvl.Element) func(io.Writer) error {
	return func(w io.Writer) error { return anvl.Write(w, elements...) }
}

// file writes one system file.
func (p *packager) file(ctx context.Context, name string, write func(io.Writer) error) (ocfl.File, error) {
	key := workspace.Prefix(p.job.ID) + p.attempt + "/" + name
	w, d := p.s.Work.Create(ctx, key, workspace.SmallFile), fetch.NewDigester()
	if err := write(io.MultiWriter(w, d)); err != nil {
		w.Abort()
		return ocfl.File{}, err
	}
	small, large, err := w.Close()
	f := ocfl.File{Path: name, Size: d.Size, Digests: d.Sums(), CRC64: d.CRC64NVME(), Data: small}
	if large {
		f.Source = key
	}
	return f, err
}

// fileLines lists the producer's files as JSON, one a line, in order of the paths.
func (p *packager) fileLines(w io.Writer, sorted *spill.Sorter[aip.Entry]) error {
	b := bufio.NewWriter(w)
	enc := json.NewEncoder(b)
	for r, err := range sorted.Sorted() {
		if err != nil {
			return err
		}
		e := r.Value
		if p.job.Files <= segmentFiles {
			p.out.Producer = append(p.out.Producer, e.File)
		}
		e.Source = "" // in the work bucket: it means nothing later
		if err := enc.Encode(e); err != nil {
			return err
		}
	}
	return b.Flush()
}

func ingestText(j *ingest.Job) []anvl.Element {
	return []anvl.Element{{Name: "ingest", Value: "archivist"}, {Name: "batch", Value: j.Batch}, {Name: "job", Value: j.ID},
		{Name: "collection", Value: j.Collection}, {Name: "submitter", Value: j.Submitter}, {Name: "mode", Value: j.Mode},
		{Name: "payloadType", Value: j.Payload.Type}, {Name: "payloadURL", Value: fetch.Redact(j.URL)},
		{Name: "submissionDate", Value: ingest.Timestamp(j.Created)}, {Name: "processDate", Value: ingest.Timestamp(j.Stamp)}}
}

func momText(j *ingest.Job) []anvl.Element {
	return []anvl.Element{{Name: "primaryIdentifier", Value: j.Primary}, {Name: "type", Value: "MRT-curatorial"},
		{Name: "role", Value: "MRT-content"}, {Name: "localIdentifier", Value: strings.Join(j.LocalIDs, "; ")}}
}

// writeERC writes the kernel record (ERC), each value in a line of its own. Elements
// without one are "(:unas)", unassigned.
func writeERC(w io.Writer, j *ingest.Job, d description.Description) error {
	var elements []anvl.Element
	for _, e := range []struct {
		name   string
		values []string
	}{{"who", d.Who}, {"what", d.What}, {"when", d.When}, {"where", append([]string{j.Primary}, j.LocalIDs...)}} {
		if len(e.values) == 0 {
			e.values = []string{"(:unas)"}
		}
		for _, v := range e.values {
			elements = append(elements, anvl.Element{Name: e.name, Value: v})
		}
	}
	b := bufio.NewWriter(w)
	fmt.Fprintln(b, "erc:")
	if err := anvl.Write(b, elements...); err != nil {
		return err
	}
	return b.Flush()
}

// writeDC writes a simple Dublin Core record (oai_dc).
func writeDC(w io.Writer, j *ingest.Job, d description.Description) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "%s<dc xmlns=%q xmlns:dc=%q>\n", xml.Header,
		"http://www.openarchives.org/OAI/2.0/oai_dc/", "http://purl.org/dc/elements/1.1/")
	put := func(name string, values []string) {
		for _, v := range values {
			fmt.Fprintf(b, "  <dc:%s>", name)
			_ = xml.EscapeText(b, []byte(v)) // b keeps the error
			fmt.Fprintf(b, "</dc:%s>\n", name)
		}
	}
	put("title", d.What)
	put("creator", d.Who)
	put("date", d.When)
	for _, name := range erc.Elements {
		put(name, d.More[name])
	}
	put("identifier", append([]string{j.Primary}, j.LocalIDs...))
	fmt.Fprintln(b, "</dc>")
	return b.Flush()
}

// storageManifest lists the producer's files with their sha256, in order of the
// paths. A file's URL is where it came from: where it is stored depends on the storage
// root that one reads, and is in the OCFL inventory.
func (p *packager) storageManifest(ctx context.Context, w io.Writer) error {
	m := checkm.NewStored(w, "fileUrl is where a file came from; "+
		"its stored content is found by fileName in the OCFL inventory")
	for f, err := range p.entries(ctx) {
		if err == nil {
			err = m.Row(checkm.Row{URL: f.URL, Algorithm: "sha256", Digest: f.Digests["sha256"], Size: f.Size,
				Modified: f.Modified, Name: f.Path, MediaType: f.MediaType})
		}
		if err != nil {
			return err
		}
	}
	return m.Close()
}

// submissionManifest is the depositor's manifest as it is kept: credentials and
// signed queries are taken out, and the digest of what came is noted.
func submissionManifest(ctx context.Context, w io.Writer, j *ingest.Job, manifest ocfl.Text) error {
	clean, sums := true, fetch.NewDigester()
	if err := manifestLines(ctx, j, manifest, func(line string, row *checkm.Row) error {
		clean = clean && (row == nil || fetch.Redact(row.URL) == row.URL)
		_, _ = io.WriteString(sums, line) // a digester takes everything
		return nil
	}); err != nil {
		return err
	}
	first := true
	return manifestLines(ctx, j, manifest, func(line string, row *checkm.Row) error {
		if row != nil {
			line = strings.ReplaceAll(line, row.URL, fetch.Redact(row.URL))
		}
		if first && !clean { // after the first line, which is #%checkm_0.7
			line += fmt.Sprintf("# redacted; the submitted manifest had sha256 %s\n", sums.Sums()["sha256"])
		}
		first = false
		_, err := io.WriteString(w, line)
		return err
	})
}

// manifestLines gives each line of the job's manifest, with its row if it is one.
func manifestLines(ctx context.Context, j *ingest.Job, manifest ocfl.Text, each func(line string, row *checkm.Row) error) error {
	body, err := manifest(ctx)
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
	if err := rows(ctx, j, manifest, func(r checkm.Row) error { return to(r.Line, &r) }); err != nil {
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
