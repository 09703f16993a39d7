package search

import (
	"context"
	"errors"

	"archivist/pkg/formats/erc"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/aip"
	"archivist/pkg/objects/formats"
	"archivist/pkg/objects/inventory"
	"archivist/pkg/objects/ocfl"
)

// MaxFiles is how many paths of an object are indexed, the first in their order. It bounds the size of
// a document, and what reading an object of very many files costs.
const MaxFiles = 1000

// Source reads the state of objects: their rows, their newest recorded version in the
// storage root, and the formats by which its files were identified.
type Source struct {
	Inventory inventory.Store
	Root      ocfl.Root
}

// Read is a Reader. What the storage root does not have, or has in a form that cannot be read, is taken
// from the row, which has a summary of the description. An object without a row is nil. An error is one
// of the table, of S3, or of the end of the call: the same read may succeed later.
func (s Source) Read(ctx context.Context, ark string) (*Document, error) {
	row, err := s.Inventory.Object(ctx, ark)
	if fault.Is(err, fault.NotFound) {
		return nil, nil
	}

	if err != nil {
		return nil, err
	}

	d := &Document{
		ARK:        row.ARK,
		Collection: row.Collection,
		LocalIDs:   row.LocalIDs,
		Version:    row.Number,
		Modified:   row.Modified,
	}

	k, err := s.stored(ctx, row, d)
	if failed(ctx, err) {
		return nil, err
	}

	d.Titles, d.Creators, d.Dates = or(k.What, row.Title), or(k.Who, row.Who), or(k.When, row.When)
	d.More = k.Where
	for _, name := range erc.Elements {
		d.More = append(d.More, k.More[name]...)
	}
	return d, nil
}

// stored reads the description and the paths of the version that the row names. The paths go into d. k
// is empty if there is no description, or one that cannot be read.
func (s Source) stored(ctx context.Context, row *inventory.Object,
	d *Document) (k erc.Kernel, err error) {
	stored, err := s.Root.Head(ctx, row.ARK)
	if err != nil {
		return k, err
	}

	v := aip.Of(s.Root, stored, row.HeadOf)
	files, _, err := v.Files(ctx, 0, MaxFiles)
	if failed(ctx, err) {
		return k, err
	}

	for _, f := range files {
		d.Files = append(d.Files, f.Path)
	}
	if err := s.formats(ctx, row, files, d); err != nil {
		return k, err
	}
	return v.Description(ctx)
}

// formats names the formats of a version's files in its document. Until they are identified, and
// of versions whose row was written before it had media types, the list of files tells media
// types.
func (s Source) formats(ctx context.Context, row *inventory.Object, files []aip.Entry,
	d *Document) error {
	var n named
	r, err := formats.Store{Table: s.Inventory.Table}.Result(ctx, row.ARK, row.HeadOf)
	if fault.Is(err, fault.NotFound) {
		r, err = formats.Result{}, nil // also of one that is not complete
	}
	if err != nil {
		return fault.New(fault.Unavailable, "%w", err)
	}
	n.identified(r, r.Typed)
	if !r.Typed {
		n.listed(files)
	}
	n.into(d)
	return nil
}

// failed reports whether an error may pass: it is one of S3 or of the call, not of what was
// read.
func failed(ctx context.Context, err error) bool {
	var s3 *bucket.Error
	return err != nil &&
		(ctx.Err() != nil || errors.As(err, &s3) || fault.Is(err, fault.Unavailable))
}

// or are the values, or else the summary.
func or(values []string, summary string) []string {
	if len(values) > 0 || summary == "" {
		return values
	}
	return []string{summary}
}
