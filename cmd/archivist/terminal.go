package main

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/table"
)

// printable is a text in one line without what a terminal would obey: control
// characters (C0 and C1), line separators, and marks that change the direction.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if obeyed(r) || r == '\n' || r == '\t' {
			return ' '
		}
		return r
	}, s)
}

// obeyed reports whether a terminal would do something else than show a character,
// beside beginning a line and going to the next column.
func obeyed(r rune) bool {
	switch r {
	case '\n', '\t':
		return false
	case '\u2028', '\u2029':
		return true
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)
}

// screen writes text for people: whatever a command prints, a terminal obeys none of it.
type screen struct {
	to   io.Writer
	rest []byte // the beginning of a character whose end has not been written yet
}

// Write takes the next bytes of the text.
func (s *screen) Write(p []byte) (int, error) {
	text := append(s.rest, p...)
	out := make([]byte, 0, len(text))
	for len(text) > 0 && utf8.FullRune(text) {
		r, n := utf8.DecodeRune(text)
		if text = text[n:]; obeyed(r) {
			r = ' '
		}
		out = utf8.AppendRune(out, r)
	}
	s.rest = append([]byte{}, text...)
	if _, err := s.to.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// rows prints a table.
func rows(w io.Writer, header table.Row, body []table.Row) {
	t := table.NewWriter()
	t.SetOutputMirror(w)
	t.SetStyle(table.StyleLight)
	t.AppendHeader(header)
	for _, row := range body {
		for i, cell := range row {
			switch v := cell.(type) {
			case string:
				row[i] = printable(v)
			case []string:
				row[i] = printable(strings.Join(v, ", "))
			}
		}
		t.AppendRow(row)
	}
	t.Render()
}

// fields prints names with their values, leaving out what is empty.
func fields(w io.Writer, pairs ...any) {
	for i := 0; i+1 < len(pairs); i += 2 {
		if v := printable(fmt.Sprint(pairs[i+1])); v != "" && v != "[]" {
			fmt.Fprintf(w, "%-14s %s\n", pairs[i], v)
		}
	}
}

// size writes bytes for people.
func size(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	f, u := float64(n), 0
	for f >= 1024 && u < len(units)-1 {
		f, u = f/1024, u+1
	}
	if u == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", f, units[u])
}
