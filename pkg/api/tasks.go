package api

import (
	"context"
	"encoding/json"
	"path"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/revisions/revision"
	"archivist/pkg/revisions/runner"
	"archivist/pkg/revisions/workflow"
)

// Ids of tasks have slashes, so they are in the query.

// TaskInput names a task.
type TaskInput struct {
	ID string `query:"id" required:"true" maxLength:"200"`
}

// TaskCursor names a task and a page of its events.
type TaskCursor struct {
	TaskInput
	Cursor string `query:"cursor" maxLength:"4000"`
}

// TasksInput selects tasks of an archive.
type TasksInput struct {
	ArchiveCursor
	State    string `query:"state" maxLength:"20"`
	Task     string `query:"task" maxLength:"60"`
	Revision int64  `query:"revision" minimum:"0"`
}

// AttemptInput names an attempt of a task, 0 is the newest.
type AttemptInput struct {
	TaskInput
	Attempt int `query:"attempt" minimum:"0"`
}

// OutputInput names a file that an attempt has left.
type OutputInput struct {
	AttemptInput
	Path string `query:"path" required:"true" maxLength:"1000"`
}

// TaskRun is a request to run a task.
type TaskRun struct {
	ArchiveInput
	Asking
	Repeatable
	Task string `path:"task" maxLength:"60"`
	Body v1.TaskRun
}

// TaskAction is a request to act on a task.
type TaskAction struct {
	TaskInput
	Asking
	Repeatable
	Body v1.TaskAction
}

// tasks registers the routes of tasks. A task is known by its id, ARCHIVE/REVISION/TASK or
// ARCHIVE/REVISION/TASK/RUN, which has slashes and so is a parameter of the query.
func (a *API) tasks(h huma.API) {
	const archive, one = "/v1/archives/{archive}", "/v1/task"
	get(a, h, archive+"/tasks", "listTasks", "List the tasks of an archive", a.listTasks)
	post(a, h, archive+"/tasks/{task}/runs", "runTask", "Run a task", a.runTask)
	get(a, h, one, "getTask", "Get a task with its attempts", a.task)
	get(a, h, one+"/events", "listTaskEvents", "List the events of a task",
		func(ctx context.Context, in *TaskCursor) (v1.List[v1.Event], error) {
			return a.events(event.Task)(ctx, &IDCursor{ID: in.ID, Cursor: in.Cursor})
		})

	get(a, h, one+"/log", "getTaskLog", "Read the output of a task", a.taskLog)
	get(a, h, one+"/outputs", "listTaskOutputs", "List the files that a task has left",
		a.taskOutputs)
	redirect(a, h, one+"/output", "getTaskOutput", "Get a file that a task has left", a.taskOutput)
	post(a, h, one+"/actions", "actOnTask", "Cancel a task, start it, or run it again",
		a.actOnTask)
}

// knownTask reads a task by its id, which must be that of one: an Invalid says what is expected.
func (a *API) knownTask(ctx context.Context, text string) (in revision.Instance, err error) {
	id, err := revision.ParseID(text)
	if err != nil {
		return in, err
	}

	if id.Task == "" {
		return in, fault.New(fault.Invalid,
			"id: found %q; expected ARCHIVE/REVISION/TASK or ARCHIVE/REVISION/TASK/RUN", text)
	}
	return a.Revisions.Instance(ctx, text)
}

// task is a task with its attempts, the oldest first.
func (a *API) task(ctx context.Context, in *TaskInput) (out v1.TaskDetails, err error) {
	t, err := a.knownTask(ctx, in.ID)
	if err != nil {
		return out, err
	}
	tries, err := a.Revisions.Attempts(ctx, in.ID)
	return v1.TaskDetails{Task: wireTask(t), Attempts: each(tries, wireAttempt)}, err
}

// wireAttempt is the wire form of an attempt. Outputs is how many files it has left, of which the row
// may have only the first.
func wireAttempt(t revision.Attempt) v1.TaskAttempt {
	return v1.TaskAttempt{
		Attempt:   t.Number,
		Execution: revision.Execution{Exec: t.Exec}.Name(),
		Started:   timestamp(t.Asked),
		Began:     timestamp(t.Began),
		Ended:     timestamp(t.Ended),
		End:       t.End,
		Exit:      t.Exit,
		Reason:    t.Reason,
		Outputs:   t.OutputCount,
	}
}

// listTasks lists the tasks of an archive that a filter selects, the newest first. A page may be empty
// before the end.
func (a *API) listTasks(ctx context.Context, in *TasksInput) (out v1.List[v1.Task], err error) {
	page, next, err := a.Revisions.Instances(ctx, in.Archive, revision.Filter{
		Revision: in.Revision,
		Task:     in.Task,
		State:    workflow.State(strings.ToLower(in.State)),
	}, in.Cursor)
	out.Items, out.Cursor = each(page, wireTask), next
	return out, err
}

// runTask runs a task by hand. The key makes a repetition return the same run.
func (a *API) runTask(ctx context.Context, in *TaskRun) (v1.Task, error) {
	by, err := in.by(in.Body.Reason)
	if err != nil {
		return v1.Task{}, err
	}

	t, err := a.Revisions.StartRun(ctx, in.Archive, revision.Run{
		Task:     in.Task,
		Revision: in.Body.Revision,
		Force:    in.Body.Force,
		Key:      in.Key,

		Parameters: in.Body.Parameters,
	}, by)
	return wireTask(t), err
}

// actOnTask cancels a task, starts one that waits for a person, or runs it again.
func (a *API) actOnTask(ctx context.Context, in *TaskAction) (v1.Task, error) {
	t, err := a.knownTask(ctx, in.ID)
	if err != nil {
		return v1.Task{}, err
	}

	by, err := in.by(in.Body.Reason)
	switch {
	case err != nil:
		return v1.Task{}, err
	case in.Body.Action != "rerun" && (in.Body.Force || in.Body.WithDependents):
		return v1.Task{}, fault.New(fault.Invalid, "force, withDependents: the action %s has no such fields",
			in.Body.Action)
	case in.Body.Action == "cancel" && in.Body.Parameters != nil:
		return v1.Task{}, fault.New(fault.Invalid, "parameters: the action cancel has no such field")
	case in.Body.Action == "cancel":
		t, err = a.Revisions.Cancel(ctx, in.ID, by)
		return wireTask(t), err
	case in.Body.Action == "start":
		t, err = a.Revisions.StartManual(ctx, in.ID, in.Body.Parameters, by)
		return wireTask(t), err
	}
	return a.rerun(ctx, in, t, by)
}

// rerun runs a task again. That is a new run of the same task and revision, so the archive has to be in the
// epoch of the task; it answers with the new run. Commit is not run: it is the revision itself.
func (a *API) rerun(ctx context.Context, in *TaskAction, t revision.Instance, by revision.By) (v1.Task, error) {
	switch {
	case t.Task == workflow.Commit:
		return v1.Task{}, fault.New(fault.Conflict, "COMMIT is no task that can be run")
	case !t.State.Over():
		return v1.Task{},
			fault.New(fault.Conflict, "the task %s has not ended: it is %s", t.ID, t.State)
	}

	archive, err := a.Revisions.Archive(ctx, wireTask(t).Archive)
	if err != nil {
		return v1.Task{}, err
	}

	if archive.Ref() != t.Archive {
		return v1.Task{}, fault.New(fault.Conflict,
			"the archive %s has begun anew since: %s is of an earlier epoch", archive.Name, t.ID)
	}

	if in.Body.Parameters == nil {
		in.Body.Parameters = t.Parameters
	}

	run, err := a.Revisions.StartRun(ctx, archive.Name, revision.Run{
		Task:       t.Task,
		Parameters: in.Body.Parameters,
		Revision:   t.Revision,
		Force:      in.Body.Force,
		Dependents: in.Body.WithDependents,
		Key:        in.Key,
	}, by)
	out := wireTask(run)
	if err == nil && in.Body.WithDependents {
		out.Follow, err = a.Revisions.Follow(ctx, t)
	}
	return out, err
}

// attempt is an attempt of a task; the number 0 is the newest. ok is false if there is none yet. A
// NotFound is for a number that no attempt has. Attempts are in the order of time; one number can be
// there twice.
func (a *API) attempt(ctx context.Context,
	in AttemptInput) (t revision.Attempt, ok bool, err error) {
	_, err = a.knownTask(ctx, in.ID)
	if err != nil {
		return t, false, err
	}

	tries, err := a.Revisions.Attempts(ctx, in.ID)
	for _, one := range tries { // of one number, the newest: one that never began was no attempt
		if in.Attempt == 0 || one.Number == in.Attempt {
			t, ok = one, true
		}
	}

	if err != nil || ok || in.Attempt == 0 {
		return t, ok, err
	}
	return t, ok, fault.New(fault.NotFound, "attempt: the task %s has no attempt %d", in.ID,
		in.Attempt)
}

// taskOutputs lists the files that an attempt has left, none for a task that has no attempt yet. The
// row has all of a few, and otherwise the result in the work bucket has.
func (a *API) taskOutputs(ctx context.Context,
	in *AttemptInput) (out v1.List[v1.TaskOutput], err error) {
	out.Items = []v1.TaskOutput{}
	t, ok, err := a.attempt(ctx, *in)
	if err != nil || !ok {
		return out, err
	}

	if t.OutputCount == len(t.Outputs) {
		out.Items = each(t.Outputs,
			func(o revision.Output) v1.TaskOutput { return v1.TaskOutput(o) })
		return out, nil
	}

	// The row has only the first ones.
	data, _, err := a.Work.Read(ctx, t.Prefix(in.ID)+runner.ResultKey)
	if err != nil {
		return out, err
	}

	var res runner.Result
	err = json.Unmarshal(data, &res)
	out.Items = each(res.Outputs, func(o runner.Output) v1.TaskOutput { return v1.TaskOutput(o) })
	return out, err
}

// taskOutput is the signed URL of a file. Only files of the result are given out, so that no path leads
// to other keys of the bucket.
func (a *API) taskOutput(ctx context.Context, in *OutputInput) (string, error) {
	outputs, err := a.taskOutputs(ctx, &in.AttemptInput)
	if err != nil {
		return "", err
	}

	for _, o := range outputs.Items {
		if o.Path == in.Path {
			t, _, err := a.attempt(ctx, in.AttemptInput)
			if err != nil {
				return "", err
			}
			to, err := a.Work.Presign(ctx, t.Prefix(in.ID)+runner.OutputFolder+in.Path,
				path.Base(in.Path), contentFor)
			if fault.Is(err, fault.NotFound) {
				err = fault.New(fault.NotFound, "path: the file %q of the task %s is missing", in.Path, in.ID)
			}
			return to, err
		}
	}
	return "", fault.New(fault.NotFound, "path: the task %s has left no file %q", in.ID, in.Path)
}
