package ocfl

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"archivist/pkg/bucket"
	"archivist/pkg/fault"
	"archivist/pkg/spill"
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

// Finish repairs what a crash around a commit can leave: a version inventory that differs
// from the root's, keys that no inventory names, an uncommitted version, and last a stale
// sidecar. While the sidecar is stale, the version is not finished. Finish returns the
// sha512 of the root inventory.
//
// If content of the newest version is missing, the error is a *MissingError. A Stale means
// that the object changed meanwhile. just is what Publish returned, if it committed the
// version right before; with it, the inventory is not read again.
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

	if just == nil {
		if err := r.versionInventory(ctx, fmt.Sprintf("%sv%d/", prefix, s.head), s); err != nil {
			return "", err
		}
	}
	if err := r.sweep(ctx, prefix, s.head, c, o); err != nil {
		return "", err
	}

	if side.text == string(sidecar(s.digest)) {
		return s.digest, nil
	}
	return s.digest, r.Bucket.Put(ctx, prefix+sidecarName, sidecar(s.digest),
		bucket.Condition{Absent: side.etag == "", ETag: side.etag})
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

// contents is what an inventory names: the keys of its newest version, and the folders of
// each version's writers.
type contents struct {
	prefix, folder string // of the object, and of its newest version below that
	named          *spill.Sorter[bool]
	writers        map[int][]string
}

// newest reads the root inventory, or the text of the one that Publish just put.
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

// versionInventory makes the newest version's inventory and its sidecar agree with the
// root's. Both are final, so a late worker that writes them again does no harm.
func (r Root) versionInventory(ctx context.Context, folder string, s scanned) error {
	now, _, err := r.Bucket.Read(ctx, folder+sidecarName)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}
	if err != nil || string(now) != string(sidecar(s.digest)) {
		if err := r.Bucket.Put(ctx, folder+sidecarName, sidecar(s.digest), bucket.Condition{}); err != nil {
			return err
		}
	}

	same, err := r.holds(ctx, folder+inventoryName, s.digest)
	if err == nil && !same {
		_, err = r.Bucket.CopyFrom(ctx, r.Bucket, Prefix(s.id)+inventoryName, folder+inventoryName, s.ETag)
	}
	return err
}
