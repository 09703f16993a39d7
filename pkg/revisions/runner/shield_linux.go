package runner

import "syscall"

// prSetDumpable is PR_SET_DUMPABLE ("prctl(2)").
const prSetDumpable = 4

// Shield hides the memory and the environment of this process from others of its user, so that a
// task cannot read the credentials of the function in /proc. It is for the whole process, and is
// not undone.
func Shield() error {
	_, _, code := syscall.RawSyscall(syscall.SYS_PRCTL, prSetDumpable, 0, 0)
	if code != 0 {
		return code
	}
	return nil
}
