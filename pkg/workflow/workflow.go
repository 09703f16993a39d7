// Package workflow has the rules of the revision queue as pure values: which tasks the files in _workflows
// define, which instances of them a revision plans, what each waits for, and which earlier ones it cancels
// (source: the requirement "Ark Queue").
//
// A definition is read from the archive at its revision by Parse. A task has one instance for each revision
// that plans it, and one for each run by hand or by schedule. An instance waits for the edges that its
// dependencies became. Package revision keeps instances and lets them run.
package workflow

import (
	"fmt"
	"regexp"
	"time"
)

// Folder is where the definitions are, at the root of an archive.
const Folder = "_workflows"

// Names of tasks that have a meaning of their own.
const (
	Commit = "COMMIT" // the task that every revision has; every other task of the revision waits for it
	Prev   = "PREV"   // this task in an earlier revision; PREV:name is another task there
)

// Limits, each with its reason.
const (
	MaxFiles    = 100       // files below Folder: each is a request to the archive
	MaxFile     = 256 << 10 // bytes of a file
	MaxTasks    = 200       // tasks of a revision: all are shown at once
	MaxSize     = 256 << 10 // bytes of a Definition as JSON: it is one row
	MaxTask     = 190 << 10 // bytes of a Task as JSON: with it goes all else of a job, of which 256 KiB are passed on
	MaxDepends  = 30        // of a task: its row names all edges, and one transaction writes them
	MaxCancels  = 10        // likewise
	MaxScript   = 64 << 10  // bytes: longer scripts are files of the archive
	MaxEnv      = 50        // variables of a task
	MaxEnvValue = 4 << 10   // bytes
	MaxPaths    = 50        // patterns of a filter or of outputs
	MaxTimeout  = 24 * time.Hour
	MaxAttempts = 10
	MaxDepth    = 5 // revisions that are made by tasks of revisions that are made by tasks
)

// LambdaTimeout is the longest time-out of a task that runs in the default runner: a Lambda function ends
// after 15 minutes, and needs some time to bring its outputs to safety.
const LambdaTimeout = 14 * time.Minute

// DefaultTimeout is the time-out of a task that sets none.
const DefaultTimeout = 5 * time.Minute

// Bound is how many instances of a task are superseded in a row, without a success, until one that runs is
// let finish.
const Bound = 10

// TaskName is the form of the names of tasks and locks.
var TaskName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,59}$`)

// Definition is what the files of one revision define. Tasks are in topological order, equal places by name:
// so equal content has equal bytes as JSON. COMMIT is not among them.
type Definition struct {
	Tasks  []Task `json:"tasks,omitempty"`
	Commit []Edge `json:"commit,omitempty"` // what COMMIT waits for in addition
}

// Task is the definition of a task, with its defaults filled in.
type Task struct {
	Name    string   `json:"name"`
	Place   int      `json:"place"`             // the longest way from a task without dependencies in the revision
	Depends []Edge   `json:"depends,omitempty"` // without that on COMMIT, which every task has
	Cancels []string `json:"cancels,omitempty"` // names of tasks; its own name: it is latest-only
	Follow  bool     `json:"follow,omitempty"`  // it waits for the superseder of what it depends on

	// What runs: Command or Script. With neither, an image runs what it is made for; and a task without an image
	// has nothing to run, and succeeds when it is its turn.
	Image   string            `json:"image,omitempty"`
	Command string            `json:"command,omitempty"`
	Script  string            `json:"script,omitempty"`
	Shell   string            `json:"shell,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	Secrets map[string]string `json:"secrets,omitempty"` // names in Secrets Manager, by variable
	Outputs []string          `json:"outputs,omitempty"` // patterns of files that are kept

	Timeout time.Duration `json:"timeout"`
	Retries Retries       `json:"retries"`

	OnCommit  bool       `json:"onCommit,omitempty"` // each revision plans it
	OnDemand  bool       `json:"onDemand,omitempty"` // people may start it
	Schedules []Schedule `json:"schedules,omitempty"`

	Lock            string   `json:"lock,omitempty"`
	Paths           []string `json:"paths,omitempty"`
	Uninterruptible bool     `json:"uninterruptible,omitempty"`
	Was             string   `json:"was,omitempty"` // its name in earlier revisions
}

// LatestOnly reports whether a newer instance of the task supersedes an older one.
func (t *Task) LatestOnly() bool {
	for _, name := range t.Cancels {
		if name == t.Name {
			return true
		}
	}
	return false
}

// Idle reports whether the task has nothing to run: others depend on it, or it shows that others have ended.
func (t *Task) Idle() bool { return t.Image == "" && t.Command == "" && t.Script == "" }

// Retries says how often a task is tried.
type Retries struct {
	Attempts int           `json:"attempts"` // in all, at least 1
	Backoff  time.Duration `json:"backoff"`  // before the second; it doubles with each
}

// Wait is how long an instance waits after its n-th attempt has failed.
func (r Retries) Wait(n int) time.Duration {
	d := r.Backoff
	for range min(max(n-1, 0), MaxAttempts) {
		d *= 2
	}
	return min(d, time.Hour)
}

// Overlap says what becomes of an occurrence of a schedule while a run of the one before goes on.
type Overlap string

// The ways of an overlap.
const (
	Skip    Overlap = "skip"
	Queue   Overlap = "queue"
	Replace Overlap = "replace" // the run that goes on is cancelled
)

// Schedule starts a task at times.
type Schedule struct {
	Cron    string  `json:"cron"` // five fields
	Zone    string  `json:"zone"` // of the IANA database
	Overlap Overlap `json:"overlap"`
}

// On says which end of the awaited instance an edge needs.
type On string

// The conditions of edges.
const (
	Succeeded On = "succeeded"
	Ended     On = "ended"
	Failed    On = "failed"
)

// Edge is a dependency: on another task of the revision, or on a task of an earlier one.
type Edge struct {
	Task string `json:"task"`
	// Prev: the task in the nearest earlier revision that has planned it.
	Prev bool `json:"prev,omitempty"`
	// Exact: of Prev, only the revision directly before counts; if it has not planned the task, the edge is
	// satisfied.
	Exact bool `json:"exact,omitempty"`
	On    On   `json:"on"`
}

// String is the edge as it is written in a file.
func (e Edge) String() string {
	if e.Prev {
		return Prev + ":" + e.Task
	}
	return e.Task
}

// DefaultOn is the condition of an edge that names none: one within a revision needs success; one to an
// earlier revision any end, else one failure would block an archive for ever.
func DefaultOn(prev bool) On {
	if prev {
		return Ended
	}
	return Succeeded
}

// File is a file below Folder.
type File struct {
	Path string // from the root of the archive, with slashes
	Data []byte
}

// String is the problem as compilers print it: FILE:LINE:COLUMN: MESSAGE.
func (p Problem) String() string {
	if p.Line == 0 {
		return p.File + ": " + p.Message
	}
	return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Message)
}

// Problem is why a file is no definition. Line and Column count from 1; 0: of the file as a whole.
type Problem struct {
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Message string `json:"message"`
}
