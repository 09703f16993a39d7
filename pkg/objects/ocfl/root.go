package ocfl

import (
	"context"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"archivist/pkg/formats/ocflspec"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
)

// Root is a storage root. It has no state, and may be used concurrently.
type Root struct {
	Bucket bucket.Bucket
	Work   bucket.Bucket // the source of new content

	// Recorded is what is on record of an object outside of the root: its newest version, and the
	// sha512 of that version's inventory; 0 if nothing is. It vouches for inventories, since whatever
	// damages the root does not change it. nil: nothing is on record.
	Recorded func(ctx context.Context, id string) (head int, digest string, err error)
}

// Init writes the missing files of an empty storage root, and changes no other. It writes
// them in order: if the last one is there, all are. A Stale of one file is no error: another
// process writes the same.
func (r Root) Init(ctx context.Context) error {
	files := ocflspec.RootFiles()
	keys := slices.Sorted(maps.Keys(files))
	if _, err := r.Bucket.Head(ctx, keys[len(keys)-1]); err == nil {
		return nil
	}

	for _, key := range keys {
		err := r.Bucket.Put(ctx, key, files[key], bucket.Condition{Absent: true})
		if err != nil && !fault.Is(err, fault.Stale) {
			return err
		}
	}
	return nil
}

// scanned is what is known of an inventory once it was read.
type scanned struct {
	bucket.Info
	id     string
	head   int
	digest string // sha512
}

// scan reads an inventory of the root.
func (r Root) scan(ctx context.Context, key string, v visitor) (scanned, error) {
	body, info, err := r.Bucket.Open(ctx, key)
	if err != nil {
		return scanned{}, err
	}

	defer body.Close()
	s, err := scanText(body, v)
	s.Info = info
	if err != nil {
		err = fmt.Errorf("%s: %w", key, err)
	}
	return s, err
}

// scanText reads an inventory.
func scanText(text io.Reader, v visitor) (s scanned, err error) {
	sum := sha512.New()
	in := io.TeeReader(text, sum)
	s.id, s.head, err = scan(in, v)
	if err != nil {
		return s, err
	}
	// The digest is that of all bytes, also of what follows the JSON.
	_, err = io.Copy(io.Discard, in)
	s.digest = hex.EncodeToString(sum.Sum(nil))
	return s, err
}

// errSeen ends a scan early.
var errSeen = errors.New("seen")

// errHead refuses an inventory that another software wrote in another order.
var errHead = errors.New("its head does not come before its manifest")

// Head reads an object's root inventory. A missing object is a NotFound.
//
// Head believes what it reads. Before anything is written to the object, or said of its state,
// Judge tells whether it may be believed.
func (r Root) Head(ctx context.Context, id string) (*Stored, error) {
	return r.head(ctx, id, nil)
}

// head is Head, which also gives the paths of the manifest to a collector, if there is one.
func (r Root) head(ctx context.Context, id string, c *contents) (*Stored, error) {
	s := newStored()
	read, err := r.scan(ctx, Prefix(id)+inventoryName, c.with(s.visitor()))
	if err != nil {
		return nil, err
	}
	if read.id != id {
		return nil, fmt.Errorf("ocfl: the inventory at %s is of %q", Prefix(id), read.id)
	}
	s.ID, s.Head, s.Digest, s.etag, s.size = read.id, read.head, read.digest, read.ETag, read.Size
	return s, nil
}

// ETag is that of an object's root inventory now, "" if there is no such object. It costs one
// request, whatever the size of the inventory.
func (r Root) ETag(ctx context.Context,
	id string) (string, error) {
	return r.ETagAt(ctx, Prefix(id))
}

// ETagAt is that of the root inventory of the object at a prefix, "" if there is none.
func (r Root) ETagAt(ctx context.Context, prefix string) (string, error) {
	now, err := r.Bucket.Head(ctx, prefix+inventoryName)
	if fault.Is(err, fault.NotFound) {
		return "", nil
	}
	return now.ETag, err
}

// Same reports whether an object is still as it was read. If the object is gone, the error is a
// NotFound.
func (r Root) Same(ctx context.Context, s *Stored) (bool, error) {
	now, err := r.Bucket.Head(ctx, Prefix(s.ID)+inventoryName)
	return now.ETag == s.etag, err
}

// objectKeys matches the declaration of an object below the root.
var objectKeys = regexp.MustCompile(`^[0-9a-f]{3}/[0-9a-f]{3}/[0-9a-f]{3}/[^/]+/0=ocfl_object_1\.1$`)

// objectFolder matches the folder of an object in a key below the root.
var objectFolder = regexp.MustCompile(`^[0-9a-f]{3}/[0-9a-f]{3}/[0-9a-f]{3}/[^/]+/`)

// After is a cursor behind every key below an object's prefix, also those that do not belong there: the
// character after the slash at its end.
func After(prefix string) string { return strings.TrimSuffix(prefix, "/") + "0" }

// Objects lists the declarations of objects among the next keys of the storage root, from
// a cursor ("" at the beginning) up to a limit ("" for none). It returns the cursor of the
// rest ("" at the end). A key of the list is also a cursor, and so is "a0", for the places
// that begin with a0.
//
// An object's declaration is the first of its keys. The other keys of an object of many
// files are skipped, not listed.
func (r Root) Objects(ctx context.Context, cursor,
	to string) (keys []string, next string, err error) {
	all, next, err := r.Bucket.Page(ctx, cursor)
	for _, key := range all {
		if to != "" && key >= to {
			return keys, "", err
		}
		if objectKeys.MatchString(key) {
			keys = append(keys, key)
		}
	}

	// "0=ocfl_object_1.1" sorts before "inventory.json" and "v1/": a page that ends in the folder
	// of an object has its declaration.
	if folder := objectFolder.FindString(next); folder != "" {
		next = After(folder)
	}
	return keys, next, err
}

// At returns the id of the object that is declared at a key. The error is a NotFound if its
// first version is not written yet. An object at the wrong place is an error, too.
func (r Root) At(ctx context.Context, key string) (string, error) {
	prefix := strings.TrimSuffix(key, objectDeclaration)
	s, err := r.scan(ctx, prefix+inventoryName,
		// The id comes before the manifest, so only the beginning of an inventory is read.
		visitor{manifest: func(string, []string) error { return errSeen }})
	if fault.Is(err, fault.NotFound) {
		// Not a NotFound: a reindex of the whole root must name such an object.
		_, missing := r.Bucket.Head(ctx, prefix+"v1/"+inventoryName)
		switch {
		case missing == nil:
			return "", fmt.Errorf("ocfl: %s has versions, but no root inventory: "+
				"it is lost, or the first version is not committed yet", prefix)
		case !fault.Is(missing, fault.NotFound):
			return "", missing
		}
	}

	if err != nil && !errors.Is(err, errSeen) {
		return s.id, err
	}

	if Prefix(s.id) != prefix {
		return s.id, fmt.Errorf("ocfl: the inventory at %s is of %q, whose place is %s", prefix,
			s.id, Prefix(s.id))
	}
	return s.id, nil
}
