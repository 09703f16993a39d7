// Package upload keeps files that a depositor sends before a submission: in the work bucket, until the batch that the
// submission makes has ended.
//
// An upload is opened for a number of files and bytes, which count towards the quota of its collection at once. Its
// files are named by their content, so the same content is sent once. They are sent to S3 by signed requests, never
// through a function; a file counts as stored after it was found there. A submission claims an upload whose files are
// all stored, in the transaction that makes its batch. From then on the upload does not expire.
//
//	Open → Submitted → (removed)             when its batch is Completed, Deleted or gone
//	Open → Expired or Discarded → (removed)  when no signed request can bring a file any more
//
// The rows:
//
//	UPLOAD#{id}           UPLOAD          an upload
//	UPLOAD#{id}           FILE#{sha256}   a file that it lists
//	UPLOADS#{collection}  QUOTA           the number and the bytes of the uploads that are not removed
//	UPLOADS#{collection}  UPLOAD#{id}     one of these: they are listed and counted by one read that does not lag
//	UPLOADKEY#{digest}    KEY             an Idempotency-Key, as long as the upload is there that it names
//
// The objects are at uploads/{collection}/{id}/{sha256}. The key is made of the collection of a job, not of what a
// manifest says: no job can read an upload of another collection.
//
// Who calls what:
//
//	the API        Open, Upload, BatchOf, Of, Files, List, Stored, Discard, Claim, Explain
//	a stage        Transport: it downloads upload URLs as those of a web server
//	the scheduler  Sweep
package upload

import (
	"context"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/workspace"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// State is the state of an upload.
type State string

// The states of uploads.
const (
	Open      State = "Open"      // files can be sent
	Submitted State = "Submitted" // a batch has it
	Expired   State = "Expired"   // nobody submitted it in time
	Discarded State = "Discarded" // a person discarded it
)

// Limits of one upload, and of a collection.
const (
	MaxFiles   = 100_000
	MaxSize    = 5 << 40 // of a file: S3's limit ("Amazon S3 multipart upload limits")
	MaxAtOnce  = 100     // files of a request
	MaxUploads = 1000    // of a collection, that are not removed
)

// Upload is the row of an upload. Times are milliseconds since 1970.
type Upload struct {
	table.Head
	Version    int64  `dynamo:"version"` // the number of its last event
	ID         string `dynamo:"id"`
	Collection string `dynamo:"coll"`
	State      State  `dynamo:"upload_state"`
	Note       string `dynamo:"note,omitempty"`
	By         string `dynamo:"opened_by,omitempty"`

	// What it was opened for, what is listed, and what is stored.
	Files       int   `dynamo:"n_files"`
	Bytes       int64 `dynamo:"n_bytes"`
	ListedFiles int   `dynamo:"n_listed"`
	ListedBytes int64 `dynamo:"bytes_listed"`
	StoredFiles int   `dynamo:"n_stored"`
	StoredBytes int64 `dynamo:"bytes_stored"`

	Created int64 `dynamo:"created"`
	Expires int64 `dynamo:"expires_ms"`
	// SignedUntil is when the last request that was signed for it ends, or later.
	SignedUntil int64  `dynamo:"signed_until_ms,omitempty"`
	Batch       string `dynamo:"batch_id,omitempty"`

	Due     int64 `dynamo:"due_ms"` // when the sweep looks at it
	Repairs int   `dynamo:"repairs,omitempty"`

	KeyOf string `dynamo:"key_sha256,omitempty"`  // of its Idempotency-Key
	Body  string `dynamo:"body_sha256,omitempty"` // of the request with that key
}

// work is the place of uploads in the index "work".
const work = "uploads"

// Place puts the row at its places in the indexes.
func (u *Upload) Place() {
	u.WorkPK, u.WorkSK = work, ingest.DueSK(u.Due)+"#"+u.ID
	u.ListPK, u.ListSK = "", ""
}

// complete reports whether all that it was opened for is listed and stored.
func (u *Upload) complete() bool {
	return u.ListedFiles == u.Files && u.ListedBytes == u.Bytes && u.StoredFiles == u.Files
}

// removable is when its files may be removed: no signed request is under way any more.
func (u *Upload) removable() int64 { return u.SignedUntil + late.Milliseconds() }

// File is the row of a file of an upload.
type File struct {
	table.Head
	Size   int64  `dynamo:"n_bytes"`
	Parts  string `dynamo:"multipart_id,omitempty"` // of its multipart upload, once it has begun
	Stored bool   `dynamo:"is_stored,omitempty"`    // it was found in the bucket, with its size

	fresh bool // it was listed by this call: no request for it was signed yet
}

// Sum is the SHA-256 of the file, in hexadecimal.
func (f *File) Sum() string { return strings.TrimPrefix(f.SK, filePrefix) }

// member is the row of an upload in the partition of its collection's quota. It is there as long as the upload.
type member struct {
	table.Head
	Bytes int64 `dynamo:"n_bytes"`
}

// id is that of the upload.
func (m *member) id() string { return strings.TrimPrefix(m.SK, memberPrefix) }

// quota is the row of what the uploads of a collection need. It follows from their members.
type quota struct {
	table.Head
	Uploads int   `dynamo:"n_uploads"`
	Bytes   int64 `dynamo:"n_bytes"`
}

// keyed is the row of an Idempotency-Key.
type keyed struct {
	table.Head
	Upload string `dynamo:"upload_id"`
}

const (
	filePrefix   = "FILE#"
	memberPrefix = "UPLOAD#"
	quotaPK      = "UPLOADS"
	keyedPK      = "UPLOADKEY"
)

func subject(id string) event.Subject { return event.Subject{Type: event.Upload, ID: id} }

func uploadKey(id string) table.Key { return subject(id).Key() }

func fileKey(id, sum string) table.Key {
	return table.Key{PK: uploadKey(id).PK, SK: filePrefix +
		sum}
}

func quotaKey(collection string) table.Key {
	return table.Key{PK: quotaPK + "#" + collection, SK: "QUOTA"}
}

func memberKey(collection, id string) table.Key {
	return table.Key{PK: quotaKey(collection).PK, SK: memberPrefix + id}
}

func keyedKey(digest string) table.Key { return table.Key{PK: keyedPK + "#" + digest, SK: "KEY"} }

func head(k table.Key) table.Head { return table.Head{PK: k.PK, SK: k.SK} }

// Store keeps uploads. It has no state of its own: any number of processes use one table.
type Store struct {
	Table *table.Table
	Work  bucket.Bucket
	Now   func() time.Time
	NewID func() string
	// Batch reads a batch; a missing one is a NotFound.
	Batch func(ctx context.Context, id string) (*queue.Batch, error)
	// Failed is told of an upload that the sweep could not handle. It is tried again later.
	Failed func(id string, err error)

	Quota int64         // bytes of the uploads of a collection
	Keep  time.Duration // how long an upload stays Open
	// Part is the largest size in bytes of a file that is sent at once, and the least size of a part.
	Part int64
}

// DefaultPart is Store.Part: few requests for a large file, and not much to repeat for one that breaks.
const DefaultPart = 64 << 20

const (
	// signedFor is how long a signed request is accepted.
	signedFor = time.Hour
	// signedAhead saves writes: requests that are signed within this time need no other write of the row.
	signedAhead = 10 * time.Minute
	// late is how long a request may take that begins when its signature ends.
	late = time.Hour
)

// Upload reads an upload. A missing one is a NotFound.
func (s *Store) Upload(ctx context.Context, id string) (*Upload, error) {
	var row Upload
	err := s.Table.Get(ctx, uploadKey(id), &row)
	if fault.Is(err, fault.NotFound) {
		return nil, fault.New(fault.NotFound, "there is no upload %q; uploads are removed when "+
			"they have expired, and when "+
			"their batch has ended", id)
	}
	if err != nil {
		return nil, err
	}
	return &row, nil
}

// opened reads an upload to which files can be sent; another one is a Conflict.
func (s *Store) opened(ctx context.Context, id string) (*Upload, error) {
	row, err := s.Upload(ctx, id)
	if err != nil {
		return nil, err
	}
	if why := row.closed(s.Now()); why != "" {
		return nil, fault.New(fault.Conflict, "%s", why)
	}
	return row, nil
}

// closed returns why nothing can be done with an upload any more, or "".
func (u *Upload) closed(now time.Time) string {
	switch {
	case u.State == Submitted:
		return fmt.Sprintf("the upload %s is submitted: batch %s has it", u.ID, u.Batch)
	case u.State == Discarded:
		return fmt.Sprintf("the upload %s was discarded; open a new one", u.ID)
	case u.State == Expired, now.UnixMilli() >= u.Expires:
		return fmt.Sprintf("the upload %s has expired on %s; open a new one", u.ID,
			ingest.Timestamp(u.Expires))
	}
	return ""
}

// write puts an upload's change to next into tx, with its event unless the type is "".
func (s *Store) write(tx *table.Tx, row *Upload, next Upload, kind, actor string,
	detail Detail) error {
	if kind != "" {
		next.Version++
	}
	next.Place()
	tx.InsertOrSave(&next)
	tx.OnCommit(func() { *row = next })
	if kind == "" {
		return nil
	}
	return s.tell(tx, &next, kind, actor, detail, propertiesOf(row), propertiesOf(&next))
}

// system is the actor of what the sweep does.
const system = "archivist"

// tell appends an event of an upload, whose number is that of the row.
func (s *Store) tell(tx *table.Tx, row *Upload, kind, actor string, detail Detail, before,
	after any) error {
	component := "api"
	if actor == system {
		component = "sweep"
	}
	return event.Append(tx, subject(row.ID), row.Version, event.New{Type: kind,
		Time: s.Now().UnixMilli(), Actor: actor,
		Component: component, Detail: detail,
		Parents: []envelope.Ref{{Type: event.Collection.String(), ID: row.Collection}},
		Before:  before, After: after})
}

// Detail is the detail of an event of an upload.
type Detail struct {
	Reason string `json:"reason,omitempty"` // why it ended, or was removed
}

// properties are what events say of an upload.
type properties struct {
	State  State  `json:"state"`
	Files  int    `json:"files"`
	Bytes  int64  `json:"bytes"`
	Stored int    `json:"stored"`
	Batch  string `json:"batch,omitempty"`
}

// propertiesOf are nil of an upload that is not there.
func propertiesOf(u *Upload) any {
	if u.State == "" {
		return nil
	}
	return properties{u.State, u.Files, u.Bytes, u.StoredFiles, u.Batch}
}

// Prefix is where the objects of an upload are.
func Prefix(collection, id string) string { return workspace.Uploads + collection + "/" + id + "/" }

// objectKey is where a file is.
func (u *Upload) objectKey(sum string) string { return Prefix(u.Collection, u.ID) + sum }

// Transport answers requests for upload URLs of one upload of a collection from the work bucket. Whether the upload is
// that of the submission was asked before (fetch.Access).
func Transport(work bucket.Bucket, collection, id string) http.RoundTripper {
	return transport{work, Prefix(collection, id)}
}

type transport struct {
	work   bucket.Bucket
	prefix string
}

// RoundTrip answers one request.
func (t transport) RoundTrip(req *http.Request) (*http.Response, error) {
	in := req.Clone(req.Context())
	in.URL = &url.URL{Scheme: "s3", Host: t.work.Name, Path: "/" + t.prefix +
		strings.TrimPrefix(req.URL.Path, "/")}
	resp, err := t.work.RoundTrip(in)
	if resp != nil {
		resp.Request = req
	}
	return resp, err
}

// checkSum returns an Invalid for what is no SHA-256 in lower-case hexadecimal.
func checkSum(sum string) error {
	if raw, err := hex.DecodeString(sum); err != nil || len(raw) != 32 ||
		strings.ToLower(sum) != sum {
		return fault.New(fault.Invalid, "files: %q is no SHA-256; expected 64 digits of "+
			"lower-case hexadecimal",
			ingest.Cut(sum, 100))
	}
	return nil
}
