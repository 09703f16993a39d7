package console

import (
	"strings"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/access"
	"archivist/pkg/kernel/fault"
)

// formatUses are the files and bytes of a collection by format, as a page shows them.
type formatUses struct {
	v1.FormatCounts
	First  []formatLine
	More   int    // how many formats are not shown
	Unread string // why nothing could be read
	File   string // the address of the same as CSV, below /console/
}

// formatLine is a format, and the list of the objects that have it, below /console/; "" if no
// list has just these.
type formatLine struct {
	v1.FormatUse
	To string
}

// How many formats a page shows of each collection: that of the collection, and that of formats.
const (
	someFormats = 20
	mostFormats = 200
)

// formatsOf reads the files and bytes of a collection, or with "" of all. A page is shown
// without them if they cannot be read now.
func (v *visit) formatsOf(collection string, most int) (uses formatUses, err error) {
	uses.File = strings.TrimSuffix("formats.csv?"+query("collection", collection), "?")
	uses.FormatCounts, err = v.api.FormatCounts(v.Context(), collection)
	if fault.Is(err, fault.Unavailable) {
		uses.Unread, err = err.Error(), nil
	}
	for _, f := range uses.Formats[:min(most, len(uses.Formats))] {
		uses.First = append(uses.First, formatLine{f, objectsOf(collection, f)})
	}
	uses.More = len(uses.Formats) - len(uses.First)
	return uses, err
}

// objectsOf is the list of the objects that have a format, by the name that the search index
// has of it.
func objectsOf(collection string, f v1.FormatUse) string {
	name := f.Format
	if name == "" {
		name = f.MediaType
	}
	if name == "" || name == v1.OtherFormats {
		return ""
	}
	return "objects?" + query("collection", collection, "format", strings.ToLower(name))
}

// formatList is the page of formats: of one collection, of all, or of each of a depositor's.
type formatList struct{ Items []formatUses }

// showFormats shows the files and bytes by format. A depositor sees those of their collections.
func (c *Console) showFormats(v *visit) (view, error) {
	command, names := "archivist collection formats", []string{v.field("collection")}
	switch {
	case names[0] != "":
		command += " " + quoted(names[0])
	case !v.may(access.Viewer):
		names = v.is.Of(access.Depositor)
		if len(names) == 0 {
			return view{}, fault.New(fault.Denied, "the formats need the role viewer")
		}
		command += " " + quoted(names[0])
	}

	var p formatList
	for _, name := range names {
		uses, err := v.formatsOf(name, mostFormats)
		if err != nil {
			return view{}, err
		}
		p.Items = append(p.Items, uses)
	}
	return view{Title: "Formats", Body: p, Command: command}, nil
}

// formatsCSV answers with the formats as a table.
func (c *Console) formatsCSV(v *visit) error {
	is, err := v.api.FormatCounts(v.Context(), v.field("collection"))
	if err != nil {
		return err
	}
	h := v.w.Header()
	h.Set("Content-Type", v1.CSVMedia)
	h.Set("Content-Disposition", `attachment; filename="formats.csv"`)
	return v1.WriteFormats(v.w, is)
}
