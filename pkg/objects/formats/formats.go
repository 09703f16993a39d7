// Package formats identifies the formats of the files of stored versions, and keeps the results
// with the object's records. A stored version itself is never changed.
//
// The results of a version are pages of JSON in the derived bucket, in the order of its list of
// files. A row names them and sums them up:
//
//	FORMATS#{ark}  V#{n}                                         the pages of a version
//	formats/{place of the object in the storage root}/v{n}/{signatures}/{from}-{to}.json   a page
//
// A page is named by the part of the list that it is of, and by the signatures that were used: so
// two calls that make the same page write the same content.
package formats

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/objects/inventory"
	"archivist/pkg/objects/ocfl"
)

// Unknown is the id of a format that no signature matches.
const Unknown = "UNKNOWN"

// Match is a format that a file has.
type Match struct {
	ID        string `json:"id"` // of PRONOM, e.g. "fmt/354", or Unknown
	Name      string `json:"name,omitempty"`
	Version   string `json:"version,omitempty"`
	MediaType string `json:"mediaType,omitempty"`
	Basis     string `json:"basis,omitempty"`   // what in the file matched
	Warning   string `json:"warning,omitempty"` // what speaks against the match, or why there is none
}

// mostText is the maximum length of each text of a match, in bytes. Names in a file's structure can
// be part of a text, and a page has the texts of 1,000 files.
const mostText = 500

// Cut returns the match with texts that are not too long.
func (m Match) Cut() Match {
	for _, text := range []*string{&m.Name, &m.Version, &m.MediaType, &m.Basis, &m.Warning} {
		if len(*text) > mostText {
			*text = strings.ToValidUTF8((*text)[:mostText], "") + "…"
		}
	}
	return m
}

// Identify identifies a file by its name and content, which is read in ranges. A file of no known
// format has one match, Unknown.
type Identify func(ctx context.Context, name string, content io.ReaderAt, size int64) ([]Match, error)

// File is the result for one file.
type File struct {
	Path    string  `json:"path"`
	Size    int64   `json:"size"`
	SHA512  string  `json:"sha512"`
	Matches []Match `json:"matches"`
}

// Page is a part of the results of a version.
type Page struct {
	Object     string `json:"object"`
	Version    int    `json:"version"`
	Signatures string `json:"signatures"`
	Files      []File `json:"files"`
}

// Count is how many files have a format.
type Count struct {
	ID    string `dynamo:"format_id" json:"id"`
	Name  string `dynamo:"format_name,omitempty" json:"name,omitempty"`
	Files int    `dynamo:"files" json:"files"`
	// MediaType is that of PRONOM, or several with commas; "" if it has none, and in a result
	// that is not Typed.
	MediaType string `dynamo:"media_type,omitempty" json:"mediaType,omitempty"`
	// Bytes are those of the files; 0 in a result that is not Sized.
	Bytes int64 `dynamo:"bytes,omitempty" json:"-"`
}

// Result sums up the results of a version. A file with several matches is counted for each.
type Result struct {
	Version    int     `dynamo:"ocfl_version" json:"version"`
	Signatures string  `dynamo:"signatures" json:"signatures"`
	Files      int     `dynamo:"files" json:"files"`
	Unknown    int     `dynamo:"unknown_files" json:"unknown"`
	Warnings   int     `dynamo:"warned_files" json:"warnings"` // files with a warning
	Formats    []Count `dynamo:"formats,omitempty" json:"formats,omitempty"`
	More       int     `dynamo:"more_formats,omitempty" json:"moreFormats,omitempty"` // that Formats does not list
	// Typed: the formats have their media types. Results from before these were kept have not.
	Typed bool `dynamo:"media_types,omitempty" json:"-"`
	// Sized: the bytes are known. Results from before these were kept have none.
	Sized        bool  `dynamo:"sized,omitempty" json:"-"`
	Bytes        int64 `dynamo:"bytes,omitempty" json:"-"`         // of Files
	UnknownBytes int64 `dynamo:"unknown_bytes,omitempty" json:"-"` // of Unknown
	MoreBytes    int64 `dynamo:"more_bytes,omitempty" json:"-"`    // of More
}

// mostFormats is the maximum number of formats that a Result lists. They are kept in a row.
const mostFormats = 100

// add counts a file. An unknown one has a single match, so Unknown counts files.
func (r *Result) add(f File) {
	r.Files++
	r.Bytes += f.Size
	warned := false
	for _, m := range f.Matches {
		warned = warned || m.Warning != ""
		if m.ID == Unknown {
			r.Unknown++
			r.UnknownBytes += f.Size
			continue
		}
		r.count(m, f.Size)
	}

	if warned {
		r.Warnings++
	}
}

// count counts a match of a file of a size. Formats beyond the first hundred are only summed up, in
// More.
func (r *Result) count(m Match, size int64) {
	for i := range r.Formats {
		if r.Formats[i].ID == m.ID {
			r.Formats[i].Files++
			r.Formats[i].Bytes += size
			return
		}
	}

	if len(r.Formats) == mostFormats {
		r.More++
		r.MoreBytes += size
		return
	}

	r.Formats = append(r.Formats, Count{ID: m.ID, Name: strings.TrimSpace(m.Name + " " + m.Version),
		Files: 1, MediaType: m.MediaType, Bytes: size})
}

// record is the row of a version. Pages are the bytes of the list of files at which the pages begin; the
// last page ends at From.
type record struct {
	table.Head
	From  int64   `dynamo:"from_byte"`
	Pages []int64 `dynamo:"pages,omitempty"`
	Done  bool    `dynamo:"complete"`
	Result
}

func key(ark string, n int) table.Key {
	return table.Key{PK: "FORMATS#" + ark, SK: fmt.Sprintf("%s%06d", inventory.VersionPrefix, n)}
}

// Store reads results.
type Store struct {
	Table   *table.Table
	Derived bucket.Bucket
}

// Result sums up the results of a version. Without results that are complete it is a NotFound.
func (s Store) Result(ctx context.Context, ark string, n int) (Result, error) {
	r, err := s.record(ctx, ark, n)
	return r.Result, err
}

// Sized is Result with bytes. Of a result from before bytes were kept, it sums up the stored
// pages, at most so many of them: then Files may be fewer than the version has. A page that is
// gone, or is no JSON, is a NotFound, as a result that is not complete.
func (s Store) Sized(ctx context.Context, ark string, n, most int) (Result, error) {
	r, err := s.record(ctx, ark, n)
	if err != nil || r.Sized {
		return r.Result, err
	}

	sum := Result{Version: n, Signatures: r.Signatures, Typed: true, Sized: true}
	for number := range min(most, len(r.Pages)) {
		p, _, err := s.page(ctx, ark, &r, number)
		if errors.As(err, new(*json.SyntaxError)) {
			err = fault.New(fault.NotFound, "%w", err)
		}
		if err != nil {
			return sum, err
		}
		for _, f := range p.Files {
			sum.add(f)
		}
	}
	return sum, nil
}

// record reads the row of a version. One that is not complete counts as none.
func (s Store) record(ctx context.Context, ark string, n int) (r record, err error) {
	err = s.Table.Get(ctx, key(ark, n), &r)
	if err == nil && !r.Done || fault.Is(err, fault.NotFound) {
		return r, fault.New(fault.NotFound,
			"the formats of the files of %s v%d are not identified yet", ark, n)
	}
	return r, err
}

// Page reads the results of a version page by page, beginning with 0. It returns the number of the next
// page, 0 at the end. A number that no page has is an Invalid.
func (s Store) Page(ctx context.Context, ark string, n, number int) (p Page, next int, err error) {
	r, err := s.record(ctx, ark, n)
	switch {
	case err != nil:
		return p, 0, err
	// Of a version without files no page was written; readers get an empty one.
	case len(r.Pages) == 0 && number == 0:
		return Page{Object: ark, Version: n, Signatures: r.Signatures}, 0, nil
	case number < 0 || number >= len(r.Pages):
		return p, 0, fault.New(fault.Invalid, "the formats of %s v%d have %d pages; found page %d",
			ark, n,
			len(r.Pages), number)
	}
	return s.page(ctx, ark, &r, number)
}

// page reads a page that a row names.
func (s Store) page(ctx context.Context, ark string, r *record, number int) (p Page, next int,
	err error) {
	to := r.From
	if number+1 < len(r.Pages) {
		to, next = r.Pages[number+1], number+1
	}

	text, _, err := s.Derived.Read(ctx, pageKey(ark, r.Version, r.Signatures, r.Pages[number], to))
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	return p, next, err
}

// Folder begins the keys of pages.
const Folder = "formats/"

// pageKey is where a page is. Signatures can have any name, so the key has their digest.
func pageKey(ark string, n int, signatures string, from, to int64) string {
	sum := sha256.Sum256([]byte(signatures))
	return fmt.Sprintf(Folder+"%sv%d/%s/%012d-%012d.json", ocfl.Prefix(ark), n,
		hex.EncodeToString(sum[:4]), from, to)
}
