// Package runner runs the command or script of a task: in a folder of its own, with the files of
// the revision, a time-out, output that is shown live, and outputs that are kept (source: the
// requirement "Ark Queue").
//
// A runner knows no rows. What it needs is in a Job, what came of it in a Result; all else is below
// the Job's prefix in a bucket. So its role can reach only that.
//
// The objects below a prefix are the whole state of an attempt, and each is written once:
//
//   - started is a claim: only the call that wrote it, on the condition that it was absent, runs
//     anything;
//   - log/ and outputs/ are written by that call alone;
//   - result is written if absent: so all calls of an attempt have one answer;
//   - cancel is written by others, and only read here.
//
// A call that is repeated, or a second one at the same time, finds the claim and waits for the
// result; if the time of the claim is over and there is none, the runner has died, and that becomes
// the result. Nothing is ever run twice.
//
// The files: job.go and limits.go (the values), runner.go (a runner, and a run of it), attempt.go (what is stored of an
// attempt: its claim and its result), run.go (a call, from the claim to the result), prepare.go, scratch.go and
// folder.go (what the task finds), inputs.go (what other runs have left for it), process.go, proc.go and log.go (the
// processes and their output), mask.go (secrets in it), outputs.go (files that are kept), logs.go (reading all this),
// container.go (the same in a container), control.go (what the state machine passes on), sandbox.go (what nothing of a
// task is left in), shield_linux.go (what processes must not see).
package runner

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

// Runner runs Jobs. All fields are needed but those of a container. Several calls may go on at the
// same time, also of several processes, with one Dir.
type Runner struct {
	Bucket Objects
	Name   string // of the bucket, which the Job has, too

	// Secrets reads a secret by its name. A fault.NotFound, fault.Denied or fault.Invalid is final;
	// what any other error says may pass.
	Secrets func(ctx context.Context, name string) (string, error)

	// Scratch folders are made here, and those of runners that died removed.
	Dir   string
	Now   func() time.Time
	NewID func() string
	Log   *slog.Logger

	// Variables of the image, which processes get: NAME=VALUE.
	Env []string

	// What the image is made for (its CMD): run if a task has neither command nor script.
	Made []string

	// Of a process that runs nothing but tasks, one after the other; nil: others use the process, too.
	Sandbox *Sandbox

	pace pace // zero: that of the constants
}

// pace has the times of a runner, which tests make shorter.
type pace struct{ parts, looks, grace, tries, words, reserve time.Duration }

var usual = pace{betweenParts, betweenLooks, Grace, betweenTries, lastWords, reserve}

// run is one call of Run, from the claim on.
type run struct {
	*Runner
	pace
	job   Job
	scope *folder

	// The program with its arguments; what a shell or an image is given.
	argv []string

	// All that the processes have as environment, the last value of a name counts.
	env []string
	log *output

	// Texts that must not be seen in the log.
	masked []string
	claim  Claim

	// When the processes are told to end: the earliest of the time-out, the deadline of the job and
	// that of the call.
	stop   time.Time
	result Result
}

// end sets how the run ended. What is Broken has no exit code.
func (x *run) end(end, format string, args ...any) {
	x.result.End, x.result.Reason = end, fmt.Sprintf(format, args...)
	if end == Broken {
		x.result.Exit = -1
	}
}
