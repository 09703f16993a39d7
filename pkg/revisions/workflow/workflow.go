// Package workflow has the rules of the revision queue as pure values: which tasks the files in _workflows define,
// which of them a revision plans, what each waits for, and which earlier ones it cancels (source: the requirement
// "Ark Queue"). Package revision makes instances and their edges of it.
//
// A definition is read from the archive at its revision by Parse. A task has one instance for each
// revision that plans it, and one for each run by hand or by schedule. An instance waits for the
// edges that its dependencies became. Package revision keeps instances and lets them run.
//
// Nothing here reads or writes anything, and nothing depends on the time: the same files give the
// same definition, with the same Hash, in the command line (lint, plan, graph), in the API and in a
// pass. So what is stored of a definition must not change its form: a Task that gets a new field
// needs one that is left out when it is empty, else the hashes of all definitions change.
//
// The files, from the lowest: workflow.go (the values), node.go (a value of a file), source.go and read.go (YAML and
// JSON as nodes with places), draft.go (tasks as they are read), forms.go (values of a key), edges.go, triggers.go,
// parameters.go and manual.go (keys), task.go (a task of all its keys), check.go (what is wrong between tasks),
// parse.go (all together); state.go, plan.go and paths.go (the rules of instances); schema.go,
// suggest.go and graph.go (for people).
package workflow

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"time"
)

// Folder is where the definitions are, at the root of an archive.
const Folder = "_workflows"

// Names of tasks that have a meaning of their own.
const (
	// The task that every revision has; every other task of the revision waits for it.
	Commit = "COMMIT"
	Prev   = "PREV" // this task in an earlier revision; PREV:name is another task there
)

// Limits, each with its reason.
const (
	// Files below Folder: each is a request to the archive.
	MaxFiles = 100

	// Bytes of a file.
	MaxFile = 256 << 10

	// Tasks of a revision: all are shown at once, and their rows are listed one by one.
	MaxTasks = 200

	// Bytes of a Definition as JSON: it is one row, of at most 400 KB.
	MaxSize = 256 << 10

	// Bytes of a Task as JSON: it is a part of a job, which Step Functions passes on with all else,
	// in at most 256 KiB.
	MaxTask = 190 << 10

	// Dependencies of a task: its row names all edges, and one transaction writes them, with two
	// rows for each.
	MaxDepends = 30

	// Tasks that one cancels: each is a line that its instances are in.
	MaxCancels = 10

	// Bytes: longer scripts are files of the archive.
	MaxScript = 64 << 10

	// Variables of a task.
	MaxEnv = 50

	// Bytes.
	MaxEnvValue = 4 << 10

	// Patterns of a filter or of outputs.
	MaxPaths = 50

	// The longest time-out of an attempt, which needs an image.
	MaxTimeout = 24 * time.Hour

	// Attempts of a task in all, the first included.
	MaxAttempts = 10

	// Revisions that are made by tasks of revisions that are made by tasks: then nothing is started
	// any more.
	MaxDepth = 5
)

// LambdaTimeout is the longest time-out of a task that runs in the default runner: a Lambda
// function ends after 15 minutes, and needs some time to bring its outputs to safety.
const LambdaTimeout = 14 * time.Minute

// DefaultTimeout is the time-out of a task that sets none.
const DefaultTimeout = 5 * time.Minute

// Bound is how many instances of a task are superseded in a row, without a success, until one that
// runs may finish: else frequent commits would keep a slow task from ever having a result.
const Bound = 10

// TaskName is the form of the names of tasks and locks. They are parts of keys, of ids and of
// paths: so they have no "/", "#" or "@", and begin with no dot or hyphen.
var TaskName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,59}$`)

// Definition is what the files of one revision define. Tasks are in topological order, equal places
// by name: so equal content has equal bytes as JSON, and a plan can be written in this order.
// COMMIT is not among them. It is stored as JSON: the names of fields are never changed.
type Definition struct {
	Tasks  []Task `json:"tasks,omitempty"`
	Commit []Edge `json:"commit,omitempty"` // what COMMIT waits for in addition
}

// Hash is the SHA-256 of the definition as JSON, in hexadecimal: the same for the same tasks,
// however the files are written and named. Definitions are stored under it.
func (d *Definition) Hash() string {
	sum := sha256.Sum256(d.canonical())
	return hex.EncodeToString(sum[:])
}

// canonical is the definition as JSON: equal for equal content.
func (d *Definition) canonical() []byte { return asJSON(d) }

// Task is the task of the name, nil if there is none. It is part of the definition, and must not be
// changed. COMMIT is none.
func (d *Definition) Task(name string) *Task {
	i := slices.IndexFunc(d.Tasks, func(t Task) bool { return t.Name == name })
	if i < 0 {
		return nil
	}
	return &d.Tasks[i]
}

// asJSON is a definition or a task as JSON.
func asJSON(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // it consists of texts, numbers, lists and maps of texts
	}
	return data
}

// Task is the definition of a task, with its defaults filled in: what a default is can change later
// without changing what was planned.
type Task struct {
	Name string `json:"name"`

	// The longest way from a task without dependencies in the revision, 0 for one of these. An
	// instance waits only for those with a lower place.
	Place int `json:"place"`

	// Without that on COMMIT, which every task has; in one order: see sortEdges.
	Depends []Edge `json:"depends,omitempty"`

	// Names of tasks, sorted; its own name: it is latest-only.
	Cancels []string `json:"cancels,omitempty"`

	// If what it depends on is superseded, it waits for the superseder, and is not superseded, too.
	Follow bool `json:"follow,omitempty"`

	// What runs: Command or Script. With neither, an image runs what it is made for; and a task
	// without an image has nothing to run, and succeeds when it is its turn.
	Image   string `json:"image,omitempty"`
	Command string `json:"command,omitempty"`
	Script  string `json:"script,omitempty"`
	Shell   string `json:"shell,omitempty"`

	// Variables by name: the values are text, also of numbers.
	Env     map[string]string `json:"env,omitempty"`
	Secrets map[string]string `json:"secrets,omitempty"` // names in Secrets Manager, by variable

	// Values that people set when they start it by hand, by the names of their variables.
	Parameters map[string]Parameter `json:"parameters,omitempty"`

	// Dependencies whose outputs it finds, as Edge.String writes them, sorted.
	Inputs []string `json:"inputs,omitempty"`

	// Patterns of files in its working folder that are kept: see Selector.
	Outputs []string `json:"outputs,omitempty"`

	// How long an attempt takes at most, in whole seconds; as JSON in nanoseconds.
	Timeout time.Duration `json:"timeout"`
	Retries Retries       `json:"retries"`

	// Each revision plans it.
	OnCommit bool `json:"onCommit,omitempty"`

	// People may start it.
	OnDemand  bool       `json:"onDemand,omitempty"`
	Schedules []Schedule `json:"schedules,omitempty"`

	// Tasks of one lock run one at a time, in the order of revisions; "": it overlaps freely.
	Lock string `json:"lock,omitempty"`

	// Patterns: it is only for revisions that change such a path. Empty: for all.
	Paths []string `json:"paths,omitempty"`

	// interruptible: false. A superseder waits while it runs.
	Uninterruptible bool `json:"uninterruptible,omitempty"`

	// If it fails, those of its revision that wait for its success go on: see Finished.
	AllowFailure bool `json:"allowFailure,omitempty"`

	// Who starts what commits plan of it, when all that it waits for has ended; "": nobody needs to.
	Manual string `json:"manual,omitempty"`

	// Its name in earlier revisions, by which PREV still finds it there.
	Was string `json:"was,omitempty"`
}

// LatestOnly reports whether a newer instance of the task supersedes an older one (cancels: PREV).
func (t *Task) LatestOnly() bool {
	for _, name := range t.Cancels {
		if name == t.Name {
			return true
		}
	}
	return false
}

// Idle reports whether the task has nothing to run: others depend on it, or it shows that others
// have ended.
func (t *Task) Idle() bool { return t.Image == "" && t.Command == "" && t.Script == "" }

// Type is the type of a parameter. Values are text in any case, since they are variables: the type says
// which texts.
type Type string

// The types.
const (
	String  Type = "string"
	Integer Type = "integer"
	Number  Type = "number" // in decimal notation, without an exponent
	Boolean Type = "boolean"
)

// Parameter is a value that people can set when they start a task by hand. The task finds it as a variable.
type Parameter struct {
	Type Type `json:"type"`

	// The value if none is set; nil: one has to be set.
	Default *string `json:"default,omitempty"`

	// The values that there are; empty: all of the type.
	Options     []string `json:"options,omitempty"`
	Description string   `json:"description,omitempty"`
}

// Retries says how often a task is tried.
type Retries struct {
	// In all, at least 1: 1 means that a failure is the end.
	Attempts int `json:"attempts"`

	// Before the second attempt; it doubles with each. As JSON in nanoseconds.
	Backoff time.Duration `json:"backoff"`
}

// Wait is how long an instance waits after its n-th attempt (from 1) has failed: at most an hour.
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
	// Five fields: minute, hour, day of the month, month, day of the week.
	Cron string `json:"cron"`

	// A name of the IANA database, such as Europe/Berlin.
	Zone    string  `json:"zone"`
	Overlap Overlap `json:"overlap"`
}

// On says which end of the awaited instance an edge needs. Ended is any end.
type On string

// The conditions of edges.
const (
	Succeeded On = "succeeded"
	Ended     On = "ended"
	Failed    On = "failed"

	// Succeeded or failed: what an edge within a revision needs of a task that may fail. No file writes it.
	Finished On = "finished"
)

// Edge is a dependency: on another task of the revision, or on a task of an earlier one. Edges lead
// only to earlier revisions or to lower places, so no cycle of them is possible.
type Edge struct {
	Task string `json:"task"`

	// Prev: the task in the nearest earlier revision that has planned it.
	Prev bool `json:"prev,omitempty"`

	// Exact: of Prev, only the revision directly before counts; if it has not planned the task, the
	// edge is satisfied.
	Exact bool `json:"exact,omitempty"`
	On    On   `json:"on"`
}

// String is the edge as it is written in a file, without its condition.
func (e Edge) String() string {
	if e.Prev {
		return Prev + ":" + e.Task
	}
	return e.Task
}

// DefaultOn is the condition of an edge that names none: one within a revision needs success; one
// to an earlier revision any end, else one failure would block an archive for ever.
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

// Problem is why a file is no definition, for the person who wrote it. Line and Column count from
// 1, the column in characters; 0: it is of the file as a whole.
type Problem struct {
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Message string `json:"message"`
}
