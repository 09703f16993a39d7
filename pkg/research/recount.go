package research

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"archivist/pkg/events/check"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// recounts are the counts of the rows of each project, as far as rows were read.
type recounts struct {
	*Store
	all map[string]*Recount
}

// begin begins to count the rows of all projects, by their names. It notes the revisions of the counts before the first
// row is read: if one of them is another at the end, something was counted while the rows were read, and
// nothing can be said.
func (s *recounts) begin(ctx context.Context) error {
	s.all = map[string]*Recount{}
	q := table.Query{Index: "list", PK: projectList}
	for {
		var rows []table.Head
		next, err := s.Table.Page(ctx, q, &rows)
		if err != nil {
			return err
		}

		for _, r := range rows {
			p, err := s.projectRow(ctx, r.ListSK)
			if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Invalid) {
				continue // its row says what is wrong
			}

			if err != nil {
				return err
			}

			_, revs, err := s.counted(ctx, p)
			if err != nil {
				return err
			}

			s.all[p.Name] = &Recount{Generation: p.Generation, Revs: revs}
		}

		if next == "" {
			return nil
		}

		q.Cursor = next
	}
}

// countRow is a row of counts of either kind: its numbers are those of placesRow and of generationRow.
type countRow struct {
	table.Head
	Ready   int64 `dynamo:"ready_n"`
	Closed  int64 `dynamo:"closed_n"`
	Away    int64 `dynamo:"away_n"`
	Pairs   int64 `dynamo:"pairs_n"`
	Results int64 `dynamo:"results_n"`
	Reviews int64 `dynamo:"reviews_n"`
	Differ  int64 `dynamo:"differ_n"`
	Waiting int64 `dynamo:"waiting_n"`
}

// counted reads the rows of counts of a project, by their keys, and the sum of their revisions and
// the project's. Revisions only rise, so the sum is the same only if each is.
func (s *Store) counted(ctx context.Context,
	p *projectRow) (all map[table.Key]*countRow, revs int64, err error) {
	all, revs = map[table.Key]*countRow{}, p.Rev
	q := table.Query{PK: countsPK(p.Name)}
	for {
		var rows []countRow
		next, err := s.Table.Page(ctx, q, &rows)
		if err != nil {
			return nil, 0, err
		}

		for i := range rows {
			all[rows[i].Key()] = &rows[i]
			revs += rows[i].Rev
		}

		if next == "" {
			return all, revs, nil
		}

		q.Cursor = next
	}
}

// add adds a row to the recounts of projects. A row that cannot be read is not counted, nor is
// one of a project that is not among them. Results of all generations are counted together.
func (s *recounts) add(row table.Raw) {
	kind, id, _ := strings.Cut(row.PK, "#")
	project, key, _ := strings.Cut(id, "/")
	r := s.all[project]
	if r == nil {
		return
	}

	switch {
	case kind == "CLIP" && row.SK == "CLIP":
		r.Clips++
	case kind == "RESULTS":
		r.Parts[shard(key)][nResults]++
	case kind == "RESEARCHOPINIONS" && strings.HasPrefix(row.SK, ofPair):
		var p pairRow
		if row.Decode(&p) == nil && p.Generation == r.Generation {
			r.Parts[shard(key)][nReviews] += int64(p.waiting())
		}
	case kind == "EPISODE" && row.SK == "EPISODE":
		var e episodeRow
		if row.Decode(&e) != nil {
			return
		}
		part := &r.Parts[shard(key)]
		part[map[string]int{ready: nReady, closed: nClosed, away: nAway}[class(e.Place)]]++
		if e.Generation == r.Generation { // else what it counts is of an earlier analysis
			part[nPairs] += e.Counted
			part[nDiffer] += e.CountedDiffer
			part[nWaiting] += e.CountedWaiting
		}
	}
}

// compare compares the counts of all projects with their rows, after all were added.
func (s *recounts) compare(ctx context.Context) (wrong []check.Problem, err error) {
	for _, name := range slices.Sorted(maps.Keys(s.all)) {
		some, err := s.compareOne(ctx, name, s.all[name])
		if err != nil {
			return nil, err
		}
		for _, one := range some {
			one.Subject = "project:" + name
			wrong = append(wrong, one)
		}
	}
	return wrong, nil
}

// compareOne compares the counts of a project. It says nothing if
// something was counted meanwhile, or if the project's row cannot be read, which is another
// finding. The repair sets all counts that differ in one transaction, on the condition that none
// has changed since.
func (s *recounts) compareOne(ctx context.Context, project string, r *Recount) (wrong []check.Problem, err error) {
	p, err := s.projectRow(ctx, project)
	if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Invalid) {
		return nil, nil
	}

	if err != nil {
		return nil, err
	}

	rows, revs, err := s.counted(ctx, p)
	if err != nil || revs != r.Revs {
		return nil, err
	}

	// Numbers are given once, and clips are never removed: a difference means that rows are
	// missing, which nobody can make again.
	if r.Clips != p.Numbers {
		wrong = append(wrong, check.Problem{Invariant: ruleCatalog, Command: check.Restore,
			Evidence: fmt.Sprintf("the project has given %d numbers to clips; "+
				"there are %d clips", p.Numbers, r.Clips)})
	}

	c := &comparison{project: p, rows: rows}
	for n := range uint32(countShards) {
		c.compare(n, r.Parts[n])
	}

	if len(c.what) == 0 {
		return wrong, nil
	}
	return append(wrong, check.Problem{Invariant: ruleCounts, Evidence: strings.Join(c.what, "; "),
		Command: check.Repair, Repair: func(ctx context.Context) error {
			tx := s.Table.Begin(s.NewID())
			tx.Require(p.Key(), "rev = ?", p.Rev)
			for _, put := range c.repairs {
				put(tx)
			}
			return tx.Commit(ctx)
		}}), nil
}

// comparison is a comparison of the counts of a project.
type comparison struct {
	project *projectRow
	rows    map[table.Key]*countRow // of counts, by key
	what    []string                // what differs
	repairs []func(tx *table.Tx)    // each puts the rows of a shard into a transaction
}

// compare compares the counts of one shard with what its rows are. Counts of results of earlier
// generations are taken as they are, because AddTo does not tell generations apart: a difference is taken to
// be one of the present generation.
func (c *comparison) compare(n uint32, is [nCounts]int64) {
	at, of := placesKey(c.project.Name, n), generationKey(c.project.Name, c.project.Generation, n)
	places, generation := c.rows[at], c.rows[of]
	for r := int64(1); r < c.project.Generation; r++ {
		if row := c.rows[generationKey(c.project.Name, r, n)]; row != nil {
			is[nResults] -= row.Results
		}
	}

	says := [nCounts]int64{}
	if places != nil {
		says[nReady], says[nClosed], says[nAway] = places.Ready, places.Closed, places.Away
	}

	if generation != nil {
		says[nPairs], says[nResults], says[nReviews] = generation.Pairs, generation.Results,
			generation.Reviews
		says[nDiffer], says[nWaiting] = generation.Differ, generation.Waiting
	}

	// A row that is missing is made also if its numbers are 0: changes can count only in rows that
	// exist.
	if says == is && places != nil && generation != nil {
		return
	}

	c.what = append(c.what, fmt.Sprintf("part %d %s", n, differences(says, is)))
	c.repairs = append(c.repairs, func(tx *table.Tx) {
		putCounts(tx, &placesRow{
			Head:   headOf(places, at),
			Ready:  is[nReady],
			Closed: is[nClosed],
			Away:   is[nAway],
		}, places)
		putCounts(tx, &generationRow{
			Head:    headOf(generation, of),
			Pairs:   is[nPairs],
			Results: is[nResults],
			Reviews: is[nReviews],
			Differ:  is[nDiffer],
			Waiting: is[nWaiting],
		}, generation)
	})
}

// differences says which numbers differ, for people. Without a difference a row is missing.
func differences(says, is [nCounts]int64) string {
	var all []string
	for i, name := range countNames {
		if says[i] != is[i] {
			all = append(all, fmt.Sprintf("counts %d %s, and has %d", says[i], name, is[i]))
		}
	}
	if len(all) == 0 {
		return "has no row of counts"
	}
	return strings.Join(all, "; ")
}

// headOf is the head of a row of counts, also of one that is missing.
func headOf(r *countRow, k table.Key) table.Head {
	if r == nil {
		return newHead(k)
	}
	return r.Head
}

// putCounts writes a row of counts on the condition that nothing was counted since it was read; was
// is nil if it is missing.
func putCounts(tx *table.Tx, row table.Row, was *countRow) {
	if was == nil {
		tx.Insert(row)
	} else {
		tx.Save(row)
	}
}
