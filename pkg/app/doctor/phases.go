package doctor

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"archivist/pkg/events/check"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/fault"
)

// phases are the phases in their order. Each checks one page and moves the cursor, to "" at
// its end.
var phases = []struct {
	name  phase
	label string
	check func(ctx context.Context, p *page) error
}{
	{phaseRows, "the rows of the table", checkRows},
	{phaseIndex, "the index of unfinished work", checkIndex},
	{phaseStorage, "the storage root", checkStorage},
	{phaseWork, "the work bucket", checkWork},
}

// parseCursor reads the cursor of a page; "" is the beginning of a run. Any other text that
// String has not written is an Invalid, since a caller can send it by the API.
func parseCursor(text string) (c cursor, err error) {
	if text == "" {
		return cursor{Phase: phases[0].name}, nil
	}

	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return c, errCursor
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return c, errCursor
	}
	return c, nil
}

var errCursor = fault.New(fault.Invalid,
	"invalid cursor; use that of the page before, or begin again")

// Check checks one page. It implements queue.Checker.
//
// A page that was lost can be run again from the same cursor: a repair that was made is then
// no finding any more. An error is one of the table or of S3, and the same page may succeed
// later; what cannot be read because it is damaged is a finding (unreadable), not an error.
func (d Doctor) Check(ctx context.Context, at string, repair bool,
	until time.Time) (queue.CheckedPage, error) {
	c, err := parseCursor(at)
	if err != nil {
		return queue.CheckedPage{}, err
	}

	for i, ph := range phases {
		if ph.name != c.Phase {
			continue
		}

		p := page{
			Doctor: d,
			repair: repair,
			cursor: c,
			Page: check.Page{
				Table: d.Queue.Table,
				Now:   d.Queue.Now,
				NewID: d.Queue.NewID,
				Until: until,
				Grace: d.grace(),
			},
		}
		p.Enough = p.enough

		if err := ph.check(ctx, &p); err != nil {
			return queue.CheckedPage{}, fmt.Errorf("doctor: %s: %w", ph.label, err)
		}

		// A phase without a cursor has ended. A recount is unfinished work too, even of the
		// very first row, when the cursor does not say anything yet.
		p.out.Progress = ph.label
		switch {
		case p.cursor.At != "" || p.cursor.Rest != nil:
			p.out.Cursor = p.cursor.String()
		case i+1 < len(phases):
			p.out.Cursor, p.out.Progress = cursor{Phase: phases[i+1].name}.String(),
				phases[i+1].label
		default:
			p.out.Progress = "done"
		}
		return p.out, nil
	}
	return queue.CheckedPage{},
		fault.New(fault.Invalid, "invalid cursor: there is no phase %q", c.Phase)
}

// All runs the whole check and returns every finding. It is for tests, and for small
// deployments. Each page has a minute, as if it were a function's.
func (d Doctor) All(ctx context.Context, repair bool) (findings []queue.Finding, err error) {
	for cursor, first := "", true; first || cursor != ""; first = false {
		page, err := d.Check(ctx, cursor, repair, d.Queue.Now().Add(time.Minute))
		if err != nil {
			return findings, err
		}
		findings = append(findings, page.Findings...)
		cursor = page.Cursor
	}
	return findings, nil
}
