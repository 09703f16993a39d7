package doctor

import (
	"context"
	"errors"
	"time"

	"github.com/guregu/dynamo/v2"

	"archivist/pkg/events/check"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// indexPage is the number of places that a page reads. The rows of a page are read with four
// requests of a hundred keys.
const indexPage = 400

// settle is how long a place that differs from its row is given to follow: DynamoDB updates
// indexes a moment after the rows.
const settle = time.Second

// checkIndex checks that what the index "work" shows is what the rows say.
//
// The phase of the rows finds rows that are not in the index where they should be; this one
// finds entries of the index that no row has. Decisions never depend on them, but each costs
// the sweep or a gate a read in each minute. Entries that differ are looked at again after a
// second.
func checkIndex(ctx context.Context, p *page) error {
	places, next, err := p.Table.Scan(ctx, "work", indexPage, p.cursor.At)
	if err != nil {
		return err
	}

	differ, err := p.differing(ctx, places)
	if err != nil {
		return err
	}

	p.out.Checked += len(places)
	p.cursor.At = next
	if len(differ) == 0 {
		return nil
	}

	if err := p.Table.Wait(ctx, settle); err != nil {
		return err
	}

	// The others are of the same cause.
	for _, shown := range differ[:min(len(differ), queue.MaxFindings)] {
		if err := p.checkPlace(ctx, shown); err != nil {
			return err
		}
	}
	return nil
}

// differing returns the places of the index where their rows are not. A row that does not
// exist is at no place, so it differs.
func (p *page) differing(ctx context.Context, places []table.Raw) (differ []table.Head, err error) {
	keys := make([]table.Key, len(places))
	for i, place := range places {
		keys[i] = place.Key
	}

	rows, err := p.Table.Many(ctx, keys)
	if err != nil {
		return nil, err
	}

	for _, place := range places {
		var shown, row table.Head
		err := errors.Join(dynamo.UnmarshalItem(place.Item, &shown),
			dynamo.UnmarshalItem(rows[place.Key].Item, &row))
		if err != nil {
			return nil, err
		}
		if row.WorkPK != shown.WorkPK || row.WorkSK != shown.WorkSK {
			differ = append(differ, shown)
		}
	}
	return differ, nil
}

// agrees reports whether the row that the index shows is at that place.
func (p *page) agrees(ctx context.Context, shown table.Head) (bool, error) {
	raw, err := p.Table.Raw(ctx, shown.Key())
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	var row table.Head
	err = dynamo.UnmarshalItem(raw.Item, &row)
	return row.WorkPK == shown.WorkPK && row.WorkSK == shown.WorkSK, err
}

// checkPlace reads a place of the index again that has differed from its row. It is a finding
// only if the index still shows it, and the row, read once more, is still elsewhere: both may
// have moved since. There is no repair, because nobody can write an index.
func (p *page) checkPlace(ctx context.Context, shown table.Head) error {
	var now []table.Head
	query := table.Query{Index: "work", PK: shown.WorkPK, From: shown.WorkSK, To: shown.WorkSK}
	if _, err := p.Table.Page(ctx, query, &now); err != nil {
		return err
	}

	for _, one := range now {
		if one.Key() != shown.Key() {
			continue
		}

		same, err := p.agrees(ctx, shown)
		if err != nil || same {
			return err
		}
		return p.report(ctx, []check.Problem{{
			Invariant: "index-stale",
			Subject:   shown.Key().String(),
			Evidence: "the index work shows it at " + shown.WorkPK + " " + shown.WorkSK +
				", where the row is not",
			Command: "run the doctor again: DynamoDB updates the index. If the finding stays, ask AWS Support. " +
				"No decision depends on the index",
		}})
	}
	return nil
}
