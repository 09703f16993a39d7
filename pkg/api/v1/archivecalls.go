package v1

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"strconv"
)

// RunHeader is the header with the token of the run of a task that makes a request.
const RunHeader = "Archivist-Run"

func revisionPath(archive string, n int64) string {
	return at("archives", archive, "revisions", strconv.FormatInt(n, 10))
}

// taskPath is the path of what is asked about a task. Ids have slashes, so they are in the query.
func taskPath(what, id string, pairs ...string) string {
	return "/v1/task" + what + query(append(pairs, "id", id)...)
}

// Archives lists the archives by name.
func (c *Client) Archives(ctx context.Context) ([]Archive, error) {
	return list[Archive](ctx, c, "/v1/archives", 0)
}

// Archive returns an archive with what goes on in it.
func (c *Client) Archive(ctx context.Context, name string) (ArchiveStatus, error) {
	return get[ArchiveStatus](ctx, c, at("archives", name))
}

// PutArchive registers an archive, or changes its settings.
func (c *Client) PutArchive(ctx context.Context, name string,
	d ArchiveDefinition) (Archive, error) {
	return put[Archive](ctx, c, at("archives", name), d)
}

// ActOnArchive pauses, resumes or deletes an archive, skips a revision or begins a back-fill.
func (c *Client) ActOnArchive(ctx context.Context, name string, in ArchiveAction) (Archive, error) {
	return post[Archive](ctx, c, at("archives", name, "actions"), in)
}

// ArchiveEvents lists what happened to an archive, oldest first.
func (c *Client) ArchiveEvents(ctx context.Context, name string) ([]Event, error) {
	return list[Event](ctx, c, at("archives", name, "events"), 0)
}

// NotifyRevision says that a revision was committed. run is the token of the run that made it, "" for none.
func (c *Client) NotifyRevision(ctx context.Context, archive string, in RevisionNotice,
	run string) (out ArchiveRevision, err error) {
	err = c.Call(ctx, http.MethodPost, at("archives", archive, "revisions"), in, &out,
		RunHeader, run)
	return out, err
}

// Revisions lists the revisions of an archive, the newest first, all if the limit is 0.
func (c *Client) Revisions(ctx context.Context, archive string,
	limit int) ([]ArchiveRevision, error) {
	return list[ArchiveRevision](ctx, c, at("archives", archive, "revisions"), limit)
}

// ActOnRevision runs the failed tasks of a revision again.
func (c *Client) ActOnRevision(ctx context.Context, archive string, n int64, in RevisionAction,
	key string) (RevisionOutcome, error) {
	return post[RevisionOutcome](ctx, c, revisionPath(archive, n)+"/actions", in, key)
}

// RevisionPlan returns a revision with its tasks. Whoever is going to wait for it gives the token of its run: one
// that would wait for itself is refused.
func (c *Client) RevisionPlan(ctx context.Context, archive string, n int64,
	run string) (out RevisionPlan, err error) {
	err = c.Call(ctx, http.MethodGet, revisionPath(archive, n), nil, &out, RunHeader, run)
	return out, err
}

// RevisionGraph returns a revision as a graph.
func (c *Client) RevisionGraph(ctx context.Context, archive string,
	n int64) (RevisionGraph, error) {
	return get[RevisionGraph](ctx, c, revisionPath(archive, n)+"/graph")
}

// RevisionEvents lists what happened to a revision, oldest first.
func (c *Client) RevisionEvents(ctx context.Context, archive string, n int64) ([]Event, error) {
	return list[Event](ctx, c, revisionPath(archive, n)+"/events", 0)
}

// PreviewRevision says what a revision would plan; 0 is the newest one.
func (c *Client) PreviewRevision(ctx context.Context, archive string,
	n int64) (RevisionPreview, error) {
	return get[RevisionPreview](ctx, c, at("archives", archive, "preview")+
		query("revision", number(n)))
}

// number is a number as text, "" for 0.
func number(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// TaskFilter selects tasks.
type TaskFilter struct {
	Revision int64
	Task     string
	State    string
	Limit    int
}

// Tasks lists the tasks of an archive, those of the newest revision first.
func (c *Client) Tasks(ctx context.Context, archive string, f TaskFilter) ([]Task, error) {
	return list[Task](ctx, c, at("archives", archive, "tasks"), f.Limit,
		"revision", number(f.Revision), "task", f.Task, "state", f.State)
}

// Task returns a task with its attempts.
func (c *Client) Task(ctx context.Context, id string) (TaskDetails, error) {
	return get[TaskDetails](ctx, c, taskPath("", id))
}

// TaskEvents lists what happened to a task, oldest first.
func (c *Client) TaskEvents(ctx context.Context, id string) ([]Event, error) {
	return list[Event](ctx, c, "/v1/task/events", 0, "id", id)
}

// TaskLog returns a page of the output of an attempt; 0 is the newest. from is that of the page before, "" at first.
func (c *Client) TaskLog(ctx context.Context, id string, attempt int,
	from string) (TaskLog, error) {
	return get[TaskLog](ctx, c,
		taskPath("/log", id, "attempt", number(int64(attempt)), "from", from))
}

// TaskLogBefore returns a page of the output of an attempt that ends before a part, the First of a
// page; "" is behind the last one: the newest output.
func (c *Client) TaskLogBefore(ctx context.Context, id string, attempt int,
	before string) (TaskLog, error) {
	return get[TaskLog](ctx, c, taskPath("/log", id, "attempt", number(int64(attempt)), "before",
		cmp.Or(before, "end")))
}

// TaskOutputs lists the files that an attempt has left; 0 is the newest.
func (c *Client) TaskOutputs(ctx context.Context, id string, attempt int) ([]TaskOutput, error) {
	return list[TaskOutput](ctx, c, "/v1/task/outputs", 0, "id", id, "attempt",
		number(int64(attempt)))
}

// TaskOutput streams a file that an attempt has left.
func (c *Client) TaskOutput(ctx context.Context, id string, attempt int,
	path string) (io.ReadCloser, error) {
	return c.stream(ctx, taskPath("/output", id, "attempt", number(int64(attempt)), "path", path))
}

// StartTask runs a task by hand. The same key with the same request gives the same run.
func (c *Client) StartTask(ctx context.Context, archive, task string, in TaskRun,
	key string) (Task, error) {
	return post[Task](ctx, c, at("archives", archive, "tasks", task, "runs"), in, key)
}

// ActOnTask cancels a task, starts it, or runs it again. It returns the task, or the new run.
func (c *Client) ActOnTask(ctx context.Context, id string, in TaskAction,
	key string) (Task, error) {
	return post[Task](ctx, c, taskPath("/actions", id), in, key)
}
