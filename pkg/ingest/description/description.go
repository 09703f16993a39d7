// Package description decides how a version of an object is described: its creator (who),
// its title (what), its date (when), its identifiers (where), and the other elements of
// Dublin Core.
//
// Each element is taken from the first of these that has it: the ERC record in the
// package, its DataCite record, its Dublin Core record, the submission, and the version
// before. Identifiers are collected from all of them, except from the version before:
// those are the object's already.
//
//	d, refused, err := description.Settle(parts, job.Metadata)
//	d.Inherit(before)
package description

import (
	"fmt"
	"io"
	"strings"

	"archivist/pkg/formats/ark"
	"archivist/pkg/formats/erc"
	"archivist/pkg/ingest"
)

// sources are the records that a package may contain, best first. Only those at its top
// level are used.
var sources = []struct {
	path string
	read func(io.Reader) (erc.Kernel, error)
}{
	{"producer/mrt-erc.txt", erc.ReadERC},
	{"producer/mrt-datacite.xml", erc.ReadDataCite},
	{"producer/mrt-dc.xml", erc.ReadDC},
}

// IsSource reports whether a file of a package is a record that describes it.
func IsSource(path string) bool {
	for _, s := range sources {
		if s.path == path {
			return true
		}
	}
	return false
}

// maxRecord limits a record of a package, in bytes; a larger one is refused.
const maxRecord = 1 << 20

// Description is how a version is described, and the identifiers that were found in
// that.
type Description struct {
	erc.Kernel
	ARK      string   `json:"ark,omitempty"`      // canonical; "" if there was none
	LocalIDs []string `json:"localIds,omitempty"` // the other identifiers, in order
}

// Part is a file of a package that describes it.
type Part struct {
	Size int64 // bytes
	Open func() (io.ReadCloser, error)
}

// Settle merges the records of a package, by their paths, and the submission's metadata.
// refused is why the submission is refused, or "". An error is one of opening a record.
func Settle(parts map[string]Part,
	said ingest.Metadata) (d Description, refused string, err error) {
	for _, s := range sources {
		part, has := parts[s.path]
		if !has {
			continue
		}

		name := strings.TrimPrefix(s.path, "producer/")
		if part.Size > maxRecord {
			return d, fmt.Sprintf("%s has %d bytes, a description may have %d; shorten it, or leave it out",
				name, part.Size, maxRecord), nil
		}

		body, err := part.Open()
		if err != nil {
			return d, "", err
		}

		found, err := s.read(body)
		body.Close()
		if err != nil {
			return d, fmt.Sprintf("%s cannot be read: %v; correct it or leave it out", name, err),
				nil
		}

		d.Kernel = d.Or(found)
	}

	d.Kernel = d.Or(kernelOf(said))
	return d, d.identify(), nil
}

// Complete fills the missing elements from what a bag says of its content: that is less exact than a record.
func (d *Description) Complete(said ingest.Metadata) {
	said.Where = ""
	d.Kernel = d.Or(kernelOf(said))
}

// kernelOf is a kernel of the metadata of a submission.
func kernelOf(said ingest.Metadata) (k erc.Kernel) {
	k.Add("who", said.Who)
	k.Add("what", said.What)
	k.Add("when", said.When)
	k.Add("where", said.Where)
	return k
}

// identify separates the ARK in "where" from the other identifiers.
func (d *Description) identify() (refused string) {
	for _, w := range d.Where {
		id, err := ark.Parse(w)
		switch {
		case err != nil:
			d.LocalIDs = append(d.LocalIDs, w)
		case d.ARK != "" && d.ARK != id.String():
			return fmt.Sprintf("the description has two arks, %s and %s; leave one of them out",
				d.ARK, id)
		default:
			d.ARK = id.String()
		}
	}
	return ""
}

// Inherit fills the missing elements from the description of the version before. Its identifiers
// are not taken: they are the object's already, or were withdrawn from it.
func (d *Description) Inherit(before erc.Kernel) {
	before.Where = nil
	d.Kernel = d.After(before)
}

// Summarise puts a summary of each element on a job's row.
func (d *Description) Summarise(row *ingest.Metadata) {
	row.Who, row.What, row.When = erc.Summary(d.Who), erc.Summary(d.What), erc.Summary(d.When)
}
