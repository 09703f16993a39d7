package consumer

import (
	"context"
	"slices"
	"strings"

	"archivist/pkg/events/event"
	"archivist/pkg/events/filter"
	"archivist/pkg/kernel/definition"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// Replay begins a replay of the events in r for a consumer, and returns it; into is the name of a
// shadow, or "". It runs in the background, from where it was after any crash. The same request
// again returns the replay that it began.
//
// It is refused, with a Conflict, for a consumer whose definition has IgnoreReplays: what it does
// outside cannot be done again; for a shadow whose name a running consumer has; and if too many
// replays are not finished. An Invalid means that the range cannot be read or selects nothing, or
// that the handler cannot build a shadow.
func (s *Store) Replay(ctx context.Context, name, into string, r Range, by By) (Replay, error) {
	if err := s.checkRange(ctx, &r); err != nil {
		return Replay{}, err
	}
	return s.beginReplay(ctx, Replay{Consumer: name, Into: into, Range: r}, by)
}

// Rebuild begins a rebuild: a consumer gets a snapshot of each collection, object and version that
// is stored now, and then the events from now on. Until it is done, the consumer does not run. With
// the name of a shadow as into, the consumer is left alone. It is refused as a replay is, and for a
// consumer that is being rebuilt or whose filter names File.
func (s *Store) Rebuild(ctx context.Context, name, into string, by By) (Replay, error) {
	return s.beginReplay(ctx, Replay{Consumer: name, Into: into, Rebuild: true}, by)
}

// beginReplay writes the row of a replay, with the consumer's event. The id follows from the
// request, if there is one: a repetition finds the row. A rebuild of the consumer itself leaves a
// reset on its row in the same transaction, so that it stops at once.
func (s *Store) beginReplay(ctx context.Context, p Replay, by By) (Replay, error) {
	p.ID = s.NewID()
	if by.Request != "" { // the same request again is the same replay
		p.ID = hash(p.Consumer + "#" + by.Request)
		_, made, err := s.replayRow(ctx, p.ID)
		if !fault.Is(err, fault.NotFound) {
			return made, err
		}
	}

	if err := s.checkShadow(ctx, p); err != nil {
		return p, err
	}

	if err := s.roomForReplay(ctx); err != nil {
		return p, err
	}

	p.State, p.Created, p.Actor, p.Reason = ReplayPreparing, s.Now().UnixMilli(), by.Actor,
		strings.TrimSpace(by.Reason)
	eventType, detail := "consumer.replayed", change{Replay: p.ID, Into: p.Into, Range: &p.Range}
	if p.Rebuild {
		eventType, detail.Range = "consumer.rebuilt", nil
	}

	err := s.act(ctx, p.Consumer, by, func(tx *table.Tx, r *row) (string, change, error) {
		c, err := r.consumer()
		if err != nil {
			return "", change{}, err
		}

		if err := c.mayReplay(p, r, s.Shadows); err != nil {
			return "", change{}, err
		}

		p.ConsumerCreated = r.Created
		if p.Rebuild && p.Into == "" {
			r.Rebuild = p.ID
			r.Resets = append(slices.Clone(r.Resets), reset{
				ID: p.ID,
				To: StartLatest,
				At: p.Created,
			})
		}

		return eventType, detail, p.insert(tx)
	})
	if err != nil {
		return p, err
	}

	if p.Rebuild && p.Into == "" {
		if err := s.finishResets(ctx, p.Consumer); err != nil {
			return p, err // the clock finishes them
		}
	}

	_, made, err := s.replayRow(ctx, p.ID)
	if fault.Is(err, fault.NotFound) {
		return made, fault.New(fault.Conflict,
			"this idempotency key was used for another change of consumer %s; "+
				"use a new one", p.Consumer)
	}
	return made, err
}

// insert puts the row of a new replay into tx.
func (p *Replay) insert(tx *table.Tx) error {
	k := replayKey(p.ID)
	made := &replayRow{Head: table.Head{PK: k.PK, SK: k.SK}}
	if err := made.set(*p); err != nil {
		return err
	}
	tx.Insert(made)
	return nil
}

// roomForReplay refuses one replay too many.
func (s *Store) roomForReplay(ctx context.Context) error {
	open, err := s.openReplays(ctx)
	if err != nil {
		return err
	}

	if len(open) >= maxReplays {
		return fault.New(fault.Conflict, "%d replays are not finished; wait for one, or cancel it",
			len(open))
	}
	return nil
}

// mayReplay refuses a replay that the consumer does not allow.
func (c *Consumer) mayReplay(p Replay, r *row, shadows []string) error {
	f, err := filter.Compile(c.Filter)
	switch {
	case err != nil:
		return err
	case c.IgnoreReplays:
		return fault.New(fault.Conflict,
			"consumer %s is not replayed: its effects are outside, or it counts "+
				"each event once (ignoreReplays in its definition)", c.Name)
	case p.Into != "" && c.Target.Handler != "" && !slices.Contains(shadows, c.Target.Handler):
		return fault.New(fault.Invalid,
			"into: the handler %s has one place for what it makes, and cannot build "+
				"another beside it; replay into consumer %s itself", c.Target.Handler, c.Name)
	case p.Rebuild && f.Names(event.File.String()):
		return fault.New(fault.Conflict,
			"rebuild: the filter of consumer %s names File, and a rebuild has no "+
				"events of files; replay its events", c.Name)
	case p.Rebuild && p.Into == "" && r.Rebuild != "":
		return fault.New(fault.Conflict,
			"consumer %s is being rebuilt by replay %s; wait for it, or cancel it", c.Name,
			r.Rebuild)
	}
	return nil
}

// checkShadow refuses, with a Conflict, a name of a shadow that a running consumer has: its target
// would get both new events and those of the replay under one name. A paused consumer may have it.
func (s *Store) checkShadow(ctx context.Context, p Replay) error {
	if p.Into == "" {
		return nil
	}

	if !definition.Names.MatchString(p.Into) {
		return fault.New(fault.Invalid,
			"into: %q: expected 1 to 50 small letters, digits and hyphens, "+
				"beginning with a letter", definition.Clip(p.Into, 60))
	}

	c, err := s.Get(ctx, p.Into)
	switch {
	case fault.Is(err, fault.NotFound):
		return nil
	case err != nil:
		return err
	case !c.Paused:
		return fault.New(fault.Conflict,
			"into: consumer %s is running; pause it, or choose a name that no "+
				"consumer has", p.Into)
	}
	return nil
}

// checkRange refuses a range that cannot be replayed, and sets its defaults.
func (s *Store) checkRange(ctx context.Context, r *Range) error {
	if r.From == "" {
		r.From = StartHorizon
	}

	if r.Until == "" {
		r.Until = StartLatest
	}

	from, err := parseStart(r.From)
	if err != nil {
		return fault.New(fault.Invalid, "from: %w", err)
	}

	until, err := parseStart(r.Until)
	if err != nil {
		return fault.New(fault.Invalid, "until: %w", err)
	}

	switch {
	case from.latest:
		return fault.New(fault.Invalid, "from: %q: nothing would be replayed", r.From)
	case r.Until == StartHorizon:
		return fault.New(fault.Invalid, "until: %q: nothing would be replayed", r.Until)
	case from.seq+until.seq > 0 && r.Partition == "":
		return fault.New(fault.Invalid,
			"partition: each partition has seqs of its own; name the partition")
	case until.seq > 0 && from.seq > until.seq, until.time > 0 && from.time > until.time:
		return fault.New(fault.Invalid, "until: %s is before %s", r.Until, r.From)
	}

	if err := s.checkPartition(ctx, r.Partition); err != nil {
		return err
	}
	return checkFilter(r.Filter)
}

// checkPartition refuses, with an Invalid, a partition that does not exist, and a log of too many.
func (s *Store) checkPartition(ctx context.Context, name string) error {
	if name != "" {
		_, err := s.Log.Partition(ctx, name)
		if fault.Is(err, fault.NotFound) {
			err = fault.New(fault.Invalid, "partition: there is no partition %q of the log",
				definition.Clip(name, 60))
		}
		return err
	}

	all, err := s.Log.Partitions(ctx)
	if err != nil {
		return err
	}

	if len(all) > maxReplayCursors {
		return fault.New(fault.Invalid,
			"partition: the log has %d partitions, and one replay can read %d; name one",
			len(all), maxReplayCursors)
	}
	return nil
}

// CancelReplay ends a replay. What was handled is not undone; after a rebuild that did not end,
// what the consumer makes is not complete: rebuild it again. Its rows are removed by the clock. One
// that has ended, or ends, stays as it is. A NotFound means that there is none of that id.
func (s *Store) CancelReplay(ctx context.Context, id string, by By) error {
	_, p, err := s.replayRow(ctx, id)
	if err != nil {
		return err
	}
	return s.act(ctx, p.Consumer, by, func(tx *table.Tx, _ *row) (string, change, error) {
		saved, p, err := s.replayRow(ctx, id)
		if err != nil {
			return "", change{}, err
		}

		if !p.open() || p.State == ReplayEnding {
			return "", change{}, errUnchanged
		}

		p.State, p.Cancelled = ReplayEnding, true
		if err := saved.set(p); err != nil {
			return "", change{}, err
		}
		tx.Save(&saved)
		return "consumer.replay-cancelled", change{Replay: id}, nil
	})
}
