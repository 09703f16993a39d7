package research

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// Difference is a pair whose results differ, with the newest of each researcher.
type Difference struct {
	Episode, Clip string // keys
	Since         int64  // milliseconds since 1970
	Results       []Result
}

// differencesPage is the most that a page of Differences has: each costs a query.
const differencesPage = 50

// Differences lists the pairs that a person has to decide on, by episode and clip. The index finds candidates; their
// rows decide. It returns a NotFound if there is no such project.
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

	for _, h := range heads {
		var d pairRow
		err := s.Table.Get(ctx, h.Key(), &d)
		if fault.Is(err, fault.NotFound) || err == nil && !d.lists(row) {
			continue // the index lags, or it is of an earlier analysis
		}
		if err != nil {
			return nil, "", err
		}

		said, err := s.opinions(ctx, row, d.Episode, d.Clip)
		if err != nil {
			return nil, "", err
		}
		all = append(all, Difference{d.Episode, d.Clip, d.Since, sorted(said)})
	}
	return all, next, nil
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
