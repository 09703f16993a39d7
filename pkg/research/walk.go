package research

import (
	"context"
	"time"

	"archivist/pkg/kernel/table"
)

// first is the first row of the line from a place on, of the class of that place; nil if there is
// none. A place with "!" behind it is the next one: "!" comes before every character of a rank.
func (p *pass) first(ctx context.Context, from string) (*lineRow, error) {
	var rows []lineRow
	_, err := p.Table.Page(ctx, table.Query{
		PK:    linePK(p.project),
		From:  from,
		To:    class(from) + "#~",
		Limit: 1,
	}, &rows)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return &rows[0], nil
}

// stale is the first closed episode that was not looked at since the catalog grew, nil if there is
// none. It reads the project first: if the catalog has grown again, the walk begins again.
func (p *pass) stale(ctx context.Context) (*lineRow, error) {
	row, err := p.projectRow(ctx, p.project)
	if err != nil {
		return nil, err
	}

	p.see(row)
	if p.walk.After >= ended {
		return nil, nil
	}

	r, err := p.first(ctx, p.walk.After+"!") // the next place
	if err != nil {
		return nil, err
	}

	if r == nil {
		p.walk.After, p.moved = ended, true
	}
	return r, nil
}

// settled is how long after a change of a clip no transaction runs any more that was decided
// before: more than the time-out of a function.
const settled = 5 * time.Minute

// uncounted is the first episode whose pairs are to be counted again, nil if there is none. It
// begins some time after the newest change of a clip, because a transaction that was decided by the
// clips before it could still write an episode that is already counted. If clips change again, it
// begins again.
func (p *pass) uncounted(ctx context.Context) (*lineRow, error) {
	if p.former {
		p.walk.Form, p.walk.Counted, p.moved, p.former = countForm, closed+"#", true, false
	}
	if p.walk.Recount < p.recount && p.now() >= p.recount+settled.Milliseconds() {
		// Closed episodes that were looked at since the newest clip went away were counted then.
		from := ready + "#"
		if p.walk.Catalog < p.shrunk || class(p.walk.Counted) == closed {
			from = closed + "#"
		}
		p.walk.Recount, p.walk.Counted, p.moved = p.recount, from, true
	}

	for p.walk.Counted != "" && p.walk.Counted < counted {
		r, err := p.first(ctx, p.walk.Counted+"!")
		if err != nil || r != nil {
			return r, err
		}
		// Behind the closed ones are those that are ready; behind these, all are counted.
		p.moved = true
		p.walk.Counted = map[string]string{closed: ready + "#",
			ready: counted}[class(p.walk.Counted)]
	}
	return nil, nil
}

// lookAt decides the place of an episode of the line, and notes how far a walk is. walked is
// walkRow.After or walkRow.Counted. A pass that dies here looks at it again.
func (p *pass) lookAt(ctx context.Context, r *lineRow, walked *string) error {
	err := p.decide(ctx, p.project, r.Owner)
	if err != nil {
		return err
	}
	p.done.Looked++
	p.moved, *walked = true, r.SK
	return nil
}

// lookMost bounds the episodes that one pass looks at after its assignments: each costs some reads,
// and perhaps a transaction. After them the pass says that there is more, and the function wakes
// itself.
const lookMost = 200

// look looks at episodes in the background: first at closed ones, then at those to be counted
// again. What is left is for the next pass.
func (p *pass) look(ctx context.Context) error {
	for range lookMost {
		walked := &p.walk.After
		r, err := p.stale(ctx)
		if err != nil {
			return err
		}

		if r == nil {
			walked = &p.walk.Counted
			r, err = p.uncounted(ctx)
			if err != nil {
				return err
			}
		}

		if r == nil || p.over() {
			return nil
		}

		err = p.lookAt(ctx, r, walked)
		if err != nil {
			return err
		}
	}

	p.done.More = true
	return nil
}

// saveWalk stores how far the walk is. It fails with a Stale if another archivist has the lease by
// now: that one has read the walk as it was, and repeats these steps.
func (p *pass) saveWalk(ctx context.Context) error {
	tx := p.Table.Begin(p.NewID())
	p.lease.Guard(tx)
	tx.InsertOrSave(p.walk)
	return tx.Commit(ctx)
}
