package reindex

import (
	"cmp"
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"archivist/pkg/kernel/fault"
)

// Object writes the missing rows of one stored object, until a time. It returns whether
// any were missing, and whether all rows were checked. A Conflict names what could not be
// written; everything else was. A damaged object is a *ocfl.DamagedError, and a missing one a
// NotFound.
func (x Reindexer) Object(ctx context.Context, ark, actor string,
	until time.Time) (changed, done bool, err error) {
	for range 5 {
		put, err := x.Missing(ctx, ark, By{Actor: actor}, until)
		switch {
		case errors.Is(err, ErrStopped):
			return true, false, nil
		case fault.Is(err, fault.Stale):
			continue // recorded meanwhile by a job, or by another reindex
		case put == nil:
			return false, true, err
		}

		committed := x.commit(ctx, put)
		if !fault.Is(committed, fault.Stale) {
			return true, true, errors.Join(committed, err)
		}
	}
	return false, true, fault.New(fault.Unavailable,
		"the rows of %s keep changing; try again later", ark)
}

// Result is the result of a reindex of many objects.
type Result struct {
	Objects int    // that were read
	Changed int    // of which rows were missing
	Cursor  string // where to continue; "" at the end
	Failed  []Failure
}

// Failure is an object of which some rows could not be written, and why. A person corrects the
// cause, and reindexes that object alone.
type Failure struct {
	ARK string `dynamo:"ark,omitempty"` // "" if the object cannot be read
	Key string `dynamo:"stored_at"`     // where it is in the storage bucket
	Why string `dynamo:"why"`
}

// parallel is how many objects are reindexed at once.
const parallel = 16

// All reindexes the next objects of the storage root, from a cursor ("" at the beginning)
// to a limit ("" for none), until a time, but at least one. An object that cannot be read,
// or whose rows conflict with those of others, is listed as a failure. It holds one page
// of the root in memory, however large the root is.
func (x Reindexer) All(ctx context.Context, cursor, to, actor string,
	until time.Time) (Result, error) {
	out := Result{Cursor: cmp.Or(cursor, "0")} // no key sorts before that one, and "" is the end
	for whole := true; whole && out.Cursor != ""; whole = whole && x.Now().Before(until) {
		keys, next, err := x.Root.Objects(ctx, out.Cursor, to)
		if err != nil {
			return out, err
		}
		whole = x.page(ctx, keys, actor, until, &out)
		if whole {
			out.Cursor = next
		}
	}
	return out, ctx.Err()
}

// page reindexes the objects at some keys, adds the results to out, and returns whether
// all are done. The cursor is the last key up to which all are done.
func (x Reindexer) page(ctx context.Context, keys []string, actor string, until time.Time,
	out *Result) (whole bool) {
	all := make([]outcome, len(keys))
	var g errgroup.Group
	g.SetLimit(parallel)
	for i, key := range keys {
		g.Go(func() error {
			// The first one always, so that each call makes progress.
			if i == 0 || x.Now().Before(until) {
				all[i] = x.objectAt(ctx, key, actor, until)
			}
			return nil
		})
	}

	_ = g.Wait()

	whole = true
	for i, l := range all {
		// An object after one that is not done counts, too: next time none of its rows is missing.
		if l.changed && l.done {
			out.Changed++
		}
		whole = whole && l.done
		if whole {
			out.add(keys[i], l)
		}
	}
	return whole
}

func (r *Result) add(key string, l outcome) {
	r.Cursor = key
	if !l.none {
		r.Objects++
	}
	if l.failed != nil {
		r.Failed = append(r.Failed, *l.failed)
	}
}

// outcome is the result for one object.
type outcome struct {
	done, none, changed bool
	failed              *Failure
}

// objectAt reindexes the object that is declared at a key.
func (x Reindexer) objectAt(ctx context.Context, key, actor string, until time.Time) (l outcome) {
	id, err := x.Root.At(ctx, key)
	if fault.Is(err, fault.NotFound) {
		return outcome{done: true, none: true} // its first version was never committed
	}

	l.done = true
	if err == nil {
		l.changed, l.done, err = x.Object(ctx, id, actor, until)
	}

	if err != nil {
		l.failed = &Failure{ARK: id, Key: key, Why: err.Error()}
	}
	return l
}
