package plan

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/formats/checkm"
	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/source"
)

// The profiles of the manifests that are written.
const (
	profiles      = "http://uc3.cdlib.org/registry/ingest/manifest/"
	objectProfile = profiles + "mrt-ingest-manifest"
)

// batchProfiles are those of lists of objects, by the type of the payload.
var batchProfiles = map[string]string{
	ingest.TypeBatchManifest:   profiles + "mrt-batch-manifest",
	ingest.TypeSingleFileBatch: profiles + "mrt-single-file-batch-manifest",
	ingest.TypeContainerBatch:  profiles + "mrt-container-batch-manifest",
}

// Plan is what is sent to an upload, and submitted then.
type Plan struct {
	Upload string
	// Contents are what is sent, each once, however many files have it. The payload is the last.
	Contents []Content
	Payload  v1.Payload
}

// Content is what some files have in common, or a manifest.
type Content struct {
	v1.ListedFile
	Name string        // of the file, or of the manifest's object, for messages
	File *File         // nil for a manifest
	Text func() []byte // of a manifest
}

// Plan plans the files for an upload. Its manifests have the id of the upload, but their sizes do not depend on it.
// The type is that of the payload as the depositor gave it, or "". It is an Invalid if the type does not fit.
func (f *Files) Plan(upload, kind string) (Plan, error) {
	if len(upload) != len(source.NoUpload) {
		return Plan{}, fault.New(fault.Unavailable, "the API's id of the upload, %q, has not %d characters; "+
			"is this program of the same release as the API?", upload, len(source.NoUpload))
	}

	m := &making{Plan: Plan{Upload: upload, Payload: v1.Payload{Upload: upload, Type: kind}}, sent: map[string]bool{}}
	for _, o := range f.Objects {
		for _, file := range o.Files {
			m.add(Content{ListedFile: v1.ListedFile{SHA256: file.SHA256, Size: file.Size}, Name: file.Path, File: file})
		}
	}

	switch {
	case f.Each:
		err := m.batch(f.Objects, kind)
		return m.Plan, err
	case f.Listed && kind != "" && kind != ingest.TypeObjectManifest:
		return m.Plan, fault.New(fault.Invalid, "--type %s is for one file; several are one object, or one each "+
			"with --each", kind)
	case f.Listed:
		m.Payload.Type = ingest.TypeObjectManifest
		m.submitted(func() []byte { return objectManifest(upload, f.Objects[0]) })
	default:
		file := f.Objects[0].Files[0]
		m.Payload.File, m.Payload.Filename = file.SHA256, file.Name
	}
	return m.Plan, nil
}

// making is a plan that is made.
type making struct {
	Plan
	sent map[string]bool
}

// add adds a content, unless it is there.
func (m *making) add(c Content) {
	if !m.sent[c.SHA256] {
		m.sent[c.SHA256] = true
		m.Contents = append(m.Contents, c)
	}
}

// manifest adds a manifest. Its text is made again when it is sent: all of them together may be large.
func (m *making) manifest(name string, text func() []byte) Content {
	data := text()
	sum := sha256.Sum256(data)
	c := Content{ListedFile: v1.ListedFile{SHA256: hex.EncodeToString(sum[:]), Size: int64(len(data))}, Name: name,
		Text: text}
	m.add(c)
	return c
}

// submitted adds the manifest that is submitted.
func (m *making) submitted(text func() []byte) {
	m.Payload.File = m.manifest("the manifest", text).SHA256
}

// batch adds a manifest of several objects: of their files or, if some are folders, of manifests of them.
func (m *making) batch(objects []Object, kind string) error {
	listed := slices.ContainsFunc(objects, func(o Object) bool { return !o.IsFile })
	types := map[string]string{"": ingest.TypeSingleFileBatch, ingest.TypeFile: ingest.TypeSingleFileBatch,
		ingest.TypeContainer: ingest.TypeContainerBatch}
	if listed {
		types = map[string]string{"": ingest.TypeBatchManifest}
	}

	m.Payload.Type = types[kind]
	if m.Payload.Type == "" {
		return fault.New(fault.Invalid, "--type %s cannot be used with --each; --type container can, if all "+
			"are files", kind)
	}

	rows := make([]checkm.Row, len(objects))
	for i, o := range objects {
		f := o.Files[0]
		rows[i] = rowOf(m.Upload, f.SHA256, f.Size, f.Name)
		if listed {
			c := m.manifest("the manifest of "+o.ID, func() []byte { return objectManifest(m.Upload, o) })
			rows[i] = rowOf(m.Upload, c.SHA256, c.Size, o.ID+".checkm")
		}
		rows[i].Local = []string{o.ID}
	}

	var out bytes.Buffer
	if err := checkm.WriteBatch(&out, batchProfiles[m.Payload.Type], rows); err != nil {
		return fault.New(fault.Invalid, "the manifest cannot be written: %w", err)
	}
	m.submitted(out.Bytes)
	return nil
}

// objectManifest is the manifest of an object.
func objectManifest(upload string, o Object) []byte {
	rows := make([]checkm.Row, len(o.Files))
	for i, f := range o.Files {
		rows[i] = rowOf(upload, f.SHA256, f.Size, f.Name)
	}
	var out bytes.Buffer
	_ = checkm.Write(&out, objectProfile, rows) // the names were checked (Check)
	return out.Bytes()
}

// rowOf is the row of a content of an upload.
func rowOf(upload, sum string, size int64, name string) checkm.Row {
	return checkm.Row{URL: source.UploadURL(upload, sum), Algorithm: "sha256", Digest: sum, Size: size, Name: name}
}

// Manifest is the text of the manifest that is submitted; nil if it is a file that is.
func (p Plan) Manifest() []byte {
	if last := p.Contents[len(p.Contents)-1]; last.Text != nil {
		return last.Text()
	}
	return nil
}

// WriteManifests writes all manifests, each below its name, that which is submitted as the last one.
func (p Plan) WriteManifests(to io.Writer) error {
	for _, c := range p.Contents {
		if c.Text == nil {
			continue
		}
		if _, err := fmt.Fprintf(to, "\n%q:\n%s", c.Name, c.Text()); err != nil {
			return err
		}
	}
	return nil
}

// Bytes is the size of all contents.
func (p Plan) Bytes() (n int64) {
	for _, c := range p.Contents {
		n += c.Size
	}
	return n
}

// Request opens the upload; again: another one, if a batch has it.
func (p Plan) Request(collection string, again bool) v1.UploadRequest {
	return v1.UploadRequest{Collection: collection, Files: len(p.Contents), Bytes: p.Bytes(), Again: again}
}

// Key is the idempotency key of the upload: that of the same content and manifest in the same collection is the same,
// unless the key that the user gave differs. The plan is one without an upload.
func (p Plan) Key(collection, own string) string {
	all := make([]string, len(p.Contents))
	for i, c := range p.Contents {
		all[i] = fmt.Sprintf("%s %d", c.SHA256, c.Size)
	}
	slices.Sort(all)
	sum := sha256.New()
	fmt.Fprintf(sum, "%q %q 0 %q %q %q %q", collection, own, p.Payload.Type, p.Payload.Filename, p.Payload.File, all)
	return fmt.Sprintf("submit-%x", sum.Sum(nil))
}
