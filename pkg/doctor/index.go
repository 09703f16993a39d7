package doctor

import (
	"context"
	"time"

	"archivist/pkg/fault"
	"archivist/pkg/queue"
	"archivist/pkg/table"
)

// indexPage is the number of places that a page reads. Each can be a finding.
const indexPage = queue.MaxFindings

// settle is how long a place that differs from its row is given to follow: DynamoDB updates
// indexes a moment after the rows.
const settle = time.Second

// checkIndex checks that what the index "work" shows is what the rows say.
func checkIndex(ctx context.Context, p *page) error {
	places, next, err := p.Queue.Table.Scan(ctx, "work", indexPage, p.cursor.At)
	if err != nil {
		return err
	}
	var differ []table.Head
	for _, place := range places {
		var shown table.Head
		if err := place.Decode(&shown); err != nil {
			return err
		}
		same, err := p.agrees(ctx, shown)
		if err != nil {
			return err
		}
		if !same {
			differ = append(differ, shown)
		}
	}
	p.out.Checked += len(places)
	p.cursor.At = next
	if len(differ) == 0 {
		return nil
	}
	if err := p.Queue.Table.Wait(ctx, settle); err != nil {
		return err
	}
	for _, shown := range differ {
		if err := p.checkPlace(ctx, shown); err != nil {
			return err
		}
	}
	return nil
}

// agrees reports whether the row that the index shows is at that place.
func (p *page) agrees(ctx context.Context, shown table.Head) (bool, error) {
	var row table.Head
	err := p.Queue.Table.Get(ctx, shown.Key(), &row)
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	return row.WorkPK == shown.WorkPK && row.WorkSK == shown.WorkSK, err
}

// checkPlace reads a place of the index again that has differed from its row.
func (p *page) checkPlace(ctx context.Context, shown table.Head) error {
	var now []table.Head
	query := table.Query{Index: "work", PK: shown.WorkPK, From: shown.WorkSK, To: shown.WorkSK}
	if _, err := p.Queue.Table.Page(ctx, query, &now); err != nil {
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
		p.report(ctx, []problem{{Finding: queue.Finding{Invariant: "index-stale", Subject: shown.Key().String(),
			Evidence: "the index work shows it at " + shown.WorkPK + " " + shown.WorkSK + ", where the row is not",
			Command: "run the doctor again: DynamoDB updates the index. If it stays, ask AWS Support. " +
				"Nothing is decided by the index"}}})
	}
	return nil
}
