package research

import (
	"context"
	"time"

	"archivist/pkg/kernel/table"
)

// sampleRow keeps the number of researched pairs at some times, to say how many came in the last hour: problems are
// not among them. It has at most about a dozen samples: one for each sampleEvery of sampleKept, and one from before.
type sampleRow struct {
	table.Head
	Generation int64   `dynamo:"round_no"`   // of the analysis; samples of another generation say nothing
	Times      []int64 `dynamo:"times_ms"`   // milliseconds since 1970, ascending
	Pairs      []int64 `dynamo:"pairs_list"` // at these times
}

// Samples are taken at most so often, and kept so long. While nothing is stored, none is taken.
// They are taken by the assigner's passes, one each minute, so a rate is exact to about
// sampleEvery.
const (
	sampleEvery = 5 * time.Minute
	sampleKept  = time.Hour
)

// sampleKey is the key of the samples of a project.
func sampleKey(project string) table.Key {
	return table.Key{PK: walkKey(project).PK,
		SK: "SAMPLES"}
}

// samples are the samples of a project, none if the row does not exist yet.
func (all rowSet) samples(project string) (*sampleRow, error) {
	k := sampleKey(project)
	r := &sampleRow{Head: newHead(k)}
	return r, all.decode(k, r)
}

// samples reads the samples of a project.
func (s *Store) samples(ctx context.Context, project string) (*sampleRow, error) {
	all, err := s.read(ctx, sampleKey(project))
	if err != nil {
		return nil, err
	}
	return all.samples(project)
}

// since is how many pairs were researched after a time (milliseconds since 1970), if there are n now. A
// sample stands until the next one. Without a sample, all n are taken to be newer. There can be fewer now than there
// were: of a clip that was withdrawn, none count.
func (r *sampleRow) since(ms, n int64) int64 {
	if len(r.Times) == 0 {
		return n
	}
	before := r.Pairs[0]
	for i, at := range r.Times {
		if at <= ms {
			before = r.Pairs[i]
		}
	}
	return max(0, n-before)
}

// add adds a sample, and drops those that are no longer needed. It reports false if it says nothing
// new.
func (r *sampleRow) add(generation, now, n int64) bool {
	if r.Generation != generation {
		r.Generation, r.Times, r.Pairs = generation, nil, nil
	}

	last := len(r.Times) - 1
	if last >= 0 && r.Pairs[last] == n {
		return false
	}

	r.Times, r.Pairs = append(r.Times, now), append(r.Pairs, n)
	// One sample from before the hour stays: it says what there was at its beginning.
	for len(r.Times) > 1 && r.Times[1] <= now-sampleKept.Milliseconds() {
		r.Times, r.Pairs = r.Times[1:], r.Pairs[1:]
	}
	return true
}
