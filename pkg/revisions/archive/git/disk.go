package git

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/go-git/go-billy/v5/osfs"
	gogit "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// onDisk is a repository that is read in place: a bare one, or the folder .git of another.
type onDisk struct {
	source *Source
	root   string
}

// path is the folder with the objects.
func (o onDisk) path() string {
	inside := filepath.Join(o.root, ".git")
	if info, err := os.Stat(inside); err == nil && info.IsDir() {
		return inside
	}
	return o.root
}

// tip reads the branch where it is.
func (o onDisk) tip(context.Context) (plumbing.Hash, error) { return o.source.tipIn(o.path()) }

// fetch has nothing to do.
func (o onDisk) fetch(context.Context, *store, plumbing.Hash, []plumbing.Hash) error { return nil }

// tipIn is the last commit of the branch in a folder that has the references and the configuration
// of a repository. Zero if there is no branch at all: the repository has no commits yet.
func (s *Source) tipIn(folder string) (plumbing.Hash, error) {
	if _, err := os.Stat(filepath.Join(folder, "HEAD")); err != nil {
		return plumbing.ZeroHash, s.invalid("is not a Git repository: it has no file HEAD")
	}

	r, err := gogit.Open(filesystem.NewStorage(osfs.New(folder, osfs.WithBoundOS()),
		cache.NewObjectLRUDefault()), nil)
	if err != nil {
		return plumbing.ZeroHash, s.invalid("cannot be read: %w", err)
	}

	ref, err := r.Reference(plumbing.NewBranchReferenceName(s.location.Branch), true)
	if err == nil {
		return ref.Hash(), nil
	}

	if !errors.Is(err, plumbing.ErrReferenceNotFound) {
		return plumbing.ZeroHash, s.invalid("is damaged: the branch %s: %w", s.location.Branch, err)
	}

	branches, err := r.Branches()
	if err != nil {
		return plumbing.ZeroHash, s.invalid("is damaged: its branches: %w", err)
	}

	defer branches.Close()
	if _, err := branches.Next(); err == nil {
		return plumbing.ZeroHash, s.noBranch()
	}
	return plumbing.ZeroHash, nil
}
