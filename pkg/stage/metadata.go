package stage

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"archivist/pkg/anvl"
	"archivist/pkg/ark"
	"archivist/pkg/erc"
	"archivist/pkg/fetch"
	"archivist/pkg/ingest"
	"archivist/pkg/ocfl"
	"archivist/pkg/premis"
)

// inPackage are the descriptions that a package may bring, best first. They
// count at its top level only.
var inPackage = []struct {
	path string
	read func(io.Reader) (erc.Kernel, error)
}{
	{"producer/mrt-erc.txt", erc.ReadERC},
	{"producer/mrt-datacite.xml", erc.ReadDataCite},
	{"producer/mrt-dc.xml", erc.ReadDC},
}

func describes(path string) bool {
	for _, d := range inPackage {
		if d.path == path {
			return true
		}
	}
	return false
}

// maxDescription bounds a description of a package in bytes; a larger one is refused.
const maxDescription = 1 << 20

// description is what a version says of itself, and which identifiers were found in
// that. It follows from the submission and its package; what they do not say is that
// of the version before. The job's row has a summary.
type description struct {
	erc.Kernel
	ARK      string   `json:"ark,omitempty"`      // canonical; "" if there was none
	LocalIDs []string `json:"localIds,omitempty"` // the other identifiers, in order
}

// describeJob settles the job's description, element by element: the package's ERC,
// its DataCite, its Dublin Core, then what the manifest's row or the form said.
// files are the package's descriptions by path. The job's identifiers stay as they
// are; those that were found are in the result. refused says why the submission is
// refused, or "".
func (s *Stages) describeJob(ctx context.Context, j *ingest.Job, files map[string]Entry) (d description, refused string,
	err error) {
	for _, in := range inPackage {
		file, has := files[in.path]
		if !has {
			continue
		}
		name := strings.TrimPrefix(in.path, "producer/")
		if file.Size > maxDescription {
			return d, fmt.Sprintf("%s has %d bytes, a description may have %d; shorten it, or leave it out",
				name, file.Size, maxDescription), nil
		}
		body, _, err := s.Work.Open(ctx, file.Source)
		if err != nil {
			return d, "", err
		}
		found, err := in.read(body)
		body.Close()
		if err != nil {
			return d, fmt.Sprintf("%s cannot be read: %v; correct it or leave it out", name, err), nil
		}
		d.Kernel = d.Or(found)
	}
	if j.Said == nil {
		said := j.Metadata
		j.Said = &said
	}
	form := erc.Kernel{}
	form.Add("who", j.Said.Who)
	form.Add("what", j.Said.What)
	form.Add("when", j.Said.When)
	form.Add("where", j.Said.Where)
	d.Kernel = d.Or(form)
	summarise(j, d.Kernel)
	return d, d.identifiers(), nil
}

// identifiers tells the ark among the "where" of a description from its other
// identifiers.
func (d *description) identifiers() (refused string) {
	for _, w := range d.Where {
		id, err := ark.Parse(w)
		switch {
		case err != nil:
			d.LocalIDs = append(d.LocalIDs, w)
		case d.ARK != "" && d.ARK != id.String():
			return fmt.Sprintf("the description has two arks, %s and %s; leave one of them out", d.ARK, id)
		default:
			d.ARK = id.String()
		}
	}
	return ""
}

// uncarried says which value of a job or its description cannot be written into the
// version's system files so that it is read the same, or "" if all can.
func uncarried(j *ingest.Job, d description) (refused string) {
	is := func(name string, values ...string) {
		for _, v := range values {
			why := anvl.Carries(v)
			if why == "" {
				why = premis.Carries(v)
			}
			if why != "" && refused == "" {
				refused = fmt.Sprintf("the %s %.100q %s; correct it and submit again", name, v, why)
			}
		}
	}
	is("collection", j.Collection)
	is("submitter", j.Submitter)
	is("URL", fetch.Redact(j.URL))
	is("local id", j.LocalIDs...)
	is("creator (who)", d.Who...)
	is("title (what)", d.What...)
	is("date (when)", d.When...)
	for _, name := range erc.Elements {
		for _, v := range d.More[name] {
			if why := premis.Carries(v); why != "" && refused == "" {
				refused = fmt.Sprintf("the %s %.100q of the description %s; correct it and submit again", name, v, why)
			}
		}
	}
	return refused
}

// summarise puts a summary of a description on the job's row.
func summarise(j *ingest.Job, k erc.Kernel) {
	j.Who, j.What, j.When = summary(k.Who), summary(k.What), summary(k.When)
}

// maxSummary bounds the summary of an element in bytes.
const maxSummary = 2000

// summary is what a row says of an element: its values, cut at a character.
func summary(values []string) string {
	text := ""
	for _, v := range values {
		if erc.Absent(v) {
			continue
		}
		if text != "" {
			text += "; "
		}
		if text += v; len(text) > maxSummary {
			break
		}
	}
	if len(text) <= maxSummary {
		return text
	}
	const more = "…"
	end := maxSummary - len(more)
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + more
}

// fromBefore fills what nothing said from the description of the newest version of
// the object, which is stored with it. Its identifiers are not taken: they are those
// of the object.
func (s *Stages) fromBefore(ctx context.Context, stored *ocfl.Stored, k erc.Kernel) (erc.Kernel, error) {
	before, err := s.storedDescription(ctx, stored, stored.Head)
	before.Where = nil
	return k.Or(before), err
}

// storedDescription reads what a stored version says of itself.
func (s *Stages) storedDescription(ctx context.Context, stored *ocfl.Stored, n int) (k erc.Kernel, err error) {
	for _, in := range []struct {
		path string
		read func(io.Reader) (erc.Kernel, error)
	}{{"system/mrt-erc.txt", erc.ReadERC}, {"system/mrt-dc.xml", erc.ReadDC}} {
		if !slices.Contains(stored.SystemFiles(n), in.path) {
			continue
		}
		body, err := s.Root.Open(ctx, stored, n, in.path, 0)
		if err != nil {
			return k, err
		}
		found, err := in.read(body)
		body.Close()
		if err != nil {
			return k, fmt.Errorf("stage: %s of %s v%d: %w", in.path, stored.ID, n, err)
		}
		k = k.Or(found)
	}
	return k, nil
}
