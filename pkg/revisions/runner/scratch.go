package runner

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"

	"archivist/pkg/kernel/fault"
)

const (
	scratchName = "archivist-run-"
	gateName    = "archivist-runs.lock"
)

// scratch makes the folder of a call, and locks it: the lock goes with the process, so a folder
// whose lock is free is of one that has died.
func (r *Runner) scratch() (f *folder, err error) {
	err = r.alone(func() error {
		dir, err := os.MkdirTemp(r.Dir, scratchName)
		if err != nil {
			return err
		}
		f = at(dir)
		_, err = f.lock.TryLock()
		return err
	})
	if err != nil {
		return nil, err
	}

	for _, part := range []string{f.checkout, f.inputs, f.work, f.tmp, f.outputs} {
		if err := os.Mkdir(part, 0o700); err != nil {
			f.remove(r.Log)
			return nil, err
		}
	}
	return f, nil
}

// tidy removes the folders of calls whose process has died, which a function that is used again can
// find, and ends what they left running.
func (r *Runner) tidy() error {
	if _, err := r.Sandbox.empty(); err != nil {
		return fault.New(fault.Unavailable,
			"runner: what an earlier run has left cannot be removed: %w", err)
	}

	return r.alone(func() error {
		old, err := filepath.Glob(filepath.Join(r.Dir, scratchName+"*"))
		for _, dir := range old {
			f := at(dir)
			if free, err := f.lock.TryLock(); err == nil && !free {
				continue // of a call that goes on
			}
			r.Log.Warn("a run had died here; what it left is removed", "folder", dir)
			f.remove(r.Log)
		}
		return err
	})
}

// alone does something while no other call in Dir does: nobody looks at a folder that has no lock
// yet. Errors are of the file system. In a sandbox with a folder of its own there is no other call.
func (r *Runner) alone(do func() error) error {
	if r.Sandbox != nil && r.Sandbox.Dir != "" {
		return do()
	}

	gate := flock.New(filepath.Join(r.Dir, gateName))
	err := gate.Lock()
	if err != nil {
		return err
	}
	return errors.Join(do(), gate.Unlock())
}
