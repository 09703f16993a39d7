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
	// Again opens another upload if a batch has the one with the same key. The key names the new one from then on.
	Again bool
}

// Open opens an upload, and reserves its bytes. Until the upload with the same key ends, the same request returns it,
// also if a batch has it and Again is not set; another request is a Conflict. So is one for more than the quota has
// left.
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
	var key *keyed
	if in.Key != "" {
		next.KeyOf, next.Body = digest([]byte(in.Key)), digest(in.Meaning)
		known, at, err := s.known(ctx, &next, in.Again)
		if known != nil || err != nil {
			return known, err
		}
		key = at
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
	tx.Insert(&member{Head: head(memberKey(in.Collection, id)), Bytes: in.Bytes})
	if key != nil {
		key.Upload = id
		tx.InsertOrSave(key)
	}
	if err := tx.Commit(ctx); err != nil {
		return nil, err
	}
	return row, nil
}

// known is the upload that has the key of next, nil if the key is free; then the row of the key is to name the new one.
// With another request it is a Conflict.
func (s *Store) known(ctx context.Context, next *Upload, again bool) (*Upload, *keyed, error) {
	key := &keyed{Head: head(keyedKey(next.KeyOf))}
	err := s.Table.Get(ctx, key.Key(), key)
	if fault.Is(err, fault.NotFound) {
		return nil, key, nil
	}
	if err != nil {
		return nil, nil, err
	}

	row, err := s.Upload(ctx, key.Upload)
	switch {
	case fault.Is(err, fault.NotFound):
		return nil, key, nil
	case err != nil:
		return nil, nil, err
	case row.Body != next.Body:
		return nil, nil, fault.New(fault.Conflict, "the Idempotency-Key was used with another "+
			"request, for the upload %s; use a "+
			"new key for a new upload", row.ID)
	case row.State == Submitted && again, row.State == Open && row.closed(s.Now()) != "":
		return nil, key, nil
	}
	return row, nil, nil
}

// BatchOf is the batch that has the upload with a key, "" if there is no such upload, or nobody has submitted it. The
// upload is there at least until its batch has ended, however long that takes.
func (s *Store) BatchOf(ctx context.Context, key string) (string, error) {
	var at keyed
	err := s.Table.Get(ctx, keyedKey(digest([]byte(key))), &at)
	if err == nil {
		var row *Upload
		if row, err = s.Upload(ctx, at.Upload); err == nil {
			return row.Batch, nil
		}
	}
	if fault.Is(err, fault.NotFound) {
		err = nil
	}
	return "", err
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
	var found []member
	query := table.Query{PK: quotaKey(collection).PK, Prefix: memberPrefix, Cursor: cursor, Desc: true,
		Limit: 50}
	if page.Cursor, err = s.Table.Page(ctx, query, &found); err != nil {
		return page, err
	}

	for _, f := range found {
		row, err := s.Upload(ctx, f.id())
		if fault.Is(err, fault.NotFound) { // removed since
			continue
		}
		if err != nil {
			return page, err
		}
		page.Items = append(page.Items, *row)
	}
	return page, nil
}

// forget removes the Idempotency-Key of an upload, unless it names another one by now.
func (s *Store) forget(ctx context.Context, tx *table.Tx, row *Upload) error {
	if row.KeyOf == "" {
		return nil
	}
	var key keyed
	err := s.Table.Get(ctx, keyedKey(row.KeyOf), &key)
	if fault.Is(err, fault.NotFound) || err == nil && key.Upload != row.ID {
		return nil
	}
	tx.Remove(&key)
	return err
}
