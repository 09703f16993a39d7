package research

import (
	"context"
	"fmt"
	"slices"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// Unreviewed is a pair with places that wait for a person.
type Unreviewed struct {
	Since   int64 // milliseconds since 1970
	Waiting int   // places
	Result
}

// Reviews lists the pairs with places that wait for a person, by episode and clip, at most 100 to a
// page. The index finds candidates; their rows decide. It returns a NotFound if there is no such
// project.
func (s *Store) Reviews(ctx context.Context, project, cursor string) (all []Unreviewed,
	next string, err error) {
	p, err := s.projectRow(ctx, project)
	if err != nil {
		return nil, "", err
	}

	var heads []table.Head
	next, err = s.Table.Page(ctx, table.Query{Index: "list", PK: reviewsPK(project, p.Generation),
		Limit: table.MaxGets, Cursor: cursor}, &heads)
	if err != nil {
		return nil, "", err
	}

	var at []table.Key
	for _, h := range heads {
		at = append(at, h.Key())
	}
	rows, err := s.read(ctx, at...)
	if err != nil {
		return nil, "", err
	}

	var pairs []pairRow
	at = nil
	for _, h := range heads {
		var row pairRow
		err = rows.decode(h.Key(), &row)
		if err != nil {
			return nil, "", err
		}
		if row.Generation == p.Generation && row.waiting() > 0 { // else the index lags
			pairs, at = append(pairs, row), append(at, p.resultOf(&row))
		}
	}

	rows, err = s.read(ctx, at...)
	for i := range pairs {
		if err != nil {
			return nil, "", err
		}
		one := Unreviewed{Since: pairs[i].Since, Waiting: pairs[i].waiting()}
		one.Result, err = rows.counting(at[i], &pairs[i])
		all = append(all, one)
	}
	return all, next, err
}

// resultOf is the key of the result of a pair that counts.
func (r *projectRow) resultOf(p *pairRow) table.Key {
	return resultKey(&Report{Project: r.Name, Episode: p.Episode,
		Analysis: r.def.Analysis.String(), Clip: p.Clip,
		Lease: p.Lease, Sequence: p.Sequence})
}

// counting is the result of a pair that counts, with what persons have said of its places.
func (all rowSet) counting(k table.Key, p *pairRow) (Result, error) {
	var row resultRow
	err := all.decode(k, &row)
	if err != nil {
		return Result{}, err
	}
	if row.Rev == 0 {
		return Result{}, fmt.Errorf("result %s: it counts, and is not there", k)
	}
	r, err := row.result()
	r.review(p)
	return r, err
}

// review says of each place of the result whether it is accepted.
func (r *Result) review(p *pairRow) {
	for i := range r.Hits {
		r.Reviews = append(r.Reviews, markNames[p.mark(i)])
	}
}

// reviewed says of the results of a page whether their places are accepted: of those that count, in
// a project with a review. A project that does not exist has no results.
func (s *Store) reviewed(ctx context.Context, project string, all []Result) error {
	p, err := s.projectRow(ctx, project)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil || !p.def.Review {
		return err
	}

	var at []table.Key
	for i := range all {
		if len(all[i].Hits) > 0 {
			at = append(at, pairKey(project, all[i].Episode, all[i].Clip))
		}
	}
	rows, err := s.readPairs(ctx, at)
	if err != nil {
		return err
	}

	for i := range all {
		r := &all[i]
		var row pairRow
		err = rows.decode(pairKey(project, r.Episode, r.Clip), &row)
		if err != nil {
			return err
		}
		if len(r.Hits) > 0 && r.Analysis == p.def.Analysis.String() && row.chooses(p, r.Lease,
			r.Sequence) {
			r.review(&row)
		}
	}
	return nil
}

// readPairs reads rows, of which some may be named more than once.
func (s *Store) readPairs(ctx context.Context, at []table.Key) (rowSet, error) {
	slices.SortFunc(at, compareKeys)
	return s.read(ctx, slices.Compact(at)...)
}

// chooses reports whether a result of the present analysis is the one of its pair that counts. Rows
// of earlier versions do not know which one of its lease it is.
func (r *pairRow) chooses(p *projectRow, lease string, sequence int) bool {
	return r.Generation == p.Generation && r.Lease == lease && (r.Sequence == 0 ||
		r.Sequence == sequence)
}
