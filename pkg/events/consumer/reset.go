package consumer

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// maxResets is how many changes of cursors can be unfinished: they are on the consumer's row.
const maxResets = 10

// Reset puts the cursor in a partition, or all cursors ("" as the partition), at a place: "latest",
// "horizon", "cursor", "seq:N" or "time:…". Events after it are handled again. What is parked stays
// parked. After the log was restored from a backup, it is how a consumer goes on. No run begins
// until all cursors are moved; if that takes too long for a request, the clock goes on with it. An
// Invalid means that the place cannot be read, a NotFound that there is no such consumer or
// partition, a Conflict that too many resets are not finished.
func (s *Store) Reset(ctx context.Context, name, partition, to string, by By) error {
	at, err := parseReset(to)
	if err != nil {
		return fault.New(fault.Invalid, "to: %w", err)
	}

	if at.seq > 0 && partition == "" {
		return fault.New(fault.Invalid,
			"to: %q: each partition has seqs of its own; name the partition", to)
	}

	if partition != "" {
		if _, err := s.Log.Partition(ctx, partition); err != nil {
			return err
		}
	}

	err = s.act(ctx, name, by, func(_ *table.Tx, r *row) (string, change, error) {
		if len(r.Resets) >= maxResets {
			return "", change{}, fault.New(fault.Conflict,
				"%d resets of consumer %s are not finished; try again in a "+
					"minute", len(r.Resets), name)
		}

		r.Resets = append(slices.Clone(r.Resets), reset{
			ID:        s.NewID(),
			Partition: partition,
			To:        to,
			At:        s.Now().UnixMilli(),
		})
		return "consumer.reset", change{Partition: partition, To: to}, nil
	})
	if err != nil {
		return err
	}

	err = s.finishResets(ctx, name)
	if errors.Is(err, errUnfinished) {
		return nil // the clock goes on with it
	}
	return err
}

// resetTime is for how long a request moves cursors; the clock does the rest. A request to the API
// has 29 s.
const resetTime = 15 * time.Second

// movedAtOnce is how many cursors of a reset are moved together: what a crash undoes.
const movedAtOnce = 10

// errUnfinished is the error of resets whose time is over.
var errUnfinished = fault.New(fault.Unavailable,
	"the cursors are still being moved; this goes on by itself, within "+
		"minutes")

// finishResets moves the cursors as the resets of a consumer want, for a limited time.
func (s *Store) finishResets(ctx context.Context, name string) error {
	return s.advanceResets(ctx, name, s.Now().Add(resetTime))
}

// advanceResets moves the cursors as the resets of a consumer want, in their order. It can be
// repeated from any point of a crash, and by two callers at once: a cursor knows the last reset
// that moved it, and the reset is taken off the row when all are moved. After until it ends with
// errUnfinished; what is moved by then stays moved.
func (s *Store) advanceResets(ctx context.Context, name string, until time.Time) error {
	for range maxResets * changeTries {
		r, err := s.row(ctx, name)
		if err != nil || r.State != active || len(r.Resets) == 0 {
			return err
		}

		err = s.makeReset(ctx, name, &r, until)
		if err != nil && !fault.Is(err, fault.Stale) {
			return err
		}
	}
	return table.Busy("consumer " + name)
}

// makeReset makes the oldest reset of a consumer's row, and takes it off the row. A Stale means
// that a run, a person or another caller was first.
func (s *Store) makeReset(ctx context.Context, name string, r *row, until time.Time) error {
	if err := s.moveCursors(ctx, name, r.Resets[0], until); err != nil {
		return err
	}

	r.Resets = slices.Clone(r.Resets[1:])
	tx := s.Table.Begin(s.NewID())
	tx.Save(r)
	return tx.Commit(ctx)
}

// moveCursors makes one reset. A search for a time can take long in each partition, so the cursors
// are written as they are found, movedAtOnce together. Those that have the reset's id were moved
// before a crash, or by an earlier call.
func (s *Store) moveCursors(ctx context.Context, name string, to reset, until time.Time) error {
	at, err := parseReset(to.To)
	if err != nil {
		return err
	}

	partitions, err := s.Log.Partitions(ctx)
	if err != nil {
		return err
	}

	var all []cursor
	for _, p := range partitions {
		if to.Partition != "" && p.Name != to.Partition {
			continue
		}

		cur, err := s.cursor(ctx, name, p.Name)
		if err != nil {
			return err
		}

		if cur.Reset == to.ID {
			continue // moved before a crash, or by an earlier call
		}

		if s.Now().After(until) {
			return cmp.Or(s.putCursors(ctx, all), errUnfinished)
		}

		place := cursor{Seq: min(cur.Seq, p.Head), From: cur.From}
		if to.To != AtCursor {
			if place, err = s.startOf(ctx, name, p, at); err != nil {
				return err
			}
		}

		cur.jump(place.Seq, p, s.Now().UnixMilli())
		cur.From, cur.Reset = place.From, to.ID
		all = append(all, cur)
		if len(all) < movedAtOnce {
			continue
		}

		if err := s.putCursors(ctx, all); err != nil {
			return err
		}

		all = nil
	}
	return s.putCursors(ctx, all)
}
