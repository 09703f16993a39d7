package stage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"archivist/pkg/checkm"
	"archivist/pkg/fetch"
	"archivist/pkg/ingest"
	"archivist/pkg/queue"
	"archivist/pkg/transfer"
	"archivist/pkg/workspace"
)

// Download gets every file that is not there yet, segment by segment, within the
// time budget, and writes down in the ledger what is known of each.
//
// What earlier tries have done is in three places: finished segments of the ledger,
// which are never written again; the finished files of a segment under way; and the
// state of a transfer that was cut off (package transfer). A file that cannot be had
// does not end the download at once: all of them are named.
type Download struct {
	Fetch    *fetch.Client
	Work     workspace.Store
	Now      func() time.Time
	Parallel int // files at once: each has a part in memory
}

// errStopped ends the reading of the rows.
var errStopped = errors.New("stopped")

// Run downloads a job's files.
func (d Download) Run(ctx context.Context, claim *queue.Claim) (ingest.Result, error) {
	j := claim.Job
	a := &attempt{job: j, parallel: d.Parallel, Transfer: transfer.Transfer{
		Fetch: d.Fetch, Work: d.Work, Now: d.Now, Began: d.Now(), Until: claim.Until, First: j.FirstTry()}}
	a.Partly = a.hear
	err := a.segments(ctx)
	j.Checkpoint = a.progress() // also if this try fails
	var changed *changedError
	switch {
	case errors.As(a.err, &changed):
		return d.beginAgain(ctx, claim, changed.why)
	case a.err != nil && !errors.Is(a.err, fetch.ErrStop):
		return ingest.Result{}, a.err
	case len(a.problems) > 0:
		return a.failure(), nil
	case errors.Is(err, errStopped):
		return ingest.Result{Outcome: ingest.StepContinue}, nil
	case err != nil:
		return ingest.Result{}, err
	}
	return d.finish(ctx, a)
}

// segments downloads the segments that are not finished.
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

// beginAgain fails a job so that its requeue begins with Estimate, where a payload's
// type that was not given is detected: nothing that was downloaded is kept.
func (d Download) beginAgain(ctx context.Context, claim *queue.Claim, why string) (ingest.Result, error) {
	all, err := d.Work.Clean(ctx, claim.Job.ID, claim.Until, d.Now)
	if err != nil || !all {
		return ingest.Result{Outcome: ingest.StepContinue}, err
	}
	j := claim.Job
	j.LastSuccessful, j.HasSpace = "", false
	if j.Detected {
		j.Payload.Type = ""
	}
	why += ". Correct the source if the content is wrong, then requeue the job; it starts over"
	return ingest.Fail(true, why), nil
}

// finish corrects what the estimate guessed. A ledger that is not all of this attempt
// is read.
func (d Download) finish(ctx context.Context, a *attempt) (ingest.Result, error) {
	j := a.job
	if !a.own {
		a.came = tally{}
		for e, err := range d.Work.Entries(ctx, j) {
			if err != nil {
				return ingest.Result{}, err
			}
			a.came.add(e)
		}
	}

	j.Bytes, j.Warned, j.Checked, j.Fetched = a.came.bytes, a.came.warned, a.came.checked, d.Now().UnixMilli()
	j.FileWarnings = a.came.warnings.List("the receipt has them")
	if a.came.files != j.Files {
		return ingest.Result{}, fmt.Errorf("stage: the ledger of %s has %d files, its manifest %d",
			j.ID, a.came.files, j.Files)
	}
	if !j.SizeKnown {
		j.Priority = max(0, j.Priority-ingest.UnknownSizePenalty)
	}

	j.SpaceNeeded, j.SizeKnown = j.Bytes, true
	return next, nil
}
