package stage

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"slices"
	"strings"
	"time"

	"archivist/pkg/anvl"
	"archivist/pkg/bucket"
	"archivist/pkg/checkm"
	"archivist/pkg/fetch"
	"archivist/pkg/ingest"
	"archivist/pkg/ocfl"
)

func (s *Stages) putJSON(ctx context.Context, key string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("stage: %s: %w", key, err)
	}
	return s.Work.Put(ctx, key, data, bucket.Condition{})
}

// systemFiles writes the system files of a version to the work bucket and
// returns their entries. They follow from the job's row and the ledger alone,
// so that a second try writes the same bytes.
func (s *Stages) systemFiles(ctx context.Context, j *ingest.Job, files []Entry) ([]Entry, error) {
	texts := map[string][]byte{
		"mrt-ingest.txt":     ingestText(j),
		"mrt-mom.txt":        momText(j),
		"mrt-owner.txt":      lines(anvl.Element{Name: "owner", Value: j.Collection}),
		"mrt-membership.txt": lines(anvl.Element{Name: "collection", Value: j.Collection}),
		"mrt-erc.txt":        ercText(j),
	}
	var err error
	if texts["mrt-dc.xml"], err = dcXML(j); err != nil {
		return nil, err
	}
	if texts["mrt-manifest.checkm"], err = storageManifest(files); err != nil {
		return nil, err
	}
	if j.Payload.Type == ingest.TypeObjectManifest {
		if texts["mrt-submission-manifest.checkm"], err = s.submissionManifest(ctx, j); err != nil {
			return nil, err
		}
	}
	var out []Entry
	for name, text := range texts {
		key := workPrefix(j.ID) + "system/" + name
		if err := s.Work.Put(ctx, key, text, bucket.Condition{}); err != nil {
			return nil, err
		}
		d := fetch.NewDigester("md5", "sha1")
		_, _ = d.Write(text) // a digester takes everything
		out = append(out, Entry{File: ocfl.File{Path: "system/" + name, Size: d.Size, Digests: d.Sums(), CRC64: d.CRC64NVME(), Source: key},
			MediaType: defaultType(name), At: j.Stamp})
	}
	slices.SortFunc(out, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
	return out, nil
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

func dcXML(j *ingest.Job) ([]byte, error) {
	one := func(s string) []string {
		if s == "" {
			return nil
		}
		return []string{s}
	}
	dc := dublinCore{Creator: one(j.Who), Title: one(j.What), Date: one(j.When), Identifier: append([]string{j.Primary}, j.LocalIDs...)}
	body, err := xml.MarshalIndent(dc, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("stage: Dublin Core of %s: %w", j.ID, err)
	}
	return append([]byte(xml.Header), append(body, '\n')...), nil
}

const storageProfile = "http://uc3.cdlib.org/registry/store/manifest/mrt-add-manifest"

// storageManifest lists the producer's files with their sha256 and where they
// came from.
func storageManifest(files []Entry) ([]byte, error) {
	rows := make([]checkm.Row, len(files))
	for i, f := range files {
		rows[i] = checkm.Row{URL: f.URL, Algorithm: "sha256", Digest: f.Digests["sha256"], Size: f.Size, Modified: f.Modified, Name: f.Path, MediaType: f.MediaType}
	}
	var b bytes.Buffer
	err := checkm.Write(&b, storageProfile, rows)
	return b.Bytes(), err
}

// submissionManifest is the depositor's manifest as it is kept: credentials and
// signed queries are taken out, and the digest of what came is noted.
func (s *Stages) submissionManifest(ctx context.Context, j *ingest.Job) ([]byte, error) {
	data, _, err := s.Work.Read(ctx, manifestKey(j.ID))
	if err != nil {
		return nil, err
	}
	_, rows, _, err := checkm.ReadAll(bytes.NewReader(data), checkm.Options{})
	if err != nil {
		return nil, err
	}
	d := fetch.NewDigester()
	_, _ = d.Write(data) // a digester takes everything
	kept := string(data)
	for _, r := range rows {
		if clean := fetch.Redact(r.URL); clean != r.URL {
			kept = strings.ReplaceAll(kept, r.URL, clean)
		}
	}
	if kept == string(data) {
		return data, nil
	}
	return fmt.Appendf(nil, "# redacted; the submitted manifest had sha256 %s\n%s", d.Sums()["sha256"], kept), nil
}
