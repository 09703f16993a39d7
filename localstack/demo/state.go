package demo

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"

	"archivist/pkg/kernel/bucket/buckettest"
	"archivist/pkg/kernel/table/tabletest"
)

// state is what a demo has on disk: in the folder of --keep everything that is to be there tomorrow, else in a
// temporary folder what is not in memory. The table is always in memory; a kept one is written to a journal as
// well.
type state struct {
	dir string
	// scratch is a temporary folder, for what no later demo needs. Without --keep it is dir, too.
	scratch string
	kept    bool
	// lock is nil unless the state is kept.
	lock    *flock.Flock
	log     *os.File
	table   *tabletest.Fake
	buckets *buckettest.Twin
}

// openState opens the state in a folder, or an empty one in a temporary folder if keep is "". After an error
// nothing is open and no temporary folder is left.
func openState(keep string) (s *state, err error) {
	s = &state{kept: keep != "", table: tabletest.New()}
	s.scratch, err = os.MkdirTemp("", "archivist-demo-")
	if err != nil {
		return nil, err
	}

	err = s.open(keep)
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// open makes the folders, reads what an earlier demo has left if the state is kept, and opens the log. What it has
// opened before an error is closed by close.
func (s *state) open(keep string) (err error) {
	s.dir = s.scratch
	if s.kept {
		s.dir, err = filepath.Abs(keep)
		if err != nil {
			return err
		}
	}

	// For Git repositories, programs of the user, and the content of buckets.
	for _, name := range []string{"repositories", "functions", "content"} {
		err = os.MkdirAll(s.path(name), 0o700)
		if err != nil {
			return err
		}
	}

	s.buckets = buckettest.New(s.path("content"))
	if s.kept {
		err = s.keep()
		if err != nil {
			return err
		}
	}

	s.log, err = file(s.path("demo.log"))
	return err
}

// keep reads what an earlier demo has left in the folder, and keeps what follows. Only one demo can do so: two
// would write the same files. The lock ends with the process, also by a crash.
func (s *state) keep() error {
	s.lock = flock.New(s.path("lock"))
	free, err := s.lock.TryLock()
	if err != nil {
		return err
	}
	if !free {
		return fmt.Errorf("another demo uses the folder %s; stop it, or name another folder with --keep", s.dir)
	}
	return errors.Join(s.table.Keep(s.path("table.jsonl")), s.buckets.Keep(s.path("buckets.jsonl")))
}

// path is a path in the folder of the state.
func (s *state) path(parts ...string) string {
	return filepath.Join(append([]string{s.dir}, parts...)...)
}

// close closes what is open, which may be only a part, and removes the temporary folder.
func (s *state) close() (err error) {
	err = s.table.Close()
	if s.buckets != nil {
		err = errors.Join(err, s.buckets.Close())
	}

	if s.log != nil {
		err = errors.Join(err, s.log.Close())
	}

	if s.lock != nil {
		err = errors.Join(err, s.lock.Close())
	}
	return errors.Join(err, os.RemoveAll(s.scratch))
}

// file opens a file that is written anew, and that only the user can read.
func file(path string) (*os.File, error) {
	return os.OpenFile(filepath.Clean(path), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
}
