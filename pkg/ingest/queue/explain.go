package queue

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/explain"
	"archivist/pkg/kernel/fetch"
	"archivist/pkg/kernel/source"
)

// ExplainJob explains what a job waits for, from its own row and the rows that it needs. A missing
// job is a NotFound. It changes nothing, and decides nothing.
func (q *Queue) ExplainJob(ctx context.Context, id string) (explain.Explanation, error) {
	return q.explain(ctx, id, q.explainJobID)
}

// explain explains what a thing waits for, down to the root: of, its own part, and those of the jobs and batches
// behind it.
func (q *Queue) explain(ctx context.Context, id string,
	of func(ctx context.Context, id string) (explain.Part, error)) (explain.Explanation, error) {
	first, err := of(ctx, id)
	if err != nil {
		return explain.Explanation{}, err
	}

	return explain.Chain(first, func(id string) (explain.Part, error) {
		if strings.Contains(id, "-") {
			return q.explainJobID(ctx, id)
		}
		return q.explainBatch(ctx, id)
	})
}

// says is the part of an explanation that a state decides.
func says(w explain.Wait, why string, do ...explain.Step) explain.Part {
	return explain.Part{Link: explain.Link{Waits: w, Why: why}, Do: do}
}

// explained completes the part of a job or a batch with what is the same for both.
func explained(x *explain.Part, kind string, it item, id, state string, since int64) {
	x.Kind, x.ID, x.State, x.Since = kind, id, state, since
	row := it.common()
	if _, driven := it.stage(); driven {
		x.Add("execution", ExecutionName(id, row.Exec))
		x.Add("lease of the worker ends", stamp(row.Until))
	}

	x.Add("tries since the last progress", count(int64(row.Tries)))
	x.Add("executions that were replaced", count(int64(row.Repairs)))
	x.Add("checked again", stamp(row.Due))
}

// stamp is a time in milliseconds as people read it, "" for none.
func stamp(ms int64) string {
	if ms == 0 {
		return ""
	}
	return ingest.Timestamp(ms)
}

// count is a number as people read it, "" for none.
func count(n int64) string {
	if n == 0 {
		return ""
	}
	return ingest.Number(n)
}

func (q *Queue) explainJobID(ctx context.Context, id string) (x explain.Part, err error) {
	row, err := q.Job(ctx, id)
	if err != nil {
		return x, err
	}

	j := &row.Job
	switch _, driven := row.stage(); {
	case driven:
		x = q.explainStage(row, doing(j))
	case j.Deferred():
		x = says(explain.Source,
			fmt.Sprintf("%s; the source asks to wait, so try %d starts after %s. The last try failed: %s",
				doing(j), j.Tries+1, ingest.Timestamp(j.Due), sentence(j.Message)))
		x.Until = j.Due
	case j.Waiting():
		x, err = q.explainWaiting(ctx, j)
	case j.State == ingest.Held:
		x, err = q.explainHeld(ctx, j.Hold, j.Collection, j.Batch, j.ID)
	default:
		x = explainEnd(j)
	}

	explained(&x, explain.Job, row, j.ID, string(j.State), j.Entered)
	return x, err
}

// explainEnd explains how a job ended.
func explainEnd(j *ingest.Job) explain.Part {
	switch j.State {
	case ingest.Completed:
		what := fmt.Sprintf("as version %d of %s", j.ObjectVersion, j.Primary)
		if j.NoChange {
			return says(explain.Nothing, "Completed: the same content is already preserved "+what+".")
		}
		return says(explain.Nothing, "Completed: preserved "+what+".")
	case ingest.Failed:
		return explainFailed(j)
	}
	return says(explain.Nothing, "It was "+sentence(cmp.Or(j.Message, "deleted")))
}

// explainFailed returns the job's message, which states what to do.
func explainFailed(j *ingest.Job) explain.Part {
	why := fmt.Sprintf("Failed%s: %s", failedWhile(j), sentence(j.Message))
	requeue := explain.Step{What: "When the cause is corrected, requeue it",
		Command: "archivist job requeue " + j.ID + " --reason TEXT"}
	switch {
	case j.NotRecoverable:
		return says(explain.Nothing, why+" This job cannot be requeued.")
	case j.Cleaning && j.Blocked != "":
		x := says(explain.Person,
			why+fmt.Sprintf(" Its work files could not be removed; an operator must correct this: %s "+
				"They are tried again after %s; then it can be requeued.", sentence(j.Blocked),
				ingest.Timestamp(j.Due)), requeue)
		x.Until = j.Due
		return x
	case j.Cleaning:
		return says(explain.Person,
			why+" Its work files are being removed; it can be requeued when that is done.", requeue)
	}
	return says(explain.Person, why, requeue)
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
func (q *Queue) explainStage(it item, doing string) explain.Part {
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
		return says(explain.Worker, doing+"."+lastTry(row, stage, ended))
	case live:
		return says(explain.Worker, fmt.Sprintf("%s, try %d.%s", doing, row.Tries, lastTry(row, stage, ended)))
	case row.Blocked != "":
		x := says(explain.Person,
			fmt.Sprintf("%s stopped; an operator must correct this: %s It then continues by itself, at "+
				"the latest after %s.",
				doing, sentence(row.Blocked), ingest.Timestamp(row.Due)))
		x.Until = row.Due
		return x
	case row.Tries > 0:
		return says(explain.Start, fmt.Sprintf("%s; try %d starts shortly.%s", doing, row.Tries+1,
			lastTry(row, stage, ended)))
	// A single repair can follow a lost wake-up.
	case row.Repairs > 1:
		return says(explain.Person,
			fmt.Sprintf("%s stopped: no worker could take it, although it was restarted %d times. "+
				"An operator must check the log of the function %s, its permissions for the table, and its "+
				"dead-letter queue.",
				doing, row.Repairs, stage.Name))
	}
	return says(explain.Start, doing+"; a worker starts shortly.")
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

	if source.IsUpload(j.URL) {
		return j.Payload.Source()
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
