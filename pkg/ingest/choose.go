package ingest

import (
	"maps"
	"math"
	"time"
)

// Free is what a gate can give out now, and by which settings.
type Free struct {
	Slots    int
	Space    int64          // bytes
	Reserve  int64          // jobs of unknown size wait while Space is below it
	Share    int            // slots that one collection may have at once; 0 = all
	Taken    map[string]int // slots by collection
	Patience time.Duration  // a job that has waited longer keeps the space that comes free for itself; 0 = never
}

// Want is one waiting job.
type Want struct {
	ID         string
	Collection string
	Space      int64         // bytes; gate 1 needs none
	Known      bool          // the size is known
	HasSpace   bool          // its reservation stands already
	Waited     time.Duration // since it came to the gate
}

// Choose takes, in the order given, every waiting job that fits into what is
// free. A job that does not fit lets the ones behind it pass, until its patience
// is at an end: then it keeps the space that comes free. It returns what is left.
func Choose(free Free, waiting []Want) ([]Want, Free) {
	var out []Want
	for _, w := range waiting {
		if free.Slots <= 0 {
			break
		}
		if free.Share > 0 && free.Taken[w.Collection] >= free.Share {
			continue
		}
		if !w.HasSpace {
			if w.Space > free.Space || !w.Known && free.Space < free.Reserve {
				if free.Patience > 0 && w.Waited >= free.Patience {
					free.Space = 0
				}
				continue
			}
			free.Space -= w.Space
		}
		free.Slots--
		if free.Share > 0 {
			free.Taken = maps.Clone(free.Taken) // the caller's stays as it was
			free.Taken[w.Collection]++
		}
		out = append(out, w)
	}
	return out, free
}

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
