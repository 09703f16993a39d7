package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"archivist/pkg/event"
	"archivist/pkg/fault"
	"archivist/pkg/ingest"
	"archivist/pkg/queue"
	"archivist/pkg/replica"
	"archivist/pkg/runner"
	"archivist/pkg/workspace"
)

// checkWork checks the next keys of the work bucket: work files belong to jobs that need
// them. What is of batches has a lifecycle rule, and reports are kept.
func checkWork(ctx context.Context, p *page) error {
	keys, next, err := p.Work.Page(ctx, p.cursor.At)
	if err != nil {
		return err
	}
	for i := 0; i < len(keys); {
		if i > 0 && p.enough() {
			p.cursor.At = keys[i-1]
			return nil
		}
		job, n := ofOneJob(keys[i:])
		i += n
		if job == "" {
			if err := p.checkWorkKey(ctx, keys[i-1]); err != nil {
				return err
			}
			continue
		}
		if i == len(keys) && next != "" {
			next = workspace.Jobs + job + "0" // sorts after the job's other files, which need not be listed
		}
		problems, err := p.workFiles(ctx, job)
		if err != nil {
			if outage(ctx, err) {
				return err
			}
			problems = unchecked("job:"+job, err)
		}
		p.out.Checked++
		if err := p.report(ctx, problems); err != nil {
			return err
		}
	}
	p.cursor.At = next
	return nil
}

// ofOneJob returns the job of the first key, and how many of the first keys are its. It
// returns "" and 1 if that is not a work file of a job.
func ofOneJob(keys []string) (job string, n int) {
	rest, found := strings.CutPrefix(keys[0], workspace.Jobs)
	job, _, inside := strings.Cut(rest, "/")
	if !found || !inside || job == "" {
		return "", 1
	}
	other := func(key string) bool { return !strings.HasPrefix(key, workspace.Prefix(job)) }
	n = slices.IndexFunc(keys, other)
	if n < 0 {
		n = len(keys)
	}
	return job, n
}

// checkWorkKey checks a key that is not a job's.
func (p *page) checkWorkKey(ctx context.Context, key string) error {
	p.out.Checked++
	for _, known := range []string{workspace.Batches, workspace.Reports, replica.Notes, replica.Quarantine,
		runner.Prefix} {
		if strings.HasPrefix(key, known) {
			return nil
		}
	}
	return p.report(ctx, []problem{{Finding: queue.Finding{Invariant: "work-key", Subject: key,
		Evidence: "no part of the system uses this key of the work bucket",
		Command:  "find out what wrote it; remove it with: aws s3 rm"}}})
}

// workFiles checks that a job with work files needs them.
func (p *page) workFiles(ctx context.Context, id string) ([]problem, error) {
	ended, err := p.Queue.JobEnded(ctx, id) // no late worker still writes some
	if err != nil || !ended {
		return nil, err
	}
	one := problem{Finding: queue.Finding{Invariant: "work-files", Subject: "job:" + id}}
	remove := func(ctx context.Context) error { return p.removeWork(ctx, id) }
	row, err := p.Queue.Job(ctx, id)
	switch {
	case err == nil && needsFiles(row):
		return nil, nil
	case err == nil:
		one.Evidence, one.repair = fmt.Sprintf("the job is %s and has no space, but has work files", row.State), remove
		return []problem{one}, nil
	case !fault.Is(err, fault.NotFound):
		return nil, err
	}

	last, err := p.lastState(ctx, subjectOf(event.Job, id))
	one.Evidence = "the job no longer exists, but has work files"
	switch ingest.State(last) {
	case ingest.Completed, ingest.Deleted:
		one.repair = remove
	case "":
		one.Evidence = "neither a row nor the history has this job: " +
			"the table may have been restored to an earlier time"
		one.Command = keepKeys
	default:
		one.Evidence = fmt.Sprintf("the job has no row; by its events it is %s", last)
		one.Command = restoreRow + "; the files may be the only copy"
	}
	return []problem{one}, err
}

// needsFiles reports whether a job may use its work files: a failed one also without space,
// since it can continue with its manifest.
func needsFiles(row *queue.Job) bool {
	return row.HasSpace || row.State != ingest.Completed && row.State != ingest.Deleted
}

// removeWork removes the work files of a job that has ended, unless it has changed.
func (p *page) removeWork(ctx context.Context, id string) error {
	row, err := p.Queue.Job(ctx, id)
	if err == nil && needsFiles(row) {
		return fault.New(fault.Conflict, "the job is %s now", row.State)
	}
	if err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}
	all, err := p.Queue.Clean(ctx, id, p.until)
	if err == nil && !all {
		err = fault.New(fault.Unavailable, "the time was too short for all files; run it again")
	}
	return err
}
