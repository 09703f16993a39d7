package git

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"archivist/pkg/kernel/fault"
)

// with calls f with the repository as it is in the cache, and once more with an empty cache if it
// is damaged: f may be called twice, and must begin anew then. If it is still damaged, the
// repository itself is: an Invalid. If the time is up, the error is an Unavailable, whatever it
// was.
func (s *Source) with(ctx context.Context, f func(*store) error) error {
	lock, err := s.folder.lock(ctx)
	if err != nil {
		return err
	}

	defer lock.Unlock()
	err = s.try(f)
	if errors.Is(err, errDamaged) && ctx.Err() == nil {
		if err := os.RemoveAll(s.folder.path); err != nil {
			return fault.New(fault.Unavailable, "the cache of the repository: %w", err)
		}
		err = s.try(f)
	}

	if err != nil && ctx.Err() != nil {
		return fault.New(fault.Unavailable, "%s: the time was up: %w", s.location, ctx.Err())
	}
	return err
}

// try calls f. Damaged files of a repository can make its reader panic.
func (s *Source) try(f func(*store) error) (err error) {
	st, err := s.open()
	if err != nil {
		return err
	}
	defer func() {
		if p := recover(); p != nil {
			err = st.damaged("%v", p)
		}
	}()
	return f(st)
}

// open opens the folder of the repository; if it is in a cache, it is made if it is missing. Errors
// are of the disk: an Unavailable.
func (s *Source) open() (*store, error) {
	st := &store{source: s, location: s.location, list: filepath.Join(s.folder.path, listName)}
	var err error
	st.hashes, err = s.folder.ready(st.list)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fault.New(fault.Unavailable, "the cache of the repository: %w", err)
	}

	st.hashes = st.hashes[:len(st.hashes)/hashSize*hashSize] // a crash can leave a part of a hash
	st.reopen()
	return st, nil
}
