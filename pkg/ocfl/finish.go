package ocfl

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"archivist/pkg/bucket"
	"archivist/pkg/fault"
	"archivist/pkg/spill"
)

// MissingError says that content is not there which an inventory names.
type MissingError struct{ Key string }

// Error names the first key.
func (e *MissingError) Error() string {
	return "ocfl: " + e.Key + " is named by the inventory and not there"
}

// lookBack is how many versions before the newest Finish looks at. What a late worker
// wrote to an older one was there when an earlier Finish looked.
const lookBack = 10

// Finish repairs what a crash around a commit can leave: a version inventory that is
// not the root's, keys that no inventory names, a version that nobody committed, and
// at last a stale sidecar: while that is stale, the version is not finished. It makes
// sure that the newest version's content is there, else it returns a *MissingError.
// It returns the sha512 of the root inventory. A Lost says that the object changed
// meanwhile. What Publish says of the version that it committed right before is not
// read again; it is nil after anything else.
func (r Root) Finish(ctx context.Context, id string, o Owner, just *Published) (digest string, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	prefix := Prefix(id)
	side, err := r.sidecar(ctx, prefix, just) // before the inventory: it is replaced only if it is older
	if err != nil {
		return "", err
	}
	c := &contents{prefix: prefix, named: spill.New[bool](ctx), writers: map[int][]string{}}
	s, err := r.newest(ctx, c, just)
	if err != nil {
		return "", err
	}
	folder := fmt.Sprintf("v%d/", s.head)
	if just == nil {
		if err := r.versionInventory(ctx, prefix, folder, s); err != nil {
			return "", err
		}
	}
	l, err := r.list(ctx, prefix)
	if err != nil {
		return "", err
	}
	if err := l.sweep(ctx, prefix+folder, c.named); err != nil {
		return "", err
	}
	if err := l.sweepBefore(ctx, prefix, s.head, c.writers); err != nil {
		return "", err
	}
	if err := l.sweepNext(ctx, fmt.Sprintf("%sv%d/", prefix, s.head+1), o); err != nil {
		return "", err
	}
	if side.text == string(sidecar(s.digest)) {
		return s.digest, nil
	}
	return s.digest, r.Bucket.Put(ctx, prefix+sidecarName, sidecar(s.digest), bucket.Condition{Absent: side.etag == "", ETag: side.etag})
}

// side is the sidecar of the root inventory; there is none without an ETag.
type side struct{ text, etag string }

func (r Root) sidecar(ctx context.Context, prefix string, just *Published) (side, error) {
	if just != nil && just.side != nil {
		return *just.side, nil
	}
	text, info, err := r.Bucket.Read(ctx, prefix+sidecarName)
	if fault.Is(err, fault.NotFound) {
		return side{}, nil
	}
	return side{string(text), info.ETag}, err
}

// contents are the keys that an inventory names in its newest version's folder, and
// who wrote to each version's.
type contents struct {
	prefix, folder string
	named          *spill.Sorter[bool]
	writers        map[int][]string
}

// newest reads the root inventory, or the text of the one that was just put.
func (r Root) newest(ctx context.Context, c *contents, just *Published) (scanned, error) {
	v := visitor{
		heads: func(n int) error { c.folder = fmt.Sprintf("v%d/", n); return nil },
		manifest: func(_ string, paths []string) error {
			if c.folder == "" {
				return errHead
			}
			return c.add(paths)
		},
	}
	if just == nil {
		return r.scan(ctx, c.prefix+inventoryName, v)
	}
	text, err := just.text(ctx)
	if err != nil {
		return scanned{}, err
	}
	defer text.Close()
	return scanText(text, v)
}

func (c *contents) add(paths []string) error {
	for _, p := range paths {
		if n, folder := writer(p); n > 0 && !slices.Contains(c.writers[n], folder) {
			c.writers[n] = append(c.writers[n], folder)
		}
		if strings.HasPrefix(p, c.folder) {
			if err := c.named.Add(c.prefix+p, true); err != nil {
				return err
			}
		}
	}
	return nil
}

// versionInventory makes the newest version's inventory and its sidecar agree with
// the root's. Both are what they have to be for ever: a late one does no harm.
func (r Root) versionInventory(ctx context.Context, prefix, folder string, s scanned) error {
	now, _, err := r.Bucket.Read(ctx, prefix+folder+sidecarName)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}
	if err != nil || string(now) != string(sidecar(s.digest)) {
		if err := r.Bucket.Put(ctx, prefix+folder+sidecarName, sidecar(s.digest), bucket.Condition{}); err != nil {
			return err
		}
	}
	same, err := r.holds(ctx, prefix+folder+inventoryName, s.digest)
	if err == nil && !same {
		_, err = r.Bucket.CopyFrom(ctx, r.Bucket, prefix+inventoryName, prefix+folder+inventoryName, s.ETag)
	}
	return err
}

// listing is what is below an object's prefix: of an object with few keys it is asked
// for once, of others folder by folder.
type listing struct {
	bucket bucket.Bucket
	few    []bucket.Listed
	many   bool
}

func (r Root) list(ctx context.Context, prefix string) (l listing, err error) {
	l.bucket = r.Bucket
	l.few, l.many, err = r.Bucket.Few(ctx, prefix)
	return l, err
}

// each calls f with every object below a folder, in order of the keys.
func (l listing) each(ctx context.Context, folder string, f func(bucket.Listed) error) error {
	if l.many {
		return l.bucket.List(ctx, folder, f)
	}
	for _, o := range l.few {
		if strings.HasPrefix(o.Key, folder) {
			if err := f(o); err != nil {
				return err
			}
		}
	}
	return nil
}

// sweep removes keys of a committed version's folder that its inventory does not
// name: they are of a job that died, or was overtaken, and can never be named.
func (l listing) sweep(ctx context.Context, folder string, named *spill.Sorter[bool]) error {
	next, stop := iter.Pull2(named.Sorted())
	defer stop()
	name, err, more := next()
	listErr := l.each(ctx, folder, func(o bucket.Listed) error {
		if err == nil && more && name.Key < o.Key && strings.HasPrefix(o.Key, folder+"content/") {
			return &MissingError{name.Key}
		}
		if err != nil || o.Key == folder+inventoryName || o.Key == folder+sidecarName {
			return err
		}
		if more && name.Key == o.Key {
			name, err, more = next()
			return err
		}
		return l.bucket.Delete(ctx, o.Key)
	})
	if err == nil && listErr == nil && more {
		err = &MissingError{name.Key}
	}
	return errors.Join(err, listErr)
}

// sweepBefore removes from the versions before the newest what late workers wrote
// there: folders that no inventory names.
func (l listing) sweepBefore(ctx context.Context, prefix string, head int, writers map[int][]string) error {
	for n := max(1, head-lookBack); n < head; n++ {
		content := fmt.Sprintf("%sv%d/content/", prefix, n)
		folders, err := l.folders(ctx, content)
		if err != nil {
			return err
		}
		for _, folder := range folders {
			if slices.Contains(writers[n], folder) {
				continue
			}
			err := l.each(ctx, content+folder+"/", func(o bucket.Listed) error { return l.bucket.Delete(ctx, o.Key) })
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// folders are the names between a prefix, which ends in a slash, and the next slash.
func (l listing) folders(ctx context.Context, prefix string) (names []string, err error) {
	if l.many {
		return l.bucket.Folders(ctx, prefix)
	}
	err = l.each(ctx, prefix, func(o bucket.Listed) error {
		if name, _, in := strings.Cut(o.Key[len(prefix):], "/"); in && !slices.Contains(names, name) {
			names = append(names, name)
		}
		return nil
	})
	return names, err
}

// sweepNext removes what jobs that are over wrote of a version that nobody
// committed. What a late worker could still commit stays.
func (l listing) sweepNext(ctx context.Context, folder string, o Owner) error {
	over, all := map[string]bool{}, true
	claims := map[string]string{} // ETags by key: another claim than this one is not removed
	err := l.each(ctx, folder, func(k bucket.Listed) error {
		job, content := nextWriter(folder, k.Key)
		if !content {
			claims[k.Key] = k.ETag
		}
		if _, known := over[job]; known || !content {
			return nil
		}
		ended, err := o.Over(ctx, job)
		over[job] = ended
		all = all && ended
		return err
	})
	if err != nil || len(over)+len(claims) == 0 {
		return err
	}
	if err := o.Fence(ctx); err != nil {
		return err
	}
	return l.each(ctx, folder, func(k bucket.Listed) error {
		switch job, content := nextWriter(folder, k.Key); {
		case content && over[job]:
			return l.bucket.Delete(ctx, k.Key)
		case !content && all && claims[k.Key] != "":
			return l.bucket.DeleteSame(ctx, k.Key, claims[k.Key])
		}
		return nil
	})
}

// nextWriter tells whose content a key of an uncommitted version's folder is.
func nextWriter(folder, key string) (job string, content bool) {
	rest, content := strings.CutPrefix(key, folder+"content/")
	name, _, _ := strings.Cut(rest, "/")
	return jobOf(name), content
}
