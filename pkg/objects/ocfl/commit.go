package ocfl

import (
	"context"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"archivist/pkg/formats/ocflspec"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/fetch"
)

// State is whether a prepared version can be committed.
type State string

// States.
const (
	Open      State = "open"      // it can be committed
	Committed State = "committed" // it is the newest version
	Overtaken State = "overtaken" // the object is at another version than the one it follows
)

// State finds the state of a prepared version. It costs one request if the version can be
// committed. Another ETag may still be that of this version, if the answer to its commit was lost:
// then the inventory is read.
func (r Root) State(ctx context.Context, p Prepared) (State, error) {
	now, err := r.Bucket.Head(ctx, Prefix(p.ID)+inventoryName)
	switch {
	case err != nil && !fault.Is(err, fault.NotFound):
		return "", err
	// Both are "" if there is no version yet, and none was expected.
	case now.ETag == p.Follows:
		return Open, nil
	case err != nil:
		return Overtaken, nil
	}

	same, err := r.holds(ctx, Prefix(p.ID)+inventoryName, p.Digest)
	if err != nil || !same {
		return Overtaken, err
	}
	return Committed, nil
}

// holds reports whether the object at key has a sha512.
func (r Root) holds(ctx context.Context, key, digest string) (bool, error) {
	found, err := r.digest(ctx, key)
	return err == nil && found == digest, err
}

// digest is the sha512 of the object at key, "" if there is none.
func (r Root) digest(ctx context.Context, key string) (string, error) {
	body, _, err := r.Bucket.Open(ctx, key)
	if fault.Is(err, fault.NotFound) {
		return "", nil
	}

	if err != nil {
		return "", err
	}

	defer body.Close()
	sum := sha512.New()
	if _, err := io.Copy(sum, body); err != nil {
		return "", fmt.Errorf("ocfl: %s: %w", key, err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// SHA512 is the digest of a text, as in an inventory.
func SHA512(text []byte) string {
	sum := sha512.Sum512(text)
	return hex.EncodeToString(sum[:])
}

// Declare writes the declaration of an object (OCFL 1.1, section 3.2). It is always the same text,
// so it needs no condition.
func (r Root) Declare(ctx context.Context, id string) error { return r.declare(ctx, Prefix(id)) }

// declare writes the declaration of the object at a prefix.
func (r Root) declare(ctx context.Context, prefix string) error {
	return r.Bucket.Put(ctx, prefix+objectDeclaration, []byte(ocflspec.DeclarationText), bucket.Condition{})
}

// Undeclare removes the declaration of an object of which nothing was ever committed.
func (r Root) Undeclare(ctx context.Context, id string) error {
	return r.Bucket.Delete(ctx, Prefix(id)+objectDeclaration)
}

// ErrStop means that a copy has stopped before its end. The next call continues it there.
var ErrStop = errors.New("ocfl: stopped")

// Copy copies one file to its key and verifies the stored copy. A large file that is
// there already is not copied again. One that is copied in parts stops with ErrStop when
// more returns false.
func (r Root) Copy(ctx context.Context, id string, c Content, more func() bool) error {
	key := Prefix(id) + c.To
	// Of a small file, the question would cost as much as the copy.
	if c.Size > r.Bucket.Limits.Part {
		if info, err := r.Bucket.Head(ctx, key); err == nil &&
			r.verify(ctx, key, c.File, info) == nil {
			return nil
		}
	}

	checksum, err := r.copyTo(ctx, key, c, more)
	if err != nil {
		return err
	}

	// What S3 has answered is its checksum of the stored bytes: no other request is needed.
	info := bucket.Info{Size: c.Size, CRC64NVME: checksum}
	if checksum == "" {
		info, err = r.Bucket.Head(ctx, key)
		if err != nil {
			return err
		}
	}
	err = r.verify(ctx, key, c.File, info)
	if err != nil && c.Size > r.Bucket.Limits.Copy { // its upload is done: the next try begins another one
		err = errors.Join(err, r.Work.Delete(ctx, c.Source+".copy"))
	}
	return err
}

// Intact reports whether a stored file that a version reuses has the bytes that the draft brings again.
// If not, Copy puts these into its place: the bucket keeps what was there as a noncurrent version.
// A missing file is not intact either. An error says nothing about the file.
func (r Root) Intact(ctx context.Context, id string, c Content) (bool, error) {
	key := Prefix(id) + c.To
	info, err := r.Bucket.Head(ctx, key)
	if fault.Is(err, fault.NotFound) || err == nil && info.Size != c.Size {
		return false, nil
	}

	if err != nil {
		return false, err
	}

	err = r.verify(ctx, key, c.File, info)
	if differs := new(differsError); errors.As(err, &differs) {
		return false, nil
	}
	return err == nil, err
}

// differsError means that a stored file is not the one that was downloaded.
type differsError struct{ text string }

// Error says how.
func (e *differsError) Error() string { return e.text }

func differs(format string, args ...any) error { return &differsError{fmt.Sprintf(format, args...)} }

// copyTo copies a file in the way that its size allows. It returns the CRC64NVME of the
// store's response, or "".
func (r Root) copyTo(ctx context.Context, key string, c Content,
	more func() bool) (checksum string, err error) {
	switch {
	case c.Source == "":
		return r.Bucket.PutSum(ctx, key, c.Data, c.CRC64)
	case c.Size > r.Bucket.Limits.Copy:
		return "", r.copyParts(ctx, key, c, more)
	}
	return r.Bucket.CopyFrom(ctx, r.Work, c.Source, key, "")
}

// copyParts copies a file in parts. The state of the upload is next to the file in the
// work bucket, so that the next try continues it.
func (r Root) copyParts(ctx context.Context, key string, c Content, more func() bool) error {
	note := c.Source + ".copy"
	u, err := r.upload(ctx, key, note)
	// The state is saved after each group of parts, so a crash costs one group.
	for all := false; err == nil && !all; {
		if !more() {
			return ErrStop
		}
		all, err = r.Bucket.CopyParts(ctx, r.Work, c.Source, "", u, c.Size)
		if err == nil {
			err = r.keep(ctx, note, u)
		}
	}

	if err == nil {
		err = r.Bucket.Complete(ctx, u)
	}

	if fault.Is(err, fault.NotFound) { // S3 removed the upload as too old: the next try begins a new one
		return errors.Join(err, r.Work.Delete(ctx, note))
	}
	return err
}

// upload returns the upload whose state was saved. It begins a new one if there is none,
// or if the saved one is to the key of a version that was overtaken. That is left to the lifecycle
// rule of the bucket.
func (r Root) upload(ctx context.Context, key, note string) (*bucket.Upload, error) {
	data, _, err := r.Work.Read(ctx, note)
	if fault.Is(err, fault.NotFound) {
		return r.Bucket.Begin(ctx, key)
	}

	if err != nil {
		return nil, err
	}

	u := &bucket.Upload{}
	if err := json.Unmarshal(data, u); err != nil {
		return nil, fmt.Errorf("ocfl: %s: %w", note, err)
	}

	if u.Key != key {
		return r.Bucket.Begin(ctx, key)
	}
	return u, nil
}

// keep saves the state of an upload.
func (r Root) keep(ctx context.Context, note string, u *bucket.Upload) error {
	data, err := json.Marshal(u)
	if err != nil {
		return fmt.Errorf("ocfl: %s: %w", note, err)
	}
	return r.Work.Put(ctx, note, data, bucket.Condition{})
}

// verify compares a stored file with what was downloaded: by S3's own checksum over the
// whole object, or by reading the file again if S3 has none.
func (r Root) verify(ctx context.Context, key string, f File, info bucket.Info) error {
	if info.CRC64NVME != "" {
		if info.CRC64NVME != f.CRC64 || info.Size != f.Size {
			return differs("ocfl: %s: the stored copy has CRC64NVME %s and %d bytes, the download had %s and %d",
				key, info.CRC64NVME, info.Size, f.CRC64, f.Size)
		}
		return nil
	}

	body, _, err := r.Bucket.Open(ctx, key)
	if err != nil {
		return err
	}

	defer body.Close()
	d := fetch.NewDigester()
	if _, err := io.Copy(d, body); err != nil {
		return fmt.Errorf("ocfl: read %s again: %w", key, err)
	}

	if got := d.Sums()["sha512"]; got != f.Digests["sha512"] {
		return differs("ocfl: %s: the stored copy has sha512 %s, the download had %s", key, got,
			f.Digests["sha512"])
	}
	return nil
}
