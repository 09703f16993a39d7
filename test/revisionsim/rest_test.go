package revisionsim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"archivist/pkg/revisions/revision"
)

// atRest names what has not come to rest.
func (c *checker) atRest() error {
	for _, name := range slices.Sorted(maps.Keys(c.archives)) {
		a := &c.archives[name].is
		switch {
		case a.Mode == revision.Deleted:
		case a.Mode != revision.Active:
			return fmt.Errorf("the archive %s is %s", name, a.Mode)
		case a.Watermark != int64(len(c.w.repos[name].commits)):
			return fmt.Errorf("the archive %s is planned up to revision %d of %d", name, a.Watermark,
				len(c.w.repos[name].commits))
		case a.Backfill != nil || a.Trouble != nil || a.Cleared < a.Epoch-1:
			return fmt.Errorf("the archive %s: %+v", name, a)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(c.instances)) {
		in := &c.instances[id].is
		if !over(string(in.State)) || !in.Settled {
			return fmt.Errorf("%s is %s, settled: %t, parked: %t, told: %q, edges: %+v", id, in.State, in.Settled,
				in.Parked, in.StopRequested, in.Edges)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(c.instances)) {
		in := c.instances[id]
		if !in.kept && !c.young(id) && !c.deleted(id) && c.planned[revisionID(&in.is)] {
			return fmt.Errorf("%s is not in the bucket", id)
		}
	}
	return nil
}

// whole compares all rows that are left with what there is to be.
func (c *checker) whole() error {
	for _, pk := range slices.Sorted(maps.Keys(c.lines)) {
		for sk, owner := range c.lines[pk] {
			if strings.HasPrefix(sk, "plan#") && !c.toPlan(owner) {
				continue
			}
			if strings.HasPrefix(sk, "keep#") && (c.deleted(owner) || c.young(owner)) {
				continue
			}
			return fmt.Errorf("all rests, and %s has the row %s of %s", pk, sk, owner)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(c.waiters)) {
		for dependent := range c.waiters[id] {
			if c.instances[id] == nil { // of a revision whose plan nobody has seen, in an epoch that has ended
				continue
			}
			return fmt.Errorf("all rests, and %s waits for %s", dependent, id)
		}
	}
	for _, pk := range slices.Sorted(maps.Keys(c.locks)) {
		if c.locks[pk] != "" {
			return fmt.Errorf("all rests, and %s has the lock %s", c.locks[pk], pk)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(c.names)) {
		row := c.names[key]
		ref, name, _ := strings.Cut(key, " ")
		if started := c.newest(ref, name); number(row, "succeeded_n") != c.succeeded[key] ||
			number(row, "started_n") != started {
			return fmt.Errorf("%s has started in %d and succeeded in %d; its row says %d and %d", key, started,
				c.succeeded[key], number(row, "started_n"), number(row, "succeeded_n"))
		}
	}
	for id, n := range c.committed {
		if n != 1 {
			return fmt.Errorf("revision %s was planned %d times", id, n)
		}
	}
	return nil
}

// young reports whether an instance is a run by a schedule that follows the one before sooner than that is kept: then
// there is always one that is not in the bucket. It counts only when half of the steps were not enough.
func (c *checker) young(id string) bool {
	in := c.instances[id]
	return c.late && in != nil && in.is.Trigger == revision.BySchedule &&
		time.Since(time.UnixMilli(in.over)) < 2*times.Keep
}

// deleted reports whether the archive of a revision or an instance was deleted.
func (c *checker) deleted(id string) bool {
	return c.archives[archiveOf(id)].is.Mode == revision.Deleted
}

// toPlan reports whether a revision is to be planned: it is of no epoch that has ended, nor below the first one.
func (c *checker) toPlan(id string) bool {
	r := c.revisions[id].is
	a := &c.archives[archiveOf(id)].is
	return r.Archive == a.Ref() && r.Number >= a.First && a.Mode != revision.Deleted
}
