package check

import (
	"context"
	"encoding/json"
	"time"

	"archivist/pkg/events/event"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// Page is what rules have of a page of a run. Its methods may be called concurrently.
type Page struct {
	Table *table.Table
	Now   func() time.Time
	NewID func() string
	Until time.Time // when the page ends
	// Grace is how long something that is due may stay undone before it is a finding.
	Grace time.Duration
	// Enough reports whether the page has to end: a rule that needs more time then sets Rest.
	Enough func() bool
	// Pairs are the rows that Needs has asked for.
	Pairs map[table.Key]table.Raw
}

// Late reports whether a due time has passed so long ago that it should have been acted upon. due is in milliseconds
// since 1970; 0 means that there is no due time, which is never late.
func (p *Page) Late(due int64) bool { return p.LateBy(due, p.Grace) }

// LateBy is Late for what may stay undone for another time.
func (p *Page) LateBy(due int64, grace time.Duration) bool {
	return due > 0 && p.Now().Sub(time.UnixMilli(due)) > grace
}

// Read reads a row that may be missing. The error is one of the table, or of a row that cannot be decoded; never a
// NotFound.
func (p *Page) Read(ctx context.Context, k table.Key, row any) (found bool, err error) {
	err = p.Table.Get(ctx, k, row)
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	return err == nil, err
}

// Missing reports whether there is no row with a key. An error other than that counts as not missing, so the caller
// checks it first.
func (p *Page) Missing(ctx context.Context, k table.Key) (bool, error) {
	_, err := p.Table.Raw(ctx, k)
	if fault.Is(err, fault.NotFound) {
		return true, nil
	}
	return false, err
}

// Paired decodes a row that Needs has asked for, and reports whether there is any. What was read may be older than the
// row that is checked; so it can only confirm that a row is right, and what seems wrong is read again.
func (p *Page) Paired(k table.Key, row any) bool {
	raw, found := p.Pairs[k]
	return found && raw.Decode(row) == nil
}

// Commit makes a repair in one transaction. What put adds must name what was checked (a rev, an owner): the
// transaction is the only guard against a change since then. Its error is a Stale if there was one.
func (p *Page) Commit(ctx context.Context, put func(tx *table.Tx) error) error {
	tx := p.Table.Begin(p.NewID())
	err := put(tx)
	if err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// recent is how many of the newest events are read to find the last change of state: some name none.
const recent = 20

// newest reads the newest events of a subject, the last first. It may be empty.
func (p *Page) newest(ctx context.Context, s event.Subject) (rows []event.Row, err error) {
	query := table.Query{PK: s.Key().PK, Prefix: event.Prefix, Desc: true, Limit: recent}
	_, err = p.Table.Page(ctx, query, &rows)
	return rows, err
}

// LastState is the state in which a subject is by its events. It is "" if none of the newest events names a state, or
// there are none.
func (p *Page) LastState(ctx context.Context, s event.Subject) (string, error) {
	rows, err := p.newest(ctx, s)
	return stateIn(rows), err
}

// stateIn is the state of the first change of state that some events name: jobs, batches and instances of tasks name
// it alike.
func stateIn(rows []event.Row) string {
	for _, e := range rows {
		var change struct{ To string }
		if json.Unmarshal([]byte(e.Detail), &change) == nil && change.To != "" {
			return change.To
		}
	}
	return ""
}
