// Package pronom identifies the format of a file by the signatures of PRONOM, the registry of The
// National Archives, with the library siegfried. The signatures are part of the program.
//
//	id, err := pronom.New()
//	matches, err := id.Identify(ctx, "report.odt", content, size)
//
// A file is read in ranges, and only as far as it takes: at most Limits.Read bytes. What cannot be
// decided with these is decided without the rest, and the match has a warning.
package pronom

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path"
	"strings"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/formats"
)

// Open is a formats.Open.
func Open() (formats.Identify, string, error) {
	d, err := New()
	if err != nil {
		return nil, "", err
	}
	return d.Identify, d.Signatures, nil
}

// OpenBrief is Open for files that are just received: less is read of each, and less of it is in memory. What cannot
// be decided with that has a warning.
func OpenBrief() (formats.Identify, string, error) {
	d, err := New()
	if err != nil {
		return nil, "", err
	}
	d.Limits.Read, d.Limits.Listing, d.Limits.Entry = 4<<20, 1<<20, 16<<20
	return d.Identify, d.Signatures, nil
}

// Identify identifies a file by its content, its structure if it is a container, and its name. A
// file of no known format has one match, Unknown, whose warning says why. Only an error of content
// is an error. If the library has no result at all, that is an Invalid.
func (d *Identifier) Identify(ctx context.Context, name string, content io.ReaderAt, size int64) (
	[]formats.Match, error) {
	w := &window{
		ctx:     ctx,
		content: content,
		size:    size,
		left:    d.Limits.Read,
		blocks:  map[int64][]byte{},
	}

	closed, err := d.closed(w)
	if err != nil {
		return nil, err
	}

	w.closed = closed != ""

	found, problem := d.engine.Identify(w, path.Base(name), "")
	if err := w.failed(); err != nil {
		return nil, err
	}

	warning := d.warning(w, closed, problem)
	var matches []formats.Match
	for _, f := range found {
		matches = append(matches, match(d.engine.Label(f), warning))
	}

	if len(matches) == 0 {
		return nil, fault.New(fault.Invalid, "pronom: %s: no result: %v", name, problem)
	}
	return matches, nil
}

// warning says why the content of a file was examined in part only, "" if it was not.
func (d *Identifier) warning(w *window, closed string, problem error) string {
	switch {
	case w.size == 0:
		return "the file is empty"
	case closed != "":
		return closed
	case w.cut:
		return fmt.Sprintf("at most %d of %d bytes were examined", d.Limits.Read, w.size)
	case problem != nil:
		return "the container cannot be read: " + problem.Error()
	}
	return ""
}

// match is one result of the library, by its own names of the fields.
func match(fields [][2]string, warning string) formats.Match {
	var m formats.Match
	into := map[string]*string{"id": &m.ID, "format": &m.Name, "version": &m.Version,
		"mime":  &m.MediaType,
		"basis": &m.Basis, "warning": &m.Warning}

	for _, f := range fields {
		if field := into[f[0]]; field != nil {
			*field = strings.ToValidUTF8(f[1], "\uFFFD")
		}
	}

	m.ID = cmp.Or(m.ID, formats.Unknown)
	if warning != "" {
		m.Warning = strings.TrimPrefix(m.Warning+"; "+warning, "; ")
	}
	return m.Cut()
}
