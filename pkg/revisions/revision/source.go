package revision

import (
	"context"
	"fmt"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/revisions/archive"
)

// sourceAt opens an archive to read a revision, which is known as a transaction, "" if it is not
// known yet. A function keeps what it has read of a repository, and that can be older than a change
// of the history. So the archive itself is asked unless the revision is the expected one. If it is
// another, the error is a Conflict. Else errors are those of archive.Source.
func (s *Store) sourceAt(ctx context.Context, a *archiveRow, n int64,
	transaction string) (archive.Source,
	archive.Revision, error) {
	src, err := s.Open(ctx, a.Location)
	if err != nil {
		return nil, archive.Revision{}, err
	}

	rev, err := src.Revision(ctx, n)
	if err != nil {
		return src, rev, err
	}

	if rev.Transaction != transaction {
		rev, err = freshly(ctx, src, n, rev)
		if err != nil {
			return src, rev, err
		}
	}

	if transaction != "" && rev.Transaction != transaction {
		err = fault.New(fault.Conflict, "revision %d was notified as %s and is %s", n, transaction,
			rev.Transaction)
	}
	return src, rev, err
}

// freshly reads a revision again after the archive itself was asked: Head is what brings what is
// kept of it up to date. kept is the revision as it was read before; it is returned beside an error
// of Head.
func freshly(ctx context.Context, src archive.Source, n int64,
	kept archive.Revision) (archive.Revision, error) {
	_, err := src.Head(ctx)
	if err != nil {
		return kept, err
	}
	return src.Revision(ctx, n)
}

// plannedAt opens an archive to read a revision that is planned. The error is a Conflict if the
// history of the archive has changed since: its files are not those that the plan is of, so they
// are not to be packed or compared.
func (s *Store) plannedAt(ctx context.Context, a *archiveRow, ref string,
	n int64) (archive.Source, error) {
	r, err := s.revisionRow(ctx, ref, n)
	if err != nil {
		return nil, err
	}
	src, _, err := s.sourceAt(ctx, a, n, r.Transaction)
	return src, err
}

// sameAs stops an archive whose planned revision has become another: its history was rewritten, or the repository was
// restored. It is asked for the revision before one that is planned, and for the newest one at each look, since a
// rewritten history need not be notified from its first new revision on. One that is not planned yet is compared when
// it is.
func (p *pass) sameAs(ctx context.Context, a *archiveRow, src archive.Source, ref string, n int64) error {
	r, err := p.revisionRow(ctx, ref, n)
	if err != nil || r.Transaction == "" || !r.isPlanned() {
		return err
	}

	rev, err := src.Revision(ctx, n)
	if err == nil && rev.Transaction != r.Transaction {
		rev, err = freshly(ctx, src, n, rev)
	}

	if err != nil || rev.Transaction == r.Transaction {
		return err
	}
	return p.stop(ctx, a, becameAnother(n, r.Transaction, rev.Transaction), By{})
}

// isPlanned reports whether the archive itself has said which revision it is.
func (r *revisionRow) isPlanned() bool {
	switch r.State {
	case Planning, Committed, Invalid:
		return true
	}
	return false
}

// becameAnother is why an archive is stopped.
func becameAnother(n int64, was, is string) string {
	return fmt.Sprintf("revision %d was %s and is now %s", n, was, is)
}
