package v1

import (
	"context"
	"io"
	"strconv"
)

// FormatCounts are the files and bytes of a collection, or of all, by their formats: those of
// the depositors, in the newest version of each object, also of one that is withdrawn.
type FormatCounts struct {
	// The name of the collection; absent if all are added up.
	Collection string `json:"collection,omitempty" example:"maps"`
	// How many objects are counted.
	Objects int64 `json:"objects" example:"120"`
	// How many objects were added, as the statistics have it.
	Added int64 `json:"added" example:"120"`
	// Every object that was added is counted. If not, the consumer `format-counts` has not come so
	// far.
	Whole bool `json:"whole"`
	// Of the counted objects, how many have had their files identified. Of the others, the media
	// types that were given are counted.
	Identified int64 `json:"identified" example:"118"`
	// All files, each once.
	Files int64 `json:"files" example:"2970"`
	// Their bytes.
	Bytes int64 `json:"bytes" example:"71200444032"`
	// The formats, those of most bytes first. A file that has several formats is in each of them.
	Formats []FormatUse `json:"formats"`
	// There are more collections than were added up: the first 300 by name.
	Cut bool `json:"cut,omitempty"`
}

// OtherFormats stands for formats that are not named, and for files that were not looked at.
const OtherFormats = "others"

// FormatUse is how many files have a format, and their bytes.
type FormatUse struct {
	// The media type: that of PRONOM, which can be several with commas; of files that are not
	// identified, the one that was given. Absent if none is known.
	MediaType string `json:"mediaType,omitempty" example:"image/tiff"`
	// The id in PRONOM; UNKNOWN for files of no known format; others for formats beyond the first
	// hundreds, and for files that were not looked at; absent if the files are not identified.
	Format string `json:"format,omitempty" example:"fmt/353"`
	// The format in words.
	Name string `json:"name,omitempty" example:"Tagged Image File Format"`
	// The number of files.
	Files int64 `json:"files" example:"2950"`
	// Their bytes.
	Bytes int64 `json:"bytes" example:"71200000000"`
}

// FormatCounts returns the files and bytes by format of a collection or, without a name, of all.
func (c *Client) FormatCounts(ctx context.Context, collection string) (FormatCounts, error) {
	return get[FormatCounts](ctx, c, "/v1/formats"+query("collection", collection))
}

var formatColumns = []string{"mediaType", "format", "name", "files", "bytes"}

// WriteFormats writes the formats as CSV.
func WriteFormats(to io.Writer, is FormatCounts) error {
	table := newCSV(to, formatColumns...)
	for _, f := range is.Formats {
		table.row(f.MediaType, f.Format, f.Name, strconv.FormatInt(f.Files, 10),
			strconv.FormatInt(f.Bytes, 10))
	}
	return table.close()
}

// Shown is the media type for people: in words if there is none.
func (f FormatUse) Shown() string {
	switch {
	case f.MediaType != "":
		return f.MediaType
	case f.Format == OtherFormats:
		return "(others)"
	case f.Format == "":
		return "(not identified)"
	}
	return "(none)"
}
