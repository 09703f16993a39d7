package search

import (
	"mime"
	"slices"
	"strings"

	"archivist/pkg/objects/aip"
	"archivist/pkg/objects/formats"
)

// MaxFormats is how many names of formats a document has at most, beside OtherFormats.
const MaxFormats = 200

// OtherFormats stands for formats of an object that its document does not name: there are too
// many, or its list of files was not read to its end.
const OtherFormats = "others"

// maxName limits the name of a format, in bytes: media types may be given by depositors. RFC 6838
// allows 127 characters for each of two parts.
const maxName = 255

// named collects the names of an object's formats.
type named struct {
	all, kinds []string
	cut        bool
}

// add adds a name, and whether it is the one that is counted.
func (n *named) add(name string, counted bool) {
	name = strings.ToLower(name)
	for _, to := range []*[]string{&n.all, &n.kinds} {
		switch {
		case slices.Contains(*to, name) || to == &n.kinds && !counted:
		case len(*to) == MaxFormats:
			n.cut = true
		default:
			*to = append(*to, name)
		}
	}
}

// types adds the media types of a text, which PRONOM separates by commas, and reports whether
// there is one.
func (n *named) types(text string) (some bool) {
	for one := range strings.SplitSeq(text, ",") {
		if name := mediaType(one); name != "" {
			n.add(name, true)
			some = true
		}
	}
	return some
}

// mediaType is a media type without its parameters, "" if the text is none.
func mediaType(text string) string {
	kind, _, err := mime.ParseMediaType(text)
	if err != nil || len(kind) > maxName || !strings.Contains(kind, "/") {
		return ""
	}
	return kind
}

// identified adds formats by which files were identified. typed is false if their media types
// were not kept: then those of the list of files count.
func (n *named) identified(r formats.Result, typed bool) {
	for _, f := range r.Formats {
		n.add(f.ID, false)
		if typed && !n.types(f.MediaType) {
			n.add(f.ID, true)
		}
	}
	if r.Unknown > 0 {
		n.add(formats.Unknown, typed)
	}
	n.cut = n.cut || r.More > 0
}

// listed adds the media types of a list of files, which depositors have given, or names of files.
func (n *named) listed(files []aip.Entry) {
	for _, f := range files {
		n.types(f.MediaType)
	}
	n.cut = n.cut || len(files) == MaxFiles
}

// into gives a document the names.
func (n *named) into(d *Document) {
	d.Formats, d.Kinds = n.all, n.kinds
	if n.cut {
		d.Formats, d.Kinds = append(d.Formats, OtherFormats), append(d.Kinds, OtherFormats)
	}
}
