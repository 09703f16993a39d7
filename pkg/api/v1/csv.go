package v1

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"archivist/pkg/kernel/fault"
)

// csvTable writes a table as CSV (RFC 4180), for spreadsheets. A field that a spreadsheet would take for a formula gets
// an apostrophe in front, and so does one that begins with an apostrophe: whoever reads the file takes one away, and
// has the field.
type csvTable struct{ w *csv.Writer }

// newCSV begins a table with the names of its columns; without any, it goes on with one.
func newCSV(to io.Writer, columns ...string) csvTable {
	w := csv.NewWriter(to)
	w.UseCRLF = true
	if len(columns) > 0 {
		_ = w.Write(columns) // close has the error
	}
	return csvTable{w}
}

// row writes a row. close has its error.
func (c csvTable) row(fields ...string) {
	for i, f := range fields {
		if f != "" && strings.ContainsAny(f[:1], "=+-@\t\r'") {
			fields[i] = "'" + f
		}
	}
	_ = c.w.Write(fields)
}

// close ends the table, and returns the first error of writing it.
func (c csvTable) close() error {
	c.w.Flush()
	return c.w.Error()
}

// CSVMedia is the media type of CSV.
const CSVMedia = "text/csv; charset=utf-8"

// Columns of the tables.
var (
	receiptColumns = []string{"job", "ark", "version", "created", "path", "size", "sha256",
		"sha512", "given algorithm", "given digest", "warning"}
	reportColumns = []string{"job", "state", "ark", "version", "local ids", "title", "files",
		"bytes", "source", "recoverable", "message", "warnings"}
)

// WriteReceipt writes the files of a page of a receipt as CSV, each with what says where they are. The first page has
// the names of the columns, so that pages can be joined.
func WriteReceipt(to io.Writer, first bool, r Receipt) error {
	table := begun(to, first, receiptColumns)
	for _, f := range r.Files {
		var given Digest
		if f.Given != nil {
			given = *f.Given
		}
		table.row(r.Job, r.ARK, strconv.Itoa(r.Version), r.Created, f.Path,
			strconv.FormatInt(f.Size, 10), f.Digests["sha256"], f.Digests["sha512"],
			given.Algorithm, given.Value, f.Warning)
	}
	return table.close()
}

// begun begins a table, with the names of its columns if this is its first page.
func begun(to io.Writer, first bool, columns []string) csvTable {
	if !first {
		columns = nil
	}
	return newCSV(to, columns...)
}

// ReportLists are the fields of a report that list jobs.
var ReportLists = []string{"failed", "cancelled", "completed", "deleted", "open"}

// ReportPage is a part of a report, in bytes of the document: it begins at a place, and ends with the job with which it
// has at least so many.
type ReportPage struct {
	From int64 // 0: the beginning
	Most int64
}

// resumed stands before the rest of a document that begins behind a job: so it is a document.
const resumed = `{"failed":[null`

// WriteReport writes jobs of a report as CSV while it is received from page.From on. It returns where the next page
// begins, 0 at the end. A text that is not a whole report is an Invalid.
func WriteReport(to io.Writer, page ReportPage, report io.Reader) (next int64, err error) {
	moved := int64(0)
	if page.From > 0 {
		report = io.MultiReader(strings.NewReader(resumed), report)
		moved = page.From - int64(len(resumed))
	}

	table := begun(to, page.From == 0, reportColumns)
	dec := json.NewDecoder(report)
	err = eachReported(dec, func(j ReportJob) (more bool) {
		table.row(j.Job, j.State, j.ARK, strconv.Itoa(j.Version), strings.Join(j.LocalIDs, "; "),
			j.Title, strconv.Itoa(j.Files), strconv.FormatInt(j.Bytes, 10), j.Source,
			strconv.FormatBool(j.Recoverable), j.Message, strings.Join(j.Warnings, "; "))
		if dec.InputOffset() < page.Most {
			return true
		}
		next = moved + dec.InputOffset()
		return false
	})
	switch {
	case fault.Of(err) != "": // of the storage
		return 0, err
	case err != nil:
		return 0, fault.New(fault.Invalid, "the report cannot be read: %w", err)
	}
	return next, table.close()
}

// eachReported calls f with the jobs of a report, one at a time, while it wants more. So the memory that it needs does
// not depend on their number.
func eachReported(dec *json.Decoder, f func(ReportJob) (more bool)) error {
	if _, err := dec.Token(); err != nil {
		return err
	}
	for dec.More() {
		name, err := dec.Token()
		more := true
		if err == nil && slices.Contains(ReportLists, fmt.Sprint(name)) {
			more, err = EachJob(dec, f)
		} else if err == nil {
			err = dec.Decode(new(json.RawMessage))
		}
		if err != nil || !more {
			return err
		}
	}
	_, err := dec.Token() // a document that is cut off has no end
	return err
}

// EachJob calls f with the jobs of a list in a report, one at a time, while it wants more. It returns whether it wants
// more.
func EachJob(dec *json.Decoder, f func(ReportJob) (more bool)) (more bool, err error) {
	if _, err := dec.Token(); err != nil {
		return false, err
	}
	for dec.More() {
		var j *ReportJob
		if err := dec.Decode(&j); err != nil {
			return false, err
		}
		if j != nil && !f(*j) {
			return false, nil
		}
	}
	_, err = dec.Token()
	return true, err
}

// ReceiptCSV writes the files of a job's receipt as CSV.
func (c *Client) ReceiptCSV(ctx context.Context, job string, to io.Writer) error {
	return c.pagesCSV(ctx, at("jobs", job, "receipt"), query("format", "csv"), to)
}

// ReportCSV writes the jobs of a batch's report as CSV: the newest, or that of a number.
func (c *Client) ReportCSV(ctx context.Context, batch string, n int, to io.Writer) error {
	return c.pagesCSV(ctx, at("batches", batch, "report"),
		query("format", "csv", "number", number(int64(n))), to)
}

// pagesCSV writes the pages of a table one after the other. Each has the place of the next in its header Link.
func (c *Client) pagesCSV(ctx context.Context, path, page string, to io.Writer) error {
	for page != "" {
		resp, err := c.do(ctx, http.MethodGet, path+page, nil, nil)
		if err != nil {
			return err
		}
		_, err = io.Copy(to, resp.Body)
		resp.Body.Close()
		if err != nil {
			return fault.New(fault.Unavailable, "the table is not complete: %w", err)
		}
		page, _, _ = strings.Cut(strings.TrimPrefix(resp.Header.Get("Link"), "<"), ">")
	}
	return nil
}

// Cell is what the matrix says of a pair of a row: its character, with a question mark if places of
// it wait for a person. clip is the number of a clip that is named, from 0.
func (m ResearchMatrix) Cell(row ResearchMatrixRow, clip int) string {
	at := m.Clip - m.Begin + clip
	if at >= len(row.Pairs) {
		return ""
	}
	text := row.Pairs[at : at+1]
	if slices.Contains(row.Unreviewed, at) {
		text += "?"
	}
	return text
}

// WriteMatrix writes a part of a matrix as CSV: an episode in each row, a clip that is named in each
// column.
func WriteMatrix(to io.Writer, m ResearchMatrix) error {
	columns := []string{"episode", "title", "state"}
	for _, c := range m.Clips {
		columns = append(columns, c.Key)
	}
	table := newCSV(to, columns...)
	for _, r := range m.Rows {
		cells := []string{r.Episode.Key, r.Episode.Title, r.Episode.State}
		for n := range m.Clips {
			cells = append(cells, m.Cell(r, n))
		}
		table.row(cells...)
	}
	return table.close()
}
