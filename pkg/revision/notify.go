package revision

import (
	"context"
	"fmt"
	"strings"
	"unicode"

	"archivist/pkg/definition"
	"archivist/pkg/envelope"
	"archivist/pkg/event"
	"archivist/pkg/fault"
	"archivist/pkg/table"
)

// MetricStopped counts archives that were stopped because a revision became another.
const MetricStopped = "ArchivesStopped"

// Notice says that a revision was committed: all that a hook says.
type Notice struct {
	Revision    int64
	Transaction string // which revision it is, "" if the hook does not know
	Token       string // of the run that made it, "" for none
	Object      string // the object whose version it is, "" for a revision of whatever the archive is
}

// Check returns an Invalid if the notice cannot be kept.
func (n Notice) Check() error {
	switch {
	case n.Revision < 1 || n.Revision > MaxRevision:
		return fault.New(fault.Invalid, "revision: found %d; expected 1 to %d", n.Revision, int64(MaxRevision))
	case len(n.Transaction) > MaxTransaction || strings.ContainsFunc(n.Transaction, isSpace):
		return fault.New(fault.Invalid, "transaction: found %q; expected at most %d bytes without blanks",
			definition.Clip(n.Transaction, 60), MaxTransaction)
	}
	return nil
}

func isSpace(r rune) bool {
	return unicode.IsSpace(r) || unicode.IsControl(r) || r == unicode.ReplacementChar
}

// Known is the detail of revision.notified.
type Known struct {
	Transaction string `json:"transaction,omitempty"`
	State       string `json:"state"`
	MadeBy      string `json:"madeBy,omitempty"`
}

// Notify records that a revision was committed. The same notice again changes nothing, and the order of notices
// does not matter. The same revision with another transaction stops the archive and is a Conflict: its
// revisions were replaced, for example from a backup, and a person decides.
func (s *Store) Notify(ctx context.Context, archive string, n Notice, by By) (Revision, error) {
	err := n.Check()
	if err != nil {
		return Revision{}, err
	}
	for range maxTries {
		var r Revision
		r, err = s.tryNotify(ctx, archive, n, by)
		if !fault.Is(err, fault.Stale) {
			if err == nil {
				s.wake(ctx, archive)
			}
			return r, err
		}
	}
	return Revision{}, fault.New(fault.Unavailable, "the archive %s keeps changing; try again in a moment (%v)",
		archive, err)
}

func (s *Store) tryNotify(ctx context.Context, name string, n Notice, by By) (Revision, error) {
	a, err := s.known(ctx, name)
	if err != nil {
		return Revision{}, err
	}
	if a.Archive.Mode == Deleting {
		return Revision{}, fault.New(fault.Conflict, "the archive %s is being deleted", name)
	}
	if n.Object != "" && n.Object != a.Location.ARK {
		return Revision{}, fault.New(fault.Conflict, "the archive %s is not that of %s any more", name, n.Object)
	}
	r, err := s.revisionRow(ctx, a.Ref(), n.Revision)
	if err != nil {
		return Revision{}, err
	}
	if r.Rev > 0 {
		return r.Revision, s.again(ctx, a, r, n, by)
	}
	maker, err := s.maker(ctx, a.Ref(), n.Token)
	if err != nil {
		return Revision{}, err
	}
	r.State, r.Transaction, r.Notified = Notified, n.Transaction, s.now()
	r.made(maker)
	tx := s.Table.Begin(s.NewID())
	movable := a.First == 0
	if n.Revision < a.First && a.Baseline == 0 {
		movable, err = s.movable(ctx, tx, a)
	}
	switch {
	case err != nil:
	case movable:
		a.First, a.Watermark = n.Revision, n.Revision-1
		err = saveArchive(tx, a)
	case n.Revision < a.First:
		r.State = Before
		fallthrough
	default:
		tx.Require(a.Key(), "first_n = ? AND archive_mode <> ?", a.First, string(Deleting))
	}
	if err != nil {
		return Revision{}, err
	}
	return r.Revision, s.insertRevision(ctx, tx, r, by)
}

// movable reports whether another revision can become the first one: it is not being planned yet. The transaction then
// depends on that.
func (s *Store) movable(ctx context.Context, tx *table.Tx, a *archiveRow) (bool, error) {
	if a.First == 0 {
		return true, nil
	}
	r, err := s.revisionRow(ctx, a.Ref(), a.First)
	if err != nil || a.Watermark >= a.First || r.Rev > 0 && r.State != Notified {
		return false, err
	}
	if r.Rev == 0 {
		tx.Require(r.Key(), "attribute_not_exists(pk)")
	} else {
		tx.Require(r.Key(), "rev = ?", r.Rev)
	}
	return true, nil
}

// insertRevision writes a revision that was not known.
func (s *Store) insertRevision(ctx context.Context, tx *table.Tx, r *revisionRow, by By) error {
	err := s.putRevision(tx, r, "revision.notified", by)
	if err != nil {
		return err
	}
	s.raise(tx, archiveOf(r.Archive))
	return tx.Commit(ctx)
}

// putRevision puts a revision and its event into a transaction, and a new one into the line of those to be planned.
func (s *Store) putRevision(tx *table.Tx, r *revisionRow, eventType string, by By) error {
	if r.Rev == 0 && r.State != Before {
		k := planKey(r.Archive, r.Revision.Number)
		tx.Insert(&lineRow{Head: headOf(k), Owner: revisionID(r.Archive, r.Revision.Number)})
	}
	err := r.event(tx, eventType, s.now(), by, Known{r.Transaction, r.State, r.MadeBy})
	if err == nil {
		err = saveRevision(tx, r)
	}
	return err
}

func planKey(ref string, n int64) table.Key {
	return table.Key{PK: linePK(archiveOf(ref)), SK: fmt.Sprintf("%s#%s#%012d", toPlan, ref, n)}
}

// event adds an event about the revision.
func (r *revisionRow) event(tx *table.Tx, eventType string, now int64, by By, detail any) error {
	r.Number++
	actor := by.Actor
	if actor == "" {
		actor = manager
	}
	return event.Append(tx, revisionSubject(revisionID(r.Archive, r.Revision.Number)), r.Number, event.New{
		Type: eventType, Time: now, Detail: detail, Actor: actor, Component: manager,
		Parents: []envelope.Ref{{Type: event.Archive.String(), ID: archiveOf(r.Archive)}}})
}

// again is a notice of a revision that is known.
func (s *Store) again(ctx context.Context, a *archiveRow, r *revisionRow, n Notice, by By) error {
	if n.Transaction == "" || n.Transaction == r.Transaction {
		return nil
	}
	if r.Transaction == "" && r.State == Notified {
		r.Transaction = n.Transaction
		tx := s.Table.Begin(s.NewID())
		err := saveRevision(tx, r)
		if err != nil {
			return err
		}
		return tx.Commit(ctx)
	}
	if r.Transaction == "" {
		return nil // it was planned before anybody said which one it is
	}
	return s.stop(ctx, a, fmt.Sprintf("revision %d was %s and is now %s", n.Revision, r.Transaction, n.Transaction), by)
}

// stop stops an archive of which a revision has become another. It returns a Conflict if it could.
func (s *Store) stop(ctx context.Context, a *archiveRow, why string, by By) error {
	conflict := fault.New(fault.Conflict, "the archive %s is stopped: %s. Was it restored from a backup? Resume it as "+
		"it is, or from a revision on", a.Name, why)
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

// made keeps who made a revision.
func (r *Revision) made(by *Instance) {
	if by == nil {
		return
	}
	r.MadeBy = by.ID
	chain := append(append([]string{}, by.Chain...), by.Task)
	r.Chain = chain[max(0, len(chain)-MaxChain):]
}

// token is that of the runs of an instance.
func (in *Instance) token() string { return in.ID + ":" + in.Secret }

// maker is the instance whose run has a token, nil for no token. A token that is not one of the archive is
// Denied.
func (s *Store) maker(ctx context.Context, ref, token string) (*Instance, error) {
	if token == "" {
		return nil, nil
	}
	id, secret, _ := strings.Cut(token, ":")
	denied := fault.New(fault.Denied, "the token is not one of a run in the archive %s", archiveOf(ref))
	if secret == "" || len(id) > maxID || !strings.HasPrefix(id, ref+"/") {
		return nil, denied
	}
	r, err := s.found(ctx, id)
	if err == nil && (r.State == "" || !equal(r.Secret, secret)) {
		err = denied
	}
	return &r.Instance, err
}

// maxID is how long the id of an instance can be, in bytes.
const maxID = 200
