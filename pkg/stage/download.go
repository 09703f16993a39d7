package stage

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"path"
	"slices"
	"sync"
	"time"

	"archivist/pkg/bucket"
	"archivist/pkg/checkm"
	"archivist/pkg/fault"
	"archivist/pkg/fetch"
	"archivist/pkg/ingest"
	"archivist/pkg/ocfl"
	"archivist/pkg/queue"
)

func fileKey(job string, n int) string { return fmt.Sprintf("%sfiles/%06d", workPrefix(job), n) }
func halfKey(job, what string) string  { return workPrefix(job) + "half/" + what + ".json" }

// errStopped ends the reading of the rows.
var errStopped = errors.New("stopped")

// download gets every file that is not there yet, segment by segment, within the
// time budget.
func (s *Stages) download(ctx context.Context, h *queue.Held) (ingest.Result, error) {
	j := h.Job
	done, err := s.segments(ctx, j.ID)
	if err != nil {
		return ingest.Result{}, err
	}
	d := &transfer{s: s, job: j, began: s.Now(), until: h.Until, limit: make(chan struct{}, s.Parallel)}
	err = s.inSegments(ctx, j, func(n int, rows []checkm.Row) error {
		if done[n] {
			d.got += len(rows)
			return nil
		}
		return d.segment(ctx, n, rows)
	})
	var changed *changedError
	switch {
	case d.refused != "":
		return ingest.Fail(false, d.refused), nil
	case errors.As(d.err, &changed):
		return s.beginAgain(ctx, h, changed.why)
	case d.err != nil && !errors.Is(d.err, fetch.ErrStop):
		return failed(d.err)
	case errors.Is(err, errStopped):
		j.Checkpoint = fmt.Sprintf("%d of %d files", d.got, j.Files)
		return ingest.Result{Outcome: ingest.StepContinue}, nil
	case err != nil:
		return ingest.Result{}, err
	}
	return s.endDownload(ctx, j)
}

// beginAgain fails a job so that its requeue begins with detecting the payload's
// type: nothing of what came is kept.
func (s *Stages) beginAgain(ctx context.Context, h *queue.Held, why string) (ingest.Result, error) {
	all, err := s.Clean(ctx, h.Job.ID, h.Until)
	if err != nil || !all {
		return ingest.Result{Outcome: ingest.StepContinue}, err
	}
	j := h.Job
	j.LastSuccessful, j.Payload.Type, j.HasSpace = "", "", false
	return ingest.Fail(true, why+". Correct it at the source if that is wrong, then requeue the job: its type is detected again"), nil
}

// transfer is one try's downloads.
type transfer struct {
	s     *Stages
	job   *ingest.Job
	began time.Time // of the step's time budget
	until time.Time // its end
	limit chan struct{}

	mu      sync.Mutex
	got     int
	err     error
	refused string // a file that is not what the depositor said
}

// changedError says that the payload is not of the type that was detected.
type changedError struct{ why string }

func (e *changedError) Error() string { return e.why }

type refusedError struct{ why string }

func (e *refusedError) Error() string { return e.why }

func (d *transfer) note(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var refused *refusedError
	switch {
	case err == nil:
		d.got++
	case errors.As(err, &refused):
		d.refused = refused.why
	case d.err == nil:
		d.err = err
	}
}

func (d *transfer) stopped() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err != nil || d.refused != ""
}

// segment gets the files of one segment. What it has when it must stop is kept,
// so that finished files are not fetched again; a file larger than a part is kept
// at once.
func (d *transfer) segment(ctx context.Context, n int, rows []checkm.Row) error {
	entries := make([]*Entry, len(rows))
	if err := d.s.getJSON(ctx, unfinishedKey(d.job.ID, n), &entries); err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}
	var wg sync.WaitGroup
	for i, row := range rows {
		if entries[i] != nil {
			d.note(nil)
			continue
		}
		d.limit <- struct{}{}
		if d.stopped() || !d.s.Now().Before(d.until) {
			<-d.limit
			break
		}
		wg.Go(func() {
			defer func() { <-d.limit }()
			e, err := d.file(ctx, n*segmentFiles+i, row)
			if err == nil {
				err = d.keep(ctx, n, entries, i, e)
			}
			d.note(err)
		})
	}
	wg.Wait()
	if slices.Contains(entries, nil) {
		return errors.Join(errStopped, d.s.putJSON(ctx, unfinishedKey(d.job.ID, n), entries, bucket.Condition{}))
	}
	// A finished segment is never written again: not by one who comes late either.
	err := d.s.putJSON(ctx, segmentKey(d.job.ID, n), entries, bucket.Condition{Absent: true})
	if fault.Is(err, fault.Lost) {
		return nil
	}
	return err
}

// keep notes that a file is there.
func (d *transfer) keep(ctx context.Context, n int, entries []*Entry, i int, e Entry) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	entries[i] = &e
	if e.Size <= d.s.Work.Limits.Part {
		return nil
	}
	return d.s.putJSON(ctx, unfinishedKey(d.job.ID, n), entries, bucket.Condition{})
}

// file gets one file into the work bucket and checks it.
func (d *transfer) file(ctx context.Context, n int, row checkm.Row) (Entry, error) {
	key := fileKey(d.job.ID, n)
	sums, err := d.fetch(ctx, key, halfKey(d.job.ID, path.Base(key)), row)
	if err != nil {
		return Entry{}, fmt.Errorf("file %s: %w", row.Name, err)
	}
	why, err := d.s.notAsDetected(ctx, d.job, key)
	if err != nil {
		return Entry{}, err
	}
	if why != "" {
		return Entry{}, &changedError{why}
	}
	return describe(row, sums, key)
}

// describe holds a file that came against what the depositor said of it. A
// wrong digest refuses it; a wrong size only without a digest that is right.
func describe(row checkm.Row, sums *fetch.Digester, key string) (Entry, error) {
	digests := sums.Sums()
	e := Entry{File: ocfl.File{Path: "producer/" + row.Name, Size: sums.Size, Digests: digests, CRC64: sums.CRC64NVME(), Source: key},
		URL: fetch.Redact(row.URL), MediaType: row.MediaType, Modified: row.Modified}
	if e.MediaType == "" {
		e.MediaType = defaultType(row.Name)
	}
	if row.Digest != "" {
		e.Given = row.Algorithm
		if digests[row.Algorithm] != row.Digest {
			return e, &refusedError{fmt.Sprintf("file %s: the depositor's %s is %s, but what came (%d bytes) has %s", row.Name, row.Algorithm, row.Digest, sums.Size, digests[row.Algorithm])}
		}
	}
	if row.Size >= 0 && row.Size != sums.Size {
		e.Warning = fmt.Sprintf("the depositor's size is %d bytes, but %d came", row.Size, sums.Size)
		if row.Digest == "" {
			return e, &refusedError{fmt.Sprintf("file %s: %s, and there is no digest to tell which is right", row.Name, e.Warning)}
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

// endDownload corrects what the estimate guessed.
func (s *Stages) endDownload(ctx context.Context, j *ingest.Job) (ingest.Result, error) {
	n := 0
	j.Bytes, j.Warned, j.Checked, j.Fetched = 0, 0, 0, s.Now().UnixMilli()
	for e, err := range s.entries(ctx, j) {
		if err != nil {
			return ingest.Result{}, err
		}
		n++
		j.Bytes += e.Size
		if e.Given != "" {
			j.Checked++
		}
		if e.Warning != "" {
			j.Warned++
		}
	}
	if n != j.Files {
		return ingest.Result{}, fmt.Errorf("stage: the ledger of %s has %d files, its manifest %d", j.ID, n, j.Files)
	}
	if !j.SizeKnown {
		j.Priority = max(0, j.Priority-ingest.UnknownSizePenalty)
	}
	j.SpaceNeeded, j.SizeKnown = j.Bytes, true
	return next, nil
}
