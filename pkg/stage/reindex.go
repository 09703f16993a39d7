package stage

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"archivist/pkg/fault"
)

// Reindex writes the rows of a stored object that are missing, from the storage
// root alone, until a time. It returns whether any were, and whether all was looked
// at. A Conflict says what could not be brought back; all else was.
func (s *Stages) Reindex(ctx context.Context, ark, actor string, until time.Time) (changed, done bool, err error) {
	for range 5 {
		put, err := s.missingRows(ctx, ark, who{actor: actor}, until)
		switch {
		case errors.Is(err, errStopped):
			return true, false, nil
		case fault.Is(err, fault.Stale):
			continue // recorded meanwhile by a job, or by another reindex
		case put == nil:
			return false, true, err
		}
		committed := s.commit(ctx, put)
		if !fault.Is(committed, fault.Stale) {
			return true, true, errors.Join(committed, err)
		}
	}
	return false, true, fault.New(fault.Unavailable, "the rows of %s change all the time; try again later", ark)
}

// Reindexed says what a reindex of many objects did.
type Reindexed struct {
	Objects int // looked at
	Changed int // of which rows were missing
	Failed  []NotReindexed
	Cursor  string // where to go on; "" at the end
}

// NotReindexed is an object that was not brought back as a whole, and why. ARK is ""
// where it cannot be read.
type NotReindexed struct {
	ARK, Key string // Key is where it is in the storage bucket
	Why      string
}

// reindexers is how many objects are reindexed side by side.
const reindexers = 16

// ReindexAll reindexes the next objects of the storage root from a cursor ("" at the
// beginning) to a bound ("" for none), until a time, at least one. It goes on past an
// object that cannot be read, or whose rows are in conflict with others', and lists it.
// What it holds is one page of the root, whatever the root has.
func (s *Stages) ReindexAll(ctx context.Context, cursor, to, actor string, until time.Time) (Reindexed, error) {
	out := Reindexed{Cursor: cmp.Or(cursor, "0")} // no key sorts before that one, and "" is the end
	for whole := true; whole && out.Cursor != ""; whole = whole && s.Now().Before(until) {
		keys, next, err := s.Root.Objects(ctx, out.Cursor, to)
		if err != nil {
			return out, err
		}
		if whole = s.reindexPage(ctx, keys, actor, until, &out); whole {
			out.Cursor = next
		}
	}
	return out, ctx.Err()
}

// reindexPage reindexes the objects at some keys, adds the results to out, and
// returns whether all were looked at. The cursor is at the last before which all were.
func (s *Stages) reindexPage(ctx context.Context, keys []string, actor string, until time.Time, out *Reindexed) (whole bool) {
	all := make([]looked, len(keys))
	gate := make(chan struct{}, reindexers)
	var wg sync.WaitGroup
	for i, key := range keys {
		gate <- struct{}{}
		if i > 0 && !s.Now().Before(until) {
			break
		}
		wg.Go(func() {
			defer func() { <-gate }()
			all[i] = s.look(ctx, key, actor, until)
		})
	}
	wg.Wait()
	whole = true
	for i, l := range all {
		if l.changed && l.done { // also after one that is not done: it is looked at again, and nothing is missing then
			out.Changed++
		}
		if whole = whole && l.done; !whole {
			continue
		}
		if out.Cursor = keys[i]; !l.none {
			out.Objects++
		}
		if l.failed != nil {
			out.Failed = append(out.Failed, *l.failed)
		}
	}
	return whole
}

// looked is the result for one object.
type looked struct {
	done, none, changed bool
	failed              *NotReindexed
}

// look reindexes the object that is declared at a key.
func (s *Stages) look(ctx context.Context, key, actor string, until time.Time) (l looked) {
	id, err := s.Root.At(ctx, key)
	if fault.Is(err, fault.NotFound) {
		return looked{done: true, none: true} // its first version was never committed
	}
	l.done = true
	if err == nil {
		l.changed, l.done, err = s.Reindex(ctx, id, actor, until)
	}
	if err != nil {
		l.failed = &NotReindexed{ARK: id, Key: key, Why: err.Error()}
	}
	return l
}
