package v1

import "slices"

// TaskStates are the states of tasks.
var TaskStates = []string{"blocked", "manual", "awaiting", "ready", "dispatched", "running", "retry-wait",
	"succeeded", "failed",
	"cancelled", "superseded", "skipped"}

// TaskEnds are those in which a task has ended.
var TaskEnds = TaskStates[7:]

// TaskEnded reports whether a state of a task is an end.
func TaskEnded(state string) bool { return slices.Contains(TaskEnds, state) }

// TaskEdge is what a task waits for before it can start, and what became of that.
type TaskEdge struct {
	// The name of the other task.
	Task string `json:"task" example:"index"`
	// Whether it is that of an earlier revision.
	Prev bool `json:"prev,omitempty"`
	// The end that is needed. finished: succeeded or failed, since the other task may fail.
	On string `json:"on" enum:"succeeded,ended,failed,finished" example:"succeeded"`
	// The id of the other task. Absent: there is none, so nothing is waited for.
	ID string `json:"id,omitempty" example:"maps/12/index"`
	// open: it has not ended. satisfied: it ended as is needed. impossible: it ended otherwise. followed: it was
	// superseded, and its superseder is waited for. overtaken: it was superseded, and so is this task. healed: it did
	// not succeed, and a run of it has since. none.
	Verdict string `json:"verdict" enum:"open,satisfied,impossible,followed,overtaken,healed,none" example:"satisfied"`
	// The state in which it ended.
	End string `json:"end,omitempty" example:"succeeded"`
	// The id of the run that has healed it.
	By string `json:"by,omitempty" example:"maps/12/index/1"`
}

// TaskInputs are the outputs of another task that a task finds.
type TaskInputs struct {
	// The other task as the definition names it. The folder has that name, with a slash for the colon.
	Name string `json:"name" example:"index"`
	// The id of the task that has left them. Absent: not known yet, or there is none.
	ID string `json:"id,omitempty" example:"maps/12/index"`
}

// TaskOutput is a file that a task has left.
type TaskOutput struct {
	// Its path.
	Path string `json:"path" example:"build/maps.pdf"`
	// Its size in bytes.
	Size int64 `json:"size" example:"1048576"`
	// Its SHA-256 digest.
	SHA256 string `json:"sha256" example:"2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"`
}

// TaskAttempt is one execution of a task.
type TaskAttempt struct {
	// Its number, from 1.
	Attempt int `json:"attempt" example:"1"`
	// The name of its execution in AWS Step Functions.
	Execution string `json:"execution" example:"task-01M7ZBMEYHBB62YP6RY21T1GQ8"`
	// When its execution was started.
	Started string `json:"started,omitempty" format:"date-time" example:"2026-11-22T09:30:02Z"`
	// When that began.
	Began string `json:"began,omitempty" format:"date-time" example:"2026-11-22T09:30:04Z"`
	// When it ended.
	Ended string `json:"ended,omitempty" format:"date-time" example:"2026-11-22T09:31:10Z"`
	// How it ended: succeeded, failed, timed-out, cancelled or broken (it could not be run), or the state of the task.
	End string `json:"end,omitempty" example:"succeeded"`
	// The exit code. -1: it was ended by a signal, or none is known, because it has not ended by itself.
	Exit int `json:"exit" example:"0"`
	// Why it did not succeed.
	Reason string `json:"reason,omitempty" example:"exit code 2"`
	// The number of files that it has left.
	Outputs int `json:"outputs" example:"1"`
}

// Task is a task of a revision, or one run of it by hand or by schedule.
type Task struct {
	// The id: archive, revision and name and, of a run, its number.
	ID string `json:"id" example:"maps/12/index"`
	// The name of the archive.
	Archive string `json:"archive" example:"maps"`
	// The revision.
	Revision int64 `json:"revision" example:"12"`
	// The name.
	Name string `json:"task" example:"index"`
	// The number of the run. Absent: the revision planned it.
	Run int64 `json:"run,omitempty" example:"1"`
	// What started it.
	Trigger string `json:"trigger" enum:"commit,manual,schedule" example:"commit"`
	// blocked: it depends on others. manual: a person is to start it. awaiting: those that it supersedes have not
	// ended. ready: it can start, or it is not its turn. dispatched: its execution was started. running. retry-wait:
	// the next attempt comes. The others are ends.
	State string `json:"state" example:"running"`
	// Since when it is in that state.
	Since string `json:"since" format:"date-time" example:"2026-11-22T09:30:04Z"`
	// When it was planned.
	Created string `json:"created" format:"date-time" example:"2026-11-22T09:30:02Z"`
	// Why it is in that state.
	Reason string `json:"reason,omitempty" example:"exit code 2"`
	// The id of the task whose end is the cause of this end.
	Root string `json:"root,omitempty" example:"maps/12/index"`
	// Who superseded or cancelled it: the id of a task, or a person.
	By string `json:"by,omitempty" example:"maps/13/index"`
	// The state in which it is to end: it was told to.
	Told string `json:"told,omitempty" example:"cancelled"`
	// What it waits for before it can start.
	Edges []TaskEdge `json:"edges"`
	// The names of the tasks whose earlier ones it supersedes.
	Cancels []string `json:"cancels,omitempty" example:"[\"index\"]"`
	// The lock that it needs.
	Lock string `json:"lock,omitempty" example:"database"`
	// Who is to start it, when all that it waits for has ended. Absent: nobody needs to.
	Manual string `json:"manual,omitempty" example:"a person"`
	// Who has started it.
	Starter string `json:"starter,omitempty" example:"anna"`
	// The values of its parameters that were set when it was started. The others have their defaults.
	Parameters map[string]string `json:"parameters,omitempty"`
	// What others leave for it.
	Inputs []TaskInputs `json:"inputs,omitempty"`
	// Whether it may fail: what waits for it in its revision goes on then.
	AllowFailure bool `json:"allowFailure,omitempty"`
	// Whether it is let finish when it is superseded.
	Uninterruptible bool `json:"uninterruptible,omitempty"`
	// Of a run: if it succeeds, the tasks are run that waited for it at its revision and behind it, and that failed or
	// were skipped.
	WithDependents bool `json:"withDependents,omitempty"`
	// The id of the run that it follows for that.
	After string `json:"after,omitempty" example:"maps/12/index/1"`
	// The ids of the tasks that follow it if each succeeds. Only in the answer to a rerun with dependents.
	Follow []string `json:"follow,omitempty" example:"[\"maps/12/pdf\"]"`
	// Of those, which are not run after it, and why.
	Left []string `json:"left,omitempty" example:"[\"maps/12/site is not run: maps/12/pdf is failed\"]"`
	// The number of its newest attempt. Absent: there is none.
	Attempt int `json:"attempt,omitempty" example:"1"`
	// The revision after which changes count for it.
	Base int64 `json:"base,omitempty" example:"11"`
}

// TaskDetails is a task with its attempts.
type TaskDetails struct {
	Task
	// Its attempts, the oldest first.
	Attempts []TaskAttempt `json:"attempts"`
}

// TaskRun is a request to run a task.
type TaskRun struct {
	// The revision. Absent: the newest that is planned.
	Revision int64 `json:"revision,omitempty" minimum:"1" example:"12"`
	// Run it although only the newest result of the task is wanted, and a newer revision has one.
	Force bool `json:"force,omitempty"`
	// Values of its parameters, by name. The others have their defaults. They are kept in the events: no secrets.
	Parameters map[string]string `json:"parameters,omitempty"`
	// The reason. It is kept in the events.
	Reason string `json:"reason,omitempty" maxLength:"500" example:"The index was damaged."`
}

// TaskAction is a request to act on a task.
type TaskAction struct {
	// cancel: it ends; one that runs is told to. rerun: the same task is run at the same revision, once it has ended.
	// start: one that a person is to start goes on.
	Action string `json:"action" enum:"cancel,rerun,start" example:"cancel"`
	// For rerun: although only the newest result of the task is wanted, and a newer revision has one.
	Force bool `json:"force,omitempty"`
	// For rerun: if it succeeds, the tasks are run, too, that waited for it at its revision and behind it, and that
	// failed or were skipped; each when all that it needs has ended as it needs.
	WithDependents bool `json:"withDependents,omitempty"`
	// For rerun and start: values of its parameters, by name. The others have their defaults; for rerun, absent: those
	// that it had. They are kept in the events: no secrets.
	Parameters map[string]string `json:"parameters,omitempty"`
	// The reason. It is kept in the events.
	Reason string `json:"reason" minLength:"1" maxLength:"500" example:"It hangs."`
}

// RevisionAction is a request to act on a revision.
type RevisionAction struct {
	// rerun-failed: its failed tasks are run again, each with its dependents, as the action rerun of a task does.
	Action string `json:"action" enum:"rerun-failed" example:"rerun-failed"`
	// Although only the newest result of a task is wanted, and a newer revision has one.
	Force bool `json:"force,omitempty"`
	// The reason. It is kept in the events.
	Reason string `json:"reason" minLength:"1" maxLength:"500" example:"The disk was full."`
}

// RevisionOutcome is what an action on a revision did.
type RevisionOutcome struct {
	// The runs that were started. Others follow each of them.
	Started []Task `json:"started"`
	// Why other failed tasks cannot be run again.
	Left []string `json:"left"`
}

// TaskLogPart is a part of the output of a task.
type TaskLogPart struct {
	// When it was written.
	Time string `json:"time" format:"date-time" example:"2026-11-22T09:30:05Z"`
	// Where it was written.
	Stream string `json:"stream" enum:"stdout,stderr" example:"stdout"`
	// What was written.
	Text string `json:"text" example:"12 sheets indexed\n"`
}

// TaskLog is a page of the output of an attempt.
type TaskLog struct {
	// The number of the attempt. 0: there is none yet.
	Attempt int `json:"attempt" example:"1"`
	// The parts in their order.
	Parts []TaskLogPart `json:"parts"`
	// Of a page that was asked for with before: what to ask with, as before, for what precedes it.
	// Absent: it has the begin of the output.
	First string `json:"first,omitempty" example:"000002"`
	// What to ask with, as from, for what follows. It is there also at the end, so that the output can be followed.
	Next string `json:"next,omitempty" example:"000004"`
	// Whether the attempt has ended and this page is the last of its output.
	Ended bool `json:"ended"`
}
