package replica

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	smithyhttp "github.com/aws/smithy-go/transport/http"

	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/fixity"
)

// transfer copies one file from a bucket to another one: by S3 itself, or through this process if S3
// refuses that, as it does between some accounts. A large one is copied in parts, whose state is in the
// bucket notes, so that another process can continue.
type transfer struct {
	from, to    bucket.Bucket
	key, target string
	etag        string // of the file; "": as it is now
	notes       bucket.Bucket
	more        func() bool // whether there is time for more parts
}

// note is the state of a copy in parts.
type note struct {
	bucket.Upload
	ETag   string `json:"sourceETag"`
	Stream bool   `json:"stream,omitempty"` // through this process
}

// run copies the file, or the next parts of it: then the error is ErrStopped. A Stale means that
// the file is not the one of the ETag any more.
func (t transfer) run(ctx context.Context) error {
	info, err := t.from.Head(ctx, t.key)
	if err != nil {
		return err
	}

	if t.etag != "" && info.ETag != t.etag {
		return fault.New(fault.Stale, "%s was replaced meanwhile", t.key)
	}

	t.etag = info.ETag
	if info.Size <= t.to.Limits.Copy {
		_, err = t.to.CopyFrom(ctx, t.from, t.key, t.target, t.etag)
		if !denied(err) {
			return err
		}
		// A larger file goes in parts, since the memory has a part of it only.
		if info.Size <= t.to.Limits.Part {
			return t.through(ctx, info.Size)
		}
	}
	return t.parts(ctx, info.Size)
}

// denied reports whether S3 refuses to copy by itself.
func denied(err error) bool {
	var resp *smithyhttp.ResponseError
	return errors.As(err, &resp) && resp.HTTPStatusCode() == http.StatusForbidden
}

// through copies a small file through this process.
func (t transfer) through(ctx context.Context, size int64) error {
	data := make([]byte, size)
	if size > 0 {
		_, err := (bucket.At{
			Context: ctx,
			Bucket:  t.from,
			Key:     t.key,
			ETag:    t.etag,
		}).ReadAt(data, 0)
		if err != nil && err != io.EOF {
			return err
		}
	}
	return t.to.Put(ctx, t.target, data, bucket.Condition{})
}

// parts copies a file in parts. The object is at the target only once all parts are.
func (t transfer) parts(ctx context.Context, size int64) error {
	u, err := t.upload(ctx, size)
	for all := false; err == nil && !all; {
		if !t.more() {
			return fixity.ErrStopped
		}
		all, err = t.next(ctx, u, size)
		if err == nil {
			err = t.keep(ctx, u)
		}
	}

	if err == nil {
		err = t.to.Complete(ctx, &u.Upload)
	}

	if fault.Is(err, fault.NotFound) { // S3 removed the upload as too old: the next try begins a new one
		err = fault.New(fault.Unavailable, "the copy of %s begins again: %w", t.key, err)
		return errors.Join(err, t.forget(ctx))
	}

	if err != nil {
		return err
	}
	return t.forget(ctx)
}

// forget removes the state of a copy that is complete.
func (t transfer) forget(ctx context.Context) error { return t.notes.Delete(ctx, t.noteKey()) }

// next copies the next parts, and reports whether all are copied.
func (t transfer) next(ctx context.Context, u *note, size int64) (all bool, err error) {
	if !u.Stream {
		all, err = t.to.CopyParts(ctx, t.from, t.key, t.etag, &u.Upload, size)
		if !denied(err) {
			return all, err
		}
		if err := t.anew(ctx, u); err != nil {
			return false, err
		}
	}

	part := t.to.Limits.PartSize(size)
	at := int64(len(u.Parts)) * part
	data := make([]byte, min(part, size-at))
	n, err := (bucket.At{Context: ctx, Bucket: t.from, Key: t.key, ETag: t.etag}).ReadAt(data, at)
	if err != nil && (err != io.EOF || n < len(data)) {
		return false, err
	}

	err = t.to.Add(ctx, &u.Upload, data)
	return at+int64(len(data)) == size, err
}

// anew begins the copy again, through this process: its parts have another size than those that S3 has copied.
func (t transfer) anew(ctx context.Context, u *note) error {
	if len(u.Parts) > 0 {
		if err := t.to.Abort(ctx, &u.Upload); err != nil {
			return err
		}

		next, err := t.to.Begin(ctx, t.target)
		if err != nil {
			return err
		}
		u.Upload = *next
	}
	u.Stream = true
	return nil
}

// Notes begins the keys of the states of copies, and Quarantine those of damaged files, in the work bucket.
const (
	Notes      = "replication/"
	Quarantine = "quarantine/"
)

// noteKey is where the state of the copy is. The digest keeps the key short, and apart for each
// target.
func (t transfer) noteKey() string {
	sum := sha256.Sum256([]byte(t.to.Name + "/" + t.target))
	return Notes + hex.EncodeToString(sum[:]) + ".json"
}

// upload returns the copy that was begun of the same file. Otherwise it begins one. One of another
// content is aborted first, since its parts cost storage.
func (t transfer) upload(ctx context.Context, size int64) (*note, error) {
	data, _, err := t.notes.Read(ctx, t.noteKey())
	if err == nil {
		var n note
		if err := json.Unmarshal(data, &n); err != nil {
			return nil, fmt.Errorf("replica: %s: %w", t.noteKey(), err)
		}
		if n.ETag == t.etag && n.Key == t.target {
			return &n, nil
		}
		if err := t.to.Abort(ctx, &n.Upload); err != nil {
			return nil, err
		}
	} else if !fault.Is(err, fault.NotFound) {
		return nil, err
	}

	u, err := t.to.Begin(ctx, t.target)
	if err != nil {
		return nil, err
	}
	// Up to Limits.Copy, S3 has refused to copy already: see run.
	return &note{Upload: *u, ETag: t.etag, Stream: size <= t.to.Limits.Copy}, nil
}

// keep saves the state of the copy, after each group of parts.
func (t transfer) keep(ctx context.Context, n *note) error {
	data, err := json.Marshal(n)
	if err != nil {
		return err
	}
	return t.notes.Put(ctx, t.noteKey(), data, bucket.Condition{})
}
