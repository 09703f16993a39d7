// Package git reads Git repositories as archives: the first parents of a branch are its revisions,
// counted from 1 at the root; the transaction is the hash of the commit.
//
// A repository is read by smart HTTP, from a bucket that has the files of a bare one, or in place
// on a disk. What comes from elsewhere is kept in a cache: a folder that several processes may use,
// that is bounded in size, and that is made anew when it is damaged. A repository is asked for
// something new only when Head is asked, or a revision that is not known yet. So a history that was
// rewritten is seen when Head is asked the next time: then the same number has another transaction.
//
// The numbers of revisions are in a file of the cache, the hashes of their commits one after the
// other: so revision n is found without walking through the history. It is only ever extended, or
// replaced as a whole.
//
// Links and submodules are not followed: a link is made in a checkout if it stays inside, a
// submodule is left out and noted. Files are as they are stored: no end of line is changed, and no
// filter (as of Git LFS) is run. Repositories with SHA-256 hashes cannot be read.
package git

import (
	"context"
	"net/url"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/revisions/archive"
	"archivist/pkg/revisions/workflow"
)

// Open is the branch at a location, which has been checked. It asks nothing of the repository.
func Open(l archive.Location, d Deps) (*Source, error) {
	u, err := url.Parse(l.URL)
	if err != nil {
		return nil, fault.New(fault.Invalid, "url: it cannot be read as a URL")
	}

	if d.Most == 0 {
		d.Most = MostCached
	}

	s := &Source{location: l, deps: d, folder: folderOf(d.Cache, l)}
	switch u.Scheme {
	case "file":
		place := onDisk{s, u.Path}
		s.remote, s.folder.repository = place, place.path()
	case "s3":
		s.remote = inBucket{s, d.Bucket(u.Host), bucketPrefix(u.Path)}
	default:
		s.remote = &overHTTP{source: s}
	}
	return s, nil
}

// bucketPrefix is the path of an s3:// URL as a prefix of keys: "" or ending in a slash.
func bucketPrefix(path string) string {
	path = strings.Trim(path, "/")
	if path == "" {
		return ""
	}
	return path + "/"
}

// Head asks the repository, and fetches what is new.
func (s *Source) Head(ctx context.Context) (head int64, err error) {
	err = s.with(ctx, func(r *store) error {
		err := s.update(ctx, r)
		head = r.count()
		return err
	})
	return head, err
}

// Revision reads a commit.
func (s *Source) Revision(ctx context.Context, n int64) (r archive.Revision, err error) {
	err = s.at(ctx, n, func(st *store, hash plumbing.Hash) error {
		c, err := st.commit(hash)
		if err != nil {
			return err
		}

		r = archive.Revision{
			Number:      n,
			Transaction: hash.String(),
			Time:        c.Committer.When.UTC(),
			Author: archive.Cut(strings.TrimSpace(c.Author.Name+" <"+c.Author.Email+">"),
				archive.MaxAuthor),
			Message: archive.Cut(c.Message, archive.MaxMessage),
			Token:   archive.Token(c.Message),
		}
		return nil
	})
	return r, err
}

// Workflows reads the files of definitions of a commit.
func (s *Source) Workflows(ctx context.Context, n int64) (files []workflow.File, err error) {
	err = s.at(ctx, n, func(st *store, hash plumbing.Hash) error {
		var found archive.Workflows
		err := st.definitions(ctx, hash, &found)
		files = found.Sorted()
		return err
	})
	return files, err
}

// Changed compares the trees of two commits.
func (s *Source) Changed(ctx context.Context, base, n int64) (paths []string, err error) {
	err = s.at(ctx, n, func(st *store, hash plumbing.Hash) error {
		from, err := s.hash(ctx, st, base)
		if err != nil {
			return err
		}
		paths, err = st.changed(ctx, from, hash)
		return err
	})
	return paths, err
}

// Checkout writes the files of a commit. If the cache turns out to be damaged on the way, it is
// made anew, and the checkout begins again.
func (s *Source) Checkout(ctx context.Context, n int64, folder string) error {
	again := false
	return s.at(ctx, n, func(st *store, hash plumbing.Hash) error {
		if again { // the cache was damaged: what there is of the checkout is not complete
			if err := empty(folder); err != nil {
				return err
			}
		}
		again = true
		return st.checkout(ctx, hash, folder)
	})
}

// at calls f with the commit of a revision. It may call it twice: see with.
func (s *Source) at(ctx context.Context, n int64, f func(*store, plumbing.Hash) error) error {
	return s.with(ctx, func(st *store) error {
		if n < 1 {
			return archive.Missing(s.location, n, st.count())
		}
		hash, err := s.hash(ctx, st, n)
		if err != nil {
			return err
		}
		return f(st, hash)
	})
}

// hash is the commit of a revision; that of 0, the empty archive, is zero. The repository is asked
// only for a revision that is not known. One that does not exist is a NotFound.
func (s *Source) hash(ctx context.Context, st *store, n int64) (plumbing.Hash, error) {
	if n == 0 {
		return plumbing.ZeroHash, nil
	}

	if n > st.count() {
		if err := s.update(ctx, st); err != nil {
			return plumbing.ZeroHash, err
		}
	}

	if n < 0 || n > st.count() {
		return plumbing.ZeroHash, archive.Missing(s.location, n, st.count())
	}
	return st.revision(n)
}

// update asks the repository for what is new. The list of revisions is extended only when all
// objects are there: a crash before that leaves objects that nobody names.
func (s *Source) update(ctx context.Context, st *store) error {
	tip, err := s.remote.tip(ctx)
	if err != nil || tip == st.last() {
		return err
	}

	if tip.IsZero() {
		return st.rewrite(nil)
	}

	if err := s.remote.fetch(ctx, st, tip, st.some()); err != nil {
		return err
	}

	if err := s.folder.bound(s.deps.Most); err != nil {
		return err
	}
	return st.extend(ctx, tip)
}
