package revision

import (
	"context"
	"slices"
	"strings"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// plannedMost instances of a revision are shown at once: its tasks (workflow.MaxTasks), and some runs.
const plannedMost = 500

// Plan is a revision with its instances in their order.
type Plan struct {
	WithCounts
	Tasks []Instance // none until the revision is planned
	More  bool       // there are more runs by hand and by schedule: list them
}

// Plan returns a revision with its instances, from the table and from the bucket. The archive is
// named as in Explain. A revision that does not exist is a NotFound; one that is not planned yet has
// no instances.
func (s *Store) Plan(ctx context.Context, archive string, n int64) (p Plan, err error) {
	_, at, err := s.locate(ctx, archive)
	if err != nil {
		return p, err
	}

	r, err := s.revisionRow(ctx, at, n)
	if err != nil {
		return p, err
	}

	if r.Rev == 0 {
		return p, fault.New(fault.NotFound, "there is no revision %d of %s", n, archive)
	}

	p.WithCounts = WithCounts{r.Revision, r.All, r.Over}
	if r.Planned == 0 {
		return p, nil
	}

	err = s.planRows(ctx, &p)
	if err != nil || s.Bucket == nil || p.More || int64(len(p.Tasks)) >= r.All {
		return p, err
	}

	err = s.addBucketTasks(ctx, r, &p)
	return p, err
}

// planRows reads the instances of a plan that are in the table, in their order, up to plannedMost.
func (s *Store) planRows(ctx context.Context, p *Plan) error {
	q := table.Query{PK: "TASKS#" + p.Archive, Prefix: before(p.Number) + "#"}
	for {
		page, next, err := s.instances(ctx, q)
		p.Tasks = append(p.Tasks, page...)
		p.More = next != "" && len(p.Tasks) >= plannedMost
		if err != nil || next == "" || p.More {
			return err
		}
		q.Cursor = next
	}
}

// addBucketTasks adds what is in the bucket to a plan, in the order of instances. One that is in both,
// because its row is not removed yet, is there once. It stops at plannedMost.
func (s *Store) addBucketTasks(ctx context.Context, r *revisionRow, p *Plan) error {
	// Some may have gone there since it was read.
	r, err := s.revisionRow(ctx, r.Archive, r.Revision.Number)
	if err != nil || r.InBucket == 0 {
		return err
	}

	known := map[string]bool{}
	for _, in := range p.Tasks {
		known[in.ID] = true
	}

	after := ""
	for {
		page, next, err := s.bucketInstances(ctx, r, after)
		if err != nil {
			return err
		}

		for _, in := range page {
			if !known[in.ID] {
				p.Tasks = append(p.Tasks, in)
			}
		}

		// There is more in the bucket than is shown at once.
		p.More = p.More || next != "" && len(p.Tasks) >= plannedMost
		if next == "" || p.More {
			break
		}

		after = next
	}

	slices.SortFunc(p.Tasks, func(a, b Instance) int { return strings.Compare(a.Order, b.Order) })
	return nil
}
