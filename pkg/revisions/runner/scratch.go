package runner

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/gofrs/flock"

	"archivist/pkg/kernel/fault"
)

const (
	scratchName = "archivist-run-"
	gateName    = "archivist-runs.lock"
	lockName    = "lock"
)

// folder is the scratch folder of one call. The processes of the run have its checkout in their
// environment: so they are found again, whatever group they have joined. Its parts are folders in
// dir, which only their owner can enter.
type folder struct {
	dir                          string
	checkout, work, tmp, outputs string
	inputs                       string
	lock                         *flock.Flock // held as long as the call goes on
}

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
		return fault.New(fault.Unavailable, "runner: what an earlier run has left cannot be removed: %w", err)
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

// at is the folder at a path, with its parts. Nothing is made or locked.
func at(dir string) *folder {
	return &folder{
		dir:      dir,
		checkout: filepath.Join(dir, "checkout"),
		inputs:   filepath.Join(dir, "inputs"),
		work:     filepath.Join(dir, "work"),
		tmp:      filepath.Join(dir, "tmp"),
		outputs:  filepath.Join(dir, "outputs"),
		lock:     flock.New(filepath.Join(dir, lockName)),
	}
}

// remove ends what still runs in the folder and removes it, also what is read-only: the task can
// have made folders that even their owner cannot enter. What cannot be removed is logged; the next
// tidy tries again.
func (f *folder) remove(log *slog.Logger) {
	f.sweep()
	err := removeAll(f.dir)
	if err != nil {
		log.Error("a scratch folder could not be removed", "folder", f.dir, "error", err)
	}

	_ = f.lock.Close()
}

// sweep ends all processes that have the folder in their environment. It looks again until there is
// none: one can start another in the meantime. A process that has cleared its environment is not
// found. After 20 looks it gives up: who starts processes faster than they are ended would keep it
// for ever.
func (f *folder) sweep() {
	mark := f.mark()
	for range 20 {
		found := false
		for _, pid := range processes() {
			data, err := os.ReadFile("/proc/" + pid + "/environ")
			n, _ := strconv.Atoi(pid)
			if err == nil && slices.Contains(strings.Split(string(data), "\x00"), mark) {
				found = syscall.Kill(n, syscall.SIGKILL) == nil || found
			}
		}

		if !found {
			return
		}
	}
}

// mark is the variable by which processes are known.
func (f *folder) mark() string { return "ARCHIVIST_CHECKOUT=" + f.checkout }
