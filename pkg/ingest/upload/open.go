package upload

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// Request asks for an upload. Meaning is the request as it was asked, for the comparison of two with one Key.
type Request struct {
	Collection string
	Files      int
	Bytes      int64
	Note       string
	By         string
	Key        string // Idempotency-Key; "" = none
	Meaning    []byte
}

// Open opens an upload, and reserves its bytes. While an upload with the same key is there, the same request returns
// it, in whatever state; another request is a Conflict. So is one for more than the quota has left.
func (s *Store) Open(ctx context.Context, in Request) (row *Upload, err error) {
	switch {
	case in.Files < 1 || in.Files > MaxFiles:
		return nil, fault.New(fault.Invalid, "files: found %d; expected 1 to %s", in.Files,
			ingest.Number(MaxFiles))
	case in.Bytes < 0 || in.Bytes/MaxSize > int64(in.Files):
		return nil, fault.New(fault.Invalid, "bytes: found %d; a file has 0 to %d bytes", in.Bytes,
			int64(MaxSize))
	}
	if err := ingest.CheckText("note", in.Note, ingest.MaxNote); err != nil {
		return nil, err
	}

	err = s.Table.Again(ctx, "the uploads of "+in.Collection, func() (err error) {
		row, err = s.open(ctx, in)
		return err
	})
	return row, err
}

// open is one try of Open.
func (s *Store) open(ctx context.Context, in Request) (*Upload, error) {
	now, id := s.Now(), s.NewID()
	next := Upload{Head: head(uploadKey(id)), ID: id, Collection: in.Collection, State: Open,
		Note: in.Note, By: in.By,
		Files: in.Files, Bytes: in.Bytes, Created: now.UnixMilli(),
		Expires: now.Add(s.Keep).UnixMilli()}
	next.Due = next.Expires
	if in.Key != "" {
		next.KeyOf, next.Body = digest([]byte(in.Key)), digest(in.Meaning)
		known, err := s.known(ctx, &next)
		if known != nil || err != nil {
			return known, err
		}
	}

	q, err := s.quotaOf(ctx, in.Collection)
	if err != nil {
		return nil, err
	}

	if q.Uploads >= MaxUploads || in.Bytes > s.Quota-q.Bytes {
		return nil, fault.New(fault.Conflict, "the collection %s has %s with %d bytes, and this "+
			"one would have %d; at most "+
			"%s with %d bytes are allowed at once. Discard those that are not needed, or wait: "+
			"an upload is removed when "+
			"its batch has ended, or when it expires", in.Collection,
			ingest.Counted(int64(q.Uploads), "upload"), q.Bytes,
			in.Bytes, ingest.Number(MaxUploads), s.Quota)
	}

	tx, row := s.Table.Begin(s.NewID()), &Upload{}
	if err := s.write(tx, row, next, "upload.opened", in.By, Detail{}); err != nil {
		return nil, err
	}

	q.Uploads, q.Bytes = q.Uploads+1, q.Bytes+in.Bytes
	tx.InsertOrSave(q)
	if in.Key != "" {
		tx.Insert(&keyed{Head: head(keyedKey(next.KeyOf)), Upload: id})
	}
	if err := tx.Commit(ctx); err != nil {
		return nil, err
	}
	return row, nil
}

// known is the upload that was opened with the key of next, nil if there is none. Another request with the key is a
// Conflict.
func (s *Store) known(ctx context.Context, next *Upload) (*Upload, error) {
	var key keyed
	err := s.Table.Get(ctx, keyedKey(next.KeyOf), &key)
	if fault.Is(err, fault.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}

	row, err := s.Upload(ctx, key.Upload)
	switch {
	case fault.Is(err, fault.NotFound): // it is removed with its key, between the two reads
		return nil, fault.New(fault.Stale, "%w", err)
	case err == nil && row.Body != next.Body:
		return nil, fault.New(fault.Conflict, "the Idempotency-Key was used with another "+
			"request, for the upload %s; use a "+
			"new key for a new upload", row.ID)
	}
	return row, err
}

// quotaOf reads the row of a collection's quota; it is new if the collection has no uploads.
func (s *Store) quotaOf(ctx context.Context, collection string) (*quota, error) {
	row := quota{Head: head(quotaKey(collection))}
	err := s.Table.Get(ctx, row.Key(), &row)
	if fault.Is(err, fault.NotFound) {
		err = nil
	}
	return &row, err
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Discard ends an upload that nobody has submitted; its files are removed. One that is discarded already stays so.
func (s *Store) Discard(ctx context.Context, id, actor, reason string) (row *Upload, err error) {
	err = s.Table.Again(ctx, "the upload "+id, func() (err error) {
		row, err = s.Upload(ctx, id)
		switch {
		case err != nil, row.State == Discarded:
			return err
		case row.State == Submitted:
			return fault.New(fault.Conflict, "%s. To stop the work on it: archivist batch "+
				"cancel %s --reason …",
				row.closed(s.Now()), row.Batch)
		case row.State == Expired:
			return fault.New(fault.Conflict, "the upload %s has expired: its files are removed "+
				"anyway", id)
		}
		return s.end(ctx, row, Discarded, "upload.discarded", actor, reason)
	})
	return row, err
}

// end ends an open upload. It is removed as soon as no signed request can bring a file any more.
func (s *Store) end(ctx context.Context, row *Upload, to State, kind, actor, reason string) error {
	next := *row
	next.State, next.Due, next.Repairs = to, max(s.Now().UnixMilli(), row.removable()), 0
	tx := s.Table.Begin(s.NewID())
	// The key is free for another upload now, not only when this one is removed: what is sent to that one is not lost.
	if err := s.forget(ctx, tx, row); err != nil {
		return err
	}
	next.KeyOf, next.Body = "", ""
	if err := s.write(tx, row, next, kind, actor, Detail{reason}); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// Of lists the uploads of a collection, newest first.
func (s *Store) Of(ctx context.Context, collection, cursor string) (page queue.Page[Upload],
	err error) {
	var found []struct {
		table.Head
		ID string `dynamo:"id"`
	}
	query := table.Query{Index: "list", PK: "uploads#" + collection, Cursor: cursor, Desc: true,
		Limit: 50}
	if page.Cursor, err = s.Table.Page(ctx, query, &found); err != nil {
		return page, err
	}

	for _, f := range found {
		row, err := s.Upload(ctx, f.ID)
		if fault.Is(err, fault.NotFound) { // removed, or the index lags
			continue
		}
		if err != nil {
			return page, err
		}
		page.Items = append(page.Items, *row)
	}
	return page, nil
}

// forget removes the Idempotency-Key of an upload.
func (s *Store) forget(ctx context.Context, tx *table.Tx, row *Upload) error {
	if row.KeyOf == "" {
		return nil
	}
	var key keyed
	err := s.Table.Get(ctx, keyedKey(row.KeyOf), &key)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	tx.Remove(&key)
	return err
}
