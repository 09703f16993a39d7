package ocfl

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"archivist/pkg/formats/ocflspec"
	"archivist/pkg/kernel/fault"
)

// Place is a place in the manifest of an object's root inventory. The zero value is its beginning.
// It can be kept, and used by another process: it names the inventory that it is of.
type Place struct {
	ETag   string `json:"etag,omitempty"`   // of the inventory
	At     int64  `json:"at,omitempty"`     // the byte after an entry
	Digest string `json:"digest,omitempty"` // of that entry
}

// Entry is content by its digest: its paths below the object's prefix, and the place after it.
type Entry struct {
	Digest string
	Paths  []string
	Next   Place
}

// Manifest reads at most n entries of the manifest of an object after a place; there are fewer than n at
// the end. If the object has got another version since, the entries are those whose digests sort after
// the one of the place.
//
// That relies on manifests in the order of their digests, as this package writes them. An inventory
// of another order is read rightly only while its ETag stays. A missing object is a NotFound.
func (r Root) Manifest(ctx context.Context, id string, from Place, n int) ([]Entry, error) {
	key := Prefix(id) + inventoryName
	if from.At > 0 {
		// On the condition of the ETag: a byte of another inventory means nothing.
		body, err := r.Bucket.Same(ctx, key, from.ETag, from.At)
		if err == nil {
			defer body.Close()
			return readManifest(rest(body, from), from, n)
		}
		if !fault.Is(err, fault.Stale) {
			return nil, err
		}
	}

	body, info, err := r.Bucket.Open(ctx, key)
	if err != nil {
		return nil, err
	}

	defer body.Close()
	start, err := manifestOf(body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	return readManifest(start, Place{ETag: info.ETag, Digest: from.Digest}, n)
}

// entries reads the entries of a manifest. base is the byte of the inventory at which dec began.
type entries struct {
	dec  *jsontext.Decoder
	base int64
	err  error
}

// manifestOf reads an inventory up to its manifest.
func manifestOf(inventory io.Reader) (entries, error) {
	dec := jsontext.NewDecoder(inventory, jsontext.AllowDuplicateNames(true))
	if _, err := dec.ReadToken(); err != nil {
		return entries{}, err
	}

	for dec.PeekKind() == '"' {
		name, err := dec.ReadToken()
		if err != nil {
			return entries{}, err
		}

		if name.String() == "manifest" {
			_, err := dec.ReadToken()
			return entries{dec: dec}, err
		}

		if err := dec.SkipValue(); err != nil {
			return entries{}, err
		}
	}
	return entries{}, fmt.Errorf("ocfl: the inventory has no manifest")
}

// rest continues a manifest after an entry: a comma and the next entry, or the end of the manifest.
func rest(body io.Reader, from Place) entries {
	in, base := bufio.NewReader(body), from.At
	for {
		next, err := in.ReadByte()
		if err != nil {
			return entries{err: err}
		}

		base++
		if next == ',' {
			break
		}

		if next == '}' {
			in = bufio.NewReader(strings.NewReader("}"))
			break
		}
	}

	// The decoder begins with a brace that is not in the body: its offsets are one too many.
	e := entries{dec: jsontext.NewDecoder(io.MultiReader(strings.NewReader("{"), in),
		jsontext.AllowDuplicateNames(true)), base: base - 1}
	_, e.err = e.dec.ReadToken()
	return e
}

// readManifest reads entries after a place.
func readManifest(e entries, from Place, n int) (all []Entry, err error) {
	next := from
	for e.err == nil && len(all) < n && e.dec.PeekKind() == '"' {
		var one Entry
		name, err := e.dec.ReadToken()
		if err != nil {
			return nil, err
		}

		one.Digest = name.String()
		if err := json.UnmarshalDecode(e.dec, &one.Paths); err != nil {
			return nil, err
		}

		// Another inventory is read from its beginning. Entries up to the place were returned
		// before.
		if from.At == 0 && one.Digest <= from.Digest {
			continue
		}

		next.At, next.Digest = e.base+e.dec.InputOffset(), one.Digest
		one.Next = next
		all = append(all, one)
	}

	if e.err == nil && len(all) < n && e.dec.PeekKind() != '}' {
		_, e.err = e.dec.ReadToken()
		e.err = fmt.Errorf("ocfl: the manifest breaks off after %s: %w", next.Digest, e.err)
	}

	if e.err != nil {
		return nil, e.err
	}
	return all, nil
}

// Structure is a file of an object that its manifest does not name. Its sha512 is Digest, or the one
// in the file Sidecar.
type Structure struct{ Key, Digest, Sidecar string }

// Declaration is the declaration of an object.
func Declaration(id string) Structure {
	return Structure{Key: Prefix(id) + objectDeclaration, Digest: SHA512([]byte(ocflspec.DeclarationText))}
}

// Inventory is the inventory of version n of an object, 0 for the root inventory.
func Inventory(id string, n int) Structure {
	folder := Prefix(id)
	if n > 0 {
		folder = fmt.Sprintf("%sv%d/", folder, n)
	}
	return Structure{Key: folder + inventoryName, Sidecar: folder + sidecarName}
}

// IsInventory reports whether a key is that of an inventory or of its sidecar.
func IsInventory(key string) bool {
	name := key[strings.LastIndexByte(key, '/')+1:]
	return name == inventoryName || name == sidecarName
}

// Sidecar is the text of the sidecar of an inventory with a sha512.
func Sidecar(digest string) []byte { return ocflspec.Sidecar(digest) }

// VersionOf is the version that added the content at a path below an object's prefix. ok is false
// of a path that is no content, or that another software wrote.
func VersionOf(path string) (n int, ok bool) {
	n, _ = writer(path)
	return n, n > 0
}

// SidecarDigest reads the digest in a sidecar. A missing one is a NotFound.
func (r Root) SidecarDigest(ctx context.Context, key string) (string, error) {
	digest, _, err := r.ReadSidecar(ctx, key)
	return digest, err
}

// ReadSidecar reads the digest in a sidecar, and reports whether the sidecar is as one is written. A missing one is a
// NotFound.
func (r Root) ReadSidecar(ctx context.Context, key string) (digest string, whole bool, err error) {
	text, _, err := r.Bucket.Read(ctx, key)
	// The specification allows spaces and tabs before the name (section 3.7.1).
	digest, _, _ = strings.Cut(strings.ReplaceAll(string(text), "\t", " "), " ")
	digest = strings.TrimSpace(digest)
	return digest, string(text) == string(Sidecar(digest)), err
}
