package objects

import (
	"fmt"
	"strings"

	"archivist/cmd/archivist/command"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/terminal"
)

// objectSearchCmd finds objects by what is said of them.
type objectSearchCmd struct {
	Query []string `arg:"" help:"Words, \"words that follow each other\", title:WORD, date:1800..1899, -WORD."`
	Sort  string   `help:"Order: ${enum}." enum:"relevance,title,date,modified" default:"relevance"`
	direction
	command.Limit
}

func (objectSearchCmd) Prints() any { return v1.Object{} }

// Help describes the query.
func (objectSearchCmd) Help() string {
	return `All words must be found: in the title, the creator, the date, the ids, the names of files,
or another element of the description. Case and diacritics make no difference.

  harbour map           both words
  "map of the harbour"  these words, one after the other
  harb*                 words that begin so
  -harbour              not this word
  title:harbour         this word in the title
  date:1800..1899       a range; one of its ends can be left out
  format:image/tiff     a file of this format; also by PRONOM: format:fmt/353

The fields are title, creator, collection, date, id, ark, file and format.

Before a word with a - in front, give -- so that it is not read as a flag.`
}

// Run reports on standard error how many were found in which collection, on a terminal: so that a search can be
// narrowed by collection:NAME.
func (c *objectSearchCmd) Run(a *command.App) error {
	found, err := a.Client.Search(a.Ctx, joined(c.Query), c.Sort+" "+c.Order, c.More())
	if err != nil {
		return err
	}
	// With one collection there is nothing to narrow.
	if len(found.Collections) > 1 && a.Out.Width > 0 {
		fmt.Fprintf(a.Errors, "%d objects were found: %s\n", found.Total,
			countsOf(found.Collections))
	}
	return command.List(a, c.Limit, objectColumns...)(found.Items, nil)
}

// joined joins the arguments to a query. A shell has removed the quotation marks around several words, so they
// are put back; a single argument is the query as it is.
func joined(args []string) string {
	parts := make([]string, len(args))
	for i, arg := range args {
		parts[i] = arg
		field, words, named := strings.Cut(arg, ":")
		switch {
		case len(args) == 1 || !strings.ContainsAny(arg, " \t") || strings.Contains(arg, `"`):
		// title:map of ghent was title:"map of ghent" before the shell.
		case named && !strings.ContainsAny(field, " \t"):
			parts[i] = field + `:"` + words + `"`
		default:
			parts[i] = `"` + arg + `"`
		}
	}
	return strings.Join(parts, " ")
}

// countsOf lists how many were found in which collection, the largest first.
func countsOf(counts []v1.CollectionCount) string {
	texts := make([]string, len(counts))
	for i, c := range counts {
		texts[i] = fmt.Sprintf("%s %d", c.Name, c.Objects)
	}
	return strings.Join(texts, ", ")
}

// objectBrowseCmd lists all objects, in an order that people know from catalogues.
type objectBrowseCmd struct {
	By         string `help:"Which list: ${enum}." enum:"title,date,creator,collection" default:"title"`
	StartingAt string `help:"Begin at this title, date, creator or collection." placeholder:"TEXT"`
	Collection string `short:"c" help:"Only this collection; with --by collection." placeholder:"NAME"`
	command.Limit
}

func (objectBrowseCmd) Prints() any { return v1.BrowseEntry{} }

// Run lists an object once for each of its creators if they are listed by creator. The order is that of the
// Unicode collation, as in a catalogue.
func (c *objectBrowseCmd) Run(a *command.App) error {
	return command.List(a, c.Limit, browseColumns(c.By)...)(
		a.Client.Browse(a.Ctx, c.By, c.StartingAt, c.Collection, c.More()))
}

// browseColumns have what the objects are listed by first, and not again in its own column.
func browseColumns(by string) []terminal.Column[v1.BrowseEntry] {
	columns := []terminal.Column[v1.BrowseEntry]{
		{Title: by, Text: func(e v1.BrowseEntry) string { return e.Value }, Share: 1}}
	if by != v1.ByTitle {
		columns = append(columns, terminal.Column[v1.BrowseEntry]{
			Title: "title",
			Text:  func(e v1.BrowseEntry) string { return e.Object.Title },
			Share: 1,
		})
	}

	if by != byCollection {
		columns = append(columns, terminal.Column[v1.BrowseEntry]{Title: "collection",
			Text: func(e v1.BrowseEntry) string { return e.Object.Collection }})
	}
	return append(columns, terminal.Column[v1.BrowseEntry]{Title: "ark",
		Text: func(e v1.BrowseEntry) string { return e.Object.ARK }})
}

// byCollection is the list by collection: its entries have the collection as their value.
const byCollection = "collection"
