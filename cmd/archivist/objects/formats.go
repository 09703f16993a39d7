package objects

import (
	"fmt"
	"strconv"

	"archivist/cmd/archivist/command"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/terminal"
)

// FormatsCmd shows the files and bytes of a collection by format: a consumer counts them, so
// the newest can be missing for a moment.
type FormatsCmd struct {
	Name string `arg:"" optional:"" help:"Name of a collection. Omit it for all of them."`
	CSV  bool   `name:"csv" help:"Print a table as CSV, for spreadsheets."`
}

// Prints is an empty value of what it prints; its fields are those of --json.
func (FormatsCmd) Prints() any { return v1.FormatCounts{} }

// Help says what is counted.
func (FormatsCmd) Help() string {
	return `What is counted is the newest version of each object, also of one that is withdrawn. A file that has several
formats is in each of them. Of files that are not identified, the media type is the one that was given.`
}

// Run shows the formats, those of most bytes first, and for people how much of the collection
// they are.
func (c *FormatsCmd) Run(a *command.App) error {
	if c.CSV && len(a.JSON) > 0 {
		return command.Usage("give --csv or --json, not both")
	}
	is, err := a.Client.FormatCounts(a.Ctx, c.Name)
	if err != nil {
		return err
	}
	if c.CSV {
		return v1.WriteFormats(a.Out, is)
	}
	return a.Print(is, func(p terminal.Page) {
		terminal.Table(p, is.Formats, formatUseColumns...)
		if p.ForPeople() {
			sayFormats(p, is)
		}
	})
}

// sayFormats says of what the formats are, and what is missing.
func sayFormats(p terminal.Page, is v1.FormatCounts) {
	count := func(n int64, noun string) string { return terminal.Count(int(n), noun) }
	fmt.Fprintf(p, "%s of %s, %s\n", count(is.Files, "file"), count(is.Objects, "object"), terminal.Size(is.Bytes))
	fmt.Fprintf(p, "identified are the files of %s\n", count(is.Identified, "object"))
	switch {
	case is.Cut:
		fmt.Fprintln(p, "not whole: only the first 300 collections are added up")
	case !is.Whole:
		fmt.Fprintf(p, "not whole: %s were added; the others are counted soon\n", count(is.Added, "object"))
	}
}

// formatUseColumns show a format, and what is stored in it.
var formatUseColumns = []terminal.Column[v1.FormatUse]{
	{
		Title: "media type",
		Text:  func(f v1.FormatUse) string { return f.Shown() },
		Raw:   func(f v1.FormatUse) string { return f.MediaType },
		Share: 1,
	},
	{Title: "format", Text: func(f v1.FormatUse) string { return f.Format }},
	{Title: "name", Text: func(f v1.FormatUse) string { return f.Name }, Share: 1},
	{Title: "files", Text: func(f v1.FormatUse) string { return strconv.FormatInt(f.Files, 10) }},
	{
		Title: "size",
		Text:  func(f v1.FormatUse) string { return terminal.Size(f.Bytes) },
		Raw:   func(f v1.FormatUse) string { return strconv.FormatInt(f.Bytes, 10) },
	},
}
