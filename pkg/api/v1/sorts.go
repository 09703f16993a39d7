package v1

// What lists of jobs and of batches can be sorted by beside their age, which is their order
// without it. Each has its ordinary direction: the largest number, the longest time and the first
// text come first.
const (
	ByState     = "state"     // in the order of the way of a job or a batch
	BySince     = "since"     // when it entered its state
	BySpace     = "space"     // jobs: the work space that it needs
	ByJobs      = "jobs"      // batches: how many it has
	ByFailed    = "failed"    // batches: how many of its jobs have failed
	ByBytes     = "bytes"     // batches: what its completed jobs have deposited
	BySubmitter = "submitter" // batches
)

// JobSorts and BatchSorts are what lists of jobs, and of batches, can be sorted by.
var (
	JobSorts   = []string{ByState, BySince, BySpace, ByTitle}
	BatchSorts = []string{ByState, BySince, ByJobs, ByFailed, ByBytes, BySubmitter}
)

// SortedFrom is the ordinary direction of a sort: Ascending or Descending.
func SortedFrom(sort string) string {
	switch sort {
	case BySpace, ByJobs, ByFailed, ByBytes:
		return Descending
	}
	return Ascending
}
