package console

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/fault"
)

// task is the page of a task.
type task struct {
	v1.TaskDetails
	Ref    string // the archive by its name
	Why    *v1.Explanation
	WhyNot string
	Awaits []awaited
	Shown  int // the attempt whose output is shown; 0 = none has begun
	Output []v1.TaskLogPart
	Begin  string // the address of the begin of the output, if it is not shown
	Before string // that of what comes before the part that is shown
	Later  string // that of what comes after it
	Newest string // that of the end, if it is not shown
	Tail   bool   // the end is shown, and followed
	Files  []taskFile
	More   string // that of more files
	Deeds  []deedOffer
	Events []v1.Event
	Older  string
}

// awaited is what a task waits for, or has waited for.
type awaited struct {
	v1.TaskEdge
	Page string // "" = there is none yet
}

// taskFile is a file that a task has left.
type taskFile struct {
	v1.TaskOutput
	At string // where it is read
}

// showTask shows a task of a revision: what it waits for, its attempts, what its program has written and left, and what
// can be done.
func (c *Console) showTask(v *visit) (view, error) {
	id := v.field("id")
	if id == "" {
		return view{}, fault.New(fault.Invalid,
			"id: it names a task, e.g. maps/12/index, and is missing")
	}
	one, err := v.api.Task(v.Context(), id)
	if err != nil {
		return view{}, err
	}
	t := task{TaskDetails: one, Ref: plainArchive(one.Archive), Deeds: v.deedsOn("task",
		[]string{one.State}, id)}
	if one.Name == commit {
		t.Deeds = nil
	}
	if !v1.TaskEnded(one.State) {
		why, err := v.api.Explain(v.Context(), id)
		t.Why = &why
		if err != nil {
			t.Why, t.WhyNot = nil, err.Error()
		}
	}
	for _, e := range one.Edges {
		a := awaited{TaskEdge: e}
		if e.ID != "" {
			a.Page = subjectPage("Task", e.ID)
		}
		t.Awaits = append(t.Awaits, a)
	}
	if len(one.Attempts) > 0 {
		if err := t.attempt(v); err != nil {
			return view{}, err
		}
	}
	log, err := pageOf[v1.Event](v, "/v1/task/events", v.field("events"), "id", id)
	t.Events, t.Older = log.Items, v.more("events", log.Cursor)
	return view{Title: "Task " + id, Body: t, Moving: !v1.TaskEnded(one.State),
		Command: "archivist archive task show " + quoted(id),
		Said:    "The task is " + one.State + ". " + one.Reason}, err
}

// mostOfLog is how many characters of the output are on a page that begins at a place.
const mostOfLog = 60_000

// attempt adds the output of an attempt and the files that it has left: of the last one, or of that in the address.
func (t *task) attempt(v *visit) error {
	t.Shown = t.Attempts[len(t.Attempts)-1].Attempt
	if n, err := strconv.Atoi(v.field("attempt")); err == nil {
		if !slices.ContainsFunc(t.Attempts, func(a v1.TaskAttempt) bool { return a.Attempt == n }) {
			return fault.New(fault.NotFound, "the task has no attempt %d", n)
		}
		t.Shown = n
	}
	if err := t.output(v); err != nil {
		return err
	}
	files, err := pageOf[v1.TaskOutput](v, "/v1/task/outputs", v.field("files"), "id", t.ID,
		"attempt",
		strconv.Itoa(t.Shown))
	for _, f := range files.Items {
		t.Files = append(t.Files, taskFile{f, "task/output?" + query("id", t.ID, "attempt",
			strconv.Itoa(t.Shown),
			"path", f.Path)})
	}
	t.More = v.more("files", files.Cursor)
	return err
}

// begin is the part of the output before the first one.
const begin = "000000"

// output adds a part of the output: its end, or what is from a part of it on, or before one.
func (t *task) output(v *visit) error {
	from, before := v.field("from"), v.field("until")
	// The attempt is named: a place in its output means another one in that of the next attempt.
	at := func(name, value string) string {
		return "?" + query("id", t.ID, "attempt", strconv.Itoa(t.Shown), name, value)
	}
	if from != "" || before != "" {
		t.Newest = at("", "")
	}
	if from != "" {
		part, skip, _ := strings.Cut(from, ".")
		log, err := v.api.TaskLog(v.Context(), t.ID, t.Shown, part)
		if err != nil {
			return err
		}
		n, _ := strconv.Atoi(skip)
		t.page(log, part, min(max(n, 0), len(log.Parts)), at)
		if from != begin {
			t.Begin = at("from", begin)
		}
		return nil
	}

	log, err := v.api.TaskLogBefore(v.Context(), t.ID, t.Shown, before)
	if err != nil {
		return err
	}
	t.Output, t.Tail = log.Parts, before == ""
	if log.First != "" {
		t.Begin, t.Before = at("from", begin), at("until", log.First)
	}
	if before != "" {
		t.Later = at("from", log.Next)
	}
	return nil
}

// page takes a part of the output that a page has place for, from the nth line of an answer on.
func (t *task) page(log v1.TaskLog, from string, n int, at func(name, value string) string) {
	size, i := 0, n
	for i < len(log.Parts) && size < mostOfLog {
		size += len(log.Parts[i].Text) + 1
		i++
	}
	t.Output = log.Parts[n:i]
	switch {
	case i < len(log.Parts):
		t.Later = at("from", from+"."+strconv.Itoa(i))
	case !log.Ended && size > 0: // an answer ends anywhere: what it has says not whether more follows
		t.Later = at("from", log.Next)
	}
}

// taskOutput leads to a file that a task has left, in the storage.
func (c *Console) taskOutput(v *visit) error {
	to, err := v.follow("/v1/task/output?" + query("id", v.field("id"), "attempt",
		v.field("attempt"), "path",
		v.field("path")))
	if err != nil {
		return err
	}
	v.w.Header().Set("Location", to)
	v.w.WriteHeader(http.StatusFound)
	return nil
}
