package upload

import (
	"context"
	"fmt"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/source"
	"archivist/pkg/kernel/table"
)

// Claim is an upload that a new batch is to have, and the file of it that is the payload.
type Claim struct {
	store  *Store
	upload *Upload
	File   *File
}

// Claim checks that a submission for a collection can have an upload, with this file as its payload; "" is its only
// one. An Invalid says what is missing. Only Put claims it.
func (s *Store) Claim(ctx context.Context, collection, id, sum string) (*Claim, error) {
	row, err := s.Upload(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return nil, noUpload(collection, id)
	}
	if err != nil {
		return nil, err
	}

	why := row.closed(s.Now())
	switch {
	case row.Collection != collection:
		return nil, noUpload(collection, id)
	case why == "" && !row.complete():
		why = fmt.Sprintf("the upload %s was opened for %s with %d bytes; listed are %s with %d "+
			"bytes, stored are %s of "+
			"these. Send what is missing first", id, ingest.Counted(int64(row.Files), "file"),
			row.Bytes,
			ingest.Number(row.ListedFiles), row.ListedBytes, ingest.Number(row.StoredFiles))
	}
	if why != "" {
		return nil, fault.New(fault.Invalid, "payload.upload: %s", why)
	}

	file, err := s.payload(ctx, row, sum)
	if err != nil {
		return nil, err
	}
	return &Claim{s, row, file}, nil
}

// noUpload is the same for an upload of another collection and for none: a depositor learns nothing of others.
func noUpload(collection, id string) error {
	return fault.New(fault.Invalid, "payload.upload: there is no upload %q of the collection %s; uploads are removed "+
		"when they have expired, and when their batch has ended", ingest.Cut(id, 100), collection)
}

// payload is the file of an upload that is the payload.
func (s *Store) payload(ctx context.Context, row *Upload, sum string) (*File, error) {
	if sum == "" {
		var files []File
		_, err := s.Table.Page(ctx, table.Query{PK: row.PK, Prefix: filePrefix, Limit: 1}, &files)
		switch {
		case err != nil:
			return nil, err
		case row.Files > 1:
			return nil, fault.New(fault.Invalid, "payload.file: the upload %s has %s; give the "+
				"SHA-256 of the one that is "+
				"the payload", row.ID, ingest.Counted(int64(row.Files), "file"))
		case len(files) == 1:
			return &files[0], nil
		}
	}

	var file File
	err := s.Table.Get(ctx, fileKey(row.ID, sum), &file)
	if fault.Is(err, fault.NotFound) {
		return nil, fault.New(fault.Invalid, "payload.file: the upload %s has no file with the "+
			"SHA-256 %q", row.ID,
			ingest.Cut(sum, 100))
	}
	return &file, err
}

// URL is where the payload is, for those who download it.
func (c *Claim) URL() string { return source.UploadURL(c.upload.ID, c.File.Sum()) }

// By is who opened the upload.
func (c *Claim) By() string { return c.upload.By }

// Put claims the upload for a batch, in the transaction that makes the batch: on the condition that nothing has changed
// since Claim.
func (c *Claim) Put(tx *table.Tx, batch, actor string) error {
	next := *c.upload
	next.State, next.Batch = Submitted, batch
	next.Due, next.Repairs = c.store.Now().Add(lookAgain).UnixMilli(), 0
	return c.store.write(tx, c.upload, next, "upload.submitted", actor, Detail{})
}
