package revision

import (
	"cmp"
	"context"
	"crypto/subtle"
	"strings"

	"archivist/pkg/definition"
	"archivist/pkg/event"
	"archivist/pkg/fault"
	"archivist/pkg/table"
)

// equal compares secrets in a time that does not depend on where they differ.
func equal(a, b string) bool { return a != "" && subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// Changed is the detail of the events of an archive.
type Changed struct {
	Mode     Mode      `json:"mode"`
	Why      string    `json:"why,omitempty"`
	Settings *Settings `json:"settings,omitempty"`
	Epoch    int64     `json:"epoch,omitempty"`
	First    int64     `json:"first,omitempty"`
	To       int64     `json:"to,omitempty"` // of a back-fill
}

// event adds an event about the archive.
func (a *archiveRow) event(tx *table.Tx, eventType string, now int64, by By, detail Changed) error {
	a.Number++
	return event.Append(tx, archiveSubject(a.Name), a.Number, event.New{Type: eventType, Time: now, Detail: detail,
		Actor: cmp.Or(by.Actor, manager), Component: manager})
}

// setMode puts a mode and its event into a transaction, and commits it.
func (s *Store) setMode(ctx context.Context, tx *table.Tx, a *archiveRow, m Mode, why, eventType string, by By) error {
	a.Archive.Mode, a.Why = m, why
	if m == Deleting {
		err := s.linkObject(ctx, tx, a, false)
		if err != nil {
			return err
		}
	}
	return s.commitArchive(ctx, tx, a, eventType, by, Changed{Mode: m, Why: why})
}

// commitArchive writes an archive with an event, and asks for a pass.
func (s *Store) commitArchive(ctx context.Context, tx *table.Tx, a *archiveRow, eventType string, by By,
	d Changed) error {
	err := a.event(tx, eventType, s.now(), by, d)
	if err == nil {
		err = saveArchive(tx, a)
	}
	if err != nil {
		return err
	}
	if a.Rev > 0 {
		s.raise(tx, a.Name)
	}
	err = tx.Commit(ctx)
	if err == nil {
		s.wake(ctx, a.Name)
	}
	return err
}

// Check returns an Invalid if the settings cannot be used. What the location says is checked by package archive.
func (s Settings) Check() error {
	switch {
	case s.Baseline < 0 || s.Baseline > MaxRevision:
		return fault.New(fault.Invalid, "baseline: found %d; expected 1 to %d, or none", s.Baseline, int64(MaxRevision))
	case s.Reconcile < -1 || s.Reconcile > 0 && s.Reconcile < 60_000 || s.Reconcile > 30*24*3600_000:
		return fault.New(fault.Invalid, "reconcile: found %d ms; expected a minute to 30 days, or -1 for never",
			s.Reconcile)
	case s.Running < 0 || s.Running > MostRunning:
		return fault.New(fault.Invalid, "running: found %d; expected 1 to %d", s.Running, MostRunning)
	case len(s.Title) > 300 || strings.ContainsFunc(s.Title, isControl):
		return fault.New(fault.Invalid, "title: expected at most 300 bytes in one line")
	}
	return nil
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

func checkReason(by By) error {
	if len(by.Reason) > MaxReason || strings.ContainsFunc(by.Reason, isControl) {
		return fault.New(fault.Invalid, "reason: expected at most %d bytes in one line", MaxReason)
	}
	return nil
}

// Add registers an archive, or changes its settings. The name of a deleted one begins in a new epoch.
func (s *Store) Add(ctx context.Context, name string, set Settings, by By) (Archive, error) {
	err := set.Check()
	if err == nil && !Names.MatchString(name) {
		err = fault.New(fault.Invalid, "name: found %q; expected lower-case letters, digits and hyphens, at most 40, "+
			"beginning with a letter", definition.Clip(name, 60))
	}
	if err != nil {
		return Archive{}, err
	}
	return s.edit(ctx, name, false, func(tx *table.Tx, a *archiveRow) error {
		eventType, err := s.register(ctx, tx, a, name, set)
		if err != nil {
			return err
		}
		if set.Baseline != a.Baseline {
			movable, err := s.movable(ctx, tx, a)
			if err == nil && !movable {
				err = fault.New(fault.Conflict, "baseline: revisions from %d on are planned; use backfill for earlier "+
					"ones", a.First)
			}
			if err != nil {
				return err
			}
			a.First, a.Watermark = set.Baseline, max(set.Baseline, 1)-1
		}
		a.Settings, a.Looked, a.Missed = set, 0, 0
		if a.Rev == 0 {
			tx.Insert(newWake(name, s.now(), tx.ID()))
		}
		return s.commitArchive(ctx, tx, a, eventType, by, Changed{Mode: a.Archive.Mode, Settings: &set, Epoch: a.Epoch})
	})
}

// register begins an archive that is not there, or leaves one that is. It returns the type of the event.
func (s *Store) register(ctx context.Context, tx *table.Tx, a *archiveRow, name string, set Settings) (string, error) {
	switch {
	case a.Archive.Mode == Deleting:
		return "", fault.New(fault.Conflict, "the archive %s is being deleted", name)
	case a.Rev > 0 && a.Archive.Mode != Deleted:
		return "archive.changed", a.sameObject(set)
	}
	a.Archive = Archive{Name: name, Mode: Active, Epoch: a.Epoch + 1, Created: s.now(), First: set.Baseline,
		Watermark: max(set.Baseline, 1) - 1, Settings: Settings{Location: set.Location}}
	return "archive.added", s.linkObject(ctx, tx, a, true)
}

// edit changes an archive. f commits.
func (s *Store) edit(ctx context.Context, name string, must bool, f func(tx *table.Tx, a *archiveRow) error) (Archive,
	error) {
	var err error
	for range maxTries {
		var a *archiveRow
		a, err = s.archiveRow(ctx, name)
		if must {
			a, err = s.known(ctx, name)
		}
		if err == nil {
			err = f(s.Table.Begin(s.NewID()), a)
		}
		if !fault.Is(err, fault.Stale) {
			return a.Archive, err
		}
	}
	return Archive{}, fault.New(fault.Unavailable, "the archive %s keeps changing; try again in a moment (%v)", name,
		err)
}

// Pause lets an archive plan and start nothing until it is resumed. What runs goes on.
func (s *Store) Pause(ctx context.Context, name string, by By) (Archive, error) {
	return s.mode(ctx, name, by, Paused, "archive.paused", Active)
}

// mode sets a mode, if the archive has one of some. It has it already: nothing changes.
func (s *Store) mode(ctx context.Context, name string, by By, to Mode, eventType string, from ...Mode) (Archive,
	error) {
	err := checkReason(by)
	if err != nil {
		return Archive{}, err
	}
	return s.edit(ctx, name, true, func(tx *table.Tx, a *archiveRow) error {
		if a.Archive.Mode == to {
			return nil
		}
		for _, m := range from {
			if a.Archive.Mode == m {
				return s.setMode(ctx, tx, a, to, by.Reason, eventType, by)
			}
		}
		return fault.New(fault.Conflict, "the archive %s is %s", name, a.Archive.Mode)
	})
}

// Resume lets an archive go on. One that was stopped goes on as it was if restart is 0; else all begins anew at
// that revision, in a new epoch: what has not ended is cancelled, and the history stays.
func (s *Store) Resume(ctx context.Context, name string, restart int64, by By) (Archive, error) {
	err := checkReason(by)
	if err == nil && restart != 0 {
		err = Notice{Revision: restart}.Check()
	}
	if err != nil {
		return Archive{}, err
	}
	return s.edit(ctx, name, true, func(tx *table.Tx, a *archiveRow) error {
		switch {
		case a.Archive.Mode == Active && restart == 0:
			return nil
		case a.Archive.Mode == Deleting:
			return fault.New(fault.Conflict, "the archive %s is being deleted", name)
		case restart != 0 && a.Archive.Mode != Stopped:
			return fault.New(fault.Conflict, "the archive %s is %s: only one that was stopped because a revision was "+
				"replaced can begin anew", name, a.Archive.Mode)
		case restart != 0:
			a.Epoch, a.First, a.Watermark = a.Epoch+1, restart, restart-1
			a.Schedules, a.Definition, a.Trouble, a.Backfill = nil, "", nil, nil
			a.Looked, a.Missed, a.Newest = 0, 0, 0
		}
		a.Archive.Mode, a.Why = Active, ""
		return s.commitArchive(ctx, tx, a, "archive.resumed", by, Changed{Mode: Active, Why: by.Reason, Epoch: a.Epoch,
			First: a.First})
	})
}

// Delete cancels all that has not ended, and forgets the archive when nothing is left. Its history stays.
func (s *Store) Delete(ctx context.Context, name string, by By) (Archive, error) {
	return s.mode(ctx, name, by, Deleting, "archive.deleted", Active, Paused, Stopped)
}

// Skip plans only COMMIT for a revision, for example because it cannot be read. It needs a reason.
func (s *Store) Skip(ctx context.Context, name string, n int64, by By) error {
	err := checkReason(by)
	if err == nil {
		err = Notice{Revision: n}.Check()
	}
	if err == nil && by.Reason == "" {
		err = fault.New(fault.Invalid, "reason: say why the revision is skipped")
	}
	if err != nil {
		return err
	}
	_, err = s.edit(ctx, name, true, func(tx *table.Tx, a *archiveRow) error {
		r, err := s.revisionRow(ctx, a.Ref(), n)
		if err == nil {
			err = s.maySkip(ctx, a, r)
		}
		if err != nil || r.State == SkippedBy {
			return err
		}
		r.State, r.Reason, r.Notified = SkippedBy, by.Reason, cmp.Or(r.Notified, s.now())
		err = s.putRevision(tx, r, "revision.skipped", by)
		if err == nil && a.Trouble != nil && a.Trouble.Revision == n {
			a.Trouble = nil // it is not read any more
			err = saveArchive(tx, a)
		}
		if err != nil {
			return err
		}
		s.raise(tx, name)
		return tx.Commit(ctx)
	})
	if err == nil {
		s.wake(ctx, name)
	}
	return err
}

// maySkip returns a Conflict if a revision is planned already, never will be, or is not known to exist: it would be
// skipped when it comes.
func (s *Store) maySkip(ctx context.Context, a *archiveRow, r *revisionRow) error {
	n := r.Revision.Number
	switch {
	case a.Backfill.waitsFor(r):
		return nil
	case a.First == 0 || n < a.First:
		return fault.New(fault.Conflict, "revision %d is before the first one: nothing waits for it", n)
	case r.State == SkippedBy:
		return nil
	case n <= a.Watermark || r.Rev > 0 && r.State != Notified:
		return fault.New(fault.Conflict, "revision %d is planned already", n)
	case r.Rev > 0 || n <= a.Newest:
		return nil
	}
	behind, err := s.first(ctx, table.Query{PK: linePK(a.Name), From: planKey(a.Ref(), n).SK,
		To: planKey(a.Ref(), MaxRevision).SK})
	if err == nil && behind == "" {
		err = fault.New(fault.Conflict, "revision %d is not known: neither it nor a later one was notified, and %d "+
			"was the newest when the archive was looked at last", n, a.Newest)
	}
	return err
}

// waitsFor reports whether a revision is the next one of a back-fill.
func (b *backfill) waitsFor(r *revisionRow) bool {
	return b != nil && r.Revision.Number == b.Next && r.Rev > 0 && r.State == Before
}

// Fill plans revisions before the first one, from and to included. They are not compared with those that are
// planned already.
func (s *Store) Fill(ctx context.Context, name string, from, to int64, by By) (Archive, error) {
	err := checkReason(by)
	if err == nil && (from < 1 || to < from) {
		err = fault.New(fault.Invalid, "backfill: found %d to %d; expected two revisions in their order", from, to)
	}
	if err != nil {
		return Archive{}, err
	}
	return s.edit(ctx, name, true, func(tx *table.Tx, a *archiveRow) error {
		switch {
		case a.First == 0 || to >= a.First:
			return fault.New(fault.Conflict, "backfill: the archive %s begins at revision %d; only earlier ones can "+
				"be filled in", name, a.First)
		case a.Watermark < a.First: // until then an earlier one can become the first
			return fault.New(fault.Conflict, "backfill: revision %d, at which the archive %s begins, is not planned "+
				"yet; try again when it is, or notify the earlier ones", a.First, name)
		case a.Backfill != nil:
			return fault.New(fault.Conflict, "backfill: one goes on, up to revision %d", a.Backfill.To)
		}
		a.Backfill = &backfill{Next: from, To: to, Latest: map[string]int64{}}
		return s.commitArchive(ctx, tx, a, "archive.backfilled", by, Changed{Mode: a.Archive.Mode, Why: by.Reason,
			First: from, To: to})
	})
}

// checkTask returns an Invalid for what is no name of a task.
func checkTask(name string) error {
	if len(name) > 60 || strings.ContainsAny(name, "/#:") || name == "" {
		return fault.New(fault.Invalid, "task: found %q; expected the name of a task", definition.Clip(name, 60))
	}
	return nil
}
