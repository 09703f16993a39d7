package runner

import (
	"os"
	"slices"
	"strconv"
	"strings"
)

// processes are the ids of all processes, as /proc names them; none where there is no /proc.
func processes() (pids []string) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		if name := e.Name(); name[0] >= '1' && name[0] <= '9' {
			pids = append(pids, name)
		}
	}
	return pids
}

// lives reports whether a group has a process that has not ended. One that has ended and waits for
// its parent still has the group, so the kernel's own answer is of no use. Where there is no /proc
// the answer is no.
func lives(group int) bool {
	return slices.ContainsFunc(processes(), func(pid string) bool {
		data, _ := os.ReadFile("/proc/" + pid + "/stat")
		_, rest, _ := strings.Cut(string(data[strings.LastIndexByte(string(data), ')')+1:]), " ")
		fields := strings.Fields(rest) // state, parent, group, … ("proc_pid_stat(5)")
		return len(fields) > 2 && fields[0] != "Z" && fields[0] != "X" &&
			fields[2] == strconv.Itoa(group)
	})
}
