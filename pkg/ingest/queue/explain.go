package queue

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fetch"
)

// ExplainJob explains what a job waits for, from its own row and the rows that it needs. A missing
// job is a NotFound. It changes nothing, and decides nothing.
func (q *Queue) ExplainJob(ctx context.Context, id string) (Explanation, error) {
	row, err := q.Job(ctx, id)
	if err != nil {
		return Explanation{}, err
	}
	return q.explainJob(ctx, row)
}

// explainJob explains a job whose row is read.
func (q *Queue) explainJob(ctx context.Context, row *Job) (x Explanation, err error) {
	j := &row.Job
	switch _, driven := row.stage(); {
	case driven:
		x.Waits, x.Why = q.explainStage(row, doing(j))
	case j.Deferred():
		x.Waits = OnSource
		x.Why = fmt.Sprintf("%s; the source asks to wait, so try %d starts after %s. The last try failed: %s",
			doing(j), j.Tries+1, ingest.Timestamp(j.Due), sentence(j.Message))
	case j.Waiting():
		x, err = q.explainWaiting(ctx, j)
	case j.State == ingest.Held:
		var active *Hold
		active, err = q.holdOn(ctx, j.Collection, j.Batch)
		x.Waits, x.Why = explainHeld(ingest.TargetJob, j.Hold, active)
	default:
		x.Waits, x.Why = explainEnd(j)
	}

	x.State, x.Details = string(j.State), details(row, j.ID)
	return x, err
}

// explainEnd explains how a job ended.
func explainEnd(j *ingest.Job) (WaitsOn, string) {
	switch j.State {
	case ingest.Completed:
		what := fmt.Sprintf("as version %d of %s", j.ObjectVersion, j.Primary)
		if j.NoChange {
			return OnNothing, "Completed: the same content is already preserved " + what + "."
		}
		return OnNothing, "Completed: preserved " + what + "."
	case ingest.Failed:
		return explainFailed(j)
	}
	return OnNothing, "It was " + sentence(cmp.Or(j.Message, "deleted"))
}

// explainFailed returns the job's message, which states what to do.
func explainFailed(j *ingest.Job) (WaitsOn, string) {
	why := fmt.Sprintf("Failed%s: %s", failedWhile(j), sentence(j.Message))
	switch {
	case j.NotRecoverable:
		return OnNothing, why + " This job cannot be requeued."
	case j.Cleaning && j.Blocked != "":
		return OnPerson, why + fmt.Sprintf(" Its work files could not be removed; an operator must correct this: %s "+
			"They are tried again after %s; then it can be requeued.", sentence(j.Blocked), ingest.Timestamp(j.Due))
	case j.Cleaning:
		return OnPerson, why +
			" Its work files are being removed; it can be requeued when that is done."
	}
	return OnPerson, why
}

// failedWhile returns what a job was doing when it failed. That is no longer known if its
// work files were removed, so that it has to start again.
func failedWhile(j *ingest.Job) string {
	if j.LastSuccessful == "" {
		return ""
	}
	// A job fails in the state after its last successful one.
	switch at := ingest.After(j.LastSuccessful); at {
	case ingest.Provisioning:
		return " while waiting to download"
	case ingest.Notify:
		return " while notifying"
	default:
		return " while " + strings.ToLower(string(at))
	}
}

// explainStage explains what a stage does for an item, its progress, and why the last try
// failed. Whether a worker has it is told by the lease on its row, not by the execution.
func (q *Queue) explainStage(it item, doing string) (WaitsOn, string) {
	row := it.common()
	stage, _ := it.stage()
	if row.Checkpoint != "" {
		doing += ": " + row.Checkpoint
	}

	live := row.Live(q.Now())
	ended := row.Tries // tries that have ended
	// A worker is at it: this try has not ended.
	if live {
		ended--
	}

	switch {
	case live && row.Tries <= 1:
		return OnWorker, doing + "." + lastTry(row, stage, ended)
	case live:
		return OnWorker, fmt.Sprintf("%s, try %d.%s", doing, row.Tries, lastTry(row, stage, ended))
	case row.Blocked != "":
		return OnPerson,
			fmt.Sprintf("%s stopped; an operator must correct this: %s It then continues by itself, at "+
				"the latest after %s.",
				doing, sentence(row.Blocked), ingest.Timestamp(row.Due))
	case row.Tries > 0:
		return OnStart, fmt.Sprintf("%s; try %d starts shortly.%s", doing, row.Tries+1,
			lastTry(row, stage, ended))
	// A single repair can follow a lost wake-up.
	case row.Repairs > 1:
		return OnPerson,
			fmt.Sprintf("%s stopped: no worker could take it, although it was restarted %d times. "+
				"An operator must check the log of the function %s, its permissions for the table, and its "+
				"dead-letter queue.",
				doing, row.Repairs, stage.Name)
	}
	return OnStart, doing + "; a worker starts shortly."
}

// lastTry explains why the last of the ended tries failed.
func lastTry(row common, stage ingest.Stage, ended int) string {
	switch {
	case *row.Message != "":
		return " The last try failed: " + sentence(*row.Message)
	case ended > 0:
		return " The last try failed: " + sentence(endedSilently(stage))
	}
	return ""
}

// doing names what the stage of a job's state does.
func doing(j *ingest.Job) string {
	switch j.State {
	case ingest.Estimating:
		return "Checking the size of " + payload(j)
	case ingest.Downloading:
		return "Downloading " + payload(j)
	case ingest.Processing:
		return "Identifying the object and describing its new version"
	case ingest.Storing:
		return "Storing the new version of " + cmp.Or(j.Primary, "the object")
	case ingest.Recording:
		return fmt.Sprintf("Recording version %d of %s", j.ObjectVersion, j.Primary)
	case ingest.Notify:
		return fmt.Sprintf("Preserved as version %d of %s; notifying the depositor's server",
			j.ObjectVersion,
			j.Primary)
	}
	return string(j.State)
}

// payload names what a job fetches.
func payload(j *ingest.Job) string {
	if j.Files > 1 {
		return ingest.Number(j.Files) + " files"
	}

	url := fetch.Redact(j.URL)
	host := fetch.Host(url)
	name := cmp.Or(j.Filename,
		strings.TrimSuffix(url[strings.LastIndexByte(url, '/')+1:], "?redacted"))
	if host == "" || name == "" {
		return "the content"
	}
	return fmt.Sprintf("%s from %s", name, host)
}
