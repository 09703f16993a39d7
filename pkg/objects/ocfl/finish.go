package ocfl

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/spill"
)

// MissingError means that content that an inventory names is not in the bucket.
type MissingError struct{ Key string }

// Error names the first key.
func (e *MissingError) Error() string {
	return "ocfl: " + e.Key + " is named by the inventory, but missing"
}

// lookBack is how many versions before the newest Finish checks. What a late worker wrote
// to an older one was there when an earlier Finish checked it.
const lookBack = 10

// Finish completes what a crash around a commit can leave: a version sidecar of an earlier
// claim, keys that no inventory names, an uncommitted version, and last a stale sidecar of
// the root. While the sidecar is stale, the version is not finished. Finish returns the
// sha512 of the root inventory.
//
// An object that is damaged is not touched: the error is a *DamagedError. If content of the
// newest version is missing, it is a *MissingError. A Stale means that the object changed
// meanwhile. just is what Publish returned, if it committed the version right before; with
// it, the inventory is neither read again nor judged.
//
// The sidecar goes last because it is the mark of a finished version: while it is stale, the next
// Publish calls Finish first, and the doctor reports it.
func (r Root) Finish(ctx context.Context, id string, o Owner,
	just *Published) (digest string, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	n, err := r.newest(ctx, id, just)
	if err != nil {
		return "", err
	}

	if err := r.sweep(ctx, n.prefix, n.head, n.contents, o); err != nil {
		return "", err
	}

	if n.side.says(n.digest) {
		return n.digest, nil
	}
	// The condition is the sidecar that was read before the inventory: if another worker has
	// finished a later version meanwhile, this write fails instead of putting the older digest
	// back.
	return n.digest, r.Bucket.Put(ctx, n.prefix+sidecarName, Sidecar(n.digest),
		bucket.Condition{Absent: n.side.etag == "", ETag: n.side.etag})
}

// newest is the newest version of an object: what its inventory names, and the sidecar of the root
// as it was before the inventory was read, so that it is replaced only if it is older.
type newest struct {
	*contents
	head   int
	digest string
	side   side
}

// newest reads the text of the inventory that Publish just put, or the root inventory if that is
// trusted.
func (r Root) newest(ctx context.Context, id string, just *Published) (n newest, err error) {
	if just != nil {
		return r.published(ctx, id, just)
	}

	v, err := r.judge(ctx, id, true)
	switch {
	case err != nil:
		return n, err
	case v.Trust == Damaged:
		return n, v.Err()
	case v.Trust == Unused:
		return n, fault.New(fault.NotFound, "ocfl: there is no object %s", id)
	}
	return newest{v.contents, v.Object.Head, v.Object.Digest, v.side}, r.versionInventory(ctx, v)
}

// published reads the text in the work bucket: Publish has put the same bytes, whose digest it has
// compared.
func (r Root) published(ctx context.Context, id string, just *Published) (n newest, err error) {
	n.contents = newContents(ctx, id)
	n.side, err = r.sidecar(ctx, n.prefix, just)
	if err != nil {
		return n, err
	}

	text, err := just.text(ctx)
	if err != nil {
		return n, err
	}

	defer text.Close()
	s, err := scanText(text, n.contents.with(visitor{}))
	n.head, n.digest = s.head, s.digest
	return n, err
}

// side is the sidecar of the root inventory; there is none without an ETag.
type side struct{ text, etag string }

func (s side) says(digest string) bool { return s.text == string(Sidecar(digest)) }

// sidecarText matches a sidecar of an inventory with a sha512 (OCFL 1.1, section 3.6).
var sidecarText = regexp.MustCompile(`^[0-9a-f]{128}[ \t]+inventory\.json\n?$`)

func (s side) hasDigest() bool { return sidecarText.MatchString(s.text) }

// sidecar reads the sidecar of the root inventory, unless Publish has read it. It may be older by
// now: whoever replaces it has its ETag as the condition.
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

// contents is what an inventory names: the keys of its newest version, and the folders of
// each version's writers.
type contents struct {
	prefix, folder string // of the object, and of its newest version below that
	named          *spill.Sorter[bool]
	writers        map[int][]string
}

func newContents(ctx context.Context, id string) *contents {
	return &contents{prefix: Prefix(id), named: spill.New[bool](ctx), writers: map[int][]string{}}
}

// with adds to a visitor that c collects what the inventory names. A nil c collects nothing.
func (c *contents) with(v visitor) visitor {
	if c == nil {
		return v
	}

	manifest := v.manifest
	v.heads = func(n int) error { c.folder = fmt.Sprintf("v%d/", n); return nil }
	v.manifest = func(digest string, paths []string) error {
		// Without the head it is not known which content is that of the newest version.
		if c.folder == "" {
			return errHead
		}

		if err := c.add(paths); err != nil || manifest == nil {
			return err
		}
		return manifest(digest, paths)
	}
	return v
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

// versionInventory makes the newest version's sidecar agree with its inventory. That is missing
// or damaged only if the record vouches for the root's, which is then copied to its place. Both
// are final, so a late worker that writes them again does no harm. The copy has the ETag of the
// inventory that was judged as its condition.
func (r Root) versionInventory(ctx context.Context, v Verdict) error {
	i := Inventory(v.Object.ID, v.Object.Head)
	same, err := r.says(ctx, i.Sidecar, v.Object.Digest)
	if err != nil {
		return err
	}

	if !same {
		err := r.Bucket.Put(ctx, i.Sidecar, Sidecar(v.Object.Digest), bucket.Condition{})
		if err != nil {
			return err
		}
	}

	same, err = r.holds(ctx, i.Key, v.Object.Digest)
	if err != nil || same {
		return err
	}
	_, err = r.Bucket.CopyFrom(ctx, r.Bucket, Inventory(v.Object.ID, 0).Key, i.Key, v.Object.etag)
	return err
}
