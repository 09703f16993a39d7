package stage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"archivist/pkg/checkm"
	"archivist/pkg/fetch"
	"archivist/pkg/ingest"
	"archivist/pkg/ocfl"
	"archivist/pkg/queue"
)

// Entry is one line of a job's ledger: a file that is in the work bucket, with
// everything that was learned of it.
type Entry struct {
	ocfl.File
	URL       string `json:"url"` // redacted
	MediaType string `json:"mediaType"`
	Modified  string `json:"modified,omitempty"`
	Given     string `json:"given,omitempty"` // the depositor's algorithm, if there was a digest
	Warning   string `json:"warning,omitempty"`
	At        int64  `json:"at"` // milliseconds since 1970
}

func ledgerKey(job string) string      { return workPrefix(job) + "ledger.json" }
func fileKey(job string, n int) string { return fmt.Sprintf("%sfiles/%06d", workPrefix(job), n) }
func halfKey(job string, n int) string { return fmt.Sprintf("%shalf/%06d.json", workPrefix(job), n) }
func doneKey(job string, n int) string { return fmt.Sprintf("%sdone/%06d.json", workPrefix(job), n) }

// download gets every file that is not there yet, within the time budget, and
// then writes the ledger.
func (s *Stages) download(ctx context.Context, h *queue.Held) (ingest.Result, error) {
	j := h.Job
	rows, err := s.rows(ctx, j)
	if err != nil {
		return ingest.Result{}, err
	}
	done, err := s.doneFiles(ctx, j.ID)
	if err != nil {
		return ingest.Result{}, err
	}
	d := &transfer{s: s, job: j, until: h.Until, limit: make(chan struct{}, s.Parallel)}
	for n, row := range rows {
		if done[n] {
			continue
		}
		d.limit <- struct{}{}
		if d.stopped() || !s.Now().Before(h.Until) {
			break
		}
		d.wg.Go(func() {
			defer func() { <-d.limit }()
			d.note(d.file(ctx, n, row))
		})
	}
	d.wg.Wait()
	switch {
	case d.refused != "":
		return ingest.Fail(false, d.refused), nil
	case d.err != nil && !errors.Is(d.err, fetch.ErrStop):
		return failed(d.err)
	case len(done)+d.got < len(rows):
		j.Checkpoint = fmt.Sprintf("%d of %d files", len(done)+d.got, len(rows))
		return ingest.Result{Outcome: ingest.StepContinue}, nil
	}
	return s.endDownload(ctx, j, len(rows))
}

// doneFiles are the numbers of the files that earlier tries finished.
func (s *Stages) doneFiles(ctx context.Context, job string) (map[int]bool, error) {
	done := map[int]bool{}
	err := s.Work.List(ctx, workPrefix(job)+"done/", func(key string, _ int64) error {
		var n int
		if _, err := fmt.Sscanf(path.Base(key), "%06d.json", &n); err == nil {
			done[n] = true
		}
		return nil
	})
	return done, err
}

// transfer is one try's downloads.
type transfer struct {
	s     *Stages
	job   *ingest.Job
	until time.Time
	limit chan struct{}
	wg    sync.WaitGroup

	mu      sync.Mutex
	got     int
	err     error
	refused string // a file that is not what the depositor said
}

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

// file gets one file into the work bucket, checks it, and notes that it is done.
func (d *transfer) file(ctx context.Context, n int, row checkm.Row) error {
	sums, err := d.fetch(ctx, n, row)
	if err != nil {
		return fmt.Errorf("file %s: %w", row.Name, err)
	}
	entry, err := describe(row, sums, fileKey(d.job.ID, n))
	if err != nil {
		return err
	}
	entry.At = d.s.Now().UnixMilli()
	return d.s.putJSON(ctx, doneKey(d.job.ID, n), entry)
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

func defaultType(name string) string {
	if t := mime.TypeByExtension(path.Ext(name)); t != "" {
		return t
	}
	return "application/octet-stream"
}

// endDownload writes the ledger, in order of the paths, and corrects what the
// estimate guessed.
func (s *Stages) endDownload(ctx context.Context, j *ingest.Job, n int) (ingest.Result, error) {
	ledger := make([]Entry, n)
	for i := range ledger {
		data, _, err := s.Work.Read(ctx, doneKey(j.ID, i))
		if err != nil {
			return ingest.Result{}, err
		}
		if err := json.Unmarshal(data, &ledger[i]); err != nil {
			return ingest.Result{}, fmt.Errorf("stage: ledger of %s: %w", j.ID, err)
		}
	}
	j.Files, j.Bytes = n, 0
	for _, e := range ledger {
		j.Bytes += e.Size
	}
	if !j.SizeKnown {
		j.Priority = max(0, j.Priority-ingest.UnknownSizePenalty)
	}
	j.SpaceNeeded, j.SizeKnown = j.Bytes, true
	return next, s.saveLedger(ctx, j.ID, ledger)
}

func (s *Stages) saveLedger(ctx context.Context, job string, ledger []Entry) error {
	slices.SortFunc(ledger, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
	return s.putJSON(ctx, ledgerKey(job), ledger)
}

func (s *Stages) ledger(ctx context.Context, key string) ([]Entry, error) {
	data, _, err := s.Work.Read(ctx, key)
	if err != nil {
		return nil, err
	}
	var ledger []Entry
	if err := json.Unmarshal(data, &ledger); err != nil {
		return nil, fmt.Errorf("stage: %s: %w", key, err)
	}
	return ledger, nil
}
