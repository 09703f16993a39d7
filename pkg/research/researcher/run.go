package researcher

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"archivist/pkg/kernel/fault"
)

// Run does research until stop is done: then it finishes the clips at hand, gives the rest back,
// and says so. ctx ends it at once. It returns why it could not go on, or that there are reports
// that were not taken.
func (r *Researcher) Run(ctx, stop context.Context) error {
	stop, r.stop = context.WithCancelCause(stop)
	defer r.stop(nil)
	stopsToo := context.AfterFunc(ctx, func() { r.stop(nil) })
	defer stopsToo()
	r.ended, r.worked = map[string]bool{}, r.Now()

	// Without a first heartbeat there is no work: if the name or the key is refused, the program ends
	// at once.
	renew, err := r.heartbeat(ctx, stop)
	if err != nil || stop.Err() != nil {
		return err
	}

	// Reports are delivered until the workers have ended, which is after stop: those of the clips
	// at hand, too.
	var side, workers errgroup.Group
	working, done := context.WithCancel(ctx)
	side.Go(func() error { r.stay(ctx, stop, renew); return nil })
	side.Go(func() error { r.deliver(working); return nil })
	for slot := range r.Concurrency {
		workers.Go(func() error { return r.work(ctx, stop, slot) })
	}

	err = workers.Wait()
	if err == nil && fault.Of(context.Cause(stop)) != "" {
		err = context.Cause(stop) // the presence was refused
	}

	r.stop(nil)
	done()
	_ = side.Wait() // they return no errors
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return r.leave(ctx, err)
}

// leave delivers what was not yet taken, and leaves. It has its own time, so that a server
// that cannot be reached does not keep the process. err is why the work ended; it is returned
// first.
func (r *Researcher) leave(ctx context.Context, err error) error {
	ctx, cancel := context.WithTimeout(ctx, farewell)
	defer cancel()
	undelivered := r.deliverAll(ctx)
	unknown := r.Server.Leave(ctx)
	switch {
	case err != nil:
		return err
	case undelivered != nil:
		return undelivered
	case unknown != nil:
		r.Log.Warn("the server does not know that this researcher has left; it counts as present for 90 seconds",
			"error", unknown)
	}
	return nil
}

// heartbeat says that the researcher is present. It waits at least a second before the next time,
// whatever the server says.
func (r *Researcher) heartbeat(ctx, stop context.Context) (renew time.Duration, err error) {
	err = r.retry(stop, func() error {
		renew, err = r.Server.Heartbeat(ctx, r.Concurrency)
		return err
	})
	return max(renew, time.Second), err
}

// stay says that the researcher is present, again and again. If the server refuses it for good,
// the researcher is stopped with that error as the cause.
func (r *Researcher) stay(ctx, stop context.Context, renew time.Duration) {
	for r.Wait(stop, renew) == nil {
		var err error
		renew, err = r.heartbeat(ctx, stop)
		if err != nil {
			r.stop(err)
			return
		}
	}
}

// work takes one work item after the other. slot is its number among the workers, from 0. An error
// of one worker stops the others: it is one of this computer or of the project, which they would
// meet, too.
func (r *Researcher) work(ctx, stop context.Context, slot int) error {
	wait := pause
	for stop.Err() == nil {
		item, err := r.next(ctx, stop)
		if err != nil {
			r.stop(nil) // the others finish their clips
			return err
		}

		if item == nil {
			r.watch(Status{Slot: slot})
			_ = r.Wait(stop, wait)
			wait = min(2*wait, mostPause)
			r.isIdle()
			continue
		}

		wait = pause
		err = r.research(ctx, stop, slot, item)
		r.count(-1)
		if err != nil {
			r.stop(nil) // the others finish their clips
			return err
		}

		if r.Once {
			r.stop(nil)
		}
	}
	return nil
}

// next receives a work item, nil if there is none. All tries have one token, so that a work item
// whose answer was lost is given again.
func (r *Researcher) next(ctx, stop context.Context) (item *Work, err error) {
	token := r.NewID()
	err = r.retry(stop, func() error {
		item, err = r.Source.Next(ctx, stop, token)
		return err
	})
	if fault.Is(err, fault.Conflict) {
		err = nil // the lease has ended before its answer came
	}

	if item != nil {
		r.count(1)
	}
	return item, err
}

// count counts the work items at hand, and notes that there was work.
func (r *Researcher) count(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.busy += n
	r.worked = r.Now()
}

// isIdle ends the researcher if it is to end without work.
func (r *Researcher) isIdle() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.UntilIdle && r.busy == 0 && r.Now().Sub(r.worked) >= idle {
		r.stop(nil)
	}
}
