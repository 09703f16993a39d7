package command

import (
	"encoding/csv"
	"io"
	"strings"
)

// CSV writes a table as CSV (RFC 4180), for spreadsheets. A field that a spreadsheet would take for a formula gets an
// apostrophe in front, and so does one that begins with an apostrophe: whoever reads the file takes one away, and has
// the field.
type CSV struct{ w *csv.Writer }

// NewCSV begins a table with the names of its columns.
func NewCSV(to io.Writer, columns ...string) CSV {
	w := csv.NewWriter(to)
	w.UseCRLF = true
	_ = w.Write(columns) // Close has the error
	return CSV{w}
}

// Row writes a row. Close has its error.
func (c CSV) Row(fields ...string) {
	for i, f := range fields {
		if f != "" && strings.ContainsAny(f[:1], "=+-@\t\r'") {
			fields[i] = "'" + f
		}
	}
	_ = c.w.Write(fields)
}

// Close ends the table, and returns the first error of writing it.
func (c CSV) Close() error {
	c.w.Flush()
	return c.w.Error()
}
