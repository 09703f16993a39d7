package ingest

import (
	"fmt"
	"math"
)

// Priority of a job: 0 is best, 999 last.
const (
	DefaultPriority    = 5
	UnknownSizePenalty = 10
	WorstPriority      = 999
	WorstBatchPriority = 99
)

// BatchPriority is the priority of each of n jobs of one batch (source: the
// running system's formula): the more there are, the more they let others pass.
func BatchPriority(n int) int {
	if n <= 1 {
		return DefaultPriority
	}
	return min(int(10*math.Log(float64(n))+DefaultPriority), WorstBatchPriority)
}

// turn orders waiting jobs: by priority, then age; with aging by the time at
// which each would come to priority 0, which does not change while it waits.
func (r Rules) turn(j Job) string {
	if r.Aging == 0 {
		return fmt.Sprintf("%03d#%013d#%s", j.Priority, j.Entered, j.ID)
	}
	return fmt.Sprintf("%013d#%s", j.Entered+int64(j.Priority)*r.Aging.Milliseconds(), j.ID)
}
