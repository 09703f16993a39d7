// Package checktest checks rows by the rules of one package, for its tests.
package checktest

import (
	"testing"
	"time"

	"archivist/pkg/events/check"
	"archivist/pkg/kernel/table"
)

// Page is a page of a run that has time, and on which nothing is late.
func Page(t *table.Table, now func() time.Time, newID func() string) *check.Page {
	return &check.Page{
		Table:  t,
		Now:    now,
		NewID:  newID,
		Until:  now().Add(time.Hour),
		Grace:  100 * 365 * 24 * time.Hour,
		Enough: func() bool { return false },
	}
}

// All checks the rows of the table that keep is true of by some rules, and returns what is wrong with them. Rows that
// the rules do not know are passed over.
func All(t testing.TB, pg *check.Page, rules check.Rules, keep func(row table.Raw) bool) (wrong []check.Problem) {
	t.Helper()
	for cursor, first := "", true; first || cursor != ""; first = false {
		rows, next, err := pg.Table.Scan(t.Context(), "", 1000, cursor)
		if err != nil {
			t.Fatal(err)
		}

		for _, row := range rows {
			if !keep(row) {
				continue
			}

			x := &check.Row{Page: pg, Raw: row}
			if err := x.Check(t.Context(), []check.Rules{rules}); err != nil {
				t.Fatal(err)
			}
			for _, p := range x.Problems {
				if p.Invariant != "row-kind" {
					wrong = append(wrong, p)
				}
			}
		}

		cursor = next
	}
	return wrong
}
