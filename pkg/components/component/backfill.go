package component

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"archivist/pkg/kernel/fault"
)

// backfillPage is how many items of each part a back-fill looks at between two checkpoints: what a
// crash repeats.
const backfillPage = 50

// Backfill goes on with the back-fill, and with components that are being deleted, until there is
// nothing left to do or the time is over: then more is true. Each call makes some progress. It can
// be repeated from any point of a crash, and by two callers at once.
//
// One back-fill is for all components: it decides the places of all items by the present
// definitions. An item whose row or events are damaged is counted, and the others go on; Reconcile
// says which it is.
func (s *Store) Backfill(ctx context.Context, until time.Time) (more bool, err error) {
	rows, err := s.definitionRows(ctx)
	if err != nil {
		return false, err
	}

	for i := range rows {
		if rows[i].State != deleting {
			continue
		}
		if more, err := s.finishDelete(ctx, rows[i].Name, until); more || err != nil {
			return more, err
		}
	}

	for {
		f, err := s.backfillState(ctx)
		if err != nil || f.Done == f.Want {
			return false, err
		}

		err = s.backfillStep(ctx, &f)
		if lostRace(err) != nil {
			return true, err
		}

		if s.Now().After(until) {
			return err != nil || f.Done < f.Want, nil
		}
	}
}

// backfillStep decides the next items of each part, and saves how far it came. The parts are done at
// once: items of different parts change different counts. A Stale means that another call has
// saved, or that a change began the back-fill anew: then what this step decided is decided again,
// which changes nothing.
func (s *Store) backfillStep(ctx context.Context, f *backfillRow) error {
	var looked, failed atomic.Int64
	g, calls := errgroup.WithContext(ctx)
	cursors := slices.Clone(f.Cursors)
	for i := range cursors {
		if cursors[i] == atEnd {
			continue
		}
		g.Go(func() error {
			ids, next, err := s.items(calls, uint32(i), cursors[i], backfillPage)
			if err != nil {
				return err
			}

			for _, id := range ids {
				switch _, err := s.change(calls, id, quietly); {
				case fault.Is(err, fault.Invalid):
					failed.Add(1)
				case err != nil:
					return err
				}
			}

			looked.Add(int64(len(ids)))
			cursors[i] = cmp.Or(next, atEnd)
			return nil
		})
	}

	if err := g.Wait(); err != nil {
		return err
	}

	f.Looked += looked.Load()
	f.Failed += failed.Load()
	f.Cursors = cursors
	if f.parts() == shards {
		f.Done = f.Want
	}

	tx := s.Table.Begin(s.NewID())
	tx.Save(f)
	return tx.Commit(ctx)
}
