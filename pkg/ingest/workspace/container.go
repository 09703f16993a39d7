package workspace

import (
	"context"

	"archivist/pkg/formats/container"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/fetch"
	"archivist/pkg/objects/aip"
)

// Unpacking is how far a job's container is unpacked. It is saved as a whole: what it says of the container, of the
// files and of the upload belongs together.
type Unpacking struct {
	Container aip.Entry        `json:"container"` // as it was received, with its key
	ETag      string           `json:"etag"`      // of the container in the work bucket
	Kind      container.Kind   `json:"kind"`
	State     *container.State `json:"state,omitempty"` // nil: nothing is unpacked yet

	// Files are those of the segment that is not finished, the last ones before State.
	Files []*aip.Entry `json:"files,omitempty"`

	// Upload and Digests are of the file in whose middle State is, and Before is its beginning. If the file is
	// Received, all its parts are there, and State is behind it.
	Upload   *bucket.Upload   `json:"upload,omitempty"`
	Digests  fetch.State      `json:"digests,omitzero"`
	Before   *container.State `json:"before,omitempty"`
	Received *aip.Entry       `json:"received,omitempty"`
}

func unpackingKey(job string) string { return Prefix(job) + "unpacking.json" }

// Unpacking reads how far a job's container is unpacked; nil: it is not received yet.
func (s Store) Unpacking(ctx context.Context, job string) (*Unpacking, error) {
	u := &Unpacking{}
	err := s.GetJSON(ctx, unpackingKey(job), u)
	if fault.Is(err, fault.NotFound) {
		return nil, nil
	}
	return u, err
}

// BeginUnpacking saves that a container is received. A Stale means that another try has received it, maybe with other
// content: its container is the one.
func (s Store) BeginUnpacking(ctx context.Context, job string, u *Unpacking) error {
	return s.PutJSON(ctx, unpackingKey(job), u, bucket.Condition{Absent: true})
}

// PutUnpacking saves how far a container is unpacked. The last write wins: what it leaves out is unpacked again, with
// the same result.
func (s Store) PutUnpacking(ctx context.Context, job string, u *Unpacking) error {
	return s.PutJSON(ctx, unpackingKey(job), u, bucket.Condition{})
}

// ContainerKey is where a try keeps the container that it receives.
func ContainerKey(job, attempt string) string { return AttemptKey(job, attempt, "container") }
