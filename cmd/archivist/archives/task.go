package archives

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"archivist/cmd/archivist/command"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/terminal"
)

// taskCmd is for the tasks of archives.
type taskCmd struct {
	List    taskListCmd    `cmd:"" help:"List the tasks of an archive, those of the newest revision first."`
	Show    taskShowCmd    `cmd:"" help:"Show a task with its attempts."`
	Logs    taskLogsCmd    `cmd:"" help:"Show what the programs of a task have written."`
	Outputs taskOutputsCmd `cmd:"" help:"List the files that a task has left."`
	Output  taskOutputCmd  `cmd:"" help:"Write a file that a task has left to the standard output."`
	Run     taskRunCmd     `cmd:"" help:"Run a task."`
	Start   taskStartCmd   `cmd:"" help:"Start a task that waits for a person."`
	Rerun   taskRerunCmd   `cmd:"" help:"Run a task again that has ended, or all that has failed."`
	Cancel  taskCancelCmd  `cmd:"" help:"End a task. One that runs is asked to stop, and has a minute."`
}

// taskArg is the argument of most commands: ARCHIVE/REVISION/NAME and, of a run by hand or by schedule, its
// number.
type taskArg struct {
	ID string `arg:"" name:"task" help:"Id of a task, e.g. maps/12/index."`
}

// attemptFlag selects an attempt, counted from 1; 0 is the newest.
type attemptFlag struct {
	Attempt int `help:"Number of the attempt. By default the newest." placeholder:"N"`
}

// taskListCmd lists tasks.
type taskListCmd struct {
	archiveName
	command.Limit
	Revision int64  `help:"Only those of this revision." placeholder:"N"`
	Task     string `help:"Only those of this name." placeholder:"NAME"`
	State    string `help:"Only those in this state." placeholder:"STATE"`
}

func (taskListCmd) Prints() any { return v1.Task{} }

// Run lists those of the newest revision first. The filters are joined by AND.
func (c *taskListCmd) Run(a *command.App) error {
	return command.List(a, c.Limit, taskColumns...)(a.Client.Tasks(a.Ctx, c.Archive, v1.TaskFilter{
		Revision: c.Revision,
		Task:     c.Task,
		State:    c.State,
		Limit:    c.More(),
	}))
}

// taskColumns show since when each task is in its state, and why.
var taskColumns = []terminal.Column[v1.Task]{
	{Title: "task", Text: func(t v1.Task) string { return t.ID }},
	{Title: "state", Text: func(t v1.Task) string { return t.State }},
	{
		Title: "since",
		Text:  func(t v1.Task) string { return command.Minute(t.Since) },
		Raw:   func(t v1.Task) string { return t.Since },
	},
	{Title: "why", Text: func(t v1.Task) string { return t.Reason }, Share: 1},
}

// taskShowCmd shows a task.
type taskShowCmd struct{ taskArg }

func (taskShowCmd) Prints() any { return v1.TaskDetails{} }

// Run shows one task.
func (c *taskShowCmd) Run(a *command.App) error {
	got, err := a.Client.Task(a.Ctx, c.ID)
	if err != nil {
		return err
	}
	return a.Print(got, func(p terminal.Page) {
		fieldsOfTask(p, got.Task)
		terminal.Table(p, got.Attempts, attemptColumns...)
	})
}

// fieldsOfTask prints a task with what it waits for, or waited for: the end that is needed, and what became of
// that.
func fieldsOfTask(p terminal.Page, t v1.Task) {
	p.Fields("task", t.ID, "state", t.State, "since", t.Since, "why", t.Reason, "cause", t.Root,
		"by", t.By,
		"started by", cmp.Or(t.Starter, t.Trigger), "waits for", waitsFor(t), "after", t.After, "lock", t.Lock)
	for _, name := range slices.Sorted(maps.Keys(t.Parameters)) {
		p.Fields("parameter", name+"="+t.Parameters[name])
	}

	for _, e := range t.Edges {
		p.Fields("waits for", fmt.Sprintf("%s to be %s: %s", edgeOf(e), e.On, e.Verdict))
	}

	for _, in := range t.Inputs {
		none := "none"
		if t.Attempt == 0 && t.Run == 0 {
			none = "known when it starts"
		}
		p.Fields("input", in.Name+": "+cmp.Or(in.ID, none))
	}

	p.Fields("then", strings.Join(t.Follow, ", "))
	for _, why := range t.Left {
		p.Fields("left", why)
	}
}

// edgeOf is the other task of an edge, by its id or, if there is none, by its name.
func edgeOf(e v1.TaskEdge) string {
	if e.ID == "" {
		return e.Task
	}
	return e.ID
}

// attemptColumns show when each attempt ran, and how it ended.
var attemptColumns = []terminal.Column[v1.TaskAttempt]{
	{Title: "attempt", Text: func(t v1.TaskAttempt) string { return strconv.Itoa(t.Attempt) }},
	{
		Title: "began",
		Text:  func(t v1.TaskAttempt) string { return command.Minute(t.Began) },
		Raw:   func(t v1.TaskAttempt) string { return t.Began },
	},
	{
		Title: "ended",
		Text:  func(t v1.TaskAttempt) string { return command.Minute(t.Ended) },
		Raw:   func(t v1.TaskAttempt) string { return t.Ended },
	},
	{Title: "end", Text: func(t v1.TaskAttempt) string { return t.End }},
	{Title: "why", Text: func(t v1.TaskAttempt) string { return t.Reason }, Share: 1},
}

// taskLogsCmd shows the output of a task, while it runs and afterwards.
type taskLogsCmd struct {
	taskArg
	attemptFlag
	Last bool `help:"Begin with the newest output: the last 64 KiB or so."`
	command.Followed
}

// Run writes what comes to the standard output, as the programs wrote it, with both of their streams. Without
// --watch it ends with what there is. While it follows, the attempt stays the same, even if another one begins.
func (c *taskLogsCmd) Run(a *command.App) error {
	from := ""
	for n := 0; ; n++ {
		got, err := c.page(a, from)
		if err != nil {
			return err
		}

		for _, part := range got.Parts {
			_, err := io.WriteString(a.Out, part.Text)
			if err != nil {
				return err
			}
		}

		more := len(got.Parts) > 0
		// From now on the attempt is named, not "the newest".
		from, c.Attempt = got.Next, got.Attempt
		if got.Ended || !more && !c.Watch {
			return nil
		}

		// There may be another page at once; only an empty one is waited after.
		if more {
			n = 0
			continue
		}

		err = a.Wait(a.Ctx, command.Pause(n))
		if err != nil {
			return err
		}
	}
}

// page reads a page: it has parts from a place on; the place of the next one is known even at the end.
func (c *taskLogsCmd) page(a *command.App, from string) (v1.TaskLog, error) {
	if c.Last && from == "" {
		return a.Client.TaskLogBefore(a.Ctx, c.ID, c.Attempt, "")
	}
	return a.Client.TaskLog(a.Ctx, c.ID, c.Attempt, from)
}

// taskOutputsCmd lists the files that a task has left as its result.
type taskOutputsCmd struct {
	taskArg
	attemptFlag
}

func (taskOutputsCmd) Prints() any { return v1.TaskOutput{} }

// Run lists the files with their sizes in bytes.
func (c *taskOutputsCmd) Run(a *command.App) error {
	return command.List(a, command.Limit{}, outputColumns...)(a.Client.TaskOutputs(a.Ctx, c.ID, c.Attempt))
}

// outputColumns show the path of each file, and its size in bytes.
var outputColumns = []terminal.Column[v1.TaskOutput]{
	{Title: "file", Text: func(o v1.TaskOutput) string { return o.Path }, Share: 1},
	{Title: "bytes", Text: func(o v1.TaskOutput) string { return strconv.FormatInt(o.Size, 10) }},
}

// taskOutputCmd writes an output.
type taskOutputCmd struct {
	taskArg
	attemptFlag
	Path string `arg:"" help:"Path of the file."`
}

// Run writes the content of the file, unchanged.
func (c *taskOutputCmd) Run(a *command.App) error {
	body, err := a.Client.TaskOutput(a.Ctx, c.ID, c.Attempt, c.Path)
	if err != nil {
		return err
	}
	defer body.Close()
	_, err = io.Copy(a.Out, body)
	return err
}

// waitsFor is the person that a task waits for.
func waitsFor(t v1.Task) string {
	if t.State == "manual" {
		return t.Manual
	}
	return ""
}

// values are those of parameters.
type values struct {
	Set map[string]string `help:"Value of a parameter; can be repeated." mapsep:"none" placeholder:"NAME=VALUE"`
}

// taskRunCmd runs a task by hand, at a revision. The run has a number, and does not replace the task that the
// revision has planned.
type taskRunCmd struct {
	archiveName
	Task     string `arg:"" help:"Name of a task."`
	Revision int64  `help:"Revision at which it is run. By default the newest that is planned." placeholder:"N"`
	// Only of a task of which only the newest result is wanted.
	Force bool `help:"Run it although a newer revision has a result."`
	values
	Key    string `help:"The same run with the same key is started once." placeholder:"KEY"`
	Reason string `help:"Why. It is kept in the events." placeholder:"TEXT"`
	command.Followed
}

func (taskRunCmd) Prints() any { return v1.Task{} }

// Help says what its end means.
func (taskRunCmd) Help() string {
	return `With --watch the exit code is 4 if the task has not succeeded.`
}

// Run starts the run. A run of the same archive cannot wait for it: both may need the same lock.
func (c *taskRunCmd) Run(a *command.App) error {
	if c.Watch {
		err := waitsForItself(a, c.Archive, 0)
		if err != nil {
			return err
		}
	}

	got, err := a.Client.StartTask(a.Ctx, c.Archive, c.Task, v1.TaskRun{
		Revision: c.Revision,
		Force:    c.Force,
		Reason:   c.Reason,

		Parameters: c.Set,
	}, c.Key)
	if err != nil {
		return err
	}

	if !c.Watch {
		return command.Show(a, fieldsOfTask)(got, nil)
	}
	return watchTask(a, got.ID)
}

// watchTask shows a task until it has ended. It fails if it has not succeeded, so also if it was cancelled,
// superseded or skipped.
func watchTask(a *command.App, id string) error {
	return a.Watch(func() (command.Snapshot, error) {
		got, err := a.Client.Task(a.Ctx, id)
		t := got.Task
		s := command.Snapshot{
			Things: []any{t},
			Text:   t.ID + " " + t.State,
			State:  t.State,
			Over:   v1.TaskEnded(t.State),
		}

		if t.Reason != "" {
			s.Text += ": " + t.Reason
		}

		// Every other end is a failure for who waits.
		if s.Over && t.State != "succeeded" {
			s.Failed = fault.New(fault.Conflict, "%s is %s; archivist explain %s shows why",
				terminal.Printable(t.ID), t.State, terminal.Printable(t.ID))
		}
		return s, err
	})
}

// taskStartCmd starts a task that waits for a person.
type taskStartCmd struct {
	taskArg
	because
	values
}

func (taskStartCmd) Prints() any { return v1.Task{} }

// Run starts it. The same person can do that again, and nothing changes.
func (c *taskStartCmd) Run(a *command.App) error {
	return command.Show(a, fieldsOfTask)(a.Client.ActOnTask(a.Ctx, c.ID, v1.TaskAction{
		Action:     "start",
		Parameters: c.Set,
		Reason:     c.Reason,
	}, ""))
}

// taskCancelCmd cancels a task.
type taskCancelCmd struct {
	taskArg
	because
	Key string `help:"The same action with the same key is done once." placeholder:"KEY"`
}

func (taskCancelCmd) Prints() any { return v1.Task{} }

// Run asks for the end. One that runs has not ended by then.
func (c *taskCancelCmd) Run(a *command.App) error {
	return command.Show(a, fieldsOfTask)(
		a.Client.ActOnTask(a.Ctx, c.ID, v1.TaskAction{Action: "cancel", Reason: c.Reason}, c.Key))
}

// taskRerunCmd runs a task again, or all tasks of a revision that have failed.
type taskRerunCmd struct {
	ID string `arg:"" name:"task" help:"Id of a task, e.g. maps/12/index; with --failed of a revision, e.g. maps/12."`
	because
	WithDependents bool `help:"Run what waited for it and failed or was skipped, after what it needs." xor:"what"`
	Failed         bool `help:"Run all failed tasks of a revision again, each with its dependents." xor:"what"`
	Force          bool `help:"Although a newer revision has a result."`
	values
	Key string `help:"The same action with the same key is done once." placeholder:"KEY"`
}

func (taskRerunCmd) Prints() any { return v1.Task{} }

// Run starts the runs, and shows them.
func (c *taskRerunCmd) Run(a *command.App) error {
	if c.Failed && len(c.Set) > 0 {
		return command.Usage("--set: with --failed, each task has the values that it had")
	}

	if c.Failed {
		return c.failed(a)
	}

	return command.Show(a, fieldsOfTask)(a.Client.ActOnTask(a.Ctx, c.ID, v1.TaskAction{
		Action:         "rerun",
		Force:          c.Force,
		WithDependents: c.WithDependents,
		Parameters:     c.Set,
		Reason:         c.Reason,
	}, c.Key))
}

// failed runs all of a revision that has failed. What cannot be run is a warning, with the reason.
func (c *taskRerunCmd) failed(a *command.App) error {
	archive, n, err := revisionArg{c.ID}.parse()
	if err != nil {
		return err
	}

	got, err := a.Client.ActOnRevision(a.Ctx, archive, n, v1.RevisionAction{
		Action: "rerun-failed",
		Force:  c.Force,
		Reason: c.Reason,
	}, c.Key)
	if err != nil {
		return err
	}

	for _, why := range got.Left {
		a.Warn("%s", why)
	}
	return command.Show(a, command.Rows(taskColumns...))(got.Started, nil)
}
