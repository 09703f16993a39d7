package revision

import (
	"context"
	"strings"

	"archivist/pkg/kernel/table"
)

// bucketCursor begins the cursor of a list that goes on in the bucket, behind a key.
const bucketCursor = "kept:"

// nextInBucket is the cursor behind the last instance of a revision that is in the table: "" if nothing
// is in the bucket.
func (s *Store) nextInBucket(ctx context.Context, ref string, n int64) (string, error) {
	r, err := s.revisionRow(ctx, ref, n)
	if err != nil || r.InBucket == 0 || s.Bucket == nil {
		return "", err
	}
	return bucketCursor, nil
}

// instancesInBucket is a page of Instances from the bucket. Those whose rows are still in the table
// were listed already, and are left out.
func (s *Store) instancesInBucket(ctx context.Context, ref string, f Filter,
	cursor string) (page []Instance, next string,
	err error) {
	r, err := s.revisionRow(ctx, ref, f.Revision)
	if err != nil || r.InBucket == 0 || s.Bucket == nil {
		return nil, "", err
	}

	all, next, err := s.bucketInstances(ctx, r, strings.TrimPrefix(cursor, bucketCursor))
	if err != nil {
		return nil, "", err
	}

	var at []table.Key
	for _, in := range all {
		at = append(at, taskSubject(in.ID).Key())
	}

	rows, err := s.Table.Many(ctx, at) // they were listed already
	for _, in := range all {
		_, there := rows[taskSubject(in.ID).Key()]
		if !there && f.selects(in) {
			page = append(page, in)
		}
	}

	if next != "" {
		next = bucketCursor + next
	}
	return page, next, err
}
