package revision

import (
	"context"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/revisions/archive"
	"archivist/pkg/revisions/workflow"
)

// Preview is what a revision would plan. It is JSON of the function that makes it.
type Preview struct {
	Revision int64
	Problems []workflow.Problem // if there are any, it would plan only COMMIT
	Tasks    []workflow.Planned // COMMIT first
}

// Preview reads a revision from the archive, and says what it would plan if it were the next one; 0
// is the newest revision. It changes nothing. A revision that is planned already is a Conflict, and
// a number that none can have an Invalid, also 0 of an archive that is empty; other errors are
// those of archive.Source. A definition that is wrong is no error, but has problems.
func (s *Store) Preview(ctx context.Context, name string, n int64) (out Preview, err error) {
	a, src, err := s.opened(ctx, name)
	if err != nil {
		return out, err
	}

	// Also for a revision that is named: what is kept of the archive can be old.
	head, err := src.Head(ctx)
	if err != nil {
		return out, err
	}

	if n == 0 {
		n = head
	}

	err = Notice{Revision: n}.Check()
	if err != nil {
		return out, err
	}

	if a.First > 0 && n >= a.First && n <= a.Watermark {
		return out, fault.New(fault.Conflict,
			"revision %d of %s is planned: read its plan", n, name)
	}

	out.Revision = n
	def, problems, err := definitionAt(ctx, src, a.Name, n)
	if err != nil || len(problems) > 0 {
		out.Problems = keptProblems(problems)
		return out, err
	}

	out.Tasks = workflow.Plan(def, n, func(task string) (int64, bool) {
		// The plan is a pure function, which cannot fail: an error is kept for the end.
		at, failed := s.nearest(ctx, a, n, task)
		if failed != nil {
			err = failed
		}
		return at, at > 0
	})
	return out, err
}

// opened opens an archive that is known. Where archives cannot be read (Open is nil), it is an
// Unavailable.
func (s *Store) opened(ctx context.Context, name string) (*archiveRow, archive.Source, error) {
	a, err := s.known(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	if s.Open == nil {
		return nil, nil, fault.New(fault.Unavailable, "archives cannot be read here")
	}
	src, err := s.Open(ctx, a.Location)
	return a, src, err
}

// nearest is the nearest revision before one that has planned a task, 0 if none has. n is not
// planned: so what is known of a task is of revisions before it.
func (s *Store) nearest(ctx context.Context, a *archiveRow, n int64, task string) (int64, error) {
	switch {
	case a.First == 0 || n < a.First:
		return 0, nil // a back-fill begins with nothing
	case task == workflow.Commit && n > a.First:
		return n - 1, nil
	case task == workflow.Commit:
		return 0, nil
	}
	r, err := s.nameRow(ctx, a.Ref(), task)
	return r.Latest, err
}
