package runner

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// prSetChildSubreaper is PR_SET_CHILD_SUBREAPER ("prctl(2)").
const prSetChildSubreaper = 36

// Contain makes this process the sandbox of the tasks that it runs. A process whose parent has ended becomes a child of
// this one, and not of the first process of the system, where nobody could tell it from others. It is for the whole
// process, and is not undone; a process that starts others than tasks must not ask for it.
func Contain() (*Sandbox, error) {
	_, _, code := syscall.RawSyscall(syscall.SYS_PRCTL, prSetChildSubreaper, 1, 0)
	if code != 0 {
		return nil, code
	}
	return &Sandbox{}, nil
}

// endBelow ends all processes below one, and reports how many there were, and whether none is left. They are stopped
// before they are ended: who is stopped starts no other one. One whose parent ends becomes a child of this process,
// and is found by the next look.
func endBelow(pid, looks int) (ended int, all bool) {
	known := map[int]bool{}
	for range looks {
		pids := below(pid)
		if len(pids) == 0 {
			return len(known), true
		}

		for _, signal := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGKILL} {
			for _, p := range pids {
				known[p] = true
				_ = syscall.Kill(p, signal)
			}
		}
		time.Sleep(time.Millisecond)
	}
	return len(known), false
}

// below are the processes below one that have not ended. Children of this process that have ended are forgotten: only
// their parent can do that.
func below(pid int) (pids []int) {
	children := map[int][]int{}
	for _, text := range processes() {
		p, _ := strconv.Atoi(text)
		state, parent := statOf(text)
		switch {
		case state == "Z" && parent == os.Getpid():
			_, _ = syscall.Wait4(p, nil, syscall.WNOHANG, nil)
		case state != "Z" && state != "X":
			children[parent] = append(children[parent], p)
		}
	}

	for todo := []int{pid}; len(todo) > 0; {
		next := children[todo[0]]
		pids, todo = append(pids, next...), append(todo[1:], next...)
	}
	return pids
}

// statOf is the state of a process and its parent ("proc_pid_stat(5)"); "X" and 0 if there is none.
func statOf(pid string) (state string, parent int) {
	data, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return "X", 0
	}

	_, rest, _ := strings.Cut(string(data[strings.LastIndexByte(string(data), ')')+1:]), " ")
	fields := strings.Fields(rest)
	if len(fields) < 2 {
		return "X", 0
	}
	parent, _ = strconv.Atoi(fields[1])
	return fields[0], parent
}
