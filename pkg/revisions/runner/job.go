package runner

import (
	"time"

	"archivist/pkg/revisions/workflow"
)

// Prefix begins the keys of all runs in the work bucket.
const Prefix = "runs/"

// Job is one attempt to run a task: what the function task-runner (in a Call) and a container read. It has at most
// MaxPayload bytes as JSON.
type Job struct {
	ID       string        `json:"id"` // of the attempt: "archive/12/name/1"
	Archive  string        `json:"archive"`
	Revision int64         `json:"revision"`
	Base     int64         `json:"base"` // the revision since which changes are to be handled, 0: none
	Attempt  int           `json:"attempt"`
	Task     workflow.Task `json:"task"`
	Bucket   string        `json:"bucket"`

	// Of the keys that it writes, e.g. "runs/maps/12/index/000001-01M7ZBMEYHBB62YP6RY21T1GQ6/";
	// unique to the attempt, and to the execution that runs it.
	Prefix string `json:"prefix"`

	// The key of a tar.gz with the files of the revision; "": there are none.
	Checkout string `json:"checkout"`

	// What others have left, for the task.
	Inputs []Input `json:"inputs,omitempty"`

	// Values of the task's parameters that were set, by the names of variables.
	Parameters map[string]string `json:"parameters,omitempty"`

	// Of the run, for commits and calls of the API. It is hidden in the log like a secret.
	Token string `json:"token"`

	// When it is told to end, whatever the time-out; zero: none.
	Deadline time.Time `json:"deadline"`
}

// Input is a folder with the outputs of another run.
type Input struct {
	// Its path below the folder of inputs, with slashes.
	Folder string `json:"folder"`

	// The instance that has left them, for people; "": there is none, and the folder is empty.
	Of string `json:"of,omitempty"`

	// The Prefix of its attempt; "": it has left nothing.
	Prefix string `json:"prefix,omitempty"`

	// The number of files, and the ListDigest of its outputs.
	Files int    `json:"files,omitempty"`
	List  string `json:"list,omitempty"`
}

// Keys below the Job's prefix.
const (
	// Parts of the output in their order: log/000001, …; a part is never changed.
	LogFolder = "log/"

	// Files that are kept, under their paths.
	OutputFolder = "outputs/"

	// If it exists, the run is to end; its content is the reason.
	CancelKey = "cancel"

	// A Claim as JSON: a runner has begun to run the attempt, which nobody does twice.
	StartedKey = "started"

	// The Result as JSON: a repeated call answers with it and runs nothing.
	ResultKey = "result"

	// The Job as JSON, if a container runs it: it is too large for an environment.
	JobKey = "job"
)

// Ends of a run.
const (
	Succeeded = "succeeded" // the exit code is 0
	Failed    = "failed"    // any other, or an output that could not be kept
	TimedOut  = "timed-out"
	Cancelled = "cancelled"
	Broken    = "broken" // it could not be run at all: Reason says why
)

// Result is what came of a Job. Times are in UTC, by the runner's clock. It has at most MaxPayload
// bytes of outputs as JSON.
type Result struct {
	End string `json:"end"`

	// The exit code; -1 if a signal ended the process, or it never ran.
	Exit    int       `json:"exit"`
	Reason  string    `json:"reason,omitempty"`
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended"`
	Outputs []Output  `json:"outputs,omitempty"`

	// Nothing of the task was begun, and neither the task nor its revision is to blame: the disk is full,
	// no memory is left, or its runner died before that.
	Unstarted bool `json:"unstarted,omitempty"`

	// Bytes of the output that are kept.
	LogSize int64 `json:"logSize"`

	// The output was longer, or a part of it could not be stored.
	Cut bool `json:"cut,omitempty"`
}

// Output is a file that is kept: its path below the folder where it was, its size in bytes, and its
// digest in hexadecimal.
type Output struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// Part is a part of the output of a run, as it is stored: lines of JSON. Text is UTF-8, in which
// secrets are hidden; it can end within a line of the output. Time is when it began.
type Part struct {
	Time   time.Time `json:"time"`
	Stream string    `json:"stream"` // "stdout" or "stderr", or Note
	Text   string    `json:"text"`
}

// Note is the stream of what the runner itself says, e.g. that the output is cut.
const Note = "runner"

// Claim is the content of StartedKey: who runs the attempt. It is never removed or changed.
type Claim struct {
	ID      string    `json:"id"` // of the call that runs the attempt
	Started time.Time `json:"started"`

	// By then the call has ended, and all its processes: a function cannot outlive its time-out.
	Until time.Time `json:"until"`
}
