package ingest

import (
	"fmt"
	"maps"
	"math"
	"time"
)

// Free is what a gate can grant now, with the settings that apply.
type Free struct {
	Slots    int
	Space    int64          // bytes
	Capacity int64          // bytes of the whole space
	Parked   int64          // bytes that parked jobs hold
	Kept     bool           // a job whose patience has ended reserves freed space
	Reserve  int64          // jobs of unknown size wait while Space is below it
	Share    int            // slots that one collection may have at once; 0 = no limit
	Taken    map[string]int // slots by collection
	Most     Holder         // the most that one job holds; only explanations use it
	Patience time.Duration  // a job that has waited longer reserves freed space; 0 = never
}

// Holder is the space that a job holds, in bytes.
type Holder struct {
	Job   string
	Space int64
}

// Want is one waiting job.
type Want struct {
	ID         string
	Collection string
	Space      int64         // bytes; gate 1 needs none
	Known      bool          // the size is known
	HasSpace   bool          // it has its space reserved already
	First      bool          // parked jobs that hold space wait for it
	Waited     time.Duration // since it reached the gate
}

// Choose selects, in the given order, every waiting job that fits into what is free, and
// returns them with what is left. Jobs behind one that does not fit may pass it until its
// patience has ended. From then on it reserves freed space, unless it needs more than the
// capacity.
func Choose(free Free, waiting []Want) ([]Want, Free) {
	var out []Want
	for _, w := range waiting {
		// Every job needs a slot, so nobody behind this one can start.
		if free.Slots <= 0 {
			break
		}

		// Such a job reserves nothing: it could not use what is free.
		if free.Share > 0 && free.Taken[w.Collection] >= free.Share {
			continue
		}

		if !w.HasSpace {
			if !free.Fits(w) {
				free.Kept = free.Kept || free.reservesFor(w)
				continue
			}
			free.Space -= w.Space
		}

		free.Slots--
		if free.Share > 0 {
			free.Taken = maps.Clone(free.Taken) // the caller's map must not change
			free.Taken[w.Collection]++
		}

		out = append(out, w)
	}
	return out, free
}

// Fits reports whether there is space for a job. Space is a budget, not a disk: for a job
// that parked jobs wait for, the space that parked jobs hold counts as free. Otherwise they
// would wait for each other without end. Such a job fits at the latest when only parked
// jobs hold space.
func (f Free) Fits(w Want) bool {
	// A job that is known to need no space takes nothing of what is reserved.
	if f.Kept && !w.First && (w.Space > 0 || !w.Known) {
		return false
	}
	space := f.spaceFor(w)
	return w.Space <= space && (w.Known || space >= f.Reserve)
}

// spaceFor is how many bytes are free for a job.
func (f Free) spaceFor(w Want) int64 {
	if w.First {
		return f.Space + f.Parked
	}
	return f.Space
}

// Lacks is how many bytes must become free until there is space for a job that does not fit. It is
// at least 1: a job may fit, and be kept back by a reservation.
func (f Free) Lacks(w Want) int64 {
	needs := w.Space
	if !w.Known {
		needs = max(needs, f.Reserve)
	}
	return max(1, needs-f.spaceFor(w))
}

// reservesFor reports whether freed space is reserved for a job that does not fit. One that can
// never fit reserves nothing: it would keep all others back without end.
func (f Free) reservesFor(w Want) bool {
	return f.Patience > 0 && w.Waited >= f.Patience && w.Space <= f.Capacity &&
		(w.Known || f.Reserve <= f.Capacity)
}

// TooLarge returns why a job can never get its space out of capacity bytes, "" if it
// can.
func (j *Job) TooLarge(capacity int64) string {
	if !j.NeedsSpace() {
		return ""
	}
	return j.Exceeds(capacity)
}

// Exceeds returns why a job needs more space than capacity, in bytes, "" if it does not.
func (j *Job) Exceeds(capacity int64) string {
	switch {
	case j.SpaceNeeded < 0:
		return "the sizes in its manifest add up to more than 2^63 bytes. Correct the manifest and submit it again"
	case j.SpaceNeeded > capacity:
		return fmt.Sprintf("it needs %s of work space, more than the whole space of %s. "+
			"Raise the setting spaceGiB and requeue the job, or submit the object in smaller parts",
			Bytes(j.SpaceNeeded), Bytes(capacity))
	}
	return ""
}

// AddSizes returns the sum of two positive sizes in bytes, or the largest int64 if it
// overflows.
func AddSizes(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
