package stage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"archivist/pkg/formats/checkm"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/transfer"
	"archivist/pkg/ingest/workspace"
	"archivist/pkg/kernel/fetch"
	"archivist/pkg/objects/formats"
)

// Download gets every file that is not there yet, segment by segment, within the
// time budget, and records each file in the ledger.
//
// The work of earlier tries is in three places: finished segments of the ledger, which
// are never written again; the finished files of a segment in progress; and the state of
// an interrupted transfer (package transfer). A file that cannot be downloaded does not
// end the download at once: the message names all such files.
type Download struct {
	Sources  Sources
	Work     workspace.Store
	Now      func() time.Time
	Parallel int // files at once: each has a part in memory

	Space int64 // of the work bucket, in bytes

	Profiles *profiles // of bags

	Identify formats.Identify // nil: no formats are identified
	// Scan has files scanned for viruses, for collections that want it; nil: the deployment has no scanner.
	Scan func(ctx context.Context, in ScanRequest) (ScanAnswer, error)
}

// errStopped ends the reading of the rows.
var errStopped = errors.New("stopped")

// Run downloads a job's files.
func (d Download) Run(ctx context.Context, claim *queue.Claim) (ingest.Result, error) {
	j := claim.Job
	// A correction has no content: its files are those that are stored.
	if j.Corrects() {
		j.Fetched = d.Now().UnixMilli()
		return next, nil
	}

	client, profile, err := d.Sources.client(ctx, j.Collection)
	if err != nil {
		return ingest.Result{}, err
	}

	a := &attempt{
		job:      j,
		parallel: d.Parallel,
		early:    &early{identify: d.Identify, policy: profile.Formats},
		Transfer: transfer.Transfer{
			Fetch: client,
			Work:  d.Work,
			Now:   d.Now,
			Began: d.Now(),
			Until: claim.Until,
			First: j.FirstTry(),
		},
	}

	if profile.Scan {
		if d.Scan == nil {
			return ingest.Result{}, errors.New("the collection wants its files scanned for viruses, and the " +
				"deployment has no scanner (setting scanFunction)")
		}
		a.scanner = &scanner{d.Scan, d.Work, j}
	}

	a.Partly = a.notePartial
	if j.Payload.Type == ingest.TypeContainer {
		return d.container(ctx, claim, a, profile)
	}

	err = a.segments(ctx)
	j.Checkpoint = a.progress() // also if this try fails
	var changed *changedError
	// The order counts: what ends the try hides files that are bad, and these hide that the time is
	// up.
	switch {
	case errors.As(a.err, &changed):
		return d.startOver(ctx, claim, changed.why)
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

// startOver fails a job so that its requeue begins with Estimate, which detects the
// payload's type if none was given. Nothing that was downloaded is kept. A mixture of two states of
// the source must not be stored.
func (d Download) startOver(ctx context.Context, claim *queue.Claim,
	why string) (ingest.Result, error) {
	all, err := d.Work.Clean(ctx, claim.Job.ID, claim.Until, d.Now)
	if err != nil || !all {
		return ingest.Result{Outcome: ingest.StepContinue}, err
	}

	j := claim.Job
	j.LastSuccessful, j.HasSpace = "", false
	if j.Detected {
		j.Payload.Type = ""
	}

	return ingest.Fail(true, why+". Correct the source if the content is wrong, then "+j.Again()), nil
}

// finish replaces the estimate by the exact figures. It reads the ledger if earlier tries
// wrote part of it.
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

	j.Bytes, j.Warned, j.Checked, j.Fetched = a.came.bytes, a.came.warned, a.came.checked,
		d.Now().UnixMilli()
	j.Scanned = a.came.scanned
	j.FileWarnings = a.came.warnings.List("the receipt has them")
	if a.came.files != j.Files {
		return ingest.Result{}, fmt.Errorf("stage: the ledger of %s has %d files, its manifest %d",
			j.ID, a.came.files, j.Files)
	}

	// Estimate added the penalty; the size is known now.
	if !j.SizeKnown && !j.Prioritized {
		j.Priority = max(0, j.Priority-ingest.UnknownSizePenalty)
	}

	// The transaction that ends the step corrects the row of the job's space by the difference.
	j.SpaceNeeded, j.SizeKnown = j.Bytes, true
	return next, nil
}
