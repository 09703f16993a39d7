// Package runner runs the command or script of a task: in a folder of its own, with the files of the revision, a
// time-out, output that is shown live, and outputs that are kept (source: the requirement "Ark Queue").
//
// A runner knows no rows. What it needs is in a Job, what came of it in a Result; all else is below the Job's
// prefix in a bucket. So its role can reach only that.
package runner

import (
	"time"

	"archivist/pkg/workflow"
)

// Prefix begins the keys of all runs in the work bucket.
const Prefix = "runs/"

// Job is one attempt to run a task. It is the input of the function task-runner.
type Job struct {
	ID       string        `json:"id"` // of the attempt: "archive/12/name/1"
	Archive  string        `json:"archive"`
	Revision int64         `json:"revision"`
	Base     int64         `json:"base"` // the last revision in which the task succeeded, 0: none
	Attempt  int           `json:"attempt"`
	Task     workflow.Task `json:"task"`
	Bucket   string        `json:"bucket"`
	Prefix   string        `json:"prefix"`   // of what it writes, e.g. "runs/archive/12/name/1/"; unique to the attempt
	Checkout string        `json:"checkout"` // the key of a tar.gz with the files of the revision
	Token    string        `json:"token"`    // of the run, for commits and calls of the API
	Deadline time.Time     `json:"deadline"` // by which it has ended, whatever the time-out
}

// Keys below the Job's prefix.
const (
	LogFolder    = "log/"     // parts of the output in their order: log/000001, …; a part is never changed
	OutputFolder = "outputs/" // files that are kept, under their paths
	CancelKey    = "cancel"   // if it exists, the run is to end; its content is the reason
	ResultKey    = "result"   // the Result as JSON: a repeated call answers with it and runs nothing
)

// Ends of a run.
const (
	Succeeded = "succeeded" // the exit code is 0
	Failed    = "failed"    // any other, or an output that could not be kept
	TimedOut  = "timed-out"
	Cancelled = "cancelled"
	Broken    = "broken" // it could not be run at all: Reason says why
)

// Result is what came of a Job.
type Result struct {
	End     string    `json:"end"`
	Exit    int       `json:"exit"` // -1 if it was ended by a signal
	Reason  string    `json:"reason,omitempty"`
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended"`
	Outputs []Output  `json:"outputs,omitempty"`
	LogSize int64     `json:"logSize"` // bytes
	Cut     bool      `json:"cut,omitempty"`
}

// Output is a file that is kept.
type Output struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// Part is a part of the output of a run, as it is stored: lines of JSON.
type Part struct {
	Time   time.Time `json:"time"`
	Stream string    `json:"stream"` // "stdout" or "stderr"
	Text   string    `json:"text"`
}
