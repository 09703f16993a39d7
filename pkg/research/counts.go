package research

import (
	"fmt"
	"hash/fnv"

	"github.com/RoaringBitmap/roaring/v2"

	"archivist/pkg/kernel/table"
)

// Counts are kept in rows that the transactions of changes add to, so that a status does not read
// all episodes. DynamoDB refuses one of two transactions that write the same item at once, so each
// kind of count is spread over countShards rows by the key of the episode.

// placesRow has the numbers of a part of the episodes at each place of the line. Their sum is the
// number of these episodes.
type placesRow struct {
	table.Head
	Ready  int64 `dynamo:"ready_n"`
	Closed int64 `dynamo:"closed_n"`
	Away   int64 `dynamo:"away_n"`
}

// generationRow has numbers of a part of the pairs in one generation. The rows of earlier generations stay:
// results of an earlier analysis that come late are counted there.
type generationRow struct {
	table.Head
	Pairs   int64 `dynamo:"pairs_n"`   // researched, of episodes and clips that are live
	Results int64 `dynamo:"results_n"` // stored, problems too
	Reviews int64 `dynamo:"reviews_n"` // places that wait for a person

	// With a quorum: pairs whose results differ, and those with too few results. Both are of episodes
	// and clips that are live.
	Differ  int64 `dynamo:"differ_n"`
	Waiting int64 `dynamo:"waiting_n"`
}

// countsPK is the partition of the counts of a project.
func countsPK(project string) string { return "RESEARCHCOUNTS#" + project }

// placesKey is the key of the row that counts the places of a shard's episodes.
func placesKey(project string, shard uint32) table.Key {
	return table.Key{PK: countsPK(project), SK: fmt.Sprintf("places#%02d", shard)}
}

// generationKey is the key of the row that counts the pairs of a shard's episodes in one generation.
func generationKey(project string, generation int64, shard uint32) table.Key {
	return table.Key{PK: countsPK(project), SK: fmt.Sprintf("round#%06d#%02d", generation, shard)}
}

// shard is the part of the counts in which an episode is counted, by its key. It must not change:
// the counts that are stored would belong to other episodes.
func shard(key string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key))
	return h.Sum32() % countShards
}

// The numbers that are counted of the episodes of a shard.
const (
	nReady = iota
	nClosed
	nAway
	nPairs   // of the present generation
	nResults // of all generations
	nReviews // places that wait for a person, of the present generation
	nDiffer  // pairs whose results differ, of the present generation
	nWaiting // pairs with too few results, of the present generation
	nCounts
)

// countNames are the names of the numbers in findings of the doctor.
var countNames = [nCounts]string{"ready episodes", "closed episodes", "episodes away from the line",
	"researched pairs", "results", "places to review", "pairs that differ",
	"pairs with too few results"}

// Tally is how many pairs of an episode are counted in each of these states, with clips that are
// live. Without a quorum, the last two are 0.
type Tally struct {
	Counted        int64 `dynamo:"counted_n"` // researched
	CountedDiffer  int64 `dynamo:"counted_differ_n,omitempty"`
	CountedWaiting int64 `dynamo:"counted_waiting_n,omitempty"` // with too few results
}

// tally counts the pairs of an episode anew. What is away has none that count.
func (e *episodeRow) tally(live *roaring.Bitmap) Tally {
	if !e.media.live() {
		return Tally{}
	}
	count := func(of *roaring.Bitmap) int64 { return int64(of.AndCardinality(live)) }
	return Tally{count(e.researched), count(e.differs), count(e.waiting)}
}

// String is the tally for people.
func (t Tally) String() string {
	return fmt.Sprintf("%d researched pairs, %d that differ, %d with too few results", t.Counted,
		t.CountedDiffer, t.CountedWaiting)
}

// minus is what a tally has more than another one.
func (t Tally) minus(was Tally) Tally {
	return Tally{t.Counted - was.Counted, t.CountedDiffer - was.CountedDiffer,
		t.CountedWaiting - was.CountedWaiting}
}

// Recount is what the rows of a project add up to, as far as they were read. Its fields are kept
// between the pages of a run of the doctor, as JSON.
type Recount struct {
	Generation int64                       `json:"round"` // of the project, when the count began
	Revs       int64                       `json:"revs"`  // of the project and its counts then, added up
	Clips      int64                       `json:"clips"` // rows of clips
	Parts      [countShards][nCounts]int64 `json:"parts"` // by shard
}
