package api

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/negotiation"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/fault"
)

// Format is what a response is in. Without it, Accept decides.
type Format struct {
	Format string `query:"format" enum:"json,csv"`
}

// csvPage is a page of a table: its name as a file, and the query of the next page, nil at the end.
type csvPage struct {
	bytes.Buffer
	name string
	next url.Values
}

// orCSV answers with a table if the client asks for CSV by format or, without that, prefers it to JSON. It is a
// middleware for the same reason as accepting. The page is made as a whole before the first byte is sent, so that an
// error is still a problem document.
func (a *API) orCSV(write func(huma.Context) (*csvPage, error)) func(huma.Context,
	func(huma.Context)) {
	return func(c huma.Context, next func(huma.Context)) {
		c.AppendHeader("Vary", "Accept")
		kind := negotiation.SelectQValueFast(c.Header("Accept"), []string{"application/json",
			"text/csv"})
		if f := c.Query("format"); f != "csv" && (f != "" || kind != "text/csv") {
			next(c)
			return
		}

		page, err := write(c)
		if err != nil {
			a.refuse(c, err)
			return
		}
		if page.next != nil {
			page.next.Set("format", "csv")
			c.SetHeader("Link", "<?"+page.next.Encode()+`>; rel="next"`)
		}
		c.SetHeader("Content-Type", v1.CSVMedia)
		c.SetHeader("Content-Disposition", fmt.Sprintf(`attachment; filename="%s.csv"`, page.name))
		c.SetStatus(http.StatusOK)
		_, _ = page.WriteTo(c.BodyWriter()) // the client may be gone
	}
}

// withCSV describes a table in the document, beside the other content of a response.
func withCSV(r *huma.Response, what string) {
	text := &huma.Schema{Type: huma.TypeString}
	r.Content["text/csv"] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString,
		Description: what + " as CSV; the next page is in the header Link"}}
	r.Headers = map[string]*huma.Param{
		"Link":                {Schema: text, Description: "The next page of a table. The last page has none."},
		"Content-Disposition": {Schema: text, Description: "The name of a table as a file."},
	}
}

// receiptCSV is a page of a receipt as a table.
func (a *API) receiptCSV(c huma.Context) (*csvPage, error) {
	in := &ReceiptInput{IDCursor: IDCursor{ID: c.Param("id"), Cursor: c.Query("cursor")}}
	r, err := a.receipt(c.Context(), in)
	if err != nil {
		return nil, err
	}

	page := &csvPage{name: r.Job + "-receipt"}
	if r.Cursor != "" {
		page.next = url.Values{"cursor": {r.Cursor}}
	}
	return page, v1.WriteReceipt(page, in.Cursor == "", r)
}

// reportedAtOnce is how much of a saved report becomes a page of a table, in bytes: a row is not longer than its job in
// JSON, and the response of a function has at most 6 MB.
const reportedAtOnce = 2 << 20

// reportCSV is a page of a report as a table. The cursor is a place in the saved report, which never changes; the next
// page is of the report of the same number.
func (a *API) reportCSV(c huma.Context) (*csvPage, error) {
	in := &ReportInput{IDCursor: IDCursor{ID: c.Param("id")}}
	from := v1.ReportPage{Most: reportedAtOnce}
	var err error
	if text := c.Query("number"); text != "" {
		if in.Number, err = strconv.Atoi(text); err != nil || in.Number < 0 {
			return nil, fault.New(fault.Invalid, "number: found %q; expected the number of a "+
				"report", text)
		}
	}
	if cursor := c.Query("cursor"); cursor != "" {
		if from.From, err = strconv.ParseInt(cursor, 10, 64); err != nil || from.From < 1 {
			return nil, badCursor(cursor)
		}
	}

	saved, err := a.savedReport(c.Context(), in)
	if err != nil {
		return nil, err
	}
	page := &csvPage{name: saved.name}
	next, err := a.writeReport(c.Context(), page, from, saved)
	if fault.Is(err, fault.Invalid) && from.From > 0 {
		err = fault.New(fault.Invalid, "cursor: %w; use that of the page before, or begin again",
			err)
	} else if fault.Is(err, fault.Invalid) {
		err = fault.New(fault.Conflict, "report %d of batch %s as it is saved: %w; the jobs are "+
			"still listed", saved.number, saved.batch, err)
	}
	if next > 0 {
		page.next = url.Values{"cursor": {strconv.FormatInt(next, 10)},
			"number": {strconv.Itoa(saved.number)}}
	}
	return page, err
}

// writeReport writes jobs of a saved report.
func (a *API) writeReport(ctx context.Context, to *csvPage, from v1.ReportPage,
	saved savedReport) (next int64, err error) {
	body, err := a.Work.OpenFrom(ctx, saved.key, from.From)
	if err != nil {
		return 0, saved.missing(err)
	}
	defer body.Close()
	return v1.WriteReport(to, from, body)
}
