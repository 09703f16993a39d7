package systemfile

import (
	"io"
	"iter"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/description"
	"archivist/pkg/ingest/provenance"
	"archivist/pkg/objects/aip"
	"archivist/pkg/objects/inventory"
)

// Version is the version that the files belong to.
type Version struct {
	Number      int
	Job         *ingest.Job // with every local id of its object
	Description description.Description
	Entries     iter.Seq2[aip.Entry, error] // by path; it is read several times
	Manifest    func() (io.ReadCloser, error)
	Archive     provenance.Archive
	Policies    inventory.Policies
	Deleted     []string // of an update: the names in its list of deletions
}

// where are the identifiers of the object, its ARK first.
func (v Version) where() []string { return append([]string{v.Job.Primary}, v.Job.LocalIDs...) }
