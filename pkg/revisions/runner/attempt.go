package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
)

// Found is what is stored of an attempt. Both are nil if it has not been begun.
type Found struct {
	Result *Result
	Claim  *Claim
}

// Look reads what is stored of an attempt, by the Prefix of its Job. An attempt with a Claim and no
// Result goes on until Claim.Until at the latest. The result is read first: once there is one, the
// claim does not matter.
func Look(ctx context.Context, b Objects, prefix string) (found Found, err error) {
	found.Result, err = read[Result](ctx, b, prefix+ResultKey)
	if err != nil || found.Result != nil {
		return found, err
	}

	found.Claim, err = read[Claim](ctx, b, prefix+StartedKey)
	return found, err
}

// read reads a small JSON object; nil if there is none.
func read[T any](ctx context.Context, b Objects, key string) (*T, error) {
	data, _, err := b.Read(ctx, key)
	if fault.Is(err, fault.NotFound) {
		return nil, nil
	}

	if err != nil {
		return nil, err
	}

	out := new(T)
	err = json.Unmarshal(data, out)
	if err != nil {
		return nil, fmt.Errorf("runner: %s is damaged: %w", key, err)
	}
	return out, nil
}

// skew is how far the clocks of two functions are apart at most: a claim is taken for over only
// this much later.
const skew = 5 * time.Second

// settle returns the Result of an attempt that another call runs or ran: it looks again until there
// is one, or the claim is over. An Unavailable means that this call's time was up before. err is of
// the look that found found.
func (r *Runner) settle(ctx context.Context, job Job, found Found, err error) (Result, error) {
	every := r.pace.looks
	if every == 0 {
		every = betweenLooks
	}

	for {
		switch {
		case ctx.Err() != nil:
			return Result{}, fault.New(fault.Unavailable, "runner: %s is run by another call: %w",
				job.ID, ctx.Err())
		case err != nil:
			return Result{}, err
		case found.Result != nil:
			return *found.Result, nil
		case found.Claim == nil: // what a claim was lost to is never removed
			return Result{}, fault.New(fault.Unavailable, "runner: %s: the claim is gone", job.ID)
		case r.Now().After(found.Claim.Until.Add(skew)):
			died := Result{
				End:     Broken,
				Exit:    -1,
				Reason:  "the runner died while it ran",
				Started: found.Claim.Started,
				Ended:   r.Now(),
			}
			return r.store(ctx, job, died)
		}

		select {
		case <-ctx.Done():
		case <-time.After(every):
		}

		found, err = Look(ctx, r.Bucket, job.Prefix)
	}
}

// store stores a Result if there is none. It returns the one that is there then: of two that store
// at once, both return the first.
func (r *Runner) store(ctx context.Context, job Job, result Result) (Result, error) {
	data, err := json.Marshal(result)
	if err != nil {
		return result, err
	}

	err = r.Bucket.Put(ctx, job.Prefix+ResultKey, data, bucket.Condition{Absent: true})
	if !fault.Is(err, fault.Stale) {
		return result, err
	}

	data, _, err = r.Bucket.Read(ctx, job.Prefix+ResultKey)
	if err != nil {
		return result, err
	}

	err = json.Unmarshal(data, &result)
	return result, err
}

// take claims the attempt. It reports whether this call is the one that runs it. The id of the
// claim is unique to the call: so a claim whose answer was lost is known to be its own. If it is
// not known whether it was written, the error is returned; then nobody runs the attempt until its
// time is over.
func (x *run) take(ctx context.Context) (mine bool, err error) {
	x.result.Started = x.Now().UTC()
	x.times(ctx)
	x.claim.ID, x.claim.Started = x.NewID(), x.result.Started
	data, err := json.Marshal(x.claim)
	if err != nil {
		return false, err
	}

	err = x.Bucket.Put(ctx, x.job.Prefix+StartedKey, data, bucket.Condition{Absent: true})
	if err == nil {
		return true, nil
	}

	// Another was first; or the answer to our own request was lost, then the claim that is there is
	// ours.
	there, readErr := read[Claim](context.WithoutCancel(ctx), x.Bucket, x.job.Prefix+StartedKey)
	switch {
	case readErr == nil && there != nil && there.ID == x.claim.ID:
		return true, nil
	case fault.Is(err, fault.Stale) && readErr != nil:
		return false, readErr
	case fault.Is(err, fault.Stale):
		return false, nil
	}
	return false, err
}

// times decides when the processes are told to end, and by when all has ended. A call whose context
// has a deadline (a function's time-out) ends them early enough for outputs and the result.
func (x *run) times(ctx context.Context) {
	x.stop = x.result.Started.Add(x.job.Task.Timeout)
	if at := x.job.Deadline; !at.IsZero() && at.Before(x.stop) {
		x.stop = at
	}

	call, limited := ctx.Deadline()
	if at := call.Add(-x.grace - x.reserve); limited && at.Before(x.stop) {
		x.stop = at
	}

	x.claim.Until = x.stop.Add(x.grace + x.words + Saving)
	if limited && call.Before(x.claim.Until) {
		x.claim.Until = call
	}
}

// closed is the id of a claim by which nobody begins an attempt any more.
const closed = "closed"

// Close lets nobody begin an attempt that has no claim, and reports whether that is so: false means that
// a runner has begun it. A call of a function can fail while its runner still prepares; without this, that
// one would run the task beside the next attempt. It may be repeated.
func Close(ctx context.Context, b Objects, prefix string, now time.Time) (bool, error) {
	data, err := json.Marshal(Claim{ID: closed, Started: now, Until: now})
	if err != nil {
		return false, err
	}

	err = b.Put(ctx, prefix+StartedKey, data, bucket.Condition{Absent: true})
	if err == nil || !fault.Is(err, fault.Stale) {
		return err == nil, err
	}

	there, err := read[Claim](ctx, b, prefix+StartedKey)
	return there != nil && there.ID == closed, err
}
