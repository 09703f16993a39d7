package runner

import (
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/gofrs/flock"
)

const lockName = "lock"

// folder is the scratch folder of one call. The processes of the run have its checkout in their
// environment: so they are found again, whatever group they have joined. Its parts are folders in
// dir, which only their owner can enter.
type folder struct {
	dir                          string
	checkout, work, tmp, outputs string
	inputs                       string
	lock                         *flock.Flock // held as long as the call goes on
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

// readOnly takes the right to write from all files and folders below a folder: what a task makes is
// never taken for a file of the revision. Programs stay executable; links are left, and not
// followed.
func readOnly(folder string) error {
	return filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Type()&fs.ModeSymlink != 0 {
			return err
		}

		info, err := d.Info()
		if err != nil {
			return err
		}

		mode := fs.FileMode(0o444)
		if d.IsDir() || info.Mode()&0o111 != 0 {
			mode = 0o555
		}
		return os.Chmod(path, mode)
	})
}
