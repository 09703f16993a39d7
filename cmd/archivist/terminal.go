package main

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// usualWidth is that of a terminal that does not say how wide it is.
const usualWidth = 80

// printable is a text in one line without what a terminal would obey: control
// characters (C0 and C1), line separators, marks that change the direction, and ours
// that change the style.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if obeyed(r) || styles[r] != "" || r == '\n' || r == '\t' {
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

// Marks that a screen turns into the codes of a terminal. They are no characters
// (Unicode, section 23.7), so no text has them.
const (
	plain  = '\ufdd0'
	bold   = '\ufdd1'
	green  = '\ufdd2'
	red    = '\ufdd3'
	yellow = '\ufdd4'
	blue   = '\ufdd5'
)

var styles = map[rune]string{plain: "\x1b[0m", bold: "\x1b[1m", green: "\x1b[32m", red: "\x1b[31m", yellow: "\x1b[33m", blue: "\x1b[34m"}

// in is a text in a style, which has been made printable.
func in(style rune, text string) string {
	if style == 0 || text == "" {
		return text
	}
	return string(style) + text + string(plain)
}

// screen writes text for people: whatever a command prints, a terminal obeys none of
// it but our styles.
type screen struct {
	to      io.Writer
	colours bool
	rest    []byte // the beginning of a character whose end has not been written yet
}

// screen is a stream for people. It has colours if it is a terminal that has some,
// and NO_COLOR is not set (no-color.org).
func (m machine) screen(to stream) io.Writer {
	colours := to.width > 0 && m.getenv("NO_COLOR") == "" && m.getenv("TERM") != "dumb"
	return &screen{to: to, colours: colours}
}

// Write takes the next bytes of the text.
func (s *screen) Write(p []byte) (int, error) {
	text := append(s.rest, p...)
	out := make([]byte, 0, len(text))
	for len(text) > 0 && utf8.FullRune(text) {
		r, n := utf8.DecodeRune(text)
		text = text[n:]
		code, isStyle := styles[r]
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

// count is a number with its noun: "1 file", "2 files".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
