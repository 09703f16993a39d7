package ocfl

import (
	"context"
	"fmt"
	"iter"
	"net/url"
	"slices"
	"strings"

	"archivist/pkg/formats/ocflspec"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/spill"
)

// DamageKind is what is wrong with keys of an object.
type DamageKind string

// Kinds of damage.
const (
	Missing     DamageKind = "missing"     // an inventory names the key, or the object must have it
	Unnamed     DamageKind = "unnamed"     // content of a version that its inventory does not name
	Uncommitted DamageKind = "uncommitted" // of a version after the newest
	Undeclared  DamageKind = "undeclared"  // the declaration of the object is missing
	Stale       DamageKind = "stale"       // the sidecar of the root inventory
	Differing   DamageKind = "differing"   // the newest version's inventory or its sidecar, from the root's
	Foreign     DamageKind = "foreign"     // nothing that belongs to an object
)

// Damage is keys of one object with which the same is wrong. One Damage has all keys of its kind
// and job, so a caller decides once for all of them.
type Damage struct {
	Kind DamageKind
	Job  string   // that wrote them, "" if that is not known
	Keys []string // the first of them
	More int      // the number of the others
}

// damageKeys is the number of keys that a Damage names.
const damageKeys = 20

// Checked is the result of a check of an object's keys.
type Checked struct {
	Object *Stored // as its root inventory describes it, nil if it has none
	Damage []Damage
	Next   string // the last key that was checked, "" if all were
}

// Check compares the keys below an object's prefix, after a key ("" for all), with its
// inventories. It changes nothing. known are all of its keys, if the caller has listed
// them. Otherwise it lists them a page at a time, at least one and more while more returns
// true. It reads the content of sidecars and inventories only.
//
// While jobs work on the object, content may be on its way: what is found has to be
// compared with the jobs that wrote it, and with the keys that exist afterwards.
//
// A missing root inventory is no error: then only the declaration is expected, and Checked.Object
// is nil. An error is of S3, or tells that the inventory is none.
func (r Root) Check(ctx context.Context, prefix, after string, known []bucket.Listed,
	more func() bool) (
	Checked, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	// The end of the context removes the sorter's files, also if not all names are read.
	k := &keyChecker{root: r, prefix: prefix, after: after}
	named := spill.New[bool](ctx)
	if err := k.expect(ctx, named); err != nil {
		return k.Checked, err
	}

	next, stop := iter.Pull2(named.Sorted())
	defer stop()
	k.next = next
	if err := k.advance(); err != nil {
		return k.Checked, err
	}

	if known != nil {
		return k.Checked, k.page(ctx, known, true)
	}

	for cursor := after; ; {
		page, last, err := r.Bucket.ListAfter(ctx, prefix, cursor)
		if err == nil {
			err = k.page(ctx, page, last == "")
		}
		if err != nil || last == "" || !more() {
			k.Next = last
			return k.Checked, err
		}
		cursor = last
	}
}

// keyChecker merges the keys that an object should have with those that it has. Both are in
// order.
type keyChecker struct {
	Checked
	root          Root
	prefix, after string
	newest        string // folder of the newest version, "v3/"

	next func() (spill.Record[bool], error, bool)
	name string // the next key that should exist, "" = none
}

// expect collects the keys that the object should have.
func (k *keyChecker) expect(ctx context.Context, named *spill.Sorter[bool]) error {
	s := newStored()
	v := s.visitor()
	content := v.manifest
	v.manifest = func(digest string, paths []string) error {
		for _, p := range paths {
			if err := named.Add(k.prefix+p, true); err != nil {
				return err
			}
		}
		return content(digest, paths)
	}

	// Besides content an object has only these files (OCFL 1.1, section 3.1). The sorter brings
	// them into one order with the content.
	structure := []string{objectDeclaration}
	read, err := k.root.scan(ctx, k.prefix+inventoryName, v)
	switch {
	case err == nil:
		s.ID, s.Head, s.Digest, s.etag = read.id, read.head, read.digest, read.ETag
		k.Object, k.newest = s, fmt.Sprintf("v%d/", s.Head)
		structure = append(structure, inventoryName, sidecarName)
		for n := range s.Versions {
			folder := fmt.Sprintf("v%d/", n)
			structure = append(structure, folder+inventoryName, folder+sidecarName)
		}
	case !fault.Is(err, fault.NotFound):
		return err
	}

	for _, name := range structure {
		if err := named.Add(k.prefix+name, true); err != nil {
			return err
		}
	}
	return nil
}

// advance reads the next key that should exist.
func (k *keyChecker) advance() error {
	for {
		record, err, there := k.next()
		k.name = record.Key
		if err != nil || !there || k.name > k.after {
			return err
		}
	}
}

// page checks the next keys that exist.
func (k *keyChecker) page(ctx context.Context, page []bucket.Listed, last bool) error {
	for _, o := range page {
		// Both are in order: a name before the next key of the list is not in the bucket.
		for k.name != "" && k.name < o.Key {
			if err := k.missing(); err != nil {
				return err
			}
		}

		if k.name != o.Key {
			k.unnamed(o.Key)
			continue
		}

		if err := k.compare(ctx, o); err != nil {
			return err
		}

		if err := k.advance(); err != nil {
			return err
		}
	}

	// Names behind the last key of a page may be on the next one.
	for last && k.name != "" {
		if err := k.missing(); err != nil {
			return err
		}
	}
	return nil
}

// missing notes that the next key does not exist. Files that Finish or the doctor can write again,
// from other files, have kinds of their own.
func (k *keyChecker) missing() error {
	switch strings.TrimPrefix(k.name, k.prefix) {
	case objectDeclaration:
		k.note(Undeclared, "", k.name)
	case sidecarName:
		k.note(Stale, "", k.name)
	case k.newest + inventoryName, k.newest + sidecarName:
		k.note(Differing, "", k.name)
	default:
		k.note(Missing, "", k.name)
	}
	return k.advance()
}

// unnamed notes a key that no inventory names. Without a root inventory every version counts as
// uncommitted.
func (k *keyChecker) unnamed(key string) {
	path := strings.TrimPrefix(key, k.prefix)
	folder, _, _ := strings.Cut(path, "/")
	n, err := number(folder)
	_, writtenTo := writer(path)
	head := 0
	if k.Object != nil {
		head = k.Object.Head
	}

	switch {
	case err != nil || folder == path:
		k.note(Foreign, "", key)
	// Before the next case: the claim of a version, its inventory, has no writer in its path.
	case n > head:
		k.note(Uncommitted, jobOf(writtenTo), key)
	case writtenTo == "":
		k.note(Foreign, "", key)
	default:
		k.note(Unnamed, jobOf(writtenTo), key)
	}
}

// compare compares the files that must agree with the root inventory.
func (k *keyChecker) compare(ctx context.Context, o bucket.Listed) error {
	kind := Differing
	same, err := true, error(nil)
	switch strings.TrimPrefix(o.Key, k.prefix) {
	case sidecarName:
		kind = Stale
		same, err = k.root.says(ctx, o.Key, k.Object.Digest)
	case k.newest + sidecarName:
		same, err = k.root.says(ctx, o.Key, k.Object.Digest)
	case k.newest + inventoryName:
		same = o.ETag == k.Object.etag
		if !same { // encrypted objects differ in their ETags
			same, err = k.root.holds(ctx, o.Key, k.Object.Digest)
		}
	}

	if err == nil && !same {
		k.note(kind, "", o.Key)
	}
	return err
}

// says reports whether a sidecar has a digest. All of the text is compared, so other blanks in it
// are a difference, too.
func (r Root) says(ctx context.Context, key, digest string) (bool, error) {
	text, _, err := r.Bucket.Read(ctx, key)
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	return string(text) == string(Sidecar(digest)), err
}

// note adds a key to the damage of its kind and job. Memory stays bounded: only the first keys are
// kept.
func (k *keyChecker) note(kind DamageKind, job, key string) {
	i := slices.IndexFunc(k.Damage, func(d Damage) bool { return d.Kind == kind && d.Job == job })
	if i < 0 {
		k.Damage = append(k.Damage, Damage{Kind: kind, Job: job})
		i = len(k.Damage) - 1
	}

	d := &k.Damage[i]
	if len(d.Keys) < damageKeys {
		d.Keys = append(d.Keys, key)
	} else {
		d.More++
	}
}

// IDOf returns the id of the object at a prefix, "" if the prefix does not tell it: the
// names of long ids are cut off. It is for objects without a root inventory, which would say it.
func IDOf(prefix string) string {
	parts := strings.Split(prefix, "/")
	if len(parts) != 5 {
		return ""
	}
	id, err := url.PathUnescape(parts[3])
	if err != nil || Prefix(id) != prefix {
		return ""
	}
	return id
}

// Folder returns the prefix of the object that a key belongs to, "" if it belongs to
// none.
func Folder(key string) string { return objectFolder.FindString(key) }

// IsOwn reports whether a key is one of the storage root's own files. They belong to no object.
func IsOwn(key string) bool {
	_, own := ocflspec.RootFiles()[key]
	return own
}
