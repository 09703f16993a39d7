package embedded

import (
	"context"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"

	"archivist/pkg/kernel/backoff"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/lease"
	"archivist/pkg/views/search"
)

// Update implements search.Index. The objects are read under the lease, so that no writer overwrites a
// document with an older state. An error leaves the snapshot as it was, or, if only the answer to the
// commit was lost, with the changes; calling it again is right in both cases.
func (x *Index) Update(ctx context.Context, changed []search.Change, read search.Reader) error {
	return x.locked(ctx, func(ctx context.Context, l lease.Lease) error {
		documents, err := documents(ctx, changed, read)
		if err != nil {
			return err
		}
		r, err := x.row(ctx)
		if err != nil {
			return err
		}
		return x.commit(ctx, l, r, documents)
	})
}

// documents reads the documents of objects, several at once. The result is in the order of changed. The
// first error ends the others.
func documents(ctx context.Context, changed []search.Change, read search.Reader) ([]change, error) {
	out := make([]change, len(changed))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(readers)
	for i, c := range changed {
		g.Go(func() (err error) {
			out[i].ark = c.ARK
			out[i].document, err = read(ctx, c.ARK)
			return err
		})
	}
	return out, g.Wait()
}

// locked calls f under the lease of the index. f has workTime, which is less than the lease: it gives
// up before another writer can begin. If f fails, its error is returned, and the lease is given back.
func (x *Index) locked(ctx context.Context, f func(context.Context, lease.Lease) error) error {
	l, err := x.acquire(ctx)
	if err != nil {
		return err
	}

	work, cancel := context.WithTimeout(ctx, workTime)
	defer cancel()
	if err := f(work, l); err != nil {
		// The lease is given back all the same: what this writer may still do cannot be committed.
		_ = x.Leases.Release(ctx, l)
		return err
	}

	err = x.Leases.Release(ctx, l)
	if fault.Is(err, fault.Stale) {
		return nil // it took longer than its lease, but the commit was in time
	}
	return err
}

// Times of writers. A writer that dies keeps others waiting until the end of its lease.
const (
	leaseTime = 60 * time.Second
	workTime  = 50 * time.Second // in which a writer must have committed
	patience  = 20 * time.Second // with which a writer waits for the lease
)

// waits between two looks at a lease that another writer holds.
var waits = backoff.Policy{First: 50 * time.Millisecond, Most: time.Second}

// acquire waits for the lease. The waits grow and are spread at random, so that waiting writers do not
// ask at the same moment. If patience is over, it is an Unavailable: the consumer tries again later.
func (x *Index) acquire(ctx context.Context) (l lease.Lease, err error) {
	until := x.Now().Add(patience)
	for try := 1; ; try++ {
		l, err = x.Leases.Acquire(ctx, "search-"+x.Name, leaseTime)
		if !fault.Is(err, fault.Held) {
			return l, err
		}

		if !x.Now().Before(until) {
			return l, fault.New(fault.Unavailable,
				"other runs are writing the search index: %w", err)
		}

		if err := x.Wait(ctx, waits.Delay(try, rand.Float64)); err != nil {
			return l, fault.New(fault.Unavailable,
				"the call ended while others were writing the search index: %w", err)
		}
	}
}
