package stage

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"path"
	"slices"
	"strings"
	"sync"

	"archivist/pkg/aip"
	"archivist/pkg/checkm"
	"archivist/pkg/fault"
	"archivist/pkg/fetch"
	"archivist/pkg/ingest"
	"archivist/pkg/ocfl"
	"archivist/pkg/payload"
	"archivist/pkg/queue"
	"archivist/pkg/transfer"
	"archivist/pkg/workspace"
)

// errStopped ends the reading of the rows.
var errStopped = errors.New("stopped")

// download gets every file that is not there yet, segment by segment, within the
// time budget.
func (s *Stages) download(ctx context.Context, h *queue.Claim) (ingest.Result, error) {
	j := h.Job
	d := &try{job: j, limit: make(chan struct{}, s.Parallel), Transfer: transfer.Transfer{
		Fetch: s.Fetch, Work: s.Work, Now: s.Now, Began: s.Now(), Until: h.Until, First: j.FirstTry()}}
	done, err := map[int]bool{}, error(nil)
	if !d.First {
		done, err = s.Work.FinishedSegments(ctx, j.ID)
	}
	if err != nil {
		return ingest.Result{}, err
	}
	d.own = len(done) == 0
	err = s.Work.Segments(ctx, j, func(n int, rows []checkm.Row) error {
		if done[n] {
			d.got += len(rows)
			return nil
		}
		return d.segment(ctx, n, rows)
	})
	var changed *changedError
	switch {
	case errors.As(d.err, &changed):
		return s.beginAgain(ctx, h, changed.why)
	case d.err != nil && !errors.Is(d.err, fetch.ErrStop):
		return ingest.Result{}, d.err
	case len(d.problems) > 0:
		return d.failure(), nil
	case errors.Is(err, errStopped):
		j.Checkpoint = fmt.Sprintf("%d of %d files", d.got, j.Files)
		return ingest.Result{Outcome: ingest.StepContinue}, nil
	case err != nil:
		return ingest.Result{}, err
	}
	return s.endDownload(ctx, d)
}

// beginAgain fails a job so that its requeue begins with Estimate, where a payload's
// type that was not given is detected: nothing that was downloaded is kept.
func (s *Stages) beginAgain(ctx context.Context, h *queue.Claim, why string) (ingest.Result, error) {
	all, err := s.Clean(ctx, h.Job.ID, h.Until)
	if err != nil || !all {
		return ingest.Result{Outcome: ingest.StepContinue}, err
	}
	j := h.Job
	j.LastSuccessful, j.HasSpace = "", false
	if j.Detected {
		j.Payload.Type = ""
	}
	return ingest.Fail(true, why+". Correct it at the source if that is wrong, then requeue the job: it begins again"), nil
}

// try is one try's downloads.
type try struct {
	transfer.Transfer
	job   *ingest.Job
	limit chan struct{}

	own  bool // the whole ledger is of this try
	came tally

	mu       sync.Mutex
	got      int
	err      error // ends the try
	problems []problem
}

// problem is a file that cannot be taken.
type problem struct {
	n     int // of the file
	why   string
	final bool // another try gives the same
}

// maxProblems is how many files that cannot be taken are named. Then the download
// ends: a source that is down is not asked for every file.
const maxProblems = 20

// maxProblem bounds what is said of one of them, in bytes.
const maxProblem = 400

// changedError says that what was downloaded is not what it was before.
type changedError struct{ why string }

func (e *changedError) Error() string { return e.why }

// refusedError says that a file is not what the depositor said.
type refusedError struct{ why string }

func (e *refusedError) Error() string { return e.why }

// note counts a file, or keeps why it cannot be taken, or what ends the try.
func (d *try) note(n int, row checkm.Row, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var refused *refusedError
	switch {
	case err == nil:
		d.got++
	case errors.As(err, &refused), unfetched(err):
		why := fmt.Sprintf("file %s: %v", ingest.Cut(row.Name, maxProblem/4), err)
		d.problems = append(d.problems, problem{n, ingest.Cut(why, maxProblem), !mayRecover(err)})
	case d.err == nil:
		d.err = err
	}
}

func (d *try) stopped() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err != nil || len(d.problems) >= maxProblems
}

// failure names every file that cannot be taken.
func (d *try) failure() ingest.Result {
	slices.SortFunc(d.problems, func(a, b problem) int { return a.n - b.n })
	final, whys := false, make([]string, len(d.problems))
	for i, p := range d.problems {
		final, whys[i] = final || p.final, p.why
	}
	text := strings.Join(whys[:min(len(whys), maxProblems)], "; ")
	if len(whys) > 1 {
		text = fmt.Sprintf("%d of %d files cannot be taken: %s", len(whys), d.job.Files, text)
	}
	if left := d.job.Files - d.got - len(whys); left > 0 {
		text += fmt.Sprintf("; %d files were not tried", left)
	}
	if final {
		return ingest.Fail(false, text+". Correct the files or what is said of them, then submit it again")
	}
	return ingest.Fail(true, text+". Correct it at the source, then requeue the job")
}

// segment gets the files of one segment. What it has when it must stop is kept,
// so that finished files are not fetched again; a file larger than a part is kept
// at once.
func (d *try) segment(ctx context.Context, n int, rows []checkm.Row) error {
	entries := make([]*aip.Entry, len(rows))
	if !d.First {
		var err error
		if entries, err = d.Work.Unfinished(ctx, d.job.ID, n, len(rows)); err != nil {
			return err
		}
	}
	var wg sync.WaitGroup
	for i, row := range rows {
		if entries[i] != nil {
			d.note(i, row, nil)
			continue
		}
		d.limit <- struct{}{}
		if d.stopped() || d.TimeUp() {
			<-d.limit
			break
		}
		wg.Go(func() {
			defer func() { <-d.limit }()
			e, err := d.file(ctx, n*workspace.SegmentFiles+i, row)
			if err == nil {
				err = d.keep(ctx, n, entries, i, e)
			}
			d.note(n*workspace.SegmentFiles+i, row, err)
		})
	}
	wg.Wait()
	if slices.Contains(entries, nil) {
		err := d.Work.PutUnfinished(ctx, d.job.ID, n, entries)
		if err == nil && (d.stopped() || d.TimeUp()) {
			err = errStopped
		}
		return err // without one, a file has a problem: those of other segments are looked for, too
	}
	err := d.Work.PutSegment(ctx, d.job.ID, n, entries)
	if fault.Is(err, fault.Stale) {
		d.own = false
		return d.same(ctx, n, entries)
	}
	for _, e := range entries {
		d.came.add(*e)
	}
	return err
}

// same compares a segment with the one that another try wrote. Both tries wrote to the
// same keys: if the source changed between them, the files are not those of the ledger.
func (d *try) same(ctx context.Context, n int, entries []*aip.Entry) error {
	stands, err := d.Work.Segment(ctx, d.job.ID, n)
	if err != nil {
		return err
	}
	for i, e := range stands {
		if i >= len(entries) || e.Digests["sha512"] != entries[i].Digests["sha512"] {
			d.note(i, checkm.Row{}, &changedError{"the content at the source changed while two tries downloaded it"})
			return errStopped
		}
	}
	return nil
}

// keep notes that a file is there.
func (d *try) keep(ctx context.Context, n int, entries []*aip.Entry, i int, e aip.Entry) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	entries[i] = &e
	if e.Size <= d.Work.Limits.Part {
		return nil
	}
	return d.Work.PutUnfinished(ctx, d.job.ID, n, entries)
}

// file gets one file into the work bucket and checks it.
func (d *try) file(ctx context.Context, n int, row checkm.Row) (aip.Entry, error) {
	key := workspace.FileKey(d.job.ID, n)
	came, err := d.File(ctx, row, key, workspace.PartialKey(d.job.ID, path.Base(key)))
	if err != nil {
		return aip.Entry{}, err
	}
	why, err := payload.Changed(ctx, d.job, came.Text())
	if err != nil {
		return aip.Entry{}, err
	}
	if why != "" {
		return aip.Entry{}, &changedError{why}
	}
	return describe(row, came.Sums, key)
}

// describe holds a file that came against what the depositor said of it. A
// wrong digest refuses it; a wrong size only without a digest that is right.
func describe(row checkm.Row, sums *fetch.Digester, key string) (aip.Entry, error) {
	digests := sums.Sums()
	e := aip.Entry{File: ocfl.File{Path: "producer/" + row.Name, Size: sums.Size, Digests: digests, CRC64: sums.CRC64NVME(), Source: key},
		URL: fetch.Redact(row.URL), MediaType: row.MediaType, Modified: row.Modified}
	if e.MediaType == "" {
		e.MediaType = defaultType(row.Name)
	}
	if row.Digest != "" {
		e.Given = row.Algorithm
		if digests[row.Algorithm] != row.Digest {
			return e, &refusedError{fmt.Sprintf("the depositor's %s is %s, but what came (%d bytes) has %s", row.Algorithm, row.Digest, sums.Size, digests[row.Algorithm])}
		}
	}
	if row.Size >= 0 && row.Size != sums.Size {
		e.Warning = fmt.Sprintf("the depositor's size is %d bytes, but %d came", row.Size, sums.Size)
		if row.Digest == "" {
			return e, &refusedError{e.Warning + ", and there is no digest to tell which is right"}
		}
	}
	return e, nil
}

// defaultType is the media type that a file's name suggests. It names no charset:
// nobody said in which the file is.
func defaultType(name string) string {
	if t, _, err := mime.ParseMediaType(mime.TypeByExtension(path.Ext(name))); err == nil {
		return t
	}
	return "application/octet-stream"
}

// tally adds up files.
type tally struct {
	files, warned, checked int
	bytes                  int64
}

func (t *tally) add(e aip.Entry) {
	t.files++
	t.bytes += e.Size
	if e.Given != "" {
		t.checked++
	}
	if e.Warning != "" {
		t.warned++
	}
}

// endDownload corrects what the estimate guessed. A ledger that is not all of this try
// is read.
func (s *Stages) endDownload(ctx context.Context, d *try) (ingest.Result, error) {
	j := d.job
	if !d.own {
		d.came = tally{}
		for e, err := range s.Work.Entries(ctx, j) {
			if err != nil {
				return ingest.Result{}, err
			}
			d.came.add(e)
		}
	}
	j.Bytes, j.Warned, j.Checked, j.Fetched = d.came.bytes, d.came.warned, d.came.checked, s.Now().UnixMilli()
	if d.came.files != j.Files {
		return ingest.Result{}, fmt.Errorf("stage: the ledger of %s has %d files, its manifest %d", j.ID, d.came.files, j.Files)
	}
	if !j.SizeKnown {
		j.Priority = max(0, j.Priority-ingest.UnknownSizePenalty)
	}
	j.SpaceNeeded, j.SizeKnown = j.Bytes, true
	return next, nil
}
