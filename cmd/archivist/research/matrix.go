package research

import (
	"fmt"
	"strconv"
	"strings"

	"archivist/cmd/archivist/command"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/terminal"
)

// researchMatrixCmd shows pairs.
type researchMatrixCmd struct {
	projectName
	Clip   int    `default:"1" help:"Number of the first clip, from 1; 40 are shown." placeholder:"N"`
	Cursor string `help:"Go on with the episodes at the cursor of the page before." placeholder:"CURSOR"`
	All    bool   `help:"Show all episodes; else 50." xor:"pages"`
	CSV    bool   `name:"csv" help:"Print a table as CSV: an episode in each row, a clip in each column."`
}

func (researchMatrixCmd) Prints() any { return v1.ResearchMatrix{} }

// Help says what a character means.
func (researchMatrixCmd) Help() string {
	return `An episode is a row, with a character for each clip. A digit: researched, with so many places; +: with ten or
more; x: researched, how many places is in its results only; !: its row cannot be read, archivist doctor tells more;
d: the results differ; q: another researcher is needed; w: under a lease; a dot: none of these. Places of the clips under "to review" wait for a person.`
}

// Run shows a page of episodes, or all from there on.
func (c *researchMatrixCmd) Run(a *command.App) error {
	if c.CSV && len(a.JSON) > 0 {
		return command.Usage("give --csv or --json, not both")
	}
	if c.Clip < 1 {
		return command.Usage("--clip: found %d; expected the number of a clip, from 1", c.Clip)
	}

	m, err := c.read(a)
	if err != nil {
		return err
	}
	if m.Cursor != "" {
		fmt.Fprintf(a.Errors, "archivist: there are more episodes; --all shows them, or --cursor %s goes on\n",
			terminal.Printable(m.Cursor))
	}
	if m.More {
		a.Warn("more places wait for a person than are marked: archivist research reviews %s", c.Project)
	}
	if c.CSV {
		return v1.WriteMatrix(a.Out, m)
	}
	return a.Print(m, func(p terminal.Page) { showMatrix(p, m) })
}

// read reads a page, or all pages from there on as one.
func (c *researchMatrixCmd) read(a *command.App) (v1.ResearchMatrix, error) {
	m, err := a.Client.ResearchMatrix(a.Ctx, c.Project, c.Cursor, c.Clip-1)
	for err == nil && c.All && m.Cursor != "" {
		var page v1.ResearchMatrix
		page, err = a.Client.ResearchMatrix(a.Ctx, c.Project, m.Cursor, c.Clip-1)
		m.Rows, m.Cursor, m.More = append(m.Rows, page.Rows...), page.Cursor, m.More || page.More
	}
	return m, err
}

// showMatrix prints the episodes with their pairs, and for people before it which clips these are.
func showMatrix(p terminal.Page, m v1.ResearchMatrix) {
	if p.ForPeople() && len(m.Clips) > 0 {
		p.Fields("clips", fmt.Sprintf("%d to %d of %d", m.Clip+1, m.Clip+len(m.Clips), m.Total))
	}
	terminal.Table(p, m.Rows,
		terminal.Column[v1.ResearchMatrixRow]{
			Title: "episode", Text: func(r v1.ResearchMatrixRow) string { return r.Episode.Key }},
		terminal.Column[v1.ResearchMatrixRow]{
			Title: "title", Share: 1,
			Text: func(r v1.ResearchMatrixRow) string { return r.Episode.Title }},
		terminal.Column[v1.ResearchMatrixRow]{
			Title: "pairs",
			Text: func(r v1.ResearchMatrixRow) string {
				from := min(m.Clip-m.Begin, len(r.Pairs))
				return r.Pairs[from:min(from+len(m.Clips), len(r.Pairs))]
			}},
		terminal.Column[v1.ResearchMatrixRow]{
			Title: "to review", Share: 1,
			Text: func(r v1.ResearchMatrixRow) string {
				var all []string
				for n := range m.Clips {
					if strings.HasSuffix(m.Cell(r, n), "?") {
						all = append(all, strconv.Itoa(m.Clip+n+1))
					}
				}
				return strings.Join(all, " ")
			}},
		terminal.Column[v1.ResearchMatrixRow]{
			Text: func(r v1.ResearchMatrixRow) string { return r.Episode.State }})
}
