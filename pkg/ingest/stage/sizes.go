package stage

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"archivist/pkg/formats/checkm"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/workspace"
	"archivist/pkg/kernel/fetch"
	"archivist/pkg/objects/ocfl"
)

// sizePage is how many sizes are requested before they are counted: those of a page that
// are known are kept when the time is up.
const sizePage = 100

// sizes adds up the sizes that servers report, or the manifest's where they do not answer.
// It returns errStopped when the time is up; the job's Done is how many files are counted
// by then.
func (e Estimate) sizes(ctx context.Context, claim *queue.Claim, manifest ocfl.Text) error {
	j, n := claim.Job, 0
	// A request that is under way at its end gives no size: see asker.last.
	budget := claim.Until.Sub(e.Now())
	ctx, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	a := &asker{
		Estimate: e,
		last:     claim.Until.Add(-min(2*e.fetch.Limits.Small, budget/2)),
		silent:   map[string]bool{},
	}

	page := make([]checkm.Row, 0, sizePage)
	count := func() error {
		known := a.ask(ctx, page)
		for _, size := range known {
			j.SizeKnown = j.SizeKnown && size >= 0
			// The halves keep the sum from an overflow: sizes are what strangers say.
			j.SpaceNeeded = min(j.SpaceNeeded, math.MaxInt64/2) + min(max(size, 0), math.MaxInt64/2)
		}

		j.Done += len(known)
		if len(known) < len(page) {
			return errStopped
		}

		page = page[:0]
		return nil
	}

	err := workspace.Rows(ctx, j, manifest, func(row checkm.Row) error {
		n++
		// Counted by an earlier try.
		if n <= j.Done {
			return nil
		}
		page = append(page, row)
		if len(page) < sizePage {
			return nil
		}
		return count()
	})
	if err == nil {
		err = count()
	}
	return err
}

// asker requests sizes from servers. A server that did not answer is not asked again.
type asker struct {
	Estimate
	last time.Time // a file begun before this can end both of its requests in time

	mu     sync.Mutex
	began  bool            // at least one size was requested
	silent map[string]bool // by host
}

// ask returns the sizes of the first rows, in bytes; -1 is unknown. When the time is up,
// there are fewer sizes than rows. The first size of a try is always requested, so that
// each try makes progress.
func (a *asker) ask(ctx context.Context, rows []checkm.Row) []int64 {
	sizes, asked := make([]int64, len(rows)), 0
	take := func() (i int, more bool) {
		a.mu.Lock()
		defer a.mu.Unlock()
		if asked == len(rows) || a.began && !a.Now().Before(a.last) {
			return 0, false
		}
		a.began = true
		asked++
		return asked - 1, true
	}

	var side errgroup.Group
	for range a.Parallel {
		side.Go(func() error {
			for i, more := take(); more; i, more = take() {
				sizes[i] = a.size(ctx, rows[i])
			}
			return nil
		})
	}

	_ = side.Wait() // an unknown size is -1, not an error
	return sizes[:asked]
}

// size is the size that the server reports, or else that of the manifest, which may be unknown.
func (a *asker) size(ctx context.Context, row checkm.Row) int64 {
	host := fetch.Host(row.URL)
	a.mu.Lock()
	known := a.silent[host]
	a.mu.Unlock()
	if known {
		return row.Size
	}

	size, err := a.fetch.Size(ctx, row.URL)
	if err == nil {
		return size
	}

	var silent *fetch.SilentError
	// Each file of a silent host would cost the whole time that a request may take.
	if errors.As(err, &silent) {
		a.mu.Lock()
		a.silent[host] = true
		a.mu.Unlock()
	}

	return row.Size
}
