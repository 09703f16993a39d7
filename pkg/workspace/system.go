package workspace

import (
	"context"

	"archivist/pkg/bucket"
	"archivist/pkg/ocfl"
)

// SystemFiles are those of a job's version, as Processing wrote them. Follows is the
// ETag of the root inventory that they were written for. If the producer's files are
// few, they are there too.
type SystemFiles struct {
	Follows  string      `json:"follows"`
	Files    []ocfl.File `json:"files"`
	Producer []ocfl.File `json:"producer,omitempty"`
}

// SystemFiles reads the list of the system files of a job's version. If there is none
// it is a NotFound.
func (s Store) SystemFiles(ctx context.Context, job string) (system SystemFiles, err error) {
	err = s.GetJSON(ctx, SystemKey(job), &system)
	return system, err
}

// PutSystemFiles saves the list of the system files of a job's version.
func (s Store) PutSystemFiles(ctx context.Context, job string, system SystemFiles) error {
	return s.PutJSON(ctx, SystemKey(job), system, bucket.Condition{})
}
