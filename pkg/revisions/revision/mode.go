package revision

import (
	"context"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// MetricStopped counts archives that were stopped because a revision became another. An alarm is
// set on it: only a person can let them go on.
const MetricStopped = "ArchivesStopped"

// commitArchive writes an archive with an event, and asks for a pass. An archive that is new has no
// row WAKE yet that could be raised: the caller writes it in the same transaction. A Stale means
// that another has changed the archive.
func (s *Store) commitArchive(ctx context.Context, tx *table.Tx, a *archiveRow, eventType string,
	by By,
	d Changed) error {
	err := a.event(tx, eventType, s.now(), by, d)
	if err != nil {
		return err
	}

	return s.commitAndWake(ctx, tx, a)
}

// commitAndWake writes an archive, and asks for a pass.
func (s *Store) commitAndWake(ctx context.Context, tx *table.Tx, a *archiveRow) error {
	err := saveArchive(tx, a)
	if err != nil {
		return err
	}

	if a.Rev > 0 {
		s.raise(tx, a.Name)
	}

	err = tx.Commit(ctx)
	if err != nil {
		return err
	}

	s.wake(ctx, a.Name)
	return nil
}

// setMode puts a mode and its event into a transaction, and commits it. From the moment of its
// deletion on, an archive gets no notices of its object any more.
func (s *Store) setMode(ctx context.Context, tx *table.Tx, a *archiveRow, m Mode, why,
	eventType string, by By) error {
	a.Archive.Mode, a.Why = m, why
	if m == Deleting {
		err := s.linkObject(ctx, tx, a, false)
		if err != nil {
			return err
		}
	}
	return s.commitArchive(ctx, tx, a, eventType, by, Changed{Mode: m, Why: why})
}

// stop stops an archive of which a revision has become another. It returns a Conflict if it could,
// also if it was stopped before; any other error means that the archive is as it was, and a Stale
// that it has changed since it was read.
func (s *Store) stop(ctx context.Context, a *archiveRow, why string, by By) error {
	conflict := fault.New(fault.Conflict,
		"the archive %s is stopped: %s. If a notice was wrong, resume it as it is. If its history is another one, "+
			"such as after a restore, resume it from a revision on: as it is, it would stop again", a.Name, why)

	if a.Archive.Mode == Stopped {
		return conflict
	}

	tx := s.Table.Begin(s.NewID())
	err := s.setMode(ctx, tx, a, Stopped, why, "archive.stopped", by)
	if err != nil {
		return err
	}

	s.count(MetricStopped, 1)
	return conflict
}
