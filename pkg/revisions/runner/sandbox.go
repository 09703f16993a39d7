package runner

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// Sandbox is a process that runs nothing but tasks, one call after another, with a temporary folder of its own: as
// a function has it. Between two calls nothing of a task is left in it: no process, and no file. Tasks run as the user
// of the process, so nothing that is kept in files or in an environment protects the next one; this does not need
// either.
//
// A process below this one cannot leave it: whoever loses its parent becomes a child of this process (Contain).
type Sandbox struct {
	// The temporary folder, if nobody else's files are in it: it is emptied. "": only scratch folders are removed,
	// as on an emulator, where functions share the folder of the machine.
	Dir string

	mu   sync.Mutex
	left string // what a task had left, or why it cannot be removed
}

// mostLooks is how often a call looks for processes that a task has left: some start others while they are ended.
const mostLooks = 1000

// Left says what the tasks so far have left behind, "" if nothing. A process in which something was left is not used
// again: who has left one thing on purpose may have left another that nobody looks for.
func (s *Sandbox) Left() string {
	if s == nil {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.left
}

// note adds to what was left.
func (s *Sandbox) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left != "" {
		s.left += "; "
	}
	s.left += fmt.Sprintf(format, args...)
}

// end ends every process that a task has started. It is for the time when the process of the task itself has ended.
func (s *Sandbox) end() {
	if s == nil {
		return
	}

	ended, all := endBelow(os.Getpid(), mostLooks)
	if ended > 0 {
		s.note("%d processes", ended)
	}
	if !all {
		s.note("processes that start others faster than they are ended")
	}
}

// empty removes all that is in the folder. An error says what cannot be removed.
func (s *Sandbox) empty() (removed []string, err error) {
	if s == nil || s.Dir == "" {
		return nil, nil
	}

	entries, err := os.ReadDir(s.Dir)
	for _, e := range entries {
		removed = append(removed, e.Name())
		if err := removeAll(filepath.Join(s.Dir, e.Name())); err != nil {
			return removed, err
		}
	}
	return removed, err
}

// leave makes the sandbox as it was before the call: the scratch folder is removed before.
func (s *Sandbox) leave() {
	if s == nil {
		return
	}

	s.end()
	removed, err := s.empty()
	if len(removed) > 0 {
		s.note("files: %.200s", strings.Join(removed, ", "))
	}
	if err != nil {
		s.note("files that cannot be removed: %v", err)
	}
}

// removeAll removes a folder or a file, also what is read-only: a task can have made folders that even their owner
// cannot enter.
func removeAll(path string) error {
	_ = filepath.WalkDir(path, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = os.Chmod(path, 0o700) // before it is read
		}
		return nil
	})
	return os.RemoveAll(path)
}
