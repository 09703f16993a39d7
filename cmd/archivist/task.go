package main

import (
	"fmt"
	"io"
	"strconv"

	"github.com/alecthomas/kong"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/fault"
	"archivist/pkg/terminal"
)

// taskCmd is for the tasks of archives.
type taskCmd struct {
	List    taskListCmd    `cmd:"" help:"List the tasks of an archive, those of the newest revision first."`
	Show    taskShowCmd    `cmd:"" help:"Show a task with its attempts."`
	Logs    taskLogsCmd    `cmd:"" help:"Show what the programs of a task have written."`
	Outputs taskOutputsCmd `cmd:"" help:"List the files that a task has left."`
	Output  taskOutputCmd  `cmd:"" help:"Write a file that a task has left to the standard output."`
	Run     taskRunCmd     `cmd:"" help:"Run a task."`
	Rerun   taskActCmd     `cmd:"" help:"Run a task again that has ended, at the same revision."`
	Cancel  taskActCmd     `cmd:"" help:"End a task. One that runs is told to, and has a minute."`
	Explain taskExplainCmd `cmd:"" help:"Explain the one thing that a task waits for."`
}

// taskArg is the argument of most commands.
type taskArg struct {
	ID string `arg:"" name:"task" help:"Id of a task, e.g. maps/12/index."`
}

// attemptFlag selects an attempt.
type attemptFlag struct {
	Attempt int `help:"Number of the attempt. By default the newest." placeholder:"N"`
}

// taskListCmd lists tasks.
type taskListCmd struct {
	archiveName
	limit
	Revision int64  `help:"Only those of this revision." placeholder:"N"`
	Task     string `help:"Only those of this name." placeholder:"NAME"`
	State    string `help:"Only those in this state." placeholder:"STATE"`
}

func (taskListCmd) prints() any { return v1.Task{} }

// Run lists.
func (c *taskListCmd) Run(a *app) error {
	list, err := a.client.Tasks(a.ctx, c.Archive, v1.TaskFilter{Revision: c.Revision, Task: c.Task, State: c.State,
		Limit: c.more()})
	if err != nil {
		return err
	}
	list = limited(a, c.limit, list)
	return a.print(list, func(p terminal.Page) { terminal.Table(p, list, taskColumns...) })
}

var taskColumns = []terminal.Column[v1.Task]{
	{Title: "task", Text: func(t v1.Task) string { return t.ID }},
	{Title: "state", Text: func(t v1.Task) string { return t.State }},
	{Title: "since", Text: func(t v1.Task) string { return minute(t.Since) },
		Raw: func(t v1.Task) string { return t.Since }},
	{Title: "why", Text: func(t v1.Task) string { return t.Reason }, Share: 1},
}

// taskShowCmd shows a task.
type taskShowCmd struct{ taskArg }

func (taskShowCmd) prints() any { return v1.TaskDetails{} }

// Run shows one task.
func (c *taskShowCmd) Run(a *app) error {
	got, err := a.client.Task(a.ctx, c.ID)
	if err != nil {
		return err
	}
	return a.print(got, func(p terminal.Page) {
		fieldsOfTask(p, got.Task)
		terminal.Table(p, got.Attempts, attemptColumns...)
	})
}

func fieldsOfTask(p terminal.Page, t v1.Task) {
	p.Fields("task", t.ID, "state", t.State, "since", t.Since, "why", t.Reason, "cause", t.Root, "by", t.By,
		"started by", t.Trigger, "lock", t.Lock)
	for _, e := range t.Edges {
		p.Fields("waits for", fmt.Sprintf("%s to be %s: %s", edgeOf(e), e.On, e.Verdict))
	}
}

func edgeOf(e v1.TaskEdge) string {
	if e.ID == "" {
		return e.Task
	}
	return e.ID
}

var attemptColumns = []terminal.Column[v1.TaskAttempt]{
	{Title: "attempt", Text: func(t v1.TaskAttempt) string { return strconv.Itoa(t.Attempt) }},
	{Title: "began", Text: func(t v1.TaskAttempt) string { return minute(t.Began) },
		Raw: func(t v1.TaskAttempt) string { return t.Began }},
	{Title: "ended", Text: func(t v1.TaskAttempt) string { return minute(t.Ended) },
		Raw: func(t v1.TaskAttempt) string { return t.Ended }},
	{Title: "end", Text: func(t v1.TaskAttempt) string { return t.End }},
	{Title: "why", Text: func(t v1.TaskAttempt) string { return t.Reason }, Share: 1},
}

// taskLogsCmd shows the output of a task.
type taskLogsCmd struct {
	taskArg
	attemptFlag
	Follow bool `short:"f" help:"Go on until the attempt has ended."`
}

// Run writes what comes to the standard output.
func (c *taskLogsCmd) Run(a *app) error {
	from := ""
	for n := 0; ; n++ {
		got, err := a.client.TaskLog(a.ctx, c.ID, c.Attempt, from)
		if err != nil {
			return err
		}
		for _, part := range got.Parts {
			_, err := io.WriteString(a.out, part.Text)
			if err != nil {
				return err
			}
		}
		more := len(got.Parts) > 0
		from, c.Attempt = got.Next, got.Attempt
		if got.Ended || !more && !c.Follow {
			return nil
		}
		if more {
			n = 0
			continue
		}
		err = a.wait(a.ctx, pause(n))
		if err != nil {
			return err
		}
	}
}

// taskOutputsCmd lists outputs.
type taskOutputsCmd struct {
	taskArg
	attemptFlag
}

func (taskOutputsCmd) prints() any { return v1.TaskOutput{} }

// Run lists.
func (c *taskOutputsCmd) Run(a *app) error {
	list, err := a.client.TaskOutputs(a.ctx, c.ID, c.Attempt)
	if err != nil {
		return err
	}
	list = limited(a, limit{}, list)
	return a.print(list, func(p terminal.Page) {
		terminal.Table(p, list, terminal.Column[v1.TaskOutput]{Title: "file", Share: 1,
			Text: func(o v1.TaskOutput) string { return o.Path }}, terminal.Column[v1.TaskOutput]{Title: "bytes",
			Text: func(o v1.TaskOutput) string { return strconv.FormatInt(o.Size, 10) }})
	})
}

// taskOutputCmd writes an output.
type taskOutputCmd struct {
	taskArg
	attemptFlag
	Path string `arg:"" help:"Path of the file."`
}

// Run writes the content of the file.
func (c *taskOutputCmd) Run(a *app) error {
	body, err := a.client.TaskOutput(a.ctx, c.ID, c.Attempt, c.Path)
	if err != nil {
		return err
	}
	defer body.Close()
	_, err = io.Copy(a.out, body)
	return err
}

// taskRunCmd runs a task.
type taskRunCmd struct {
	archiveName
	Task     string `arg:"" help:"Name of a task."`
	Revision int64  `help:"Revision at which it is run. By default the newest that is planned." placeholder:"N"`
	Force    bool   `help:"Run it although a newer revision has a result."`
	Key      string `help:"The same run with the same key is started once." placeholder:"KEY"`
	Reason   string `help:"Why. It is kept in the events." placeholder:"TEXT"`
	Wait     bool   `help:"Follow it until it has ended. Fails with exit code 4 if it has not succeeded."`
}

func (taskRunCmd) prints() any { return v1.Task{} }

// Run starts the run. A run of the same archive cannot wait for it: both may need the same lock.
func (c *taskRunCmd) Run(a *app) error {
	if c.Wait {
		err := a.waitsForItself(c.Archive, 0)
		if err != nil {
			return err
		}
	}
	got, err := a.client.StartTask(a.ctx, c.Archive, c.Task, v1.TaskRun{Revision: c.Revision, Force: c.Force,
		Reason: c.Reason}, c.Key)
	if err != nil || !c.Wait {
		return a.showTask(got, err)
	}
	return a.watchTask(got.ID)
}

// watchTask shows a task until it has ended. It fails if it has not succeeded.
func (a *app) watchTask(id string) error {
	return a.watch(func() (sight, error) {
		got, err := a.client.Task(a.ctx, id)
		t := got.Task
		s := sight{things: []any{t}, text: t.ID + " " + t.State, state: t.State, over: v1.TaskEnded(t.State)}
		if t.Reason != "" {
			s.text += ": " + t.Reason
		}
		if s.over && t.State != "succeeded" {
			s.failed = fault.New(fault.Conflict, "%s is %s; archivist task explain %s shows why",
				terminal.Printable(t.ID), t.State, terminal.Printable(t.ID))
		}
		return s, err
	})
}

func (a *app) showTask(got v1.Task, err error) error {
	if err != nil {
		return err
	}
	return a.print(got, func(p terminal.Page) { fieldsOfTask(p, got) })
}

// taskActCmd cancels a task or runs it again.
type taskActCmd struct {
	taskArg
	because
	Force bool   `help:"Of rerun: although a newer revision has a result."`
	Key   string `help:"The same action with the same key is done once." placeholder:"KEY"`
}

func (taskActCmd) prints() any { return v1.Task{} }

// Run does what the command is called.
func (c *taskActCmd) Run(a *app, k *kong.Context) error {
	return a.showTask(a.client.ActOnTask(a.ctx, c.ID, v1.TaskAction{Action: k.Selected().Name, Force: c.Force,
		Reason: c.Reason}, c.Key))
}

// taskExplainCmd explains a task.
type taskExplainCmd struct{ taskArg }

func (taskExplainCmd) prints() any { return v1.WaitExplanation{} }

// Run explains.
func (c *taskExplainCmd) Run(a *app) error { return a.showWaits(a.client.ExplainTask(a.ctx, c.ID)) }
