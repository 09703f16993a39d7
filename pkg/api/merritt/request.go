package merritt

import (
	"cmp"

	v1 "archivist/pkg/api/v1"
)

// Route is what the path of a request says.
type Route struct {
	Update bool   // the files are added to those of the object; else they are its complete new state
	ARK    string // "" = none
}

// Request is what a form asks for.
type Request struct {
	// Batch is the submission, in the words of the API. Its collection is the profile of the form, and its payload is
	// not said to be anywhere yet.
	Batch    v1.BatchRequest
	Content  []byte   // of the payload
	Warnings []string // of what is ignored
}

func (in *Request) digest() *v1.Digest {
	in.Batch.Payload.Digest = cmp.Or(in.Batch.Payload.Digest, &v1.Digest{})
	return in.Batch.Payload.Digest
}

func (in *Request) identifiers() *v1.Identifiers {
	in.Batch.Identifiers = cmp.Or(in.Batch.Identifiers, &v1.Identifiers{})
	return in.Batch.Identifiers
}

func (in *Request) metadata() *v1.Metadata {
	in.Batch.Metadata = cmp.Or(in.Batch.Metadata, &v1.Metadata{})
	return in.Batch.Metadata
}
