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

// Job is one attempt to run a task. It is the input of the function task-runner, and what a container reads.
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
	Deadline time.Time     `json:"deadline"` // when it is told to end, whatever the time-out; zero: none
}

// Keys below the Job's prefix.
const (
	LogFolder    = "log/"     // parts of the output in their order: log/000001, …; a part is never changed
	OutputFolder = "outputs/" // files that are kept, under their paths
	CancelKey    = "cancel"   // if it exists, the run is to end; its content is the reason
	StartedKey   = "started"  // a Claim as JSON: a runner has begun to run the attempt, which nobody does twice
	ResultKey    = "result"   // the Result as JSON: a repeated call answers with it and runs nothing
	JobKey       = "job"      // the Job as JSON, if a container runs it
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
	Stream string    `json:"stream"` // "stdout" or "stderr", or Note
	Text   string    `json:"text"`
}

// Note is the stream of what the runner itself says, e.g. that the output is cut.
const Note = "runner"

// Limits of a run, each with its reason.
const (
	MaxCheckout   = 4 << 30          // bytes of the files of a revision: scratch space of a function is 10 GiB
	MaxOutputs    = 1000             // files: a Result names them all
	MaxOutputSize = 1 << 30          // bytes of all outputs: they are kept within Saving
	MaxLog        = 10 << 20         // bytes of the output: people read it, and it is in memory if the bucket is slow
	MaxPayload    = 200 << 10        // bytes of a Job or a Result as JSON: Step Functions passes on at most 256 KiB
	Grace         = 10 * time.Second // between SIGTERM and SIGKILL
	Saving        = 90 * time.Second // for the outputs of a run, once its processes have ended
	partSize      = 64 << 10         // bytes of output in a part of the log
	maxKey        = 1024             // bytes of a key in S3
	reserve       = 30 * time.Second // at the end of a function's time: for outputs and the result
	betweenParts  = time.Second
	betweenLooks  = 2 * time.Second // at CancelKey
	betweenTries  = time.Second     // to store the Result
	lastWords     = 2 * time.Second // for what is left in the pipes of processes that have ended
)

// Margin is how long after its Deadline a run has ended at the latest, with its outputs.
const Margin = Grace + lastWords + Saving

// What the attempt of a container takes longer than that of a function.
const (
	Pulling  = 10 * time.Minute // until its program begins: ECS finds a place for it and pulls the image
	Stopping = 3 * time.Minute  // from its end until that is known
)

// Claim is the content of StartedKey.
type Claim struct {
	ID      string    `json:"id"` // of the call that runs the attempt
	Started time.Time `json:"started"`
	Until   time.Time `json:"until"` // by then the call has ended, and all its processes
}
