package ingest

import (
	"fmt"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func drawFree(t *rapid.T) Free {
	return Free{Slots: rapid.IntRange(-1, 5).Draw(t, "slots"), Space: rapid.Int64Range(-20, 100).Draw(t, "space"),
		Capacity: 100, Reserve: 20,
		Parked: rapid.Int64Range(0, 40).Draw(t, "parked"), Share: rapid.IntRange(0, 2).Draw(t, "share"),
		Taken:    map[string]int{},
		Patience: time.Duration(rapid.IntRange(0, 1).Draw(t, "patience")) * time.Hour}
}

func drawWant(t *rapid.T, id int) Want {
	return Want{ID: fmt.Sprint(id), Collection: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "collection"),
		Space: rapid.Int64Range(0, 120).Draw(t, "need"),
		Known: rapid.Bool().Draw(t, "known"), HasSpace: rapid.Bool().Draw(t, "has"), First: rapid.Bool().Draw(t,
			"first"),
		Waited: time.Duration(rapid.IntRange(0, 2).Draw(t, "waited")) * time.Hour}
}

// TestChoose: each chosen job fits, no job that fits is skipped, and no collection gets more
// than its share. A job whose patience has ended and that can fit at all reserves the space,
// except for jobs that parked ones wait for.
func TestChoose(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		free := drawFree(t)
		var waiting []Want
		for i := range rapid.IntRange(0, 8).Draw(t, "n") {
			waiting = append(waiting, drawWant(t, i))
		}
		chosen, after := Choose(free, waiting)
		is := map[string]bool{}
		for _, w := range chosen {
			is[w.ID] = true
		}
		slots, space, taken, kept := free.Slots, free.Space, map[string]int{}, false
		for _, w := range waiting {
			most := space
			if w.First {
				most += free.Parked
			}
			room := w.Space <= most && (w.Known || most >= free.Reserve) && (w.First || !kept || w.Space == 0 &&
				w.Known)
			room = room || w.HasSpace
			may := slots > 0 && (free.Share == 0 || taken[w.Collection] < free.Share)
			if fits := may && room; fits != is[w.ID] {
				t.Fatalf("%+v: fits %v, chosen %v", w, fits, is[w.ID])
			}
			kept = kept || may && !room && free.Patience > 0 && w.Waited >= free.Patience && w.Space <= free.Capacity
			if may && room {
				slots--
				taken[w.Collection]++
				if !w.HasSpace {
					space -= w.Space
				}
			}
		}
		if after.Slots != slots || after.Space != space || after.Kept != kept {
			t.Fatalf("left are %+v, want %d slots and %d bytes, kept %v", after, slots, space, kept)
		}
	})
}

// TestParkedJobsDoNotBlock: a job that parked ones wait for fits when only parked jobs hold
// space, however much they hold, and even if freed space is reserved.
func TestParkedJobsDoNotBlock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		free, w := drawFree(t), drawWant(t, 0)
		free.Slots, free.Share, free.Kept = 1, 0, rapid.Bool().Draw(t, "kept")
		free.Space = free.Capacity - free.Parked
		w.First = true
		if chosen, _ := Choose(free, []Want{w}); len(chosen) == 0 && w.Space <= free.Capacity {
			t.Fatalf("%+v does not fit into %+v", w, free)
		}
	})
}

// TestLacks: what a job lacks is exactly what must become free, also for one that parked jobs wait for.
func TestLacks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		free, w := drawFree(t), drawWant(t, 0)
		free.Kept, w.First = false, rapid.Bool().Draw(t, "first")
		if free.Fits(w) {
			return
		}
		lacks := free.Lacks(w)
		free.Space += lacks - 1
		less := free.Fits(w)
		free.Space++
		if less || !free.Fits(w) {
			t.Fatalf("%+v lacks %d bytes; one less suffices: %v; with them %+v", w, lacks, less, free)
		}
	})
}

func TestTooLarge(t *testing.T) {
	for _, c := range []struct {
		job   Job
		large bool
	}{
		{Job{SpaceNeeded: 100}, false},
		{Job{SpaceNeeded: 101}, true},
		{Job{SpaceNeeded: 101, HasSpace: true}, false}, // it was found out by downloading
		{Job{SpaceNeeded: math.MaxInt64}, true},
		{Job{SpaceNeeded: -1}, true}, // a sum that overflowed
	} {
		if got := c.job.TooLarge(100); (got != "") != c.large {
			t.Errorf("%d bytes, has space %v: %q", c.job.SpaceNeeded, c.job.HasSpace, got)
		}
	}
}

func TestAddSizes(t *testing.T) {
	for _, c := range [][3]int64{{1, 2, 3}, {math.MaxInt64, 1, math.MaxInt64}, {math.MaxInt64, math.MaxInt64,
		math.MaxInt64}, {0, math.MaxInt64, math.MaxInt64}} {
		if got := AddSizes(c[0], c[1]); got != c[2] {
			t.Errorf("%d + %d: got %d", c[0], c[1], got)
		}
	}
}
