package property

import (
	"bytes"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"hash"
	"hash/adler32"
	"hash/crc32"
	"slices"
	"strconv"
	"strings"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest"
)

// history is what depositors submit to one archive, one after the other.
type history struct{ Submissions []submission }

// GoString is how a failing history is printed.
func (h history) GoString() string {
	var out strings.Builder
	for i, s := range h.Submissions {
		var text bytes.Buffer
		enc := json.NewEncoder(&text)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(s); err != nil {
			return err.Error()
		}
		fmt.Fprintf(&out, "\n%d: %s", i+1, bytes.TrimSpace(text.Bytes()))
	}
	return out.String()
}

// value is a text of the submission; a long one is shortened when printed.
type value string

// MarshalJSON prints the value.
func (v value) MarshalJSON() ([]byte, error) {
	return json.Marshal(fmt.Sprintf("%+q", short(string(v))))
}

// values are texts of the submission; only the first ones are printed.
type values []value

// MarshalJSON prints the values.
func (v values) MarshalJSON() ([]byte, error) {
	if len(v) > 25 {
		return json.Marshal(append(slices.Clone([]value(v[:3])), value(fmt.Sprintf("… (%d)", len(v)))))
	}
	return json.Marshal([]value(v))
}

func short(s string) string {
	if len(s) <= 400 {
		return s
	}
	return fmt.Sprintf("%s…(%d bytes)…%s", s[:150], len(s), s[len(s)-150:])
}

// submission is one batch. Objects are the objects that it submits.
type submission struct {
	Collection string
	Kind       string // payload type
	Untyped    bool   `json:",omitempty"` // the archive detects the type
	Form       said
	Objects    []object
	Check      claim   `json:",omitzero"`  // of the manifest
	Failing    failing `json:",omitzero"`  // the manifest's source
	IfVersion  int     `json:",omitempty"` // 1: that of the object, 2: another
	Submitter  value   `json:",omitempty"`
	Note       value   `json:",omitempty"`
	Mail       []value `json:",omitempty"`
	Strange    bool    `json:",omitempty"` // it has a value for which it may be refused
}

// said is the description of an object in one place.
type said struct {
	Who   value  `json:",omitempty"`
	What  value  `json:",omitempty"`
	When  value  `json:",omitempty"`
	Local values `json:",omitempty"`
	// Primary selects the ARK: n is that of the nth known object, -1 a new one, -2 a new one
	// with a wrong check character.
	Primary int `json:",omitempty"`
	// Raw is the text of the package's file with the description; "" is a plain one.
	Raw value `json:",omitempty"`
}

func (s said) empty() bool {
	return s.Who == "" && s.What == "" && s.When == "" && len(s.Local) == 0 && s.Raw == ""
}

// decoded is the description as read from a manifest's row.
func (s said) decoded() said {
	s.Who, s.What, s.When = value(decode(string(s.Who))), value(decode(string(s.What))), value(decode(string(s.When)))
	return s
}

// object is one object of a submission.
type object struct {
	Row      said `json:",omitzero"` // of a batch manifest
	ERC      said `json:",omitzero"` // mrt-erc.txt in the package
	DataCite said `json:",omitzero"` // mrt-datacite.xml
	DC       said `json:",omitzero"` // mrt-dc.xml
	Files    []file
	Check    claim   `json:",omitzero"` // of its manifest, in a batch manifest
	Failing  failing `json:",omitzero"` // its manifest's source
}

// file is one file of an object.
type file struct {
	Name    value
	Content value   `json:",omitempty"`
	Check   claim   `json:",omitzero"`
	Failing failing `json:",omitzero"`
}

// claim is the depositor's digest and size of content.
type claim struct {
	Algorithm string `json:",omitempty"`
	Wrong     bool   `json:",omitempty"` // the digest
	Size      size   `json:",omitempty"`
}

// size is the depositor's size, right or wrong.
type size string

const (
	rightSize size = "right"
	wrongSize size = "wrong"
)

var algorithms = map[string]func() hash.Hash{"md5": md5.New, "sha1": sha1.New, "sha256": sha256.New,
	"sha384": sha512.New384, "sha512": sha512.New,
	"adler32": func() hash.Hash { return adler32.New() }, "crc32": func() hash.Hash { return crc32.NewIEEE() }}

// digest is content's digest, computed without our own code.
func digest(algorithm string, content []byte) string {
	h := algorithms[algorithm]()
	h.Write(content)
	return hex.EncodeToString(h.Sum(nil))
}

// digest is the claimed digest of content.
func (c claim) digest(content []byte) string {
	if c.Algorithm == "" {
		return ""
	}
	if c.Wrong {
		content = append([]byte("other than "), content...)
	}
	return digest(c.Algorithm, content)
}

// size is the claimed size of content, "" if there is none.
func (c claim) size(content []byte) string {
	switch c.Size {
	case rightSize:
		return fmt.Sprint(len(content))
	case wrongSize:
		return fmt.Sprint(len(content) + 7)
	}
	return string(c.Size)
}

// refuses reports whether content must be refused because of the claim.
func (c claim) refuses() bool {
	return c.Algorithm != "" && c.Wrong || c.Algorithm == "" && c.Size == wrongSize
}

// files are the files of the object, with its descriptions.
func (o object) files() []file {
	all := o.Files
	for _, d := range []struct {
		name string
		text func(said) string
		said said
	}{{"mrt-erc.txt", ercText, o.ERC}, {"mrt-datacite.xml", dataciteText, o.DataCite}, {"mrt-dc.xml", dcText, o.DC}} {
		if !d.said.empty() {
			text := d.said.Raw
			if text == "" {
				text = value(d.text(d.said))
			}
			all = append(all[:len(all):len(all)], file{Name: value(d.name), Content: text})
		}
	}
	return all
}

func ercText(s said) string {
	var b strings.Builder
	b.WriteString("erc:\n")
	for _, e := range []struct {
		name  string
		value value
	}{{"who", s.Who}, {"what", s.What}, {"when", s.When}} {
		if e.value != "" {
			fmt.Fprintf(&b, "%s: %s\n", e.name, e.value)
		}
	}
	for _, id := range s.Local {
		fmt.Fprintf(&b, "where: %s\n", id)
	}
	return b.String()
}

func escape(v value) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(v))
	return b.String()
}

func dataciteText(s said) string {
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?>` + "\n" +
		`<resource xmlns="http://datacite.org/schema/kernel-4">` + "\n")
	if s.Who != "" {
		fmt.Fprintf(&b, "<creators><creator><creatorName>%s</creatorName></creator></creators>\n", escape(s.Who))
	}
	if s.What != "" {
		fmt.Fprintf(&b, "<titles><title>%s</title></titles>\n", escape(s.What))
	}
	if s.When != "" {
		fmt.Fprintf(&b, "<publicationYear>%s</publicationYear>\n", escape(s.When))
	}
	for _, id := range s.Local {
		fmt.Fprintf(&b, "<alternateIdentifier alternateIdentifierType=\"local\">%s</alternateIdentifier>\n", escape(id))
	}
	return b.String() + "</resource>\n"
}

func dcText(s said) string {
	var b strings.Builder
	b.WriteString(`<dc xmlns:dc="http://purl.org/dc/elements/1.1/">` + "\n")
	add := func(name string, v value) {
		if v != "" {
			fmt.Fprintf(&b, "<dc:%s>%s</dc:%s>\n", name, escape(v), name)
		}
	}
	add("creator", s.Who)
	add("title", s.What)
	add("date", s.When)
	for _, id := range s.Local {
		add("identifier", id)
	}
	return b.String() + "</dc>\n"
}

// job is the expected work of one job of a submission.
type job struct {
	submission  submission
	object      object
	said        []said            // of the object, best first
	primary     string            // the ark that it names, "" if none
	paths       map[string]string // at the source, by name
	manifests   map[string]string // content of each manifest that leads to it, by path
	payload     row               // of the submission
	formPrimary string            // the ark that the form names
}

// present puts the submission's content at the source, and returns the request and the
// expected jobs.
func (w *world) present(n int, s submission) (in v1.BatchRequest, jobs []*job) {
	in = v1.BatchRequest{Collection: s.Collection, Submitter: string(s.Submitter), Note: string(s.Note)}
	for _, m := range s.Mail {
		in.Notification = append(in.Notification, string(m))
	}
	in.Metadata = &v1.Metadata{Who: string(s.Form.Who), What: string(s.Form.What), When: string(s.Form.When)}
	in.Identifiers = &v1.Identifiers{Primary: w.ark(s.Form.Primary, n, 0)}
	for _, id := range s.Form.Local {
		in.Identifiers.Local = append(in.Identifiers.Local, string(id))
	}
	var rows []row
	for i, o := range s.Objects {
		j := &job{submission: s, object: o, paths: map[string]string{}, manifests: map[string]string{}}
		jobs = append(jobs, j)
		var files []row
		for k, f := range o.files() {
			at := path(n, i, k) + "/x"
			w.source.put(at, []byte(f.Content), f.Failing)
			j.paths[j.name(f)] = at
			files = append(files, row{at, string(f.Content), string(f.Name), f.Check, said{}, ""})
		}
		j.formPrimary = in.Identifiers.Primary
		j.said, j.primary = []said{o.ERC, o.DataCite, o.DC, o.Row.decoded(), s.Form}, in.Identifiers.Primary
		if many(s.Kind) {
			j.primary = w.ark(o.Row.Primary, n, i+1)
		}
		listed := files[0]
		if s.Kind == ingest.TypeBatchManifest || s.Kind == ingest.TypeObjectManifest {
			text := manifest("mrt-ingest-manifest", files)
			listed = row{path(n, i) + "/manifest.checkm", text, "manifest.checkm", o.Check, said{}, ""}
			w.source.put(listed.at, []byte(text), o.Failing)
			j.manifests[listed.at] = text
		}
		listed.said, listed.primary = o.Row, j.primary
		rows = append(rows, listed)
	}
	payload := w.listing(n, s, rows)
	for _, j := range jobs {
		j.payload = payload
		if many(s.Kind) {
			j.manifests[payload.at] = payload.content
		}
	}
	if k := w.known.target(jobs[0]); s.IfVersion > 0 && (k != nil || s.IfVersion == 2) {
		in.IfVersion = s.IfVersion - 1
		if k != nil {
			in.IfVersion += len(k.versions)
		}
	}
	in.Payload = v1.Payload{URL: sourceURL + payload.at, Type: s.Kind, Filename: payload.name}
	if s.Untyped {
		in.Payload.Type = ""
	}
	if d := payload.check.digest([]byte(payload.content)); d != "" {
		in.Payload.Digest = &v1.Digest{Algorithm: payload.check.Algorithm, Value: d}
	}
	if size, err := strconv.ParseInt(payload.check.size([]byte(payload.content)), 10, 64); err == nil &&
		s.Kind == ingest.TypeFile {
		in.Payload.Size = &size
	}
	return in, jobs
}

// listing is the payload: the only row, or the manifest that lists them.
func (w *world) listing(n int, s submission, rows []row) row {
	if !many(s.Kind) {
		return rows[0]
	}
	profile := "mrt-batch-manifest"
	if s.Kind == ingest.TypeSingleFileBatch {
		profile = "mrt-single-file-batch-manifest"
	}
	text := manifest(profile, rows)
	at := path(n) + "/batch.checkm"
	w.source.put(at, []byte(text), s.Failing)
	return row{at, text, "batch.checkm", s.Check, said{}, ""}
}

func many(kind string) bool {
	return kind == ingest.TypeBatchManifest || kind == ingest.TypeSingleFileBatch
}

// row is one row of a manifest.
type row struct {
	at, content, name string
	check             claim
	said              said
	primary           string
}

// lineBreaks are written as escapes in a manifest, since a row is a line.
var lineBreaks = strings.NewReplacer("\n", "%0a", "\r", "%0d")

// manifest writes a manifest, without our own code.
func manifest(profile string, rows []row) string {
	enc := strings.NewReplacer("|", "%7c", "\n", "%0a", "\r", "%0d")
	batch := strings.Contains(profile, "batch")
	var b strings.Builder
	fmt.Fprintf(&b, "#%%checkm_0.7\n#%%profile | http://uc3.cdlib.org/registry/ingest/manifest/%s\n#%%prefix | nfo: "+
		"| http://www.semanticdesktop.org/ontologies/2007/03/22/nfo#\n", profile)
	b.WriteString("#%fields | nfo:fileUrl | nfo:hashAlgorithm | nfo:hashValue | nfo:fileSize | nfo:fileLastModified " +
		"| nfo:fileName")
	if batch {
		b.WriteString(" | mrt:primaryIdentifier | mrt:localIdentifier | mrt:creator | mrt:title | mrt:date\n")
	} else {
		b.WriteString(" | nie:mimeType\n")
	}
	for _, r := range rows {
		fmt.Fprintf(&b, "%s | %s | %s | %s | | %s", sourceURL+r.at, r.check.Algorithm,
			r.check.digest([]byte(r.content)), r.check.size([]byte(r.content)), enc.Replace(r.name))
		if batch {
			ids := make([]string, len(r.said.Local))
			for i, id := range r.said.Local {
				ids[i] = string(id)
			}
			fmt.Fprintf(&b, " | %s | %s | %s | %s | %s", r.primary, enc.Replace(strings.Join(ids, "; ")),
				enc.Replace(string(r.said.Who)), enc.Replace(string(r.said.What)), enc.Replace(string(r.said.When)))
		}
		b.WriteString("\n")
	}
	return b.String() + "#%eof\n"
}
