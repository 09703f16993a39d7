package revision

import (
	"cmp"
	"context"
	"errors"

	"archivist/pkg/kernel/definition"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/registry"
	"archivist/pkg/kernel/table"
)

// Add registers an archive, or changes its settings. The name of a deleted one begins in a new
// epoch. The same settings again change nothing, but let the archive be asked for its head at once.
//
// Settings or a name that cannot be are an Invalid. A Conflict means that the archive is being
// deleted, that it is of another object, or that its first revision is planned and the baseline
// cannot move any more. An Unavailable may be repeated.
func (s *Store) Add(ctx context.Context, name string, set Settings, by By) (Archive, error) {
	err := set.Check()
	if err != nil {
		return Archive{}, err
	}

	if !Names.MatchString(name) {
		return Archive{}, fault.New(fault.Invalid,
			"name: found %q; expected lower-case letters, digits and hyphens, at most 40, "+
				"beginning with a letter", definition.Clip(name, 60))
	}
	return s.edit(ctx, name, false, by, func(tx *table.Tx, a *archiveRow) error {
		eventType, err := s.register(ctx, tx, a, name, set)
		if err != nil {
			return err
		}

		if set.Baseline != a.Baseline {
			err = s.rebase(ctx, tx, a, set.Baseline)
			if err != nil {
				return err
			}
		}

		same := a.Rev > 0 && eventType == "archive.changed" && a.Settings == set
		a.Settings, a.Looked, a.Missed = set, 0, 0
		if same {
			return s.commitAndWake(ctx, tx, a) // it is looked at at once; nothing has changed, so there is no event
		}
		if a.Rev == 0 {
			tx.Insert(newWake(name, s.now(), tx.ID()))
		}
		return s.commitArchive(ctx, tx, a, eventType, by, Changed{
			Mode:     a.Archive.Mode,
			Settings: &set,
			Epoch:    a.Epoch,
		})
	})
}

// rebase lets the archive begin at another revision; 0: at the first that is notified. A Conflict
// means that its first one is planned already.
func (s *Store) rebase(ctx context.Context, tx *table.Tx, a *archiveRow, baseline int64) error {
	movable, err := s.movable(ctx, tx, a)
	if err != nil {
		return err
	}

	if !movable {
		return fault.New(fault.Conflict,
			"baseline: revisions from %d on are planned; use backfill for earlier "+
				"ones", a.First)
	}

	a.First, a.Watermark = baseline, max(baseline, 1)-1
	return nil
}

// register begins an archive that is not there, or leaves one that is. It returns the type of the
// event. The epoch of one that was deleted goes on from where it was: the ids of its history stay
// its own.
func (s *Store) register(ctx context.Context, tx *table.Tx, a *archiveRow, name string,
	set Settings) (string, error) {
	switch {
	case a.Archive.Mode == Deleting:
		return "", fault.New(fault.Conflict, "the archive %s is being deleted", name)
	case a.Rev > 0 && a.Archive.Mode != Deleted:
		return "archive.changed", a.sameObject(set)
	}

	a.Archive = Archive{
		Name:      name,
		Mode:      Active,
		Epoch:     a.Epoch + 1,
		Created:   s.now(),
		First:     set.Baseline,
		Watermark: max(set.Baseline, 1) - 1,
		Settings:  Settings{Location: set.Location},
	}
	return "archive.added", s.linkObject(ctx, tx, a, true)
}

// sameObject returns a Conflict if settings would make an archive of another object: versions of
// one object are no revisions of another. The URL of a repository may change: it can have moved,
// and its transactions tell whether it is the same.
func (a *archiveRow) sameObject(set Settings) error {
	if a.Location.ARK == set.Location.ARK {
		return nil
	}
	return fault.New(fault.Conflict,
		"location: the archive %s is that of %s and cannot become that of %s; delete it, "+
			"or take another name", a.Name, a.Location, set.Location)
}

// edit changes an archive: f decides with the row, and commits the transaction that it is given.
// After a Stale, all is done again with a row that was read anew. must: an archive that there is
// not is a NotFound; else f gets an empty one. It returns the archive as f has left it, also beside
// an error. The same request again changes nothing.
func (s *Store) edit(ctx context.Context, name string, must bool, by By,
	f func(tx *table.Tx, a *archiveRow) error) (a Archive, err error) {
	err = s.Table.Again(ctx, "the archive "+name, func() error {
		a, err = s.tryEdit(ctx, name, must, by, f)
		return err
	})
	return a, err
}

// errUnchanged ends an edit that would change nothing: then there is no event, and the call succeeds.
var errUnchanged = errors.New("revision: nothing to change")

// act is an edit by a person, who gives a reason.
func (s *Store) act(ctx context.Context, name string, by By,
	f func(tx *table.Tx, a *archiveRow) error) (Archive, error) {
	if err := by.Check(); err != nil {
		return Archive{}, err
	}
	return s.edit(ctx, name, true, by, f)
}

// tryEdit makes one try of an edit.
func (s *Store) tryEdit(ctx context.Context, name string, must bool, by By,
	f func(tx *table.Tx, a *archiveRow) error) (Archive, error) {
	a, err := s.archiveRow(ctx, name)
	if err != nil {
		return Archive{}, err
	}

	done, err := a.Requests.Done(by)
	switch {
	case done && !must && (a.Archive.Mode == Deleting || a.Archive.Mode == Deleted):
		return Archive{}, registry.Gone("the archive " + name)
	case done || err != nil:
		return a.Archive, err
	}

	if must {
		if err := a.exists(name); err != nil {
			return a.Archive, err
		}
	}

	before := a.Requests
	a.Requests = before.With(by)
	err = f(s.Table.Begin(s.NewID()), a)
	if err == errUnchanged {
		a.Requests = before
		err = registry.Note(ctx, s.Table, s.NewID(), a, &a.Requests, by)
	}
	return a.Archive, err
}

// Pause lets an archive plan and start nothing until it is resumed. What runs goes on, and is
// recorded; notices are, too. One that is stopped or being deleted is a Conflict.
func (s *Store) Pause(ctx context.Context, name string, by By) (Archive, error) {
	return s.mode(ctx, name, by, Paused, "archive.paused", Active)
}

// mode sets a mode, if the archive has one of some (from); else it is a Conflict. It has it
// already: nothing changes, and there is no event.
func (s *Store) mode(ctx context.Context, name string, by By, to Mode, eventType string,
	from ...Mode) (Archive, error) {
	return s.act(ctx, name, by, func(tx *table.Tx, a *archiveRow) error {
		if a.Archive.Mode == to {
			return errUnchanged
		}
		for _, m := range from {
			if a.Archive.Mode == m {
				return s.setMode(ctx, tx, a, to, by.Reason, eventType, by)
			}
		}
		return fault.New(fault.Conflict, "the archive %s is %s", name, a.Archive.Mode)
	})
}

// Resume lets an archive go on. One that was stopped goes on as it was if restart is 0: the
// revision that is another now is tried again, and stops it again unless the archive has the known
// one. Else all begins anew at that revision, in a new epoch: what has not ended is cancelled, and
// the history stays under the old one. Only an archive that was stopped can begin anew; otherwise
// it is a Conflict.
func (s *Store) Resume(ctx context.Context, name string, restart int64, by By) (Archive, error) {
	if restart != 0 {
		err := Notice{Revision: restart}.Check()
		if err != nil {
			return Archive{}, err
		}
	}
	return s.act(ctx, name, by, func(tx *table.Tx, a *archiveRow) error {
		switch {
		case a.Archive.Mode == Active && restart == 0:
			return errUnchanged
		case a.Archive.Mode == Deleting:
			return fault.New(fault.Conflict, "the archive %s is being deleted", name)
		case restart != 0 && a.Archive.Mode != Stopped:
			return fault.New(fault.Conflict,
				"the archive %s is %s: only one that was stopped because a revision was "+
					"replaced can begin anew", name, a.Archive.Mode)
		case restart != 0:
			a.Epoch, a.First, a.Watermark = a.Epoch+1, restart, restart-1
			a.Schedules, a.Definition, a.Trouble, a.Backfill = nil, "", nil, nil
			a.Looked, a.Missed, a.Doubt, a.Newest = 0, 0, 0, 0
		}

		a.Archive.Mode, a.Why = Active, ""
		return s.commitArchive(ctx, tx, a, "archive.resumed", by, Changed{
			Mode:  Active,
			Why:   by.Reason,
			Epoch: a.Epoch,
			First: a.First,
		})
	})
}

// Delete cancels all that has not ended, and forgets the archive when nothing is left: passes do
// that. Its history stays, under its epochs. Another Delete changes nothing; when it is gone, it is
// a NotFound.
func (s *Store) Delete(ctx context.Context, name string, by By) (Archive, error) {
	return s.mode(ctx, name, by, Deleting, "archive.deleted", Active, Paused, Stopped)
}

// Skip plans only COMMIT for a revision, for example because it cannot be read. It needs a reason,
// since it leaves out what the archive's own definitions ask for. Skipping it again changes
// nothing. See maySkip for what is a Conflict.
func (s *Store) Skip(ctx context.Context, name string, n int64, by By) error {
	err := Notice{Revision: n}.Check()
	if err != nil {
		return err
	}

	_, err = s.act(ctx, name, by, func(tx *table.Tx, a *archiveRow) error {
		return s.trySkip(ctx, tx, a, n, by)
	})
	if err != nil {
		return err
	}

	s.wake(ctx, name)
	return nil
}

// trySkip writes that a revision is skipped, and ends the archive's trouble with it.
func (s *Store) trySkip(ctx context.Context, tx *table.Tx, a *archiveRow, n int64, by By) error {
	r, err := s.revisionRow(ctx, a.Ref(), n)
	if err != nil {
		return err
	}

	err = s.maySkip(ctx, a, r)
	if err != nil {
		return err
	}
	if r.State == SkippedBy {
		return errUnchanged
	}

	r.State, r.Reason, r.Notified = SkippedBy, by.Reason, cmp.Or(r.Notified, s.now())
	err = s.putRevision(tx, r, "revision.skipped", by)
	if err != nil {
		return err
	}

	if a.Trouble != nil && a.Trouble.Revision == n {
		a.Trouble = nil // it is not read any more
	}
	err = saveArchive(tx, a)
	if err != nil {
		return err
	}

	s.raise(tx, a.Name)
	return tx.Commit(ctx)
}

// maySkip returns a Conflict if a revision is planned already, never will be, or is not known to
// exist: it would be skipped when it comes. A revision is known to exist if it or a later one was
// notified, or if the archive had it at the last look.
func (s *Store) maySkip(ctx context.Context, a *archiveRow, r *revisionRow) error {
	n := r.Revision.Number
	switch {
	case a.Backfill.waitsFor(r):
		return nil
	case a.First == 0 || n < a.First:
		return fault.New(fault.Conflict,
			"revision %d is before the first one: nothing waits for it", n)
	case r.State == SkippedBy:
		return nil
	case n <= a.Watermark || r.Rev > 0 && r.State != Notified:
		return fault.New(fault.Conflict, "revision %d is planned already", n)
	case r.Rev > 0 || n <= a.Newest:
		return nil
	}

	behind, err := s.first(ctx, table.Query{
		PK:   linePK(a.Name),
		From: planKey(a.Ref(), n).SK,
		To:   planKey(a.Ref(), MaxRevision).SK,
	})
	if err != nil {
		return err
	}

	if behind == "" {
		return fault.New(fault.Conflict,
			"revision %d is not known: neither it nor a later one was notified, and %d "+
				"was the newest when the archive was looked at last", n, a.Newest)
	}
	return nil
}

// waitsFor reports whether a revision is the next one of a back-fill, and is not being planned yet.
// nil is no back-fill.
func (b *backfill) waitsFor(r *revisionRow) bool {
	return b != nil && r.Revision.Number == b.Next && r.Rev > 0 && r.State == Before
}

// Backfill plans revisions before the first one, from and to included: passes plan one after the other,
// beside what is notified. They are not compared with those that are planned already, and their
// first one waits for nothing. One back-fill goes on at a time; another one is a Conflict, and so
// are revisions that are not before the first.
func (s *Store) Backfill(ctx context.Context, name string, from, to int64, by By) (Archive, error) {
	if from < 1 || to < from {
		return Archive{}, fault.New(fault.Invalid,
			"backfill: found %d to %d; expected two revisions in their order", from, to)
	}
	return s.act(ctx, name, by, func(tx *table.Tx, a *archiveRow) error {
		switch {
		case a.First == 0 || to >= a.First:
			return fault.New(fault.Conflict,
				"backfill: the archive %s begins at revision %d; only earlier ones can "+
					"be filled in", name, a.First)
		case a.Watermark < a.First: // until then an earlier one can become the first
			return fault.New(fault.Conflict,
				"backfill: revision %d, at which the archive %s begins, is not planned "+
					"yet; try again when it is, or notify the earlier ones", a.First, name)
		case a.Backfill != nil:
			return fault.New(fault.Conflict, "backfill: one goes on, up to revision %d",
				a.Backfill.To)
		}

		a.Backfill = &backfill{Next: from, To: to, Latest: map[string]int64{}}
		return s.commitArchive(ctx, tx, a, "archive.backfilled", by, Changed{
			Mode:  a.Archive.Mode,
			Why:   by.Reason,
			First: from,
			To:    to,
		})
	})
}
