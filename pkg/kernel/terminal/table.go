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
	Extra bool               // it is left out first, if a column without a share would be shortened
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
			g.add(column{cells: cells, share: c.Share, extra: c.Extra, style: c.Style})
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

// grid is a table of texts, column by column.
type grid []column

// column is a column of a grid. Its first cell is its title.
type column struct {
	cells []string
	need  int // the width of the widest cell
	share int
	extra bool
	style func(string) Style
}

// add adds a column. Widths count letters of double width twice, and styles not at all.
func (g *grid) add(c column) {
	for _, cell := range c.cells {
		c.need = max(c.need, text.StringWidthWithoutEscSequences(cell))
	}
	*g = append(*g, c)
}

// gap separates columns.
const gap = "  "

// print writes the rows, each cell shortened to its column. The last column has no spaces
// behind it.
func (g grid) print(p Page) {
	g, width := g.fit(p.Width)
	if len(g) == 0 {
		return
	}

	for row := range g[0].cells {
		var line strings.Builder
		for i, c := range g {
			shown := text.Snip(c.cells[row], width[i], "…")
			line.WriteString(c.styleOf(row).Of(shown))
			line.WriteString(strings.Repeat(" ",
				max(0, width[i]-text.StringWidthWithoutEscSequences(shown))) + gap)
		}

		fmt.Fprintln(p, strings.TrimRight(line.String(), " "))
	}
}

// fit leaves columns out until the others fit a width, and returns those with their widths: the extra ones while one
// that has no share is shortened, the last first, and each for which there is no room. What is left out needs no gap.
func (g grid) fit(total int) (grid, []int) {
	for {
		width := g.widths(total - len(gap)*(len(g)-1))
		out, isCut := -1, false
		for i, c := range g {
			isCut = isCut || c.share == 0 && width[i] < c.need
		}
		for i, c := range g {
			if isCut && c.extra {
				out = i
			}
		}
		if out < 0 {
			out = slices.Index(width, 0)
		}
		if out < 0 {
			return g, width
		}
		g = slices.Delete(g, out, out+1)
	}
}

// styleOf is the style of a cell; it is chosen by the whole text, before it is shortened.
func (c column) styleOf(row int) Style {
	switch {
	case row == 0:
		return Bold
	case c.style == nil:
		return NoStyle
	}
	return c.style(c.cells[row])
}

// fewest is the width below which a shortened column is useless.
const fewest = 6

// widths divides a total width among columns. Columns without a share get what they need,
// from the left, as long as there is room. The others get their shares of the rest. The
// part that one does not need goes to the others; one that would get too little gets
// nothing.
func (g grid) widths(total int) []int {
	out, open, sum := make([]int, len(g)), make([]int, len(g)), 0
	for i, c := range g {
		if c.share == 0 {
			out[i] = min(c.need, max(total, 0))
			total -= out[i]
		}
		open[i] = c.share
		sum += c.share
	}

	settle := func(i, width int) {
		out[i], open[i] = width, 0
		total, sum = total-width, sum-g[i].share
	}

	for again := true; again; {
		again = false
		for i, c := range g {
			if open[i] > 0 && c.need <= total*open[i]/sum {
				settle(i, c.need)
				again = true
			}
		}
	}

	for i, c := range g {
		if open[i] > 0 {
			settle(i, enough(c.need, total*open[i]/sum))
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
