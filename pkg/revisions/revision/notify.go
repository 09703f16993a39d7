package revision

import (
	"context"
	"crypto/subtle"
	"fmt"
	"strings"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// Notify records that a revision was committed. The same notice again changes nothing, and the
// order of notices does not matter: the requirement says that hooks of Subversion may come in any.
// Planning is done by a pass, in the order of revisions.
//
// The same revision with another transaction makes the next pass ask the archive itself, and stops it if
// that says so: its revisions were replaced, for example from a backup, and a person decides. A version of
// an object with another digest stops it at once, and is a Conflict. So is a notice for an archive that is
// being deleted, or that is of another object by now. A notice that cannot be kept is an
// Invalid, an archive that does not exist a NotFound, a token that is not of one of its runs a
// Denied. An Unavailable may be repeated.
func (s *Store) Notify(ctx context.Context, archive string, n Notice, by By) (r Revision, err error) {
	err = n.Check()
	if err != nil {
		return Revision{}, err
	}

	err = s.Table.Again(ctx, "the archive "+archive, func() error {
		r, err = s.tryNotify(ctx, archive, n, by)
		return err
	})
	if err == nil {
		s.wake(ctx, archive)
	}
	return r, err
}

// tryNotify makes one try. A Stale means that the archive or the revision has changed since it was
// read.
//
// A revision that nobody knew is written with a row in the line of those to be planned, unless it
// is before the first one: only a back-fill plans that. The first notice of an archive decides
// where it begins; an earlier one moves that as long as nothing is planned, unless people have set
// where it begins.
func (s *Store) tryNotify(ctx context.Context, name string, n Notice, by By) (Revision, error) {
	a, err := s.known(ctx, name)
	if err != nil {
		return Revision{}, err
	}

	if a.Archive.Mode == Deleting {
		return Revision{}, fault.New(fault.Conflict, "the archive %s is being deleted", name)
	}

	if n.Object != "" && n.Object != a.Location.ARK {
		return Revision{},
			fault.New(fault.Conflict, "the archive %s is not that of %s any more", name, n.Object)
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

	if n.Revision > a.ahead() {
		return Revision{}, s.tooFar(ctx, a, n.Revision)
	}

	r.State, r.Transaction, r.Notified = Notified, n.Transaction, s.now()
	r.made(maker)
	tx := s.Table.Begin(s.NewID())
	err = s.placeNotice(ctx, tx, a, r)
	if err != nil {
		return Revision{}, err
	}
	return r.Revision, s.insertRevision(ctx, tx, r, by)
}

// placeNotice puts into the transaction what a notice changes of its archive. If the first
// revision can move, it moves. Else the archive itself is not written: so notices do not disturb a
// pass, or each other.
func (s *Store) placeNotice(ctx context.Context, tx *table.Tx, a *archiveRow,
	r *revisionRow) error {
	n, movable := r.Revision.Number, a.First == 0
	if n < a.First && a.Baseline == 0 {
		is, err := s.movable(ctx, tx, a)
		if err != nil {
			return err
		}
		movable = is
	}

	if movable {
		err := s.beginAt(ctx, a, n)
		if err != nil {
			return err
		}
		return saveArchive(tx, a)
	}

	if n < a.First {
		r.State = Before
	}
	tx.Require(a.Key(), "first_n = ? AND archive_mode <> ?", a.First, string(Deleting))
	return nil
}

// beginAt lets an archive of which nothing is planned begin at revision n, or at an earlier one
// that was notified: people can have taken back the baseline under which it was. Until a first one
// is set, each notice writes the archive: so none can be overlooked.
func (s *Store) beginAt(ctx context.Context, a *archiveRow, n int64) error {
	earliest, err := s.first(ctx, table.Query{
		PK:   linePK(a.Name),
		From: planKey(a.Ref(), 0).SK,
		To:   planKey(a.Ref(), n).SK,
	})
	if err != nil {
		return err
	}

	if earliest != "" {
		_, n = splitRevision(earliest)
	}
	a.First, a.Watermark = n, n-1
	return nil
}

// aheadMost is how far beyond the newest known revision one can be notified.
const aheadMost = 10_000

// ahead is the last revision that can be notified: any, as long as none is known.
func (a *archiveRow) ahead() int64 {
	known := max(a.Newest, a.Watermark)
	if known == 0 {
		return MaxRevision
	}
	return known + aheadMost
}

// tooFar refuses a notice that would leave a gap for ever, or for very long. The archive itself is asked soon, unless
// it was just asked: what it has is notified then.
func (s *Store) tooFar(ctx context.Context, a *archiveRow, n int64) error {
	refused := fault.New(fault.Conflict,
		"revision %d is more than %d ahead of the newest that is known, %d; what the "+
			"archive %s has is found when it is asked the next time", n, aheadMost, max(a.Newest, a.Watermark), a.Name)
	if s.now()-a.Looked < s.Times.Gap.Milliseconds() {
		return refused
	}

	a.Looked = 0
	tx := s.Table.Begin(s.NewID())
	err := saveArchive(tx, a)
	if err != nil {
		return err
	}

	s.raise(tx, a.Name)
	err = tx.Commit(ctx)
	if err != nil {
		return err
	}

	s.wake(ctx, a.Name)
	return refused
}

// movable reports whether another revision can become the first one: it is not being planned yet.
// The transaction then depends on that: a pass that fixes the plan of the first revision meanwhile
// lets it fail (and the other way round: see fix).
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

// insertRevision writes a revision that was not known, and commits. A Stale means that it is known
// by now, or that the archive has changed.
func (s *Store) insertRevision(ctx context.Context, tx *table.Tx, r *revisionRow, by By) error {
	err := s.putRevision(tx, r, "revision.notified", by)
	if err != nil {
		return err
	}
	s.raise(tx, archiveOf(r.Archive))
	return tx.Commit(ctx)
}

// putRevision puts a revision and its event into a transaction, and a new one into the line of
// those to be planned.
func (s *Store) putRevision(tx *table.Tx, r *revisionRow, eventType string, by By) error {
	if r.Rev == 0 && r.State != Before {
		k := planKey(r.Archive, r.Revision.Number)
		tx.Insert(&lineRow{Head: headOf(k), Owner: revisionID(r.Archive, r.Revision.Number)})
	}
	err := r.event(tx, eventType, s.now(), by, Known{r.Transaction, r.State, r.MadeBy})
	if err != nil {
		return err
	}
	return saveRevision(tx, r)
}

// planKey is the place of a revision in the line of those to be planned. A revision that waits
// behind a gap is found there: see gap.
func planKey(ref string, n int64) table.Key {
	return table.Key{PK: linePK(archiveOf(ref)), SK: fmt.Sprintf("%s#%s#%012d", toPlan, ref, n)}
}

// again is a notice of a revision that is known. One that says nothing new changes nothing. One
// that says for the first time which revision it is, before that is planned, is kept: it is
// compared with the archive later. Another transaction than the planned one is a doubt: the archive
// itself is asked, since anybody with the key of a notifier can be wrong. Before the revision is planned, the
// archive is asked in any case.
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

	// An event of ours is independent of what is stored.
	if n.Object != "" && r.Transaction != "" {
		return s.stop(ctx, a, becameAnother(n.Revision, r.Transaction, n.Transaction), by)
	}

	if !r.isPlanned() || r.Transaction == "" || a.Archive.Mode == Stopped || a.Doubt == n.Revision {
		return nil
	}
	return s.doubt(ctx, a, n.Revision)
}

// doubt makes the next pass ask the archive for a planned revision.
func (s *Store) doubt(ctx context.Context, a *archiveRow, n int64) error {
	a.Doubt, a.Missed = n, 0
	tx := s.Table.Begin(s.NewID())
	err := saveArchive(tx, a)
	if err != nil {
		return err
	}

	s.raise(tx, a.Name)
	return tx.Commit(ctx)
}

// made keeps who made a revision, and the tasks that led to it: those that led to the revision of
// its maker, and the maker's own. nil: nobody is known to have.
func (r *Revision) made(by *Instance) {
	if by == nil {
		return
	}
	r.MadeBy = by.ID
	chain := append(append([]string{}, by.Chain...), by.Task)
	r.Chain = chain[max(0, len(chain)-MaxChain):]
}

// maker is the instance whose run has a token, nil for no token. A token that is not one of the
// archive, in this epoch, is Denied; all of these errors are the same, so that nothing is learnt of
// what instances there are.
func (s *Store) maker(ctx context.Context, ref, token string) (*Instance, error) {
	if token == "" {
		return nil, nil
	}

	id, secret, _ := strings.Cut(token, ":")
	denied := fault.New(fault.Denied, "the token is not one of a run in the archive %s",
		archiveOf(ref))
	if secret == "" || len(id) > maxID || !strings.HasPrefix(id, ref+"/") {
		return nil, denied
	}

	r, err := s.found(ctx, id)
	if err != nil {
		return &r.Instance, err
	}

	if r.State == "" || !equal(r.Secret, secret) {
		return &r.Instance, denied
	}
	return &r.Instance, nil
}

// equal compares secrets in a time that does not depend on where they differ. An instance that has
// never run has none, which equals nothing.
func equal(a, b string) bool {
	return a != "" &&
		subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1
}
