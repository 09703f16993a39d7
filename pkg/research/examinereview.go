package research

import (
	"context"

	"archivist/pkg/kernel/table"
)

// reviews checks that a pair is listed if places of it wait for a person, and that in a project
// with a review the result that counts is there, and each of its places has a mark. A row that an
// earlier version of the program has written has none; the repair lets all of its places wait.
func (x *exam) reviews(p *projectRow, row *pairRow) error {
	should := *row
	should.setReviews(p.Name)
	if should.Head != row.Head {
		is := row.Head
		x.add(ruleReviews, func(ctx context.Context) error {
			return x.Commit(ctx, func(tx *table.Tx) error { tx.Save(&should); return nil })
		}, "it is at %q %q of the index list, and should be at %q %q", is.ListPK, is.ListSK,
			should.ListPK, should.ListSK)
		return nil
	}
	// One that is marked to have no places is not looked at: nearly all pairs are so.
	if !p.def.Review || row.Generation != p.Generation || row.Lease == "" || row.Empty {
		return nil
	}

	r, err := x.counts(p, row)
	switch {
	case err != nil:
		return err
	case r == nil:
		x.add(ruleResult, nil, "the result of the lease %s counts, and is not there", row.Lease)
	case row.Marks == "" && len(r.Hits) > 0:
		x.add(ruleReviews, func(ctx context.Context) error { return x.remark(ctx, p.Name, row, r) },
			"its result has %d places that wait for nobody", len(r.Hits))
	}
	return nil
}

// counts is the result of a pair that counts, nil if it is not there. Only of a row of an earlier
// version of the program, which does not say which result of its lease that is, several are read.
func (x *exam) counts(p *projectRow, row *pairRow) (*Result, error) {
	if row.Sequence > 0 {
		var is resultRow
		absent, err := x.absent(p.resultOf(row), &is)
		if absent || err != nil {
			return nil, err
		}
		r, err := is.result()
		return &r, err
	}

	all, err := x.ofPair(x.ctx, p, row.Episode, row.Clip)
	for i := range all {
		if err == nil && row.chooses(p, all[i].Lease, all[i].Sequence) && all[i].Problem == nil {
			return &all[i], nil
		}
	}
	return nil, err
}

// remark lets the places of the result of a pair wait for a person, if nobody has marked them
// meanwhile.
func (s *Store) remark(ctx context.Context, project string, row *pairRow, r *Result) error {
	return s.change(ctx, want{project: project, episode: row.Episode, clip: row.Clip}, By{},
		func(c *change) error {
			is, err := c.pairRow(row.Clip)
			if err != nil || is.Marks != "" || !is.chooses(c.project, r.Lease, r.Sequence) {
				return err
			}
			is.Sequence = r.Sequence
			c.await(is, len(r.Hits))
			c.noted = true
			c.tx.Save(is)
			return nil
		})
}
