package doctor

import (
	"context"
	"encoding/json"
	"errors"

	"golang.org/x/sync/errgroup"

	"archivist/pkg/events/check"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// rowsOfPage is the number of rows that a page reads. At most this much is read again if the
// page has to be repeated.
const rowsOfPage = 500

// checkRows checks the next rows of the table.
//
// The scan returns the rows of a partition together and in the order of their sort keys. So
// the row before a row is often the one that its check needs: the event before an event, the
// version before a version. What is needed besides is read for all rows of the page at once
// (prepare), or row by row.
//
// The cursor moves behind each row that was reported. So a page that ends early, by its time
// or its findings, loses nothing and repeats nothing.
func checkRows(ctx context.Context, p *page) error {
	rules := p.rules(&p.Page)
	err := p.begin(ctx, rules) // before the rows are read
	if err != nil {
		return err
	}

	rows, next, err := p.Table.Scan(ctx, "", rowsOfPage, p.cursor.At)
	if err != nil {
		return err
	}

	if err := p.prepare(ctx, rules, rows); err != nil {
		return err
	}

	for i := 0; i < len(rows); {
		part, err := p.examineAll(ctx, rules, rows, i)
		if err != nil {
			return err
		}

		for _, r := range part {
			// What was examined behind this row is examined again by the next page, which
			// begins with it.
			if r.rest != nil {
				p.cursor.Rest = r.rest
				return p.keep(rules) // the next page continues with this row
			}

			if err := p.report(ctx, r.problems); err != nil {
				return err
			}

			p.passed(rules, rows[i])
			i++
			if p.enough() && i < len(rows) {
				return p.keep(rules)
			}
		}
	}

	// The cursor stays at the last row: the next page reads nothing behind it, and has all
	// its time and all its findings for the comparison of what was counted.
	if next == "" && len(rows) > 0 && p.enough() {
		return p.keep(rules) // the next page has no rows
	}

	p.cursor.At, p.cursor.Rest = next, nil
	if next == "" {
		return p.end(ctx, rules)
	}
	return p.keep(rules)
}

// passed moves the cursor behind a row that was reported.
func (p *page) passed(rules []check.Rules, row table.Raw) {
	p.out.Checked++
	p.cursor.At, p.cursor.Rest = table.CursorAt(row.Key), nil
	for _, of := range rules {
		if of.Row != nil {
			of.Row(row)
		}
	}
}

// begin gives the rules what they have kept of the pages before, or begins with them.
func (p *page) begin(ctx context.Context, rules []check.Rules) error {
	first := p.cursor.At == "" && p.cursor.States == nil
	for _, of := range rules {
		if of.State == nil {
			continue
		}

		// What cannot be read is as if nothing was kept: it is compared by the next run.
		if kept := p.cursor.States[of.Name]; kept != nil {
			_ = json.Unmarshal(kept, of.State)
			continue
		}

		if first && of.Begin != nil {
			err := of.Begin(ctx)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// keep puts what the rules keep into the cursor.
func (p *page) keep(rules []check.Rules) error {
	p.cursor.States = map[string]json.RawMessage{}
	for _, of := range rules {
		if of.State == nil {
			continue
		}

		data, err := json.Marshal(of.State)
		if err != nil {
			return err
		}
		p.cursor.States[of.Name] = data
	}
	return nil
}

// end lets the rules say what follows from all rows. The next phase has nothing of what they have kept.
func (p *page) end(ctx context.Context, rules []check.Rules) error {
	for _, of := range rules {
		if of.End == nil {
			continue
		}

		problems, err := of.End(ctx)
		if err != nil {
			return err
		}
		err = p.report(ctx, problems)
		if err != nil {
			return err
		}
	}

	p.cursor.States = nil
	return nil
}

// prepare reads what the rules need for the rows of the page, all at once: that is a read for a hundred rows instead of
// one for each.
func (p *page) prepare(ctx context.Context, rules []check.Rules, rows []table.Raw) (err error) {
	keys := check.Needs(rules, rows)
	if len(keys) > 0 {
		p.Pairs, err = p.Table.Many(ctx, keys)
		if err != nil {
			return err
		}
	}

	for _, of := range rules {
		if of.Rows == nil {
			continue
		}

		problems, err := of.Rows(ctx, rows)
		if err != nil {
			return err
		}
		err = p.report(ctx, problems)
		if err != nil {
			return err
		}
	}
	return nil
}

// examined is the result of the check of a row. If rest is set, the next page continues
// it from there. A row that was removed or that did not come to rest has neither.
type examined struct {
	problems []check.Problem
	rest     json.RawMessage
}

// examineAll checks some rows at once, the first of them at i. The results are in the order
// of the rows. An outage of one ends the page; a row that cannot be checked for another
// reason gives a finding, and the others are checked.
func (p *page) examineAll(ctx context.Context, rules []check.Rules, rows []table.Raw, i int) ([]examined, error) {
	part := make([]examined, min(atOnce, len(rows)-i))
	side, inTime := errgroup.WithContext(ctx)
	for n := range part {
		side.Go(func() (err error) {
			x := check.Row{Page: &p.Page, Raw: rows[i+n]}
			// What an earlier page has begun belongs to the first row of this one:
			// the cursor is right before it. That row has no row before it; its check reads
			// what it needs.
			if i+n > 0 {
				x.Before = rows[i+n-1]
			} else {
				x.From = p.cursor.Rest
			}

			part[n], err = p.examine(inTime, rules, x)
			if err != nil && !outage(inTime, err) {
				part[n], err = examined{problems: []check.Problem{check.Unreadable(x.Key.String(), err)}}, nil
			}
			return err
		})
	}
	return part, side.Wait()
}

// settleTries is how often a row that changes during its check is checked again. A job that
// runs writes its row a few times in a stage; one that is written during all three is left out.
const settleTries = 3

// examine checks a row. What seems wrong is a problem only if the row is the same after
// the check.
//
// A rule between rows is read with several requests, and there is no snapshot of a table. So
// a suspicion is confirmed by reading the row again at the end: every change of what belongs
// to it writes it too, in the same transaction. If it was written, all is read anew, up to
// settleTries times. A row without problems is not read again.
func (p *page) examine(ctx context.Context, rules []check.Rules, from check.Row) (out examined, err error) {
	for range settleTries {
		x := from
		err := x.Check(ctx, rules)
		changed := errors.Is(err, check.ErrChanged)
		if err != nil && !changed || len(x.Problems) == 0 && !changed {
			return examined{rest: x.Rest}, err
		}

		again, err := p.Table.Raw(ctx, x.Key)
		if fault.Is(err, fault.NotFound) {
			return examined{}, nil
		}

		if err != nil {
			return examined{}, err
		}

		if !changed && check.WrittenOf(again) == x.Written() {
			return examined{problems: x.Problems}, nil
		}

		// The row before is kept: it is only a shortcut, and a check that does not find in it what it
		// looks for reads that itself.
		from.Raw, from.From = again, x.From
	}
	return examined{}, nil
}
