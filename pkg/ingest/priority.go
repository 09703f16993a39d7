package ingest

import (
	"fmt"
	"math"
)

// The priority of a job decides who goes first at a gate: 0 is best, 999 is last. It is
// that of its collection's profile, else BatchPriority. A job of unknown size stands
// UnknownSizePenalty further back until its size is known. Among jobs of one priority
// the oldest goes first; with Rules.Aging, waiting makes up for priority.
const (
	DefaultPriority    = 5
	UnknownSizePenalty = 10
	WorstPriority      = 999
	WorstBatchPriority = 99
)

// BatchPriority is the priority of each of n jobs of one batch (source: the
// running system's formula): the more jobs, the further back.
func BatchPriority(n int) int {
	if n <= 1 {
		return DefaultPriority
	}
	return min(int(10*math.Log(float64(n))+DefaultPriority), WorstBatchPriority)
}

// turn is the sort key of a waiting job: its priority, then its age. With aging it is
// the time at which the job would come to priority 0, which does not change while it
// waits, so that no row is written only because time passes.
func (r Rules) turn(j Job) string {
	if r.Aging == 0 {
		return fmt.Sprintf("%03d#%013d#%s", j.Priority, j.Entered, j.ID)
	}
	return fmt.Sprintf("%013d#%s", j.Entered+int64(j.Priority)*r.Aging.Milliseconds(), j.ID)
}
