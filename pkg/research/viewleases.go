package research

import (
	"context"
	"slices"
	"strings"

	"archivist/pkg/kernel/table"
)

// mostLeases bounds the leases that have not ended of a project that are looked at. Views leave out
// the rest.
const mostLeases = 10_000

// liveIDs are the ids of the leases that have not ended, the oldest first: an id begins with its
// time. They are found by their ends in the line. If there are mostLeases or more, those that end
// first are listed.
func (s *Store) liveIDs(ctx context.Context, project string) (ids []string, err error) {
	q := table.Query{PK: linePK(project), Prefix: dueSK + "#", Limit: 1000}
	for {
		var rows []lineRow
		next, err := s.Table.Page(ctx, q, &rows)
		if err != nil {
			return nil, err
		}

		for _, r := range rows {
			if part := strings.SplitN(r.SK, "#", 4); part[2] == "lease" {
				ids = append(ids, r.Owner)
			}
		}

		if next == "" || len(ids) >= mostLeases {
			slices.Sort(ids)
			return ids, nil
		}

		q.Cursor = next
	}
}

// LiveLeases lists the leases that have not ended, the oldest first, at most 100 to a page. One
// whose time has passed is ended by the next pass of the assigner. The cursor is the id of the
// last lease of a page; it may have ended meanwhile. It returns a NotFound if there is no such
// project.
func (s *Store) LiveLeases(ctx context.Context, project,
	cursor string) (page []Lease, next string, err error) {
	_, err = s.projectRow(ctx, project)
	if err != nil {
		return nil, "", err
	}

	ids, err := s.liveIDs(ctx, project)
	if err != nil {
		return nil, "", err
	}

	i, found := slices.BinarySearch(ids, cursor)
	if found {
		i++
	}

	ids = ids[i:]
	if len(ids) > listPage {
		ids, next = ids[:listPage], ids[listPage-1]
	}

	all, err := s.leases(ctx, ids)
	for _, r := range all {
		page = append(page, r.Lease)
	}
	return page, next, err
}
