package ingest

import (
	"fmt"
	"math"
)

// The priority of a job decides its order at a gate: 0 is first, 999 is last. It is that of
// the collection's profile, or else BatchPriority. UnknownSizePenalty is added until the
// size of the job is known. Among jobs of one priority the oldest goes first. With
// Rules.Aging, a long wait outweighs priority.
const (
	DefaultPriority    = 5
	UnknownSizePenalty = 10
	WorstPriority      = 999
	WorstBatchPriority = 99
)

// BatchPriority is the priority of each of n jobs of one batch (source: the running
// system's formula). The more jobs, the later they run.
func BatchPriority(n int) int {
	if n <= 1 {
		return DefaultPriority
	}
	return min(int(10*math.Log(float64(n))+DefaultPriority), WorstBatchPriority)
}

// Prioritize is a job with the priority that a person has set. It changes the job's turn at
// its gate; a job that does not wait has the priority when it next does.
func (r Rules) Prioritize(j Job, priority int) Job {
	j.Priority, j.Prioritized = priority, true
	j.Turn = r.turn(j)
	return j
}

// turn is the sort key of a waiting job: its priority, then its age. With aging it is the
// time at which the job would reach priority 0. That does not change while the job waits,
// so no row has to be written only because time passes.
func (r Rules) turn(j Job) string {
	if r.Aging == 0 {
		// Fixed widths: the index sorts texts. Entered is in milliseconds; the id decides between
		// equals.
		return fmt.Sprintf("%03d#%013d#%s", j.Priority, j.Entered, j.ID)
	}
	return fmt.Sprintf("%013d#%s", j.Entered+int64(j.Priority)*r.Aging.Milliseconds(), j.ID)
}
