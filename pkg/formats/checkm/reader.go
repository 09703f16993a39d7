package checkm

import (
	"fmt"
	"slices"
	"strings"
)

// reader is the state of reading a manifest. line is the number of the line that is read,
// from 1.
type reader struct {
	options  Options
	m        Manifest
	problems []Problem
	line     int
	declared []string // columns of #%fields, or nil
	version  bool     // there was #%checkm
	prefix   bool
	profile  bool
	eof      bool
	more     bool // there was a line after #%eof
	csv      bool
	names    *Names
	ids      names
}

func newReader(o Options) *reader {
	return &reader{options: o, names: NewNames(), ids: newNames(normal)}
}

// add records a problem. Of several errors at one place only the first is recorded.
// Warnings leave room for errors: a manifest with errors always reports at least one.
func (r *reader) add(s Severity, column int, format string, args ...any) {
	same := func(p Problem) bool {
		return p.Severity == Error && p.Line == r.line &&
			p.Column == column
	}
	if s == Error && column > 0 && slices.ContainsFunc(r.problems, same) {
		return
	}

	if len(r.problems) == MaxProblems {
		spare := slices.IndexFunc(r.problems, func(p Problem) bool { return p.Severity == Warning })
		if s == Warning || spare < 0 {
			return
		}
		r.problems = slices.Delete(r.problems, spare, spare+1)
	}

	r.problems = append(r.problems,
		Problem{s, r.line, column, cut(fmt.Sprintf(format, args...), maxSaid)})
}

// cut returns the beginning of a text, cut at a character. most is in bytes.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// shown is the part of a cell that a message repeats: its beginning, without secrets of URLs
// (credentials, queries), as any cell may be in a wrong column. It cuts too much rather than
// too little.
func shown(text string) string {
	if i := strings.LastIndexByte(text, '@'); i >= 0 {
		text = "…" + text[i:]
	}
	if i := strings.IndexAny(text, "?#;"); i >= 0 {
		text = text[:i] + "…"
	}
	return cut(text, 200)
}
