package stage

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"time"

	"golang.org/x/sync/errgroup"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/notify"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/workspace"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/fetch"
	"archivist/pkg/objects/aip"
	"archivist/pkg/objects/ocfl"
)

const (
	pageJobs    = 250 // jobs of one page: some seconds of work
	detailed    = 20  // files of a job whose report lists each
	reportReads = 16  // jobs at once whose files are read
	// lenientAfter is how many tries require the files of every job.
	lenientAfter = 3
)

// reportPage is a part of a report: lines of jobs as JSON.
type reportPage struct {
	Failed    []json.RawMessage `json:"failed,omitempty"`
	Cancelled []json.RawMessage `json:"cancelled,omitempty"`
	Completed []json.RawMessage `json:"completed,omitempty"`
	Deleted   []json.RawMessage `json:"deleted,omitempty"`
	Open      []json.RawMessage `json:"open,omitempty"`
	Changes   notify.Changes    `json:"changes"` // of these jobs, since the earlier report
}

// Report gathers how every job of the batch ended, page by page from where an earlier try
// stopped, and joins the pages. Package mail composes the mail about it. In UpdateReporting
// it also compares each job with the batch's earlier report, and saves the new one beside it.
//
// A batch may have 99,999 jobs, more than one try can read: each page is saved when it
// is made. A batch of one page needs no page in the bucket.
type Report struct {
	Root ocfl.Root
	Work workspace.Store
	Jobs func(ctx context.Context, batch string, after int) ([]queue.Job, error) // in order of their rows
	Now  func() time.Time
}

// reporting is a report in progress.
type reporting struct {
	Report
	batch  *ingest.Batch
	number int
	pages  int
	// earlier is what the report is compared with; nil for the first report of a batch.
	earlier *earlier
}

// Run makes a batch's report.
func (r Report) Run(ctx context.Context, claim *queue.Claim) (ingest.Result, error) {
	b := claim.Batch
	// The number is that of the next report until the batch's row names it, at the end of the step:
	// so a second try writes to the same keys.
	m := reporting{
		Report: r,
		batch:  b,
		number: b.LastReport() + 1,
		pages:  (b.Unpacked + pageJobs - 1) / pageJobs,
	}

	if err := m.compareWith(ctx); err != nil {
		return ingest.Result{}, err
	}

	read := func(n int) (p reportPage, err error) {
		err = r.Work.GetJSON(ctx, workspace.PageKey(b, n), &p)
		return p, err
	}

	// Making the page again costs less than to save and to read it.
	if m.pages <= 1 {
		only, err := m.makePage(ctx, 0)
		if err != nil {
			return ingest.Result{}, err
		}
		read = func(int) (reportPage, error) { return only, nil }
	} else if all, err := m.makePages(ctx, claim.Until); err != nil || !all {
		return ingest.Result{Outcome: ingest.StepContinue}, err
	}

	counts, changes, err := m.join(ctx, read)
	if err != nil {
		return ingest.Result{}, err
	}

	// By what the report says, not by what the rows say by now: see Claim.Uncompleted.
	if counts.Failed+counts.Cancelled+counts.Open > 0 {
		claim.Uncompleted()
	}

	b.Report, b.Reports, b.Changes = workspace.ReportKey(b.ID, m.number), m.number, changes.News()
	b.URL = fetch.Redact(b.URL) // it is not fetched again
	if m.earlier != nil {
		claim.Remark(fmt.Sprintf("since the earlier report: %s",
			cmp.Or(changes.String(), "nothing has changed")))
	}
	return next, nil
}

// compareWith reads the earlier report, if the report is to be compared with one. What several
// pages are compared with is saved: each try would read a large report again.
func (m *reporting) compareWith(ctx context.Context) (err error) {
	switch {
	case m.batch.State != ingest.BatchUpdateReporting:
	case m.pages <= 1:
		m.earlier, err = m.readEarlier(ctx, m.batch)
	default:
		m.earlier, err = m.savedEarlier(ctx, m.batch)
	}
	return err
}

// makePages saves the missing pages: at least one, and more as long as there is time. all
// reports whether all are saved and there is time to join them. A page is as its jobs were when it
// was made, also if one of them is requeued later.
func (m *reporting) makePages(ctx context.Context, until time.Time) (all bool, err error) {
	saved := map[string]bool{}
	err = m.Work.List(ctx, workspace.PagePrefix(m.batch), func(o bucket.Listed) error {
		saved[path.Base(o.Key)] = true
		return nil
	})
	if err != nil {
		return false, err
	}

	began := len(saved)
	for n := range m.pages {
		key := workspace.PageKey(m.batch, n)
		if saved[path.Base(key)] {
			continue
		}

		if len(saved) > began && !m.Now().Before(until) {
			return false, nil
		}

		page, err := m.makePage(ctx, n)
		if err != nil {
			return false, err
		}

		if err := m.Work.PutJSON(ctx, key, page, bucket.Condition{}); err != nil {
			return false, err
		}

		saved[path.Base(key)] = true
	}

	return len(saved) == began || m.Now().Before(until), nil
}

// makePage reads how the jobs of page n ended.
func (m *reporting) makePage(ctx context.Context, n int) (reportPage, error) {
	var p reportPage
	last := min((n+1)*pageJobs, m.batch.Unpacked)
	for after := n * pageJobs; after < last; {
		jobs, err := m.Jobs(ctx, m.batch.ID, after)
		if err != nil {
			return p, err
		}

		jobs = jobs[:min(len(jobs), last-after)]
		after += len(jobs)
		lines, err := m.reportLines(ctx, jobs)
		if err != nil {
			return p, err
		}

		for i := range lines {
			m.add(&p, &jobs[i].Job, lines[i])
		}
	}

	return p, nil
}

// add adds a job's line to a page.
func (m *reporting) add(p *reportPage, j *ingest.Job, line json.RawMessage) {
	switch {
	// First: a cancelled job is Failed or Deleted as well.
	case j.Cancelled:
		p.Cancelled = append(p.Cancelled, line)
	case j.State == ingest.Completed:
		p.Completed = append(p.Completed, line)
	case j.State == ingest.Failed:
		p.Failed = append(p.Failed, line)
	case j.State == ingest.Deleted:
		p.Deleted = append(p.Deleted, line)
	default:
		p.Open = append(p.Open, line)
	}
	if m.earlier != nil {
		p.Changes.Count(m.earlier.change(j))
	}
}

// reportLines makes the lines of several jobs at once.
func (m *reporting) reportLines(ctx context.Context, jobs []queue.Job) ([]json.RawMessage, error) {
	lines := make([]json.RawMessage, len(jobs))
	var side errgroup.Group
	side.SetLimit(reportReads)
	for i := range jobs {
		side.Go(func() (err error) {
			lines[i], err = m.line(ctx, &jobs[i].Job)
			if err != nil {
				err = fmt.Errorf("report of job %s: %w", jobs[i].Job.ID, err)
			}
			return err
		})
	}

	return lines, side.Wait()
}

// line makes the line of a job, with its files if they are few. After several tries, or if the object is damaged, the
// line states that the files cannot be read, instead of an error. So one object that cannot be read does
// not hold back the report of all others.
func (m *reporting) line(ctx context.Context, j *ingest.Job) (json.RawMessage, error) {
	line := reportLine(j)
	if m.earlier != nil {
		line.Change, _ = m.earlier.change(j)
	}

	if files, _ := j.Content(); j.State == ingest.Completed && files <= detailed {
		var err error
		line.FileDetails, err = m.fileDetails(ctx, j)
		switch {
		case err != nil && (m.batch.Tries > lenientAfter || fault.Is(err, fault.Conflict)): // a damaged object stays so
			line.Problem = "the files could not be listed: " + queue.CauseOf(err)
		case err != nil:
			return nil, err
		}
	}

	return json.Marshal(line)
}

// reportLine is a job's line from its row, without files.
func reportLine(j *ingest.Job) notify.Job {
	line := notify.Job{
		Job:             j.ID,
		State:           string(j.State),
		Cancelled:       j.Cancelled,
		Source:          j.Payload.Source(),
		ARK:             j.Primary,
		LocalIDs:        j.LocalIDs,
		Title:           j.What,
		Version:         j.ObjectVersion,
		NoChange:        j.NoChange,
		InventoryDigest: j.Inventory,
		Warnings:        j.Warnings(),
		Message:         j.Message,
	}

	line.Files, line.Bytes = j.Content()
	if j.ObjectVersion > 0 {
		line.Receipt = notify.ReceiptPath(j.ID)
	}

	if j.State == ingest.Failed {
		line.Recoverable = !j.NotRecoverable
		line.Next = notify.NextStep(j.Cancelled, line.Recoverable)
	}

	return line
}

// isAsStored reports whether an object has the version of a job, as far as the job's row shows it. It costs no request:
// of an object with a later version, the inventory's digest says nothing.
func isAsStored(o *ocfl.Stored, j *ingest.Job) bool {
	return o.Head > j.ObjectVersion || o.Head == j.ObjectVersion && (j.Inventory == "" || o.Digest == j.Inventory)
}

// fileDetails lists a job's preserved files from the stored object. The row does not have them: a
// version is described by what is stored of it, unless that is not as the job has stored it. A Conflict says so.
func (r Report) fileDetails(ctx context.Context, j *ingest.Job) ([]notify.File, error) {
	stored, err := r.Root.Head(ctx, j.Primary)
	if err != nil {
		return nil, err
	}

	if !isAsStored(stored, j) {
		v, err := r.Root.Judge(ctx, j.Primary)
		return nil, cmp.Or(err, v.Err(), fault.New(fault.Conflict, "%s is not as this job has stored it", j.Primary))
	}

	entries, _, err := aip.Of(r.Root, stored, j.ObjectVersion).Files(ctx, 0, detailed+1)
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
