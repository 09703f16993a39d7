package formatcounts

import (
	"context"
	"errors"
	"mime"
	"strings"

	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/aip"
	"archivist/pkg/objects/formats"
	"archivist/pkg/objects/inventory"
	"archivist/pkg/objects/ocfl"
)

// Bounds of what is read of an object: lines of the list of files of one that is not
// identified, and pages of a result from before bytes were kept, each of 1,000 files. Files
// beyond them are counted as Others. A result that has its bytes is one row, however many files
// there are.
const (
	MaxListed = 5000
	MaxPages  = 20
)

// ofObject is how many formats an object has at most, beside Others: its row has them.
const ofObject = 200

// Source reads what is to be counted of objects.
type Source struct {
	Inventory inventory.Store
	Root      ocfl.Root
	Derived   bucket.Bucket // of the results from before bytes were kept
}

// Read is what is to be counted of an object: see Store. The formats are those by which the
// files were identified; until that was done, the media types of the list of files. Files that
// cannot be read for their formats, since the stored object is damaged, are counted as Others.
func (s Source) Read(ctx context.Context, ark string) (share Share, err error) {
	o, err := s.Inventory.Object(ctx, ark)
	if fault.Is(err, fault.NotFound) {
		return share, nil
	}
	if err != nil {
		return share, err
	}

	v, err := s.Inventory.Version(ctx, ark, o.HeadOf)
	if fault.Is(err, fault.NotFound) {
		return share, nil // the row is written with the object's; a lost one is for the doctor
	}
	if err != nil {
		return share, err
	}

	share = Share{Collection: o.Collection, Version: o.HeadOf,
		Counts: Counts{Objects: 1, Files: int64(v.Files), Bytes: v.Bytes}}
	r, err := formats.Store{Table: s.Inventory.Table, Derived: s.Derived}.Sized(ctx, ark, o.HeadOf,
		MaxPages)
	switch {
	case err == nil:
		share.Identified = 1
		share.identified(r)
	case fault.Is(err, fault.NotFound): // it is not identified, or a page of the result is gone
		err = s.listed(ctx, &share, ark)
	}
	return share, err
}

// identified counts the files by the formats that were identified, and the rest as Others.
func (c *Counts) identified(r formats.Result) {
	for _, f := range r.Formats {
		c.some(Format{ID: f.ID, MediaType: f.MediaType, Name: f.Name, Files: int64(f.Files), Bytes: f.Bytes})
	}
	c.some(Format{ID: formats.Unknown, Files: int64(r.Unknown), Bytes: r.UnknownBytes})
	c.some(Format{ID: Others, Files: int64(r.More), Bytes: r.MoreBytes})
	c.rest(int64(r.Files), r.Bytes)
}

// listed counts the files by the media types of the list of files of the newest version, and
// those behind the first as Others.
func (s Source) listed(ctx context.Context, share *Share, ark string) error {
	files, err := s.list(ctx, ark, share.Version)
	if err != nil {
		return err
	}

	bytes := int64(0)
	for _, f := range files {
		share.some(Format{MediaType: mediaType(f.MediaType), Files: 1, Bytes: f.Size})
		bytes += f.Size
	}
	share.rest(int64(len(files)), bytes)
	return nil
}

// list reads the first files of a version, none if the stored object has no list that can be read.
func (s Source) list(ctx context.Context, ark string, n int) ([]aip.Entry, error) {
	stored, err := s.Root.Head(ctx, ark)
	if err == nil {
		var files []aip.Entry
		files, _, err = aip.Of(s.Root, stored, n).Files(ctx, 0, MaxListed)
		if err == nil || fault.Of(err) == "" { // it was not received to its end
			return files, err
		}
	}
	if failed(ctx, err) {
		return nil, err
	}
	return nil, nil
}

// some counts files of a format of an object, if there are any.
func (c *Counts) some(f Format) {
	if f.Files > 0 {
		c.count(f, ofObject)
	}
}

// rest counts what is left of the object's files as Others, after so many.
func (c *Counts) rest(files, bytes int64) {
	c.some(Format{ID: Others, Files: c.Files - files, Bytes: max(c.Bytes-bytes, 0)})
}

// failed reports whether an error may pass: it is one of S3 or of the call, not of what was read.
func failed(ctx context.Context, err error) bool {
	var s3 *bucket.Error
	return ctx.Err() != nil || errors.As(err, &s3) || fault.Is(err, fault.Unavailable)
}

// mediaType is a media type in lower case without its parameters, "" if the text is none.
func mediaType(text string) string {
	kind, _, err := mime.ParseMediaType(text)
	if err != nil || len(kind) > longestType || !strings.Contains(kind, "/") {
		return ""
	}
	return kind
}
