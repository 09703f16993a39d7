// Package terminal writes for people and for programs: tables that fit a terminal, rows
// separated by tabs for a pipe, and a line that shows progress.
//
// A command writes in one way, and the [Stream] decides the format:
//
//	page := terminal.Page{Writer: terminal.NewScreen(out, colours), Width: out.Width}
//	page.Fields("state", job.State, "message", job.Message)
//	terminal.Table(page, jobs, columns...)
//
// The output has untrusted text: names of files, titles, messages of servers. Terminals
// interpret some characters as commands, so a [Screen] removes them; only the styles of
// this package become control codes.
package terminal

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// UsualWidth is the width of a terminal that does not report one.
const UsualWidth = 80

// Stream is an output of a program. Whether it is a terminal is found out by the command, not
// here.
type Stream struct {
	io.Writer
	Width int // columns of a terminal; 0 for a pipe or a file
}

// Printable is a text in one line without characters that a terminal would interpret: control
// characters (C0 and C1), line separators, marks that change the direction, and our marks
// that change the style. Each becomes a space. Without the marks of direction (Unicode's
// bidirectional controls), a name cannot be shown as another one.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if obeyed(r) || codes[Style(r)] != "" || r == '\n' || r == '\t' {
			return ' '
		}
		return r
	}, s)
}

// Visible is a stored text for a page, with its invisible characters made visible: those that turn
// the direction of what follows around, and controls. Otherwise a name could look like another one.
// The marks of right-to-left scripts stay.
func Visible(text string) string {
	var out strings.Builder
	for _, r := range text {
		turns := r >= 0x202A && r <= 0x202E || r >= 0x2066 && r <= 0x2069
		if turns || unicode.IsControl(r) && r != '\n' && r != '\t' {
			fmt.Fprintf(&out, "[U+%04X]", r)
			continue
		}
		out.WriteRune(r)
	}
	return out.String()
}

// obeyed reports whether a terminal would interpret a character instead of showing it, other than
// a line break or a tab. Marks that change the direction have Unicode's property Bidi_Control;
// U+2028 and U+2029 are line separators.
func obeyed(r rune) bool {
	switch r {
	case '\n', '\t':
		return false
	case '\u2028', '\u2029':
		return true
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)
}

// Style is a mark in a text from which on it has another style. It is a
// noncharacter (Unicode, section 23.7), so no text has it.
type Style rune

// The styles. NoStyle leaves a text unchanged.
const (
	NoStyle Style = 0
	plain   Style = '\ufdd0'
	Bold    Style = '\ufdd1'
	Green   Style = '\ufdd2'
	Red     Style = '\ufdd3'
	Yellow  Style = '\ufdd4'
	Blue    Style = '\ufdd5'
)

// codes are the control codes of the styles (ECMA-48, section 8.3.117).
var codes = map[Style]string{
	plain:  "\x1b[0m",
	Bold:   "\x1b[1m",
	Green:  "\x1b[32m",
	Red:    "\x1b[31m",
	Yellow: "\x1b[33m",
	Blue:   "\x1b[34m",
}

// Of is a text in the style. Styles do not nest: the end of an inner one is the end of all.
func (s Style) Of(text string) string {
	if s == NoStyle || text == "" {
		return text
	}
	return string(s) + text + string(plain)
}

// Screen writes text for people. A terminal interprets nothing in it but line breaks, tabs
// and our styles. It belongs to one goroutine.
type Screen struct {
	to      io.Writer
	colours bool
	rest    []byte // an incomplete character at the end of the last write
}

// NewScreen makes a screen on a stream. Without colours, styles are left out.
func NewScreen(to io.Writer, colours bool) *Screen { return &Screen{to: to, colours: colours} }

// Write takes the next bytes of the text. A character may be cut at the end of p: its bytes
// wait for the next call. Bytes that are not UTF-8 become the replacement character.
func (s *Screen) Write(p []byte) (int, error) {
	text := append(s.rest, p...)
	out := make([]byte, 0, len(text))

	for len(text) > 0 && utf8.FullRune(text) {
		r, n := utf8.DecodeRune(text)
		text = text[n:]

		code, isStyle := codes[Style(r)]
		switch {
		case isStyle && s.colours:
			out = append(out, code...)
		case isStyle:
		case obeyed(r):
			out = append(out, ' ')
		default:
			out = utf8.AppendRune(out, r)
		}
	}

	s.rest = append([]byte{}, text...)

	if _, err := s.to.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Size is a number of bytes for people: "1.5 MiB".
func Size(n int64) string {
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

// Count is a number with its noun: "1 file", "2 files". The plural is made with s, so the
// noun must be one of those.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
