package main

import (
	"fmt"
	"io"
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
	cut   bool              // may be shortened to fit the terminal
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

func cuts[T any](columns []column[T]) (out []bool) {
	for _, c := range columns {
		out = append(out, c.cut)
	}
	return out
}

// gap separates columns.
const gap = "  "

// grid prints columns of cells, of which the first is the title.
func (p page) grid(cells [][]string, cut []bool, style func(column int, text string) rune) {
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
			value := text.Snip(cells[i][row], width[i], "…")
			pad := ""
			if i < len(cells)-1 {
				pad = strings.Repeat(" ", max(0, width[i]-text.StringWidthWithoutEscSequences(value))) + gap
			}
			mark := bold
			if row > 0 {
				mark = style(i, cells[i][row])
			}
			line.WriteString(in(mark, value) + pad)
		}
		fmt.Fprintln(p, strings.TrimRight(line.String(), " "))
	}
}

// widths shares a terminal's columns out: what may not be cut gets what it needs, the
// others equal shares of the rest, and none more than it needs.
func widths(need []int, cut []bool, total int) []int {
	out := append([]int{}, need...)
	open := 0
	for i := range out {
		if cut[i] {
			out[i] = 0
			open++
		}
		total -= out[i]
	}
	for open > 0 {
		share, given := max(total/open, 1), false
		for i := range out {
			if cut[i] && out[i] == 0 && need[i] <= share {
				out[i], given = max(need[i], 1), true
				total, open = total-out[i], open-1
			}
		}
		if given {
			continue
		}
		for i := range out {
			if cut[i] && out[i] == 0 {
				out[i] = max(total/open, 1)
				total, open = total-out[i], open-1
			}
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
