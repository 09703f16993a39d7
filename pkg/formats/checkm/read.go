package checkm

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"
)

// directive matches a line that identifies a manifest.
var directive = regexp.MustCompile(`(?i)^#%[ \t]*(checkm|profile|prefix|fields|columns|eof)`)

const byteOrderMark = "\ufeff"

// IsManifest reports whether the beginning of a file is that of a manifest: its first line
// that is not blank or a comment is a directive. That is true in UTF-16, too: Read then
// reports the encoding. The beginning may be cut off anywhere.
func IsManifest(start []byte) bool {
	if isUTF16(start) {
		start = bytes.ReplaceAll(bytes.TrimLeft(start, "\xfe\xff"), []byte{0}, nil)
	}

	for line := range bytes.Lines(bytes.TrimPrefix(start, []byte(byteOrderMark))) {
		switch line = bytes.TrimSpace(line); {
		case directive.Match(line):
			return true
		case len(line) > 0 && line[0] != '#':
			return false
		}
	}
	return false
}

// isUTF16 reports whether a text begins in UTF-16: with a byte order mark, or with an ASCII
// character next to a byte 0. Text of a manifest begins in ASCII.
func isUTF16(start []byte) bool {
	if len(start) < 2 {
		return false
	}
	mark := string(start[:2])
	return mark == "\xff\xfe" || mark == "\xfe\xff" || (start[0] == 0) != (start[1] == 0)
}

// Read reads a manifest, passes each row to each (which may be nil), and returns all
// problems, up to MaxProblems. The manifest is accepted if none of them is an Error; that is
// known only after the rows. The error is one of reading, or the error of each. A row with
// errors is passed on, too, with what could be read. The problems are in the order of the
// lines.
func Read(in io.Reader, o Options, each func(Row) error) (Manifest, []Problem, error) {
	r := newReader(o)
	lines := bufio.NewReaderSize(in, MaxLine)
	if start, _ := lines.Peek(2); isUTF16(start) {
		r.line = 1
		r.add(Error, 1, "the manifest is in UTF-16; save it as UTF-8")
		return r.m, r.problems, nil
	}

	for last := false; !last; {
		line, long, err := readLine(lines)
		if err != nil && err != io.EOF {
			return r.m, nil, fmt.Errorf("checkm: line %d: %w", r.line+1, err)
		}

		last = err == io.EOF
		if last && line == "" {
			break
		}

		row, is := r.take(line, long)
		if is && each != nil {
			if err := each(row); err != nil {
				return r.m, nil, err
			}
		}

		if last {
			r.add(Warning, 0, "the last line has no line break at its end")
		}
	}

	r.end()
	return r.m, r.problems, nil
}

// ReadAll reads a whole manifest.
func ReadAll(in io.Reader, o Options) (Manifest, []Row, []Problem, error) {
	var rows []Row
	m, problems, err := Read(in, o, func(r Row) error { rows = append(rows, r); return nil })
	return m, rows, problems, err
}

// readLine reads a line with its line break. A line that is longer than the buffer is
// skipped. The error is io.EOF with the last line, if that has no line break.
func readLine(in *bufio.Reader) (line string, long bool, err error) {
	text, err := in.ReadSlice('\n')
	for errors.Is(err, bufio.ErrBufferFull) {
		long = true
		text, err = in.ReadSlice('\n')
	}
	return string(text), long, err
}

// take processes the next line, which may be a row. is is false for a directive, a comment,
// an empty line and one that cannot be read.
func (r *reader) take(line string, long bool) (row Row, is bool) {
	r.line++
	if long {
		r.add(Error, 0, "the line has more than %d bytes", MaxLine)
		r.m.Rows++ // counted, or the manifest might seem to be empty
		return Row{}, false
	}

	line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
	if r.line == 1 && strings.HasPrefix(line, byteOrderMark) {
		line = strings.TrimPrefix(line, byteOrderMark)
		r.add(Warning, 1, "a byte order mark begins the file; leave it out")
	}

	switch {
	case !utf8.ValidString(line):
		r.add(Error, 0, "the line is not UTF-8; save the manifest as UTF-8")
	case r.eof:
		r.afterEnd()
	case strings.TrimSpace(line) == "":
	case strings.HasPrefix(line, "#%"):
		r.directive(line)
	case strings.HasPrefix(line, "#"):
	default:
		return r.row(line)
	}
	return Row{}, false
}

// afterEnd warns of the first line after the end.
func (r *reader) afterEnd() {
	if !r.more {
		r.add(Warning, 0, "there are lines after #%%eof; they are ignored")
	}
	r.more = true
}

// end reports missing directives and rows. The manifest of a CSV would lack all of it, so
// only that is said.
func (r *reader) end() {
	r.line++
	if r.csv {
		return
	}

	for _, missing := range []struct {
		is       bool
		severity Severity
		text     string
	}{
		{!r.version, Warning, "there is no #%checkm_0.7 line"},
		{!r.profile, Error, "there is no #%profile line; expected e.g. " +
			"#%profile | http://uc3.cdlib.org/registry/ingest/manifest/mrt-ingest-manifest"},
		{!r.prefix, Warning, "there is no #%prefix line"},
		{r.declared == nil, Warning, "there is no #%fields line; the profile's columns are used"},
		{!r.eof, Error, "there is no #%eof line: the manifest may have been cut off; " +
			"add #%eof as its last line if it is complete"},
		{r.m.Rows == 0, Error, "the manifest has no rows"},
	} {
		if missing.is {
			r.add(missing.severity, 0, "%s", missing.text)
		}
	}
}
