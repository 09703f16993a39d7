package api

import (
	"context"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
)

// ReceiptInput names a job and a page of its receipt.
type ReceiptInput struct {
	IDCursor
	Format
}

// receipt reads a job's receipt from the stored object, one page of files at a time. It is made of the
// stored object, not of what the job remembers: it says what is preserved. A job that has stored
// nothing is a Conflict. A cursor is a place in the list of files; a page has 1,000.
func (a *API) receipt(ctx context.Context, in *ReceiptInput) (v1.Receipt, error) {
	j, err := a.Queue.Job(ctx, in.ID)
	if err != nil {
		return v1.Receipt{}, err
	}

	if j.ObjectVersion == 0 {
		return v1.Receipt{},
			fault.New(fault.Conflict, "job %s is %s and has preserved nothing yet", in.ID, j.State)
	}

	stored, err := a.head(ctx, j.Primary)
	if err != nil {
		return v1.Receipt{}, err
	}

	files, next, err := a.page(ctx, stored, j.ObjectVersion, in.Cursor, filesPage)
	if err != nil {
		return v1.Receipt{}, err
	}

	r := v1.Receipt{
		Job:      in.ID,
		Batch:    j.Batch,
		ARK:      j.Primary,
		Version:  j.ObjectVersion,
		NoChange: j.NoChange,
		Created:  ingest.Timestamp(stored.Versions[j.ObjectVersion].Created.UnixMilli()),
		Files:    []v1.ReceiptFile{},
		Warnings: j.Warnings(),
		Cursor:   next,
	}

	for _, f := range files {
		file := v1.ReceiptFile{Path: f.Path, Size: f.Size, Digests: f.Digests, Warning: f.Warning}
		if f.Given != "" {
			file.Given = &v1.Digest{Algorithm: f.Given, Value: f.Digests[f.Given]}
		}
		r.Files = append(r.Files, file)
	}
	return r, nil
}
