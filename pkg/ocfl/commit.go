package ocfl

import (
	"context"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"archivist/pkg/bucket"
	"archivist/pkg/fault"
	"archivist/pkg/fetch"
)

// State is how a prepared version stands to the root.
type State string

// States. Open: it can be committed. Committed: it is the newest version.
// Overtaken: the object is at another version than the one it follows.
const (
	Open      State = "open"
	Committed State = "committed"
	Overtaken State = "overtaken"
)

// State asks whether a prepared version can be committed still, or was.
func (r Root) State(ctx context.Context, p Prepared) (State, error) {
	now, err := r.Bucket.Head(ctx, Prefix(p.ID)+inventoryName)
	switch {
	case err != nil && !fault.Is(err, fault.NotFound):
		return "", err
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
	body, _, err := r.Bucket.Open(ctx, key)
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer body.Close()
	sum := sha512.New()
	if _, err := io.Copy(sum, body); err != nil {
		return false, fmt.Errorf("ocfl: %s: %w", key, err)
	}
	return hex.EncodeToString(sum.Sum(nil)) == digest, nil
}

// Declare says that an object is at its place.
func (r Root) Declare(ctx context.Context, id string) error {
	return r.Bucket.Put(ctx, Prefix(id)+objectDeclaration, []byte("ocfl_object_1.1\n"), bucket.Condition{})
}

// ErrStop says that a copy is not at its end, and goes on where it stopped when it
// is asked for again.
var ErrStop = errors.New("ocfl: stopped")

// Copy brings one file to its key and verifies what is stored. A large one that is
// there already is not copied again; one that is copied in parts stops with
// ErrStop once more says so.
func (r Root) Copy(ctx context.Context, id string, c Content, more func() bool) error {
	key := Prefix(id) + c.To
	if c.Size > r.Bucket.Limits.Part {
		if info, err := r.Bucket.Head(ctx, key); err == nil && r.verify(ctx, key, c.File, info) == nil {
			return nil
		}
	}
	info := bucket.Info{Size: c.Size}
	var err error
	switch {
	case c.Source == "":
		info.CRC64NVME, err = r.Bucket.PutSum(ctx, key, c.Data, c.CRC64)
	case c.Size > r.Bucket.Limits.Copy:
		err = r.copyParts(ctx, key, c, more)
	default:
		info.CRC64NVME, err = r.Bucket.CopyFrom(ctx, r.Work, c.Source, key, "")
	}
	if err != nil {
		return err
	}
	if info.CRC64NVME == "" {
		if info, err = r.Bucket.Head(ctx, key); err != nil {
			return err
		}
	}
	return r.verify(ctx, key, c.File, info)
}

// copyParts copies a file in parts. How far it is stands beside the file in the
// work bucket.
func (r Root) copyParts(ctx context.Context, key string, c Content, more func() bool) error {
	note, u := c.Source+".copy", &bucket.Upload{}
	data, _, err := r.Work.Read(ctx, note)
	if err == nil {
		err = json.Unmarshal(data, u)
	}
	if fault.Is(err, fault.NotFound) || err == nil && u.Key != key { // none, or of a version that was overtaken
		u, err = r.Bucket.Begin(ctx, key)
	}
	for all := false; err == nil && !all; {
		if !more() {
			return ErrStop
		}
		if all, err = r.Bucket.CopyParts(ctx, r.Work, c.Source, u, c.Size); err != nil {
			break
		}
		if data, err = json.Marshal(u); err == nil {
			err = r.Work.Put(ctx, note, data, bucket.Condition{})
		}
	}
	if err == nil {
		err = r.Bucket.Complete(ctx, u)
	}
	if fault.Is(err, fault.NotFound) { // the upload was cleaned away as too old: the next try begins anew
		return errors.Join(err, r.Work.Delete(ctx, note))
	}
	return err
}

// verify compares a stored file with what was downloaded: by the store's own
// checksum over the whole object, else by reading it again.
func (r Root) verify(ctx context.Context, key string, f File, info bucket.Info) error {
	if info.CRC64NVME != "" {
		if info.CRC64NVME != f.CRC64 || info.Size != f.Size {
			return fmt.Errorf("ocfl: %s: the store says CRC64NVME %s and %d bytes, the download had %s and %d", key, info.CRC64NVME, info.Size, f.CRC64, f.Size)
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
		return fmt.Errorf("ocfl: %s: the stored copy has sha512 %s, the download had %s", key, got, f.Digests["sha512"])
	}
	return nil
}
