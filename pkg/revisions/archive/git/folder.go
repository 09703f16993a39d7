package git

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gofrs/flock"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/revisions/archive"
)

// folder is the part of a cache that belongs to one branch of one repository. Below it are
// repository, which has the objects, and list, which has the commits of the revisions. Next to it
// is a file that is locked by who uses it: it outlives the folder, so that a lock is never one of a
// file that is gone.
type folder struct {
	path       string
	repository string // elsewhere, if it is read in place
}

// Names in a cache.
const (
	repositoryName = "repository"
	listName       = "revisions"
	usedName       = "used" // its time is that of the last use
	lockSuffix     = ".lock"
)

// folderOf is the folder of a location. Its name has a digest of all that decides what is read: two
// archives with other secrets do not share what one of them may not see.
func folderOf(cache string, l archive.Location) folder {
	sum := sha256.Sum256([]byte(l.URL + "\n" + l.Branch + "\n" + l.Secret))
	path := filepath.Join(cache, hex.EncodeToString(sum[:16]))
	return folder{path: path, repository: filepath.Join(path, repositoryName)}
}

// inPlace reports whether the repository is read where it is: then the folder has only the list.
func (f folder) inPlace() bool { return filepath.Dir(f.repository) != f.path }

// lockTries is how often it is tried to lock a folder that another process uses.
const lockTries = 50 * time.Millisecond

// lock waits until nobody else uses the folder, or the context ends (an Unavailable).
func (f folder) lock(ctx context.Context) (*flock.Flock, error) {
	if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return nil, fault.New(fault.Unavailable, "the cache of repositories: %w", err)
	}
	l := flock.New(f.path + lockSuffix)
	if _, err := l.TryLockContext(ctx, lockTries); err != nil {
		return nil, fault.New(fault.Unavailable,
			"another process uses the cache of the repository: %w", err)
	}
	return l, nil
}

// ready makes the folder, notes that it is used now, and reads the list of revisions. The error is
// an os.ErrNotExist if there is no list yet.
func (f folder) ready(list string) ([]byte, error) {
	err := f.clean()
	if err != nil {
		return nil, err
	}

	err = os.MkdirAll(f.path, 0o700)
	if err != nil {
		return nil, err
	}

	if !f.inPlace() {
		err = os.MkdirAll(filepath.Join(f.repository, "objects", "pack"), 0o700)
		if err != nil {
			return nil, err
		}
	}

	err = os.WriteFile(filepath.Join(f.path, usedName), nil, 0o600)
	if err != nil {
		return nil, err
	}
	return os.ReadFile(list)
}

// bound removes what was not used for the longest time, until the cache has at most so many bytes.
// This folder stays; if it alone is too large, that is an Invalid. Others that are in use stay,
// too.
func (f folder) bound(most int64) error {
	entries, err := os.ReadDir(filepath.Dir(f.path))
	if err != nil {
		return fault.New(fault.Unavailable, "the cache of repositories: %w", err)
	}

	type other struct {
		path string
		size int64
		used time.Time
	}

	var others []other
	total := size(f.path)
	for _, e := range entries {
		path := filepath.Join(filepath.Dir(f.path), e.Name())
		info, err := os.Stat(filepath.Join(path, usedName))
		// Without the file it is a lock, or something else that is not ours.
		if path != f.path && err == nil {
			others = append(others, other{path, size(path), info.ModTime()})
			total += others[len(others)-1].size
		}
	}

	slices.SortFunc(others, func(a, b other) int { return a.used.Compare(b.used) })
	for _, o := range others {
		if total > most && remove(o.path) {
			total -= o.size
		}
	}

	if size(f.path) > most {
		return fault.New(fault.Invalid,
			"the repository has more than %d bytes, which is the limit", most)
	}
	return nil
}

// remove removes a part of a cache that nobody uses now. It reports whether it did.
func remove(path string) bool {
	l := flock.New(path + lockSuffix)
	locked, err := l.TryLock()
	if err != nil || !locked {
		return false
	}
	defer l.Unlock()
	return os.RemoveAll(path) == nil
}

// size is how many bytes the files below a folder have; what cannot be read counts nothing.
func size(folder string) (bytes int64) {
	_ = filepath.WalkDir(folder, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil
		}
		info, err := d.Info()
		if err == nil {
			bytes += info.Size()
		}
		return nil
	})
	return bytes
}

// empty removes what is in a folder, and leaves the folder.
func empty(folder string) error {
	entries, err := os.ReadDir(folder)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(folder, e.Name())))
	}
	if err != nil {
		return fault.New(fault.Unavailable, "the folder of a checkout: %w", err)
	}
	return nil
}

// mostPacks is how many packs there may be: each fetch adds one, and each is looked through for an
// object.
const mostPacks = 50

// clean removes what a crash left, and everything if there are so many packs that the repository is
// better fetched anew. What is read in place is never touched.
func (f folder) clean() error {
	if f.inPlace() {
		return nil
	}

	left, _ := filepath.Glob(filepath.Join(f.path, partPattern))
	packs, _ := filepath.Glob(filepath.Join(f.repository, "objects", "pack", "*.pack"))
	begun, _ := filepath.Glob(filepath.Join(f.repository, "objects", "pack", "tmp_*"))
	left = append(left, begun...)
	if len(packs) > mostPacks {
		left = []string{f.path}
	}

	var err error
	for _, path := range left {
		err = errors.Join(err, os.RemoveAll(path))
	}
	return err
}

// partPattern is the form of the names of files that are being written.
const partPattern = "part-*"
