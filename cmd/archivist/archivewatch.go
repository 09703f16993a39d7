package main

import (
	"fmt"
	"slices"
	"strings"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/fault"
	"archivist/pkg/terminal"
)

// archiveWatchCmd follows an archive.
type archiveWatchCmd struct{ archiveName }

func (archiveWatchCmd) prints() any { return v1.ArchiveStatus{} }

// Help says when it ends.
func (archiveWatchCmd) Help() string {
	return `It ends when all that was notified is planned, and all tasks have ended. If the archive is paused or stopped, it
ends when nothing runs any more.

The exit code is 4 if a task that was seen to be waiting or to run has failed.`
}

// Of what is shown of an archive.
const (
	watchedRows  = 10  // revisions, the newest
	watchedTasks = 100 // one request reads them
)

// Run shows the tasks of the newest revisions.
func (c *archiveWatchCmd) Run(a *app) error {
	err := a.waitsForItself(c.Archive, 0)
	if err != nil {
		return err
	}
	seen := map[string]bool{} // tasks that had not ended
	return a.watch(func() (sight, error) {
		got, err := a.client.Archive(a.ctx, c.Archive)
		if err != nil {
			return sight{}, err
		}
		newest, err := a.client.Revisions(a.ctx, c.Archive, 1)
		if err != nil {
			return sight{}, err
		}
		tasks, err := a.client.Tasks(a.ctx, c.Archive, v1.TaskFilter{Limit: watchedTasks})
		return sightOfArchive(got, newest, tasks, seen), err
	})
}

// sightOfArchive summarizes an archive. It adds tasks that have not ended to seen.
func sightOfArchive(x v1.ArchiveStatus, newest []v1.ArchiveRevision, tasks []v1.Task, seen map[string]bool) sight {
	s := sight{things: []any{x}, rows: rowsOf(tasks), text: textOfArchive(x)}
	s.state = s.text + strings.Join(s.rows, "")
	planned := len(newest) == 0 || newest[0].Revision <= x.Watermark || newest[0].State == "before"
	s.over = planned && len(x.Open) == 0 && !x.More && x.Backfill == nil
	if x.Mode != "active" {
		s.over = len(x.RunningNow) == 0
	}
	var failed []string
	for _, t := range tasks {
		if !v1.TaskEnded(t.State) {
			seen[t.ID] = true
		}
		if t.State == "failed" && seen[t.ID] {
			failed = append(failed, terminal.Printable(t.ID))
		}
	}
	s.failed = failedTasks(failed)
	return s
}

// textOfArchive is an archive in a line.
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

// failedTasks is the error for failed tasks, with the command that shows the reason.
func failedTasks(ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	return fault.New(fault.Conflict, "%s failed; archivist task logs %s shows why", strings.Join(ids, ", "), ids[0])
}

// rowsOf has a row for each of the newest revisions, the newest at the end.
func rowsOf(tasks []v1.Task) (rows []string) {
	byRevision := map[int64][]string{}
	name := map[int64]string{}
	for _, t := range tasks {
		name[t.Revision] = strings.SplitN(t.ID, "/", 3)[0] + fmt.Sprintf("/%d", t.Revision)
		if t.Name != "COMMIT" {
			byRevision[t.Revision] = append(byRevision[t.Revision], taskText(t))
		}
	}
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

// taskText is a task and its state.
func taskText(t v1.Task) string {
	if t.Run > 0 {
		return fmt.Sprintf("%s (run %d) %s", t.Name, t.Run, t.State)
	}
	return t.Name + " " + t.State
}
