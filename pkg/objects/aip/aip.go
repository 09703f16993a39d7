// Package aip reads what one stored version of an object contains: its files, whose
// object it is, and how it is described. In the words of OAIS (ISO 14721) such a version
// is an Archival Information Package.
//
// All of it is in the storage root: the producer's files are listed in order of their
// paths in [ListName], the rest is in the other system files. The API, receipts and the
// inventory's rows read it here, so none of them needs the stages that wrote it.
//
//	stored, err := root.Head(ctx, "ark:/99999/fk4...")
//	v := aip.Of(root, stored, stored.Head)
//	files, next, err := v.Files(ctx, 0, 1000)
package aip

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"archivist/pkg/formats/anvl"
	"archivist/pkg/formats/erc"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/inventory"
	"archivist/pkg/objects/ocfl"
)

// Names of the system files that are read here. Package systemfile writes them.
const (
	ListName       = "system/archivist-files.jsonl" // the producer's files by path, one JSON object a line
	ObjectName     = "system/mrt-mom.txt"           // the object's identifiers
	OwnerName      = "system/mrt-owner.txt"
	MembershipName = "system/mrt-membership.txt" // its collection
	ERCName        = "system/mrt-erc.txt"        // its description
	DCName         = "system/mrt-dc.xml"         // the same, and what ERC has no elements for
)

// PolicyFile is the system file of a decision about an object. It has the elements Since (when), "by", "reason",
// and "until" if the decision has a last day.
type PolicyFile struct {
	Name, Since string
	Of          func(*inventory.Policies) **inventory.Decision
}

// PolicyFiles are those files, one for each decision that can be in force.
var PolicyFiles = []PolicyFile{
	{"system/archivist-withdrawal.txt", "withdrawn",
		func(p *inventory.Policies) **inventory.Decision { return &p.Withdrawal }},
	{"system/archivist-legal-hold.txt", "held",
		func(p *inventory.Policies) **inventory.Decision { return &p.LegalHold }},
	{"system/archivist-retention.txt", "retained",
		func(p *inventory.Policies) **inventory.Decision { return &p.Retention }},
	{"system/archivist-embargo.txt", "embargoed",
		func(p *inventory.Policies) **inventory.Decision { return &p.Embargo }},
}

// Version is one stored version of an object. To make one costs no request: each of its methods
// reads what it needs.
type Version struct {
	Root   ocfl.Root
	Object *ocfl.Stored
	Number int
}

// Of is version n of a stored object.
func Of(root ocfl.Root, object *ocfl.Stored, n int) Version {
	return Version{Root: root, Object: object, Number: n}
}

// Head is the newest version of a stored object.
func Head(root ocfl.Root, object *ocfl.Stored) Version { return Of(root, object, object.Head) }

// open opens a system file from a byte on. One that the version does not have is a NotFound; one that it names and
// that is not stored is damage: they must not be taken for each other.
func (v Version) open(ctx context.Context, path string, from int64) (io.ReadCloser, error) {
	body, err := v.Root.Open(ctx, v.Object, v.Number, path, from)
	if fault.Is(err, fault.NotFound) && slices.Contains(v.Object.SystemFiles(v.Number), path) {
		err = &ocfl.DamagedError{
			ID:  v.Object.ID,
			Why: fmt.Sprintf("%s of version %d is missing", path, v.Number),
		}
	}
	return body, err
}

// List opens the list of files; see ReadList.
func (v Version) List(ctx context.Context) (io.ReadCloser, error) { return v.open(ctx, ListName, 0) }

// Files reads at most n lines of the list of files, beginning at a byte. It returns the
// byte at which the next line begins. At the end of the list there are fewer than n.
func (v Version) Files(ctx context.Context, from int64,
	n int) (files []Entry, next int64, err error) {
	next = from
	err = v.Each(ctx, from, func(e Entry, behind int64) error {
		files, next = append(files, e), behind
		if len(files) == n {
			return errEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return nil, from, err
	}
	return files, next, nil
}

// errEnough ends Each once there are enough files.
var errEnough = errors.New("aip: enough files")

// Each calls each with the lines of the list of files, beginning at a byte; next is the byte at which
// the next line begins. It ends with the first error of each, which it returns.
func (v Version) Each(ctx context.Context, from int64, each func(e Entry, next int64) error) error {
	body, err := v.open(ctx, ListName, from)
	if err != nil {
		return err
	}

	defer body.Close()
	return EachOf(body, from, each)
}

// EachOf is Each for an open list, which begins at byte from. A byte that is not the beginning of a
// line is an Invalid.
func EachOf(list io.Reader, from int64, each func(e Entry, next int64) error) error {
	for lines := json.NewDecoder(list); ; {
		var e Entry
		err := lines.Decode(&e)
		if err == io.EOF {
			return nil
		}

		if err != nil && !isText(err) {
			return err // of the reader: the list was not received to its end
		}

		if err != nil {
			return fault.New(fault.Invalid,
				"byte %d of the list of files is not the beginning of a line: %w", from, err)
		}

		// One more for the newline behind the entry.
		if err := each(e, from+lines.InputOffset()+1); err != nil {
			return err
		}
	}
}

// isText reports whether an error of a JSON decoder is about the text, and not one of its reader.
func isText(err error) bool {
	return errors.As(err, new(*json.SyntaxError)) || errors.As(err, new(*json.UnmarshalTypeError)) ||
		err == io.ErrUnexpectedEOF
}

// Content is the key in the storage bucket of a file's content. The file is searched for
// with a few small reads. A path that the version does not have is a NotFound.
func (v Version) Content(ctx context.Context, path string) (string, error) {
	if !strings.HasPrefix(path, "producer/") {
		return v.Root.Key(ctx, v.Object, v.Number, path)
	}
	f, err := v.File(ctx, path)
	if err != nil {
		return "", err
	}
	return v.Root.Content(ctx, v.Object, f.Digests["sha512"])
}

// File is what is known of a producer's file. It is searched for with a few small reads. A path that
// the version does not have is a NotFound.
func (v Version) File(ctx context.Context, path string) (f Entry, err error) {
	list, err := v.Root.Key(ctx, v.Object, v.Number, ListName)
	if err != nil {
		return f, err
	}

	info, err := v.Root.Bucket.Head(ctx, list)
	if err != nil {
		return f, err
	}

	// The lines are in order of their paths, so the search halves the list.
	at, found, err := v.Root.Bucket.Search(ctx, list, 0, info.Size, path, firstLine)
	if err == nil && !found {
		err = fault.New(fault.NotFound, "%s v%d has no file %q", v.Object.ID, v.Number, path)
	}

	if err != nil {
		return f, err
	}

	files, _, err := v.Files(ctx, at, 1)
	if err != nil {
		return f, err
	}
	return files[0], nil
}

// Totals counts the producer's files and their bytes.
func (v Version) Totals(ctx context.Context) (files int, bytes int64, err error) {
	body, err := v.open(ctx, ListName, 0)
	if err != nil {
		return 0, 0, err
	}

	defer body.Close()

	for lines := json.NewDecoder(body); ; files++ {
		// Only the size is decoded: a list can have hundreds of thousands of lines.
		var e struct {
			Size int64 `json:"size"`
		}

		err := lines.Decode(&e)
		if err == io.EOF {
			return files, bytes, nil
		}

		if err != nil {
			return 0, 0, fmt.Errorf("aip: %s of %s: %w", ListName, v.Object.ID, err)
		}

		bytes += e.Size
	}
}

// Description reads how the version is described. Elements that the ERC record does not
// have are taken from the Dublin Core record.
func (v Version) Description(ctx context.Context) (k erc.Kernel, err error) {
	for _, in := range []struct {
		path string
		read func(io.Reader) (erc.Kernel, error)
	}{{ERCName, erc.ReadERC}, {DCName, erc.ReadDC}} {
		if !slices.Contains(v.Object.SystemFiles(v.Number), in.path) {
			continue
		}

		body, err := v.open(ctx, in.path, 0)
		if err != nil {
			return k, err
		}

		found, err := in.read(body)
		body.Close()
		if err != nil {
			return k, fmt.Errorf("aip: %s of %s v%d: %w", in.path, v.Object.ID, v.Number, err)
		}

		k = k.Or(found)
	}
	return k, nil
}

// elements reads the elements of a stored ANVL file. The stage Process limited its length. An
// element can occur several times, so each has a list of values.
func (v Version) elements(ctx context.Context, path string, into map[string][]string) error {
	body, err := v.open(ctx, path, 0)
	if err != nil {
		return err
	}

	defer body.Close()

	elements, err := anvl.Read(body)
	if err != nil {
		return fmt.Errorf("aip: %s of %s: %w", path, v.Object.ID, err)
	}

	for _, e := range elements {
		into[e.Name] = append(into[e.Name], e.Value)
	}
	return nil
}
