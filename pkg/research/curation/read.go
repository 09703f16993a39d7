package curation

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"archivist/pkg/kernel/fault"
)

// Format is the format of a file.
type Format string

// The formats.
const (
	CSV       Format = "CSV"        // RFC 4180, with names of columns in the first line
	JSONLines Format = "JSON Lines" // an object on each line
)

// FormatOf is the format of a file, by its extension. It returns an Invalid for another one.
func FormatOf(file string) (Format, error) {
	switch strings.ToLower(path.Ext(file)) {
	case ".csv":
		return CSV, nil
	case ".jsonl", ".ndjson":
		return JSONLines, nil
	}
	return "", fault.New(fault.Invalid,
		"%s: expected a file of CSV or JSON Lines, whose name ends in .csv, .jsonl or "+
			".ndjson", file)
}

// Read reads a file of records. It calls each with each record and the line on which it begins, and
// returns its first error. What is no record is an Invalid with the line and the column; the
// records before it were given to each, so a caller that sends them can say where to go on. The
// memory does not grow with the file.
func Read(r io.Reader, f Format, each func(line int, rec Record) error) error {
	b := bufio.NewReader(r)
	mark, _ := b.Peek(len(byteOrderMark))
	if bytes.Equal(mark, byteOrderMark) {
		_, _ = b.Discard(len(byteOrderMark))
	}
	if f == CSV {
		return readCSV(b, each)
	}
	return readLines(b, each)
}

// byteOrderMark begins files of some programs on Windows.
var byteOrderMark = []byte("\uFEFF")

// readLines reads JSON Lines. Blank lines are passed over.
func readLines(r io.Reader, each func(line int, rec Record) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, MaxRecord)
	line := 0
	for lines.Scan() {
		line++
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}

		var rec Record
		err := decode(lines.Bytes(), &rec)
		if err != nil {
			return fault.New(fault.Invalid, "line %d, %w", line, err)
		}

		err = each(line, rec)
		if err != nil {
			return err
		}
	}

	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return fault.New(fault.Invalid, "line %d: it has more than %d bytes", line+1, MaxRecord)
	}
	return lines.Err()
}

// rationed ends a record that is too long with an error: a quotation mark that is not closed would
// read the whole file into memory.
type rationed struct {
	r    io.Reader
	left int // bytes; set anew before each record
}

// Read returns errLong if a record has too many bytes.
func (r *rationed) Read(p []byte) (int, error) {
	if r.left <= 0 {
		return 0, errLong
	}
	n, err := r.r.Read(p[:min(len(p), r.left)])
	r.left -= n
	return n, err
}

var errLong = fmt.Errorf("a record has more than %d bytes; is a quotation mark missing?", MaxRecord)

// readCSV reads CSV. The reader of the library buffers ahead, so a record is refused at about
// MaxRecord bytes, not at exactly so many.
func readCSV(r io.Reader, each func(line int, rec Record) error) error {
	ration := &rationed{r, MaxRecord}
	c := csv.NewReader(ration)
	c.ReuseRecord = true
	head, err := c.Read()
	if err == io.EOF {
		return fault.New(fault.Invalid,
			"the file is empty; its first line must have the names of the columns")
	}

	if err != nil {
		return csvError(c, err)
	}

	present, err := header(head)
	if err != nil {
		return err
	}

	for {
		ration.left = MaxRecord
		row, err := c.Read()
		if err == io.EOF {
			return nil
		}

		if err != nil {
			return csvError(c, err)
		}

		rec, err := record(c, present, row)
		if err != nil {
			return err
		}

		line, _ := c.FieldPos(0)
		err = each(line, rec)
		if err != nil {
			return err
		}
	}
}

// csvError is an error with the line and the column, an Invalid; an error of the file itself stays
// as it is.
func csvError(c *csv.Reader, err error) error {
	var parse *csv.ParseError
	switch {
	case errors.As(err, &parse):
		return fault.New(fault.Invalid, "line %d, column %d: %w", parse.Line, parse.Column,
			parse.Err)
	case errors.Is(err, errLong):
		return fault.New(fault.Invalid, "near byte %d: %w", c.InputOffset(), err)
	}
	return err
}

// header finds the columns of a file, in its order. A name that does not exist, comes twice or is
// missing is an Invalid.
func header(names []string) (present []column, err error) {
	for i, name := range names {
		at := slices.IndexFunc(columns, func(c column) bool { return c.name == name })
		if at < 0 {
			return nil, fault.New(fault.Invalid,
				"line 1, field %d: there is no column %q; the columns are %s", i+1,
				clip(name), fields(nil))
		}

		if slices.ContainsFunc(present, func(c column) bool { return c.name == name }) {
			return nil, fault.New(fault.Invalid, "line 1, field %d: the column %q is there twice",
				i+1, name)
		}

		present = append(present, columns[at])
	}

	// A source may be missing: who imports a file can name one for all its records.
	for _, needed := range []string{"id", "url"} {
		if !slices.Contains(names, needed) {
			return nil, fault.New(fault.Invalid, "line 1: the column %q is missing", needed)
		}
	}
	return present, nil
}

// record reads a row. An empty field is as if it was not given. The row belongs to the reader,
// which uses it again, so texts are copied.
func record(c *csv.Reader, present []column, row []string) (rec Record, err error) {
	for i, text := range row {
		if text == "" {
			continue
		}

		if !utf8.ValidString(text) {
			err = errors.New("the text is not UTF-8")
		} else {
			err = present[i].set(&rec, strings.Clone(text))
		}

		if err != nil {
			line, at := c.FieldPos(i)
			return rec, fault.New(fault.Invalid, "line %d, column %d: %s: %w", line, at,
				present[i].name, err)
		}
	}
	return rec, nil
}
