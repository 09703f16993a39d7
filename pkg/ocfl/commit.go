package ocfl

import (
	"context"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"archivist/pkg/bucket"
	"archivist/pkg/fault"
	"archivist/pkg/fetch"
	"archivist/pkg/spill"
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

// Copy copies one file to its key and verifies the copy. A large one that is
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
	if c.Size > r.Bucket.Limits.Copy {
		err = r.copyParts(ctx, key, c, more)
	} else {
		info.CRC64NVME, err = r.Bucket.CopyFrom(ctx, r.Work, c.Source, key)
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

// Owner is the job that holds the object's lock. Its worker may be late, and the
// lock another's by now: so what others left behind is not touched unasked.
type Owner struct {
	Fence func(ctx context.Context) error // an error once the lock is another's
	// Over reports whether a job has ended for so long that none of its workers can
	// be late still.
	Over func(ctx context.Context, job string) (bool, error)
}

// Publish commits a prepared version whose content is all there: it puts the
// version's inventory, then the root's, which is the commit, from whatever point
// an earlier try got to. inventory is the key in the work bucket where Prepare
// wrote. A Lost says that the object is at another version than it was, or that the
// prepared inventory is another by now: it is to be prepared again.
func (r Root) Publish(ctx context.Context, p Prepared, inventory string, o Owner) error {
	prefix := Prefix(p.ID)
	version := fmt.Sprintf("%sv%d/", prefix, p.Number)
	if err := r.claim(ctx, version+inventoryName, p, inventory, o.Fence); err != nil {
		return err
	}
	if err := r.Bucket.Put(ctx, version+sidecarName, sidecar(p.Digest), bucket.Condition{}); err != nil {
		return err
	}
	if err := o.Fence(ctx); err != nil { // S3 knows no fence: so it is asked at the last moment
		return err
	}
	err := r.put(ctx, prefix+inventoryName, p, inventory, bucket.Condition{Absent: p.Follows == "", ETag: p.Follows})
	if fault.Is(err, fault.Lost) {
		// Ours, when the answer of our own put was lost; else somebody else's.
		if same, readErr := r.holds(ctx, prefix+inventoryName, p.Digest); readErr != nil || !same {
			return err
		}
		err = nil
	}
	return err
}

// put streams the prepared inventory to a key, and makes sure that it is the one
// that was prepared.
func (r Root) put(ctx context.Context, key string, p Prepared, inventory string, c bucket.Condition) error {
	body, _, err := r.Work.Open(ctx, inventory)
	if err != nil {
		return err
	}
	defer body.Close()
	sum := sha512.New()
	w := r.Bucket.Writer(ctx, key, c)
	if _, err = io.Copy(io.MultiWriter(w, sum), body); err == nil && hex.EncodeToString(sum.Sum(nil)) != p.Digest {
		err = fault.New(fault.Lost, "ocfl: the inventory at %s is not the one that was prepared for %s v%d", inventory, p.ID, p.Number)
	}
	if err != nil {
		_ = w.Abort() // what is left is removed by the bucket's own rule
		return err
	}
	return w.Close()
}

// claim puts the version's inventory. One that stands there uncommitted is of a
// job that is over, since we own the lock; its own commit will fail on the
// root's condition.
func (r Root) claim(ctx context.Context, key string, p Prepared, inventory string, fence func(context.Context) error) error {
	lost := r.put(ctx, key, p, inventory, bucket.Condition{Absent: true})
	if !fault.Is(lost, fault.Lost) {
		return lost
	}
	stands, err := r.Bucket.Head(ctx, key)
	if fault.Is(err, fault.NotFound) {
		return lost // it was not what stands there: what was prepared is another by now
	}
	if err != nil {
		return err
	}
	if same, err := r.holds(ctx, key, p.Digest); err != nil || same {
		return err
	}
	if err := fence(ctx); err != nil {
		return err
	}
	return r.put(ctx, key, p, inventory, bucket.Condition{ETag: stands.ETag})
}

func sidecar(digest string) []byte { return []byte(digest + " " + inventoryName + "\n") }

// MissingError says that content is not there which an inventory names.
type MissingError struct{ Key string }

// Error names the first key.
func (e *MissingError) Error() string {
	return "ocfl: " + e.Key + " is named by the inventory and not there"
}

// Finish mends what a crash around a commit can leave: a stale sidecar, a version
// inventory that is not the root's, keys in the newest version's folder that no
// inventory names, and a version that nobody committed. It makes sure that the
// newest version's content is there, else it returns a *MissingError. It returns
// the sha512 of the root inventory.
func (r Root) Finish(ctx context.Context, id string, o Owner) (digest string, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	prefix := Prefix(id)
	head, err := r.headNumber(ctx, id)
	if err != nil {
		return "", err
	}
	folder := fmt.Sprintf("v%d/", head)
	named := spill.New[bool](ctx)
	s, err := r.scan(ctx, prefix+inventoryName, visitor{manifest: func(_ string, paths []string) error {
		for _, p := range paths {
			if strings.HasPrefix(p, folder) {
				if err := named.Add(prefix+p, true); err != nil {
					return err
				}
			}
		}
		return nil
	}})
	if err != nil {
		return "", err
	}
	if s.head != head {
		return "", fault.New(fault.Lost, "the object %s changed while it was read", id)
	}
	if err := r.inventories(ctx, prefix, folder, s); err != nil {
		return "", err
	}
	if err := r.sweep(ctx, prefix+folder, named); err != nil {
		return "", err
	}
	return s.digest, r.sweepNext(ctx, fmt.Sprintf("%sv%d/", prefix, head+1), o)
}

// inventories makes the sidecars and the newest version's inventory agree with the
// root's.
func (r Root) inventories(ctx context.Context, prefix, folder string, s scanned) error {
	for _, key := range []string{prefix + sidecarName, prefix + folder + sidecarName} {
		now, _, err := r.Bucket.Read(ctx, key)
		if err != nil && !fault.Is(err, fault.NotFound) {
			return err
		}
		if err == nil && string(now) == string(sidecar(s.digest)) {
			continue
		}
		if err := r.Bucket.Put(ctx, key, sidecar(s.digest), bucket.Condition{}); err != nil {
			return err
		}
	}
	same, err := r.holds(ctx, prefix+folder+inventoryName, s.digest)
	if err == nil && !same {
		_, err = r.Bucket.CopyFrom(ctx, r.Bucket, prefix+inventoryName, prefix+folder+inventoryName)
	}
	return err
}

// sweep removes keys of a committed version's folder that its inventory does not
// name: they are of a job that died, or was overtaken, and can never be named.
func (r Root) sweep(ctx context.Context, folder string, named *spill.Sorter[bool]) error {
	next, stop := iter.Pull2(named.Sorted())
	defer stop()
	name, err, more := next()
	listErr := r.Bucket.List(ctx, folder, func(key string, _ int64) error {
		if err == nil && more && name.Key < key && strings.HasPrefix(key, folder+"content/") {
			return &MissingError{name.Key}
		}
		if err != nil || key == folder+inventoryName || key == folder+sidecarName {
			return err
		}
		if more && name.Key == key {
			name, err, more = next()
			return err
		}
		return r.Bucket.Delete(ctx, key)
	})
	if err == nil && listErr == nil && more {
		err = &MissingError{name.Key}
	}
	return errors.Join(err, listErr)
}

// sweepNext removes what jobs that are over wrote of a version that nobody
// committed. What a late worker could still commit stays.
func (r Root) sweepNext(ctx context.Context, folder string, o Owner) error {
	over, all := map[string]bool{}, true
	writer := func(key string) string {
		rest, _ := strings.CutPrefix(key, folder+"content/")
		job, _, _ := strings.Cut(rest, "/")
		return job
	}
	found := false
	err := r.Bucket.List(ctx, folder, func(key string, _ int64) error {
		found = true
		job := writer(key)
		if _, known := over[job]; known || !strings.HasPrefix(key, folder+"content/") {
			return nil
		}
		ended, err := o.Over(ctx, job)
		over[job] = ended
		all = all && ended
		return err
	})
	if err != nil || !found {
		return err
	}
	if err := o.Fence(ctx); err != nil {
		return err
	}
	return r.Bucket.List(ctx, folder, func(key string, _ int64) error {
		content := strings.HasPrefix(key, folder+"content/")
		if content && !over[writer(key)] || !content && !all {
			return nil
		}
		return r.Bucket.Delete(ctx, key)
	})
}
