package research

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"archivist/pkg/kernel/table"
)

// Difference is a pair whose results differ, with the newest of each researcher.
type Difference struct {
	Episode, Clip string // keys
	Since         int64  // milliseconds since 1970
	Results       []Result

	// Why they cannot be shown: damage, which the doctor finds, too. Then there are no results.
	Damage string
}

// differencesPage is the most that a page of Differences has: each costs a query, and all together
// one request for their rows.
const differencesPage = 50

// Differences lists the pairs that a person has to decide on, by episode and clip. The index finds
// candidates; their rows decide. One that cannot be read is named, and the others are listed. It
// returns a NotFound if there is no such project.
func (s *Store) Differences(ctx context.Context, project, cursor string) (all []Difference, next string, err error) {
	row, err := s.projectRow(ctx, project)
	if err != nil {
		return nil, "", err
	}

	var heads []table.Head
	next, err = s.Table.Page(ctx, table.Query{Index: "list", PK: differsPK(project), Limit: differencesPage,
		Cursor: cursor}, &heads)
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

	for _, h := range heads {
		d, there, err := s.difference(ctx, row, rows, h)
		if table.Damaged(err) {
			d.Damage, err = err.Error(), nil
		}
		if err != nil {
			return nil, "", err
		}
		if there {
			all = append(all, d)
		}
	}
	return all, next, nil
}

// difference is a pair of the index with its results. It is not there if the index lags, or if it is
// of an earlier analysis. Also with an error it has the names of the two.
func (s *Store) difference(ctx context.Context, row *projectRow, rows rowSet,
	h table.Head) (d Difference, there bool, err error) {
	d.Episode, d.Clip, _ = strings.Cut(h.ListSK, "/")
	var p pairRow
	if err := rows.decode(h.Key(), &p); err != nil {
		return d, true, err
	}
	if !p.lists(row) {
		return d, false, nil
	}

	d.Since = p.Since
	said, err := s.opinions(ctx, row, d.Episode, d.Clip)
	d.Results = sorted(said)
	return d, true, err
}

// compareKeys orders keys, so that those that are named more than once are beside each other.
func compareKeys(a, b table.Key) int {
	return cmp.Or(cmp.Compare(a.PK, b.PK), cmp.Compare(a.SK,
		b.SK))
}

// sorted are results by the names of their researchers.
func sorted(said map[string]Result) (all []Result) {
	for _, r := range said {
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b Result) int { return cmp.Compare(a.Researcher, b.Researcher) })
	return all
}

// saidText says who has said what of a pair, for people.
func saidText(all []Result) string {
	var parts []string
	for _, r := range all {
		parts = append(parts, fmt.Sprintf("%s: %d hits, lease %s", r.Researcher, len(r.Hits), r.Lease))
	}
	return strings.Join(parts, "; ")
}

// accepted leaves out what does not count: in a project with a quorum or a review, hits of pairs
// that are not researched, and those of other results than the one that counts; with a review,
// places that no person has accepted. waiting is how many of these wait.
func (s *Store) accepted(ctx context.Context, row *projectRow, cat *catalog,
	all []Found) (left []Found, waiting int,
	err error) {
	if row.def.quorum() == 1 && !row.def.Review || len(all) == 0 {
		return all, 0, nil
	}

	var at []table.Key
	for _, f := range all {
		at = append(at, episodeKey(row.Name, f.Episode), pairKey(row.Name, f.Episode, f.Clip))
	}
	rows, err := s.readPairs(ctx, at)
	if err != nil {
		return nil, 0, err
	}

	numbers := cat.numbers()
	left = slices.DeleteFunc(all, func(f Found) bool {
		mark, failed := rows.counts(row, f, numbers[f.Clip])
		err = cmp.Or(err, failed)
		if mark == waits {
			waiting++
		}
		return mark != accepted
	})
	return left, waiting, err
}

// counts is accepted for a hit that counts. Else it waits, or it is rejected: by a person, or
// because the result that has it is not the one of its pair that counts.
func (all rowSet) counts(row *projectRow, f Found, clip uint32) (byte, error) {
	e, err := all.episode(row.Name, f.Episode)
	if err != nil {
		return rejected, err
	}
	var p pairRow
	err = all.decode(pairKey(row.Name, f.Episode, f.Clip), &p)
	chosen := p.chooses(row, f.lease, f.sequence)
	switch {
	case err != nil || !chosen || e.Generation != row.Generation || !e.researched.Contains(clip):
		return rejected, err
	case !row.def.Review:
		return accepted, nil
	}
	return p.mark(f.number), nil
}
