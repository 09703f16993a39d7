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

	// Why the result cannot be shown, although it counts: damage, which the doctor finds, too. Then
	// of the result only the episode, the clip and its lease are known.
	Damage string
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
	if err != nil {
		return nil, "", err
	}
	for i := range pairs {
		all = append(all, rows.unreviewed(p, at[i], &pairs[i]))
	}
	return all, next, nil
}

// unreviewed is a pair with places that wait. One whose result cannot be read is named: the others
// can be reviewed.
func (all rowSet) unreviewed(p *projectRow, k table.Key, row *pairRow) Unreviewed {
	out := Unreviewed{Since: row.Since, Waiting: row.waiting()}
	var err error
	out.Result, err = all.counting(k, row)
	if err != nil {
		out.Damage = err.Error()
		out.Result = Result{Report: Report{Project: p.Name, Episode: row.Episode, Clip: row.Clip,
			Lease: row.Lease, Sequence: row.Sequence, Analysis: p.def.Analysis.String()}}
	}
	return out
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

// reviewed says of the results of a page, in a project with a quorum or a review, what has become of
// their pairs, and whether the places of those that count are accepted. A project that does not exist
// has no results.
func (s *Store) reviewed(ctx context.Context, project string, all []Result) error {
	p, err := s.projectRow(ctx, project)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil || !p.def.Review && p.def.quorum() == 1 {
		return err
	}

	p, cat, err := s.load(ctx, project)
	if err != nil {
		return err
	}
	present := slices.DeleteFunc(pointers(all), func(r *Result) bool {
		return r.Clip == "" || r.Problem != nil || r.Analysis != p.def.Analysis.String()
	})
	var at []table.Key
	for _, r := range present {
		at = append(at, episodeKey(project, r.Episode), pairKey(project, r.Episode, r.Clip))
	}
	rows, err := s.readPairs(ctx, at)
	if err != nil {
		return err
	}

	numbers := cat.numbers()
	for _, r := range present {
		if err := rows.standing(p, r, numbers[r.Clip]); err != nil {
			return err
		}
	}
	return nil
}

// pointers are those to the results of a page.
func pointers(all []Result) (to []*Result) {
	for i := range all {
		to = append(to, &all[i])
	}
	return to
}

// What has become of the pair of a result, as people and programs read it.
const (
	pairCounts     = "counts"     // it is researched, by this result
	pairResearched = "researched" // by another one
	pairDiffers    = "differs"    // a person has to decide
	pairWaits      = "waits"      // for the result of another researcher
)

// standing says what has become of the pair of a result of the present analysis; clip is the number of
// its clip.
func (all rowSet) standing(p *projectRow, r *Result, clip uint32) error {
	e, err := all.episode(p.Name, r.Episode)
	if err != nil {
		return err
	}
	var row pairRow
	if err := all.decode(pairKey(p.Name, r.Episode, r.Clip), &row); err != nil {
		return err
	}
	e.begin(p.Generation)
	switch {
	case e.differs.Contains(clip):
		r.Pair = pairDiffers
	case !e.researched.Contains(clip):
		r.Pair = pairWaits
	case row.chooses(p, r.Lease, r.Sequence):
		r.Pair = pairCounts
	default:
		r.Pair = pairResearched
	}
	if r.Pair == pairCounts && p.def.Review {
		r.review(&row)
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
