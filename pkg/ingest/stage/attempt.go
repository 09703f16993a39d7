package stage

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"archivist/pkg/formats/checkm"
	"archivist/pkg/formats/container"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/payload"
	"archivist/pkg/ingest/transfer"
	"archivist/pkg/ingest/workspace"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/fetch"
	"archivist/pkg/kernel/source"
	"archivist/pkg/objects/aip"
)

// attempt is the work of one try of a download. Several goroutines get files; mu guards what they
// note.
type attempt struct {
	transfer.Transfer
	job      *ingest.Job
	parallel int
	early    *early
	scanner  *scanner // nil: no files are scanned

	own  bool // this try wrote the whole ledger
	came tally

	mu       sync.Mutex
	got      int
	late     bool   // the time was up when it was asked for
	brought  bool   // this try finished a file
	partly   string // a file that was received in part, and how much of it
	err      error  // ends the try
	problems []problem
}

// problem is a file that cannot be accepted.
type problem struct {
	n     int // of the file
	why   string
	final bool          // another try gives the same
	after time.Duration // the source asks to wait that long; 0: it does not
}

// changedError reports that content differs from what was downloaded before.
type changedError struct{ why string }

func (e *changedError) Error() string { return e.why }

// note counts a file, or keeps the reason why it is bad, or the error that ends the try. An error
// that is not the source's is ours: the first of these ends the try.
func (a *attempt) note(n int, row checkm.Row, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var refused *refusedError
	switch {
	case err == nil:
		a.got++
	case errors.As(err, &refused), unfetched(err):
		why := fmt.Sprintf("file %s: %v", ingest.Cut(row.Name, maxProblem/4), err)
		a.problems = append(a.problems,
			problem{n, ingest.Cut(why, maxProblem), !mayRecover(err), fetch.AskedToWait(err)})
	case a.err == nil:
		a.err = err
	}
}

// notePartial notes how much was received of an incomplete file.
func (a *attempt) notePartial(row checkm.Row, have, size int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.partly = ingest.Number(have)
	if size >= 0 {
		a.partly += " of " + ingest.Number(size)
	}

	a.partly += " bytes"
	if a.job.Files > 1 {
		a.partly += " of " + ingest.Cut(row.Name, maxProblem/4)
		if !source.IsUpload(row.URL) {
			a.partly += " from " + fetch.Host(row.URL)
		}
	}
}

// progress describes how much of the download is done.
func (a *attempt) progress() string {
	if a.job.Files == 1 && a.partly != "" {
		return a.partly
	}
	text := fmt.Sprintf("%s of %s", ingest.Number(a.got), ingest.Counted(a.job.Files, "file"))
	if a.partly != "" {
		text += ", " + a.partly
	}
	return text
}

// stopped reports whether no more files are begun. Once the time was up, it is, even if a clock is set back.
func (a *attempt) stopped() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.late = a.late || a.TimeUp()
	return a.late || a.err != nil || len(a.problems) >= maxProblems
}

// failure names every bad file. A source that asks to wait is asked again later, unless
// another file fails for good.
func (a *attempt) failure() ingest.Result {
	slices.SortFunc(a.problems, func(a, b problem) int { return a.n - b.n })
	final, asked, after, whys := false, true, time.Duration(0), make([]string, len(a.problems))
	for i, p := range a.problems {
		final, asked, after, whys[i] = final || p.final, asked && p.after > 0, max(after, p.after),
			p.why
	}

	text := strings.Join(whys[:min(len(whys), maxProblems)], "; ")
	if len(whys) > 1 {
		text = fmt.Sprintf("%d of %d files failed: %s", len(whys), a.job.Files, text)
	}

	if left := a.job.Files - a.got - len(whys); left > 0 {
		text += "; not tried: " + ingest.Counted(left, "file")
	}

	switch {
	// One file for good is enough: a requeue could not complete the job.
	case final:
		return ingest.Fail(false, text+". Correct the files or the manifest, then submit it again")
	// A source that asks for a longer wait fails the job, which a person requeues.
	case asked && after <= ingest.MaxDefer:
		res := ingest.Defer(after, text)
		res.Progress = a.brought // a source that limits its rate gives some files at each try
		return res
	}
	return ingest.Fail(true, text+". Correct the source, then requeue the job")
}

// segments downloads the segments that are not finished. On the first try nothing is looked for,
// which saves requests.
func (a *attempt) segments(ctx context.Context) (err error) {
	done := map[int]bool{}
	if !a.First {
		done, err = a.Work.FinishedSegments(ctx, a.job.ID)
		if err != nil {
			return err
		}
	}

	a.own = len(done) == 0
	return a.Work.Segments(ctx, a.job, func(n int, rows []checkm.Row) error {
		if done[n] {
			a.got += len(rows)
			return nil
		}
		return a.segment(ctx, n, rows)
	})
}

// segment gets the files of one segment. When it must stop, finished files are saved, so
// that they are not fetched again. A file larger than a part is saved at once.
func (a *attempt) segment(ctx context.Context, n int, rows []checkm.Row) error {
	entries, err := a.unfinished(ctx, n, len(rows))
	if err != nil {
		return err
	}
	return a.rows(ctx, n, rows, entries)
}

// unfinished are the files of a segment that are there; nil is one that is not there yet.
func (a *attempt) unfinished(ctx context.Context, n, files int) ([]*aip.Entry, error) {
	if a.First {
		return make([]*aip.Entry, files), nil
	}
	return a.Work.Unfinished(ctx, a.job.ID, n, files)
}

// rows gets the files of one segment that have no entry yet; see segment.
func (a *attempt) rows(ctx context.Context, n int, rows []checkm.Row, entries []*aip.Entry) error {
	var side errgroup.Group
	side.SetLimit(a.parallel)
	for i, row := range rows {
		if entries[i] != nil {
			a.note(i, row, nil)
			continue
		}
		side.Go(func() error {
			// Files that are under way end with their part; no other is begun.
			if a.stopped() {
				return nil
			}
			e, err := a.file(ctx, n*workspace.SegmentFiles+i, row)
			if err == nil {
				err = a.keep(ctx, n, entries, i, e)
			}
			a.note(n*workspace.SegmentFiles+i, row, err)
			return nil
		})
	}

	_ = side.Wait() // failures are noted
	return a.save(ctx, n, entries)
}

// save saves the files of a segment that are there.
func (a *attempt) save(ctx context.Context, n int, entries []*aip.Entry) error {
	if slices.Contains(entries, nil) {
		err := a.Work.PutUnfinished(ctx, a.job.ID, n, entries)
		if err == nil && a.stopped() {
			err = errStopped
		}
		return err // nil if a file is bad: the other segments are checked, too
	}

	err := a.Work.PutSegment(ctx, a.job.ID, n, entries)
	if fault.Is(err, fault.Stale) {
		// The ledger has files that this try did not count, so finish reads all of it.
		a.own = false
		return a.same(ctx, n, entries)
	}

	for _, e := range entries {
		a.came.add(*e)
	}

	return err
}

// same compares a segment with the one that another try wrote. Both tries wrote to the
// same keys: if the source changed between them, the files do not match the ledger.
func (a *attempt) same(ctx context.Context, n int, entries []*aip.Entry) error {
	stands, err := a.Work.Segment(ctx, a.job.ID, n)
	if err != nil {
		return err
	}

	// What the ledger says is stored: if this try has written other bytes since, they do not match
	// it.
	for i, e := range stands {
		if i >= len(entries) || e.Digests["sha512"] != entries[i].Digests["sha512"] {
			a.note(i, checkm.Row{},
				&changedError{"the content at the source changed during the download"})
			return errStopped
		}
	}
	return nil
}

// keep notes that a file is there. The lock also keeps the list as it is while it is saved.
func (a *attempt) keep(ctx context.Context, n int, entries []*aip.Entry, i int, e aip.Entry) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	entries[i], a.brought = &e, true
	// A small one is saved with its segment: if the worker dies before, it is fetched again.
	if e.Size <= a.Work.Limits.Part {
		return nil
	}
	return a.Work.PutUnfinished(ctx, a.job.ID, n, entries)
}

// file gets one file into the work bucket and checks it. n counts from 0, in the order of the
// manifest.
func (a *attempt) file(ctx context.Context, n int, row checkm.Row) (aip.Entry, error) {
	key := workspace.FileKey(a.job.ID, n)
	came, err := a.File(ctx, row, key, workspace.PartialKey(a.job.ID, path.Base(key)))
	if err != nil {
		return aip.Entry{}, err
	}

	why, err := payload.Changed(ctx, a.job, came.Text())
	if err != nil {
		return aip.Entry{}, err
	}

	if why != "" {
		return aip.Entry{}, &changedError{why}
	}
	warning, refused, err := a.early.judge(ctx, row.Name, came.Sums.Size, contentAt(a.Work, came.Key, came.Whole()))
	if err != nil {
		return aip.Entry{}, err
	}
	if refused != "" {
		return aip.Entry{}, &refusedError{refused}
	}
	e, err := describe(a.job.Payload, row, came, key, warning)
	if err == nil {
		refused, err = a.scanner.check(ctx, &e)
	}
	if refused != "" {
		return aip.Entry{}, &refusedError{refused}
	}
	if err == nil && a.job.Payload.Type == ingest.TypeFile && container.Named(row.Name) != "" {
		e.Warning, err = stillPacked(ctx, e.Warning, came)
	}
	return e, err
}

// stillPacked adds to a file's warning that it is a container, if it is one: its depositor may have wanted its files.
func stillPacked(ctx context.Context, warning string, came *transfer.File) (string, error) {
	start, err := payload.Start(ctx, came.Text())
	if kind := container.Detect(start); kind != "" {
		warning = joined([]string{warning, fmt.Sprintf("it is a container (%s), which is kept as one file, since the "+
			"payload has the type file. To keep its files, submit it with the type container", kind)})
	}
	return warning, err
}
