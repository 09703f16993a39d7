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
		if fault.Is(err, fault.NotFound) || err == nil && (!d.lists(row.Generation)) {
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

// accepted leaves out, in a project with a quorum, what does not count: hits of pairs that are not researched, and
// those of other results than the one that counts.
func (s *Store) accepted(ctx context.Context, row *projectRow, cat *catalog, all []Found) ([]Found, error) {
	if row.def.quorum() == 1 || len(all) == 0 {
		return all, nil
	}

	var at []table.Key
	for _, f := range all {
		at = append(at, episodeKey(row.Name, f.Episode), pairKey(row.Name, f.Episode, f.Clip))
	}
	slices.SortFunc(at, func(a, b table.Key) int { return cmp.Or(cmp.Compare(a.PK, b.PK), cmp.Compare(a.SK, b.SK)) })
	rows, err := s.read(ctx, slices.Compact(at)...)
	if err != nil {
		return nil, err
	}

	numbers := map[string]uint32{}
	for _, l := range cat.clips.Values() {
		numbers[l.key()] = l.number
	}

	all = slices.DeleteFunc(all, func(f Found) bool {
		counts, failed := rows.counts(row, f, numbers[f.Clip])
		err = cmp.Or(err, failed)
		return !counts
	})
	return all, err
}

// counts reports whether a hit is of the result of its pair that counts.
func (all rowSet) counts(row *projectRow, f Found, clip uint32) (bool, error) {
	e, err := all.episode(row.Name, f.Episode)
	if err != nil {
		return false, err
	}
	var p pairRow
	err = all.decode(pairKey(row.Name, f.Episode, f.Clip), &p)
	chosen := p.Generation == row.Generation && p.Lease == f.lease
	return chosen && e.Generation == row.Generation && e.researched.Contains(clip), err
}
