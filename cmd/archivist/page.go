package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
)

// page is what a command prints as text: for people if it has a width, else for
// programs, in lines whose parts are separated by tabs.
type page struct {
	io.Writer
	width int
}

// fields prints names with their values, leaving out those that are empty.
func (p page) fields(pairs ...string) {
	const indent = 15
	for i := 0; i+1 < len(pairs); i += 2 {
		name, value := pairs[i], printable(pairs[i+1])
		switch {
		case value == "":
		case p.width == 0:
			fmt.Fprintf(p, "%s\t%s\n", name, value)
		default:
			lines := strings.Split(text.WrapSoft(value, max(20, p.width-indent)), "\n")
			for n, line := range lines {
				head := ""
				if n == 0 {
					head = name
				}
				fmt.Fprintf(p, "%s%s\n", in(bold, text.Pad(head, indent, ' ')), strings.TrimRight(line, " "))
			}
		}
	}
}

// lines prints a text for people in lines that fit the terminal.
func (p page) lines(indent, value string) {
	value = printable(value)
	if p.width > 0 {
		value = text.WrapSoft(value, max(20, p.width-len(indent)))
	}
	for line := range strings.SplitSeq(value, "\n") {
		fmt.Fprintln(p, indent+strings.TrimRight(line, " "))
	}
}

// column is a column of a table of Ts.
type column[T any] struct {
	title string // "" for a column that only programs get
	text  func(T) string
	raw   func(T) string    // for programs, if it is another text
	cut   int               // may be shortened: its share of the room that is left
	style func(string) rune // of a text
	human bool              // programs do not get it
}

// table prints things in rows: for people in columns that fit the terminal, without
// those that are empty; for programs all columns, separated by tabs, and no header.
func table[T any](p page, things []T, columns ...column[T]) {
	if p.width == 0 {
		for _, thing := range things {
			var cells []string
			for _, c := range columns {
				value := c.text
				if c.raw != nil {
					value = c.raw
				}
				if !c.human {
					cells = append(cells, printable(value(thing)))
				}
			}
			fmt.Fprintln(p, strings.Join(cells, "\t"))
		}
		return
	}
	if len(things) == 0 {
		return
	}
	var shown []column[T]
	var cells [][]string // by column
	for _, c := range columns {
		var texts []string
		for _, thing := range things {
			texts = append(texts, printable(c.text(thing)))
		}
		if c.title != "" && strings.Join(texts, "") != "" {
			shown, cells = append(shown, c), append(cells, append([]string{strings.ToUpper(c.title)}, texts...))
		}
	}
	p.grid(cells, cuts(shown), func(column int, text string) rune {
		if style := shown[column].style; style != nil {
			return style(text)
		}
		return 0
	})
}

func cuts[T any](columns []column[T]) (out []int) {
	for _, c := range columns {
		out = append(out, c.cut)
	}
	return out
}

// gap separates columns.
const gap = "  "

// grid prints columns of cells, of which the first is the title.
func (p page) grid(cells [][]string, cut []int, style func(column int, text string) rune) {
	if len(cells) == 0 {
		return
	}
	need := make([]int, len(cells))
	for i, column := range cells {
		for _, cell := range column {
			need[i] = max(need[i], text.StringWidthWithoutEscSequences(cell))
		}
	}
	width := widths(need, cut, p.width-len(gap)*(len(cells)-1))
	for row := range cells[0] {
		var line strings.Builder
		for i := range cells {
			if width[i] == 0 {
				continue
			}
			value := text.Snip(cells[i][row], width[i], "…")
			mark := bold
			if row > 0 {
				mark = style(i, cells[i][row])
			}
			line.WriteString(in(mark, value))
			line.WriteString(strings.Repeat(" ", max(0, width[i]-text.StringWidthWithoutEscSequences(value))) + gap)
		}
		fmt.Fprintln(p, strings.TrimRight(line.String(), " "))
	}
}

// fewest is the width below which a shortened column says nothing.
const fewest = 6

// widths shares a terminal's columns out: what may not be cut gets what it needs, the
// others their shares of the rest, and none more than it needs. One that would get too
// little gets nothing.
func widths(need, cut []int, total int) []int {
	out := make([]int, len(need))
	shares := 0
	for i := range need {
		if cut[i] == 0 {
			out[i] = need[i]
			total -= need[i]
		}
		shares += cut[i]
	}
	for i := len(need) - 1; i >= 0 && total < 0; i-- { // too narrow even for these: cut from the right
		less := min(out[i], -total)
		out[i], total = out[i]-less, total+less
	}
	open := slices.Clone(cut)
	settle := func(i, width int) {
		out[i], open[i] = width, 0
		total, shares = total-width, shares-cut[i]
	}
	for again := true; again; { // those that need less than their share leave more to the others
		again = false
		for i := range need {
			if open[i] > 0 && need[i] <= max(total, 0)*open[i]/shares {
				settle(i, need[i])
				again = true
			}
		}
	}
	for i := range need {
		if open[i] > 0 {
			width := min(need[i], max(total, 0)*open[i]/shares)
			if width < min(fewest, need[i]) {
				width = 0
			}
			settle(i, width)
		}
	}
	return out
}

// stateStyle is the colour of a state, an outcome or a severity.
func stateStyle(state string) rune {
	switch state {
	case "Completed", "success", "accepted":
		return green
	case "Failed", "failure", "error", "rejected":
		return red
	case "Held", "Deleted", "warning":
		return yellow
	}
	return blue
}
