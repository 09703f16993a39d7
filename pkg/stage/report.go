package stage

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"sync"

	"archivist/pkg/aip"
	"archivist/pkg/bucket"
	"archivist/pkg/fetch"
	"archivist/pkg/ingest"
	"archivist/pkg/notify"
	"archivist/pkg/queue"
	"archivist/pkg/workspace"
)

// ReportPath is the path of the API that gives a batch's report.
func ReportPath(batch string) string { return "/v1/batches/" + batch + "/report" }

// receiptPath is the path of the API that gives a job's receipt.
func receiptPath(job string) string { return "/v1/jobs/" + job + "/receipt" }

const (
	pageJobs    = 250 // jobs of one page: some seconds of work
	detailed    = 20  // files of a job whose report lists each
	reportReads = 16  // jobs at once whose files are read
	// lenientAfter is how many tries insist on the files of every job.
	lenientAfter = 3
)

// reportPage is a part of a report: lines of jobs as JSON.
type reportPage struct {
	Failed    []json.RawMessage `json:"failed,omitempty"`
	Completed []json.RawMessage `json:"completed,omitempty"`
	Open      []json.RawMessage `json:"open,omitempty"`
}

// report gathers how every job of the batch ended, page by page from where an
// earlier try got to, and joins the pages. The mail about it is apart (see Compose).
func (s *Stages) report(ctx context.Context, h *queue.Claim) (ingest.Result, error) {
	b := h.Batch
	pages := (b.Unpacked + pageJobs - 1) / pageJobs
	read := func(n int) (p reportPage, err error) { return p, s.Work.GetJSON(ctx, workspace.PageKey(b, n), &p) }
	if pages <= 1 {
		only, err := s.makePage(ctx, b, 0)
		if err != nil {
			return ingest.Result{}, err
		}
		read = func(int) (reportPage, error) { return only, nil }
	} else if all, err := s.makePages(ctx, h, pages); err != nil || !all {
		return ingest.Result{Outcome: ingest.StepContinue}, err
	}
	if err := s.joinReport(ctx, b, pages, read); err != nil {
		return ingest.Result{}, err
	}
	b.Report, b.URL = workspace.ReportKey(b.ID), fetch.Redact(b.URL) // it is not fetched again
	return next, nil
}

// makePages saves the pages that are missing, one at least, as long as there is time
// for more. Whether all are saved and there is time to join them is all.
func (s *Stages) makePages(ctx context.Context, h *queue.Claim, pages int) (all bool, err error) {
	saved := map[string]bool{}
	err = s.Work.List(ctx, workspace.PagePrefix(h.Batch), func(o bucket.Listed) error {
		saved[path.Base(o.Key)] = true
		return nil
	})
	if err != nil {
		return false, err
	}
	began := len(saved)
	for n := range pages {
		key := workspace.PageKey(h.Batch, n)
		if saved[path.Base(key)] {
			continue
		}
		if len(saved) > began && !s.Now().Before(h.Until) {
			return false, nil
		}
		page, err := s.makePage(ctx, h.Batch, n)
		if err != nil {
			return false, err
		}
		if err := s.Work.PutJSON(ctx, key, page, bucket.Condition{}); err != nil {
			return false, err
		}
		saved[path.Base(key)] = true
	}
	return len(saved) == began || s.Now().Before(h.Until), nil
}

// makePage reads how the jobs of page n ended.
func (s *Stages) makePage(ctx context.Context, b *ingest.Batch, n int) (reportPage, error) {
	var p reportPage
	last := min((n+1)*pageJobs, b.Unpacked)
	for after := n * pageJobs; after < last; {
		jobs, err := s.Queue.Jobs(ctx, b.ID, after)
		if err != nil {
			return p, err
		}
		jobs = jobs[:min(len(jobs), last-after)]
		after += len(jobs)
		lines, err := s.reportLines(ctx, jobs, b.Tries > lenientAfter)
		if err != nil {
			return p, err
		}
		for i, line := range lines {
			switch jobs[i].State {
			case ingest.Completed:
				p.Completed = append(p.Completed, line)
			case ingest.Failed:
				p.Failed = append(p.Failed, line)
			default:
				p.Open = append(p.Open, line)
			}
		}
	}
	return p, nil
}

// reportLines makes the lines of jobs side by side. A lenient one says of files that
// cannot be read that they cannot.
func (s *Stages) reportLines(ctx context.Context, jobs []queue.Job, lenient bool) ([]json.RawMessage, error) {
	lines, failed := make([]json.RawMessage, len(jobs)), make([]error, len(jobs))
	gate := make(chan struct{}, reportReads)
	var wg sync.WaitGroup
	for i := range jobs {
		gate <- struct{}{}
		wg.Go(func() {
			defer func() { <-gate }()
			j := &jobs[i].Job
			line := reportLine(j)
			if j.State == ingest.Completed && j.Files <= detailed {
				if line.FileDetails, failed[i] = s.fileDetails(ctx, j); failed[i] != nil && lenient {
					line.Problem, failed[i] = "the files could not be listed: "+failed[i].Error(), nil
				}
			}
			if failed[i] == nil {
				lines[i], failed[i] = json.Marshal(line)
			}
		})
	}
	wg.Wait()
	for i, err := range failed {
		if err != nil {
			return nil, fmt.Errorf("report of job %s: %w", jobs[i].Job.ID, err)
		}
	}
	return lines, nil
}

// reportLine is what a job's row says of how it ended.
func reportLine(j *ingest.Job) notify.Job {
	line := notify.Job{Job: j.ID, State: string(j.State), Source: fetch.Redact(j.URL), ARK: j.Primary, LocalIDs: j.LocalIDs,
		Title: j.What, Version: j.ObjectVersion, NoChange: j.NoChange, InventoryDigest: j.Inventory,
		Files: j.Files, Bytes: j.Bytes, Warnings: j.Warned, Message: j.Message}
	if j.ObjectVersion > 0 {
		line.Receipt = receiptPath(j.ID)
	}
	if j.State == ingest.Failed {
		line.Recoverable = !j.NotRecoverable
		line.Next = notify.NextStep(line.Recoverable)
	}
	return line
}

// fileDetails lists a job's preserved files from the stored object.
func (s *Stages) fileDetails(ctx context.Context, j *ingest.Job) ([]notify.File, error) {
	stored, err := s.Root.Head(ctx, j.Primary)
	if err != nil {
		return nil, err
	}
	entries, _, err := aip.Of(s.Root, stored, j.ObjectVersion).Files(ctx, 0, detailed+1)
	if err != nil {
		return nil, err
	}
	out := make([]notify.File, len(entries))
	for i, e := range entries {
		out[i] = notify.File{Path: e.Path, Size: e.Size, Digests: e.Digests, Warning: e.Warning}
		if e.Given != "" {
			out[i].Given = &notify.Digest{Algorithm: e.Given, Value: e.Digests[e.Given]}
		}
	}
	return out, nil
}

// reportOf begins a report. Its time is that at which the batch came to its state,
// so that a second try makes the same one.
func reportOf(b *ingest.Batch) notify.Report {
	return notify.Report{Batch: b.ID, Collection: b.Collection, Note: b.Note, At: ingest.Timestamp(b.Entered),
		Failed: []notify.Job{}, Completed: []notify.Job{}, Open: []notify.Job{}}
}
