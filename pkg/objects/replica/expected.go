package replica

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/fixity"
	"archivist/pkg/objects/inventory"
	"archivist/pkg/objects/ocfl"
)

// inCopy is the object as its copy must be, and the file of the storage root that is as a file of the copy
// must be: the copy may be of an earlier version, whose inventory the storage root has in that
// version's folder. A file of a later version is a Conflict.
func (r *Replica) inCopy(ctx context.Context, object *inventory.Object, key string) (source string, err error) {
	last, err := r.Last(ctx, object.ARK)
	if err != nil {
		return "", err
	}

	path := strings.TrimPrefix(key, ocfl.Prefix(object.ARK))
	if n, ok := ocfl.VersionOf(path); last.Version == 0 || ok && n > last.Version {
		return "", fault.New(fault.Conflict, "the copy has version %d of %d; this file is copied with a later one",
			last.Version, object.HeadOf)
	}

	root, newest := ocfl.Inventory(object.ARK, 0), ocfl.Inventory(object.ARK, last.Version)
	// For expected, the object is as it was when it was copied.
	object.HeadOf, object.Digest = last.Version, last.Digest
	switch key {
	case root.Key:
		return newest.Key, nil
	case root.Sidecar:
		return newest.Sidecar, nil
	}
	return key, nil
}

// expected is the sha512 that a file of an object must have. The digests of inventories are in the rows of
// the object; those of content are in an inventory whose digest is.
func (r *Replica) expected(ctx context.Context, object *inventory.Object, key string) (string, error) {
	ark := object.ARK
	if d := ocfl.Declaration(ark); key == d.Key {
		return d.Digest, nil
	}

	// 0 is the root inventory, the others are those of the versions.
	for n := range object.HeadOf + 1 {
		i := ocfl.Inventory(ark, n)
		if key != i.Key && key != i.Sidecar {
			continue
		}
		digest, err := r.recorded(ctx, object, n)
		if key == i.Sidecar {
			digest = ocfl.SHA512(ocfl.Sidecar(digest))
		}
		return digest, err
	}

	// Either inventory will do: its digest is the recorded one, so it has not been damaged.
	for _, root := range []ocfl.Root{r.Root, r.SecondRoot()} {
		stored, err := root.Head(ctx, ark)
		if err == nil && stored.Digest == object.Digest {
			return inManifest(ctx, root, ark, strings.TrimPrefix(key, ocfl.Prefix(ark)))
		}
	}
	return "", fault.New(fault.Conflict,
		"%s: neither the stored inventory nor its copy has the recorded digest %s: "+
			"repair inventory.json first", ark, object.Digest)
}

// recorded is the recorded digest of the inventory of version n, 0 for the root inventory. A
// version without a row is a NotFound.
func (r *Replica) recorded(ctx context.Context, object *inventory.Object, n int) (string, error) {
	if n == 0 {
		return object.Digest, nil
	}
	var row inventory.Version
	err := r.Table.Get(ctx, inventory.VersionKey(object.ARK, n), &row)
	if err != nil {
		return "", fmt.Errorf("replica: version %d of %s: %w", n, object.ARK, err)
	}
	return row.Digest, nil
}

// inManifest is the digest of the content at a path. A path that it does not name is a NotFound.
func inManifest(ctx context.Context, root ocfl.Root, ark, path string) (string, error) {
	for from := (ocfl.Place{}); ; {
		all, err := root.Manifest(ctx, ark, from, 10*entriesPage)
		if err != nil {
			return "", unavailable(err)
		}

		for _, e := range all {
			for _, p := range e.Paths {
				if p == path {
					return e.Digest, nil
				}
			}
			from = e.Next
		}

		if len(all) < 10*entriesPage {
			return "", fault.New(fault.NotFound,
				"%s has no stored file %q; expected a key of a report, such as %s",
				ark, path, ocfl.Prefix(ark)+"v1/content/…")
		}
	}
}

// newer says why a root inventory or its sidecar is not damaged although it is not as recorded, "" if it is damaged:
// a version is committed that is not on record yet, or is being copied.
func (s *repairing) newer(ctx context.Context) (why string, err error) {
	if !s.ofRoot() {
		return "", nil
	}

	if s.Where == fixity.InCopy {
		_, err := s.Copied(ctx, s.ARK)
		if errors.Is(err, ErrNotCopied) {
			return err.Error() + ": propose the repair again when it is copied", nil
		}
		return "", err
	}

	v, err := s.Root.Judge(ctx, s.ARK)
	if err != nil || !v.Newer() {
		return "", err
	}

	if v.Trust == ocfl.Damaged {
		return s.committed(ctx, v.Object)
	}
	return fmt.Sprintf("version %d of %s is stored, and not on record yet: this file is of it. Its job records it, "+
		"or: archivist object reindex %s", v.Object.Head, s.ARK, s.ARK), nil
}

// committed is newer of an object that is damaged: its root inventory is none the less that of a version which is
// committed, if it is the one of the version's folder. Then its sidecar is what is wrong. If that folder is lost too,
// nothing tells a committed version from a false one: the repair would undo it, so a person looks first.
func (s *repairing) committed(ctx context.Context, stored *ocfl.Stored) (why string, err error) {
	if s.File != ocfl.Inventory(s.ARK, 0).Key {
		return "", nil
	}

	digest, err := s.Root.SidecarDigest(ctx, ocfl.Inventory(s.ARK, stored.Head).Sidecar)
	if fault.Is(err, fault.NotFound) || err == nil && digest != stored.Digest {
		return fmt.Sprintf("the root inventory has version %d of %s, which is not on record, and %s does not "+
			"confirm it: this repair could undo a version that was stored. Restore the earlier versions of the keys "+
			"below v%d/; if no job has stored that version, restore the earlier version of the root inventory",
			stored.Head, s.ARK, ocfl.Inventory(s.ARK, stored.Head).Sidecar, stored.Head), nil
	}
	if err != nil {
		return "", unavailable(err)
	}
	return fmt.Sprintf("version %d of %s is stored, and not on record yet: this file is of it, and right. Repair its "+
		"sidecar: archivist object repair %s inventory.json.sha512 --reason TEXT", stored.Head, s.ARK, s.ARK), nil
}
