package archives

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"archivist/cmd/archivist/command"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/terminal"
)

// Of what is shown of an archive.
const (
	watchedRows = 10 // revisions, the newest
	// One request reads so many; the newest come first, so a failure of an older one is not seen here.
	watchedTasks = 100
)

// watchArchive shows the tasks of the newest revisions until the archive is quiet. A look is three requests: the
// archive, its newest revision, and its newest tasks. They are not one moment, but the next look corrects that; only
// the last one decides.
func watchArchive(a *command.App, archive string) error {
	err := waitsForItself(a, archive, 0)
	if err != nil {
		return err
	}

	seen := map[string]bool{} // tasks that had not ended
	return a.Watch(func() (command.Snapshot, error) {
		got, err := a.Client.Archive(a.Ctx, archive)
		if err != nil {
			return command.Snapshot{}, err
		}
		newest, err := a.Client.Revisions(a.Ctx, archive, 1)
		if err != nil {
			return command.Snapshot{}, err
		}
		tasks, err := a.Client.Tasks(a.Ctx, archive, v1.TaskFilter{Limit: watchedTasks})
		return snapshotOfArchive(got, newest, tasks, seen), err
	})
}

// waitsForItself refuses that a run waits for its own revision of an archive, or for a later one: it would wait
// until its time-out. 0 stands for all that goes on in the archive. The runner says in the environment of a task
// of which archive and revision it is.
func waitsForItself(a *command.App, archive string, n int64) error {
	own, err := strconv.ParseInt(a.Getenv("ARCHIVIST_REVISION"), 10, 64)
	// Outside of a run none of these variables is set, or they are those of another archive.
	isRun := err == nil && a.Getenv("ARCHIVIST_RUN_TOKEN") != "" &&
		a.Getenv("ARCHIVIST_ARCHIVE") == archive
	if !isRun || n > 0 && n < own {
		return nil
	}

	what := "the archive"
	if n > 0 {
		what = fmt.Sprintf("revision %d", n)
	}
	return fault.New(fault.Conflict,
		"this is a run of revision %d of %s: if it waited for %s, it would wait for "+
			"itself", own, archive, what)
}

// snapshotOfArchive summarizes an archive. It adds tasks that have not ended to seen: only such a task can fail the
// command, since a failure of long ago is no news. It is over when all that was notified is planned and has
// ended; of an archive that is not active, when nothing runs.
func snapshotOfArchive(x v1.ArchiveStatus, newest []v1.ArchiveRevision, tasks []v1.Task,
	seen map[string]bool) command.Snapshot {
	s := command.Snapshot{Things: []any{x}, Rows: rowsOf(tasks), Text: textOfArchive(x)}
	s.State = s.Text + strings.Join(s.Rows, "")
	var failed []string
	for _, t := range tasks {
		if !v1.TaskEnded(t.State) {
			seen[t.ID] = true
		}
		if t.State == "failed" && seen[t.ID] && !t.AllowFailure {
			failed = append(failed, terminal.Printable(t.ID))
		}
	}

	s.Failed = failedTasks(failed)
	if x.Mode != "active" { // nothing more is planned or started
		s.Over = len(x.RunningNow) == 0
		return s
	}

	// A revision before the first that is planned has no tasks, so nothing is waited for.
	planned := len(newest) == 0 || newest[0].Revision <= x.Watermark || newest[0].State == "before"
	if planned && !x.More && x.Backfill == nil {
		s.Over = len(x.Open) == 0
		waitForPerson(&s, tasks, sum(x.Open))
	}
	return s
}

// sum is how many tasks there are in all states.
func sum(by map[string]int) (n int) {
	for _, of := range by {
		n += of
	}
	return n
}

// waitForPerson ends a watch in which nothing goes on any more until a person starts a task: every task that has not
// ended is such a one, or waits for one. open is their number, of which tasks may have a part only.
func waitForPerson(s *command.Snapshot, tasks []v1.Task, open int) {
	held := map[string]bool{} // by id
	for known := -1; known < len(held); {
		known = len(held)
		for _, t := range tasks {
			if waitsForPerson(t, held) {
				held[t.ID] = true
			}
		}
	}

	at := slices.IndexFunc(tasks, func(t v1.Task) bool { return t.State == "manual" })
	if at < 0 || len(held) < open {
		return
	}
	s.Over = true
	s.Text += "; a person is to go on: archivist archive task start " + terminal.Printable(tasks[at].ID) +
		" --reason TEXT"
}

// waitsForPerson reports whether a task waits for a person, or for one of those that do.
func waitsForPerson(t v1.Task, held map[string]bool) bool {
	return t.State == "manual" || t.State == "blocked" && slices.ContainsFunc(t.Edges,
		func(e v1.TaskEdge) bool { return e.Verdict == "open" && held[e.ID] })
}

// textOfArchive is an archive in a line: how far it is planned, how many tasks are in each state, and why it
// does not go on.
func textOfArchive(x v1.ArchiveStatus) string {
	text := []string{fmt.Sprintf("%s is planned up to revision %d", x.Name, x.Watermark)}
	for _, state := range v1.TaskStates {
		if n := x.Open[state]; n > 0 {
			text = append(text, fmt.Sprintf("%d %s", n, state))
		}
	}

	switch {
	case x.Mode != "active":
		text = append(text, x.Mode+": "+x.Why)
	case x.Trouble != nil:
		text = append(text, x.Trouble.Reason)
	case x.Gap != nil:
		text = append(text, fmt.Sprintf("revision %d is missing", x.Gap.Missing))
	}
	return strings.Join(text, ", ")
}

// failedTasks is the error for failed tasks, with the command that shows the reason of the first; nil for none.
func failedTasks(ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	return fault.New(fault.Conflict, "%s failed; archivist archive task logs %s shows why",
		strings.Join(ids, ", "), ids[0])
}

// rowsOf has a row for each of the newest revisions, the newest at the end, where a terminal scrolls to. COMMIT
// is in every revision and not shown.
func rowsOf(tasks []v1.Task) (rows []string) {
	byRevision := map[int64][]string{}
	name := map[int64]string{}
	for _, t := range tasks {
		name[t.Revision] = strings.SplitN(t.ID, "/", 3)[0] + fmt.Sprintf("/%d", t.Revision)
		if t.Name != "COMMIT" {
			byRevision[t.Revision] = append(byRevision[t.Revision], taskText(t))
		}
	}

	// By number: a map has no order.
	var numbers []int64
	for n := range name {
		numbers = append(numbers, n)
	}

	slices.Sort(numbers)
	for _, n := range numbers[max(0, len(numbers)-watchedRows):] {
		text := "no tasks"
		if len(byRevision[n]) > 0 {
			text = strings.Join(byRevision[n], ", ")
		}
		rows = append(rows, name[n]+"  "+text)
	}
	return rows
}

// taskText is a task and its state, with its number if it is a run by hand or by schedule.
func taskText(t v1.Task) string {
	if t.Run > 0 {
		return fmt.Sprintf("%s (run %d) %s", t.Name, t.Run, t.State)
	}
	return t.Name + " " + t.State
}
