package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"archivist/pkg/events/check"
	"archivist/pkg/events/event"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/upload"
	"archivist/pkg/ingest/workspace"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/replica"
	"archivist/pkg/revisions/runner"
)

// checkWork checks the next keys of the work bucket: work files belong to jobs that need
// them. What is of batches has a lifecycle rule, and reports are kept.
//
// The keys of one job follow each other. The job is judged once, at its first key; the rest
// of its keys, which can be hundreds of thousands, are skipped by a cursor that sorts behind
// them.
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
			// It sorts after the job's other files, which need not be listed.
			next = workspace.Jobs + job + "0"
		}

		problems, err := p.workFiles(ctx, job)
		if err != nil {
			if outage(ctx, err) {
				return err
			}
			problems = []check.Problem{check.Unreadable("job:"+job, err)}
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
// returns "" and 1 if that is not a work file of a job. keys are in order, and at least one.
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

// checkWorkKey checks a key that is not a job's. Nothing is removed here: a key that this
// release does not know may be of a later one.
func (p *page) checkWorkKey(ctx context.Context, key string) error {
	p.out.Checked++
	if strings.HasPrefix(key, workspace.Uploads) {
		return p.checkUploaded(ctx, key)
	}
	for _, known := range []string{workspace.Batches, workspace.Reports, replica.Notes,
		replica.Quarantine,
		runner.Prefix} {
		if strings.HasPrefix(key, known) {
			return nil
		}
	}
	return p.report(ctx, []check.Problem{{
		Invariant: "work-key",
		Subject:   key,
		Evidence:  "no part of the system uses this key of the work bucket",
		Command:   "find out what wrote it; remove it with: aws s3 rm",
	}})
}

// checkUploaded checks that the upload of an object is there. An object is removed only if the history
// says that its upload was: if nothing knows the upload, the table is older than the bucket.
func (p *page) checkUploaded(ctx context.Context, key string) error {
	stray, err := upload.StrayOf(ctx, p.Table, key, p.Now())
	if stray == nil || err != nil {
		return err
	}

	one := check.Problem{Invariant: "upload-object", Subject: key, Command: keepKeys,
		Evidence: "neither a row nor the history has this upload: the table may have been restored to an " +
			"earlier time"}
	if stray.Removed {
		one.Evidence, one.Command = "its upload was removed", check.Repair
	}
	if stray.Removed && stray.Old {
		one.Repair = func(ctx context.Context) error { return p.Work.Delete(ctx, key) }
	}
	return p.report(ctx, []check.Problem{one})
}

// workFiles checks that a job with work files needs them. Files of a job without a row are
// removed only if its events say that it was completed or deleted. If neither the table nor
// the events know the job, the table is older than the bucket, and the files may be the only
// copy of what was submitted.
func (p *page) workFiles(ctx context.Context, id string) ([]check.Problem, error) {
	ended, err := p.Queue.JobEnded(ctx, id) // no late worker still writes some
	if err != nil || !ended {
		return nil, err
	}

	one := check.Problem{Invariant: "work-files", Subject: "job:" + id}
	remove := func(ctx context.Context) error { return p.removeWork(ctx, id) }
	row, err := p.Queue.Job(ctx, id)
	switch {
	case fault.Is(err, fault.NotFound): // its events tell
	case err != nil, needsFiles(row):
		return nil, err
	default:
		one.Evidence, one.Repair = fmt.Sprintf("the job is %s and has no space, but has work files",
			row.State), remove
		return []check.Problem{one}, nil
	}

	last, err := p.LastState(ctx, event.Subject{Type: event.Job, ID: id})
	one.Evidence = "the job no longer exists, but has work files"
	switch ingest.State(last) {
	case ingest.Completed, ingest.Deleted:
		one.Repair = remove
	case "":
		one.Evidence = "neither a row nor the history has this job: " +
			"the table may have been restored to an earlier time"
		one.Command = keepKeys
	default:
		one.Evidence = fmt.Sprintf("the job has no row; by its events it is %s", last)
		one.Command = check.Restore + "; the files may be the only copy"
	}
	return []check.Problem{one}, err
}

// needsFiles reports whether a job may use its work files: a failed one also without space,
// since it can continue with its manifest.
func needsFiles(row *queue.Job) bool {
	return row.HasSpace || row.State != ingest.Completed && row.State != ingest.Deleted
}

// removeWork removes the work files of a job that has ended, unless it has changed. The job is
// read again, since it may have been requeued after the check. Completed and Deleted are final,
// so a job that does not need its files here will not need them later.
func (p *page) removeWork(ctx context.Context, id string) error {
	row, err := p.Queue.Job(ctx, id)
	switch {
	case fault.Is(err, fault.NotFound): // its row was removed
	case err != nil:
		return err
	case needsFiles(row):
		return fault.New(fault.Conflict, "the job is %s now", row.State)
	}

	all, err := p.Queue.Clean(ctx, id, p.Until)
	if err != nil {
		return err
	}
	if !all {
		return fault.New(fault.Unavailable, "the time was too short for all files; run it again")
	}
	return nil
}
