package research

import (
	"context"
	"slices"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// Decisions are what waits in a project for a person's decision.
type Decisions struct {
	Project    string
	Paused     string // who said that no work is assigned, and why
	Differ     int64  // pairs whose results differ
	Unreviewed int64  // places to accept or reject
}

// mostDecided bounds the projects that Decisions reads: each costs a query.
const mostDecided = 20

// Decisions counts what waits for a person in each project, by the rows of counts: a request for the
// projects, and a query for each that has a quorum or a review. unread is how many projects there
// are beyond the first ones.
func (s *Store) Decisions(ctx context.Context) (all []Decisions, unread int, err error) {
	names := slices.Sorted(slices.Values(s.Projects))
	unread = max(0, len(names)-mostDecided)
	names = names[:len(names)-unread]

	var at []table.Key
	for _, name := range names {
		at = append(at, projectKey(name))
	}
	rows, err := s.read(ctx, at...)
	if err != nil {
		return nil, 0, err
	}

	for _, name := range names {
		row, err := rows.project(name)
		if fault.Is(err, fault.NotFound) {
			continue // nobody has applied it yet
		}
		if err != nil {
			return nil, 0, err
		}

		one := Decisions{Project: name, Paused: row.Paused}
		if row.def.quorum() > 1 || row.def.Review {
			sum, err := s.sums(ctx, row)
			if err != nil {
				return nil, 0, err
			}
			one.Differ, one.Unreviewed = sum.Differ, sum.Reviews
		}
		all = append(all, one)
	}
	return all, unread, nil
}
