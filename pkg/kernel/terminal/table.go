package terminal

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
)

// Column is a column of a table of Ts. Text returns its value for a T; it is the only
// required field.
type Column[T any] struct {
	Title string         // "" for a column that only programs get
	Text  func(T) string // its value for a row
	Raw   func(T) string // its value for programs, if different
	// Share is a weight: a column with twice the share gets twice the width, as far as it
	// needs it.
	Share int                // it may be shortened: its share of the remaining width
	Style func(string) Style // of a text
	Human bool               // not for programs
}

// Table prints things in rows: for people in columns that fit the terminal, without empty
// columns; for programs with all columns, separated by tabs, without titles. The columns for
// programs are the same whatever the things are, so that scripts can count them.
func Table[T any](p Page, things []T, columns ...Column[T]) {
	if !p.ForPeople() {
		for _, thing := range things {
			fmt.Fprintln(p, row(thing, columns))
		}
		return
	}

	var g grid
	for _, c := range columns {
		cells := []string{strings.ToUpper(c.Title)}
		for _, thing := range things {
			cells = append(cells, Printable(c.Text(thing)))
		}
		if isEmpty := strings.Join(cells[1:], "") == ""; c.Title != "" && !isEmpty {
			g.add(cells, c.Share, c.Style)
		}
	}

	g.print(p)
}

// row formats a thing for programs. It has no tab or line break within a value.
func row[T any](thing T, columns []Column[T]) string {
	var cells []string
	for _, c := range columns {
		value := c.Text
		if c.Raw != nil {
			value = c.Raw
		}
		if !c.Human {
			cells = append(cells, Printable(value(thing)))
		}
	}
	return strings.Join(cells, "\t")
}

// grid is a table of texts, column by column. The first cell of a column is its title.
type grid struct {
	cells  [][]string
	need   []int // the width of the widest cell of each column
	shares []int
	styles []func(string) Style
}

// add adds a column. Widths count letters of double width twice, and styles not at all.
func (g *grid) add(cells []string, share int, style func(string) Style) {
	need := 0
	for _, cell := range cells {
		need = max(need, text.StringWidthWithoutEscSequences(cell))
	}
	g.cells, g.need = append(g.cells, cells), append(g.need, need)
	g.shares, g.styles = append(g.shares, share), append(g.styles, style)
}

// gap separates columns.
const gap = "  "

// print writes the rows, each cell shortened to its column. The last column has no spaces
// behind it.
func (g *grid) print(p Page) {
	if len(g.cells) == 0 {
		return
	}

	width := widths(g.need, g.shares, p.Width-len(gap)*(len(g.cells)-1))
	for row := range g.cells[0] {
		var line strings.Builder
		for i := range g.cells {
			if width[i] == 0 {
				continue
			}
			shown := text.Snip(g.cells[i][row], width[i], "…")
			line.WriteString(g.style(i, row).Of(shown))
			line.WriteString(strings.Repeat(" ",
				max(0, width[i]-text.StringWidthWithoutEscSequences(shown))) + gap)
		}

		fmt.Fprintln(p, strings.TrimRight(line.String(), " "))
	}
}

// style is that of a cell; it is chosen by the whole text, before it is shortened.
func (g *grid) style(column, row int) Style {
	switch {
	case row == 0:
		return Bold
	case g.styles[column] == nil:
		return NoStyle
	}
	return g.styles[column](g.cells[column][row])
}

// fewest is the width below which a shortened column is useless.
const fewest = 6

// widths divides a total width among columns. Columns without a share get what they need,
// from the left, as long as there is room. The others get their shares of the rest. The
// part that one does not need goes to the others; one that would get too little gets
// nothing.
func widths(need, shares []int, total int) []int {
	out := make([]int, len(need))
	for i := range need {
		if shares[i] == 0 {
			out[i] = min(need[i], max(total, 0))
			total -= out[i]
		}
	}

	open, sum := slices.Clone(shares), 0
	for _, share := range shares {
		sum += share
	}

	settle := func(i, width int) {
		out[i], open[i] = width, 0
		total, sum = total-width, sum-shares[i]
	}

	for again := true; again; {
		again = false
		for i := range need {
			if open[i] > 0 && need[i] <= total*open[i]/sum {
				settle(i, need[i])
				again = true
			}
		}
	}

	for i := range need {
		if open[i] > 0 {
			settle(i, enough(need[i], total*open[i]/sum))
		}
	}
	return out
}

// enough is the width of a shortened column, or 0 if it would be useless.
func enough(need, width int) int {
	if width < min(fewest, need) {
		return 0
	}
	return min(width, need)
}
