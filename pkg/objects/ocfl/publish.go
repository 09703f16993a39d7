package ocfl

import (
	"context"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
)

// Owner is the job that holds the object's lock. Its worker may be late, and another job
// may hold the lock by now: so it checks before it changes what others left behind.
//
// Fence is called before each write that others could contradict. Ended and Alone are asked only if
// something of an uncommitted version was found.
type Owner struct {
	Job   string
	Fence func(ctx context.Context) error // an error if another job holds the lock

	// Ended reports whether a job ended so long ago that none of its workers can still
	// write.
	Ended func(ctx context.Context, job string) (bool, error)

	// Alone reports whether every worker of the job that prepared the version differently
	// must have ended.
	Alone func() bool
}

// ClaimedError means that the next version is claimed by a job whose worker may still
// commit it. It is no failure of the version: the call succeeds once that worker must have ended.
type ClaimedError struct{ Job string }

// Error names the job.
func (e *ClaimedError) Error() string {
	return "ocfl: job " + e.Job +
		" has claimed the next version, and its worker may still be running"
}

// Text opens an inventory that Prepare wrote. It is called for each write of the inventory, so each
// call begins it anew.
type Text func(ctx context.Context) (io.ReadCloser, error)

// Published is what is known of a version that was just committed: its own inventory and
// sidecar agree with the root's.
type Published struct {
	text Text
	side *side // the root's sidecar as it was before; nil: not known
}

// Publish commits a prepared version whose content is all there. It claims the version by
// putting its inventory, then puts the root's, which is the commit. It continues from
// where an earlier try stopped. text is the inventory that Prepare wrote. It returns nil
// if Finish has to check everything.
//
// A Stale means that the object's version or the prepared inventory has changed: prepare
// it again. A *ClaimedError means: try again later. A claim whose job may still have a
// worker is never taken over: S3 has no fence, and what a late worker commits must match
// its claim.
func (r Root) Publish(ctx context.Context, p Prepared, text Text, o Owner) (*Published, error) {
	// Also of a new object: it can have got a version since, and have lost it again.
	if err := r.notOnRecord(ctx, p); err != nil {
		return nil, err
	}

	prefix := Prefix(p.ID)
	side, err := r.finishBefore(ctx, p, o)
	if err != nil {
		return nil, err
	}

	version := fmt.Sprintf("%sv%d/", prefix, p.Number)
	if err := r.claim(ctx, version+inventoryName, p, text, o); err != nil {
		return nil, err
	}

	// Before the commit: after it, a crash leaves nothing but the root's sidecar to be written.
	err = r.Bucket.Put(ctx, version+sidecarName, Sidecar(p.Digest), bucket.Condition{Absent: true})
	if err != nil && !fault.Is(err, fault.Stale) { // an older one is replaced by Finish
		return nil, err
	}

	// If there was a sidecar already, an earlier claim left it: Finish has to check everything.
	just := &Published{text, side}
	if err != nil {
		just = nil
	}

	unchanged := bucket.Condition{Absent: p.Follows == "", ETag: p.Follows}
	err = r.put(ctx, prefix+inventoryName, p, text, unchanged, o.Fence)
	if fault.Is(err, fault.Stale) {
		// It is this one if only the answer was lost.
		if same, readErr := r.holds(ctx, prefix+inventoryName, p.Digest); readErr != nil || !same {
			return nil, err
		}
		just, err = nil, nil // that can be long ago
	}
	return just, err
}

// notOnRecord returns a *DamagedError if another version of the prepared one's number is on record,
// although the root inventory is the one that it follows: that was put back. If it is not, the error is
// a Stale: the object has got another version.
func (r Root) notOnRecord(ctx context.Context, p Prepared) error {
	if r.Recorded == nil {
		return nil
	}

	head, digest, err := r.Recorded(ctx, p.ID)
	if err != nil || head < p.Number || head == p.Number && digest == p.Digest {
		return err
	}

	etag, err := r.ETag(ctx, p.ID)
	switch {
	case err != nil:
		return err
	case etag == p.Follows:
		return &DamagedError{ID: p.ID, Why: fmt.Sprintf("version %d is on record, but the root inventory ends "+
			"at version %d", head, p.Number-1)}
	}
	return fault.New(fault.Stale, "ocfl: %s has got version %d meanwhile", p.ID, head)
}

// finishBefore makes sure that the version before is finished: its job may have died
// right after the commit, and once another version follows it is not checked again. Nor could its own
// inventory be made again then, which is a copy of the root inventory. It
// returns the sidecar as it is then, nil if that is not known.
func (r Root) finishBefore(ctx context.Context, p Prepared, o Owner) (*side, error) {
	if p.Follows == "" {
		return &side{}, nil
	}

	now, err := r.sidecar(ctx, Prefix(p.ID), nil)
	if err != nil {
		return nil, err
	}

	if now.text == string(Sidecar(p.After)) {
		// Both are written in the same parts. Another ETag can be of the same bytes: Finish compares the digests.
		own, err := r.Bucket.Head(ctx, Inventory(p.ID, p.Number-1).Key)
		if err == nil && own.ETag == p.Follows {
			return &now, nil
		}
		if err != nil && !fault.Is(err, fault.NotFound) {
			return nil, err
		}
	}
	_, err = r.Finish(ctx, p.ID, o, nil)
	return nil, err
}

// put streams the prepared inventory to a key, and checks that it is the one that was
// prepared. The fence, if any, is called last. Nothing is at the key before all bytes were
// compared: Close makes the object.
func (r Root) put(
	ctx context.Context, key string, p Prepared, text Text, c bucket.Condition,
	fence func(context.Context) error,
) error {
	body, err := text(ctx)
	if err != nil {
		return err
	}

	defer body.Close()
	sum := sha512.New()
	w := r.Bucket.Writer(ctx, key, c)
	_, err = io.Copy(io.MultiWriter(w, sum), body)
	if err == nil && hex.EncodeToString(sum.Sum(nil)) != p.Digest {
		err = fault.New(fault.Stale,
			"ocfl: the inventory in the work bucket is not the one prepared for %s v%d",
			p.ID, p.Number)
	}

	if err == nil && fence != nil {
		err = fence(ctx)
	}

	if err != nil {
		_ = w.Abort() // the bucket's lifecycle rule removes the rest
		return err
	}
	return w.Close()
}

// claim puts the version's inventory. An existing one is replaced only if no worker can
// commit it: a late worker that did would leave a version with another inventory.
func (r Root) claim(ctx context.Context, key string, p Prepared, text Text, o Owner) error {
	stale := r.put(ctx, key, p, text, bucket.Condition{Absent: true}, nil)
	if !fault.Is(stale, fault.Stale) {
		return stale
	}

	claim, job, err := r.claimed(ctx, key, p.Number)
	if fault.Is(err, fault.NotFound) {
		return stale // nothing is claimed, but the prepared inventory has changed
	}

	if err != nil || claim.digest == p.Digest {
		return err
	}

	ended, err := o.ended(ctx, job)
	if err != nil {
		return err
	}

	// Was it committed meanwhile? If not, and if its worker has ended, it never will be.
	if etag, err := r.ETag(ctx, p.ID); err != nil || etag != p.Follows {
		return errors.Join(stale, err)
	}

	if !ended {
		return &ClaimedError{job}
	}

	if err := r.neverCommitted(ctx, p, claim); err != nil {
		return err
	}
	return r.put(ctx, key, p, text, bucket.Condition{ETag: claim.ETag}, o.Fence)
}

// neverCommitted returns a *DamagedError if a claim is that of a version that was committed once: then
// it is the root inventory that was lost or put back, and no record of the object was left to tell.
func (r Root) neverCommitted(ctx context.Context, p Prepared, claim scanned) error {
	side, err := r.sidecar(ctx, Prefix(p.ID), nil)
	if err != nil {
		return err
	}

	// Nothing is written for the version after the claimed one before that is committed.
	later, _, err := r.Bucket.Few(ctx, fmt.Sprintf("%sv%d/", Prefix(p.ID), p.Number+1))
	if err != nil {
		return err
	}

	if side.says(claim.digest) || p.Follows == "" && side.etag != "" || len(later) > 0 {
		return &DamagedError{ID: p.ID, Why: fmt.Sprintf("version %d is stored, but the root inventory "+
			"does not have it", p.Number)}
	}
	return nil
}

// claimed reads the inventory that claims a version, and finds its job. The job is "" if the
// inventory names no new content.
func (r Root) claimed(ctx context.Context, key string,
	version int) (claim scanned, job string, err error) {
	claim, err = r.scan(ctx, key, visitor{manifest: func(_ string, paths []string) error {
		for _, path := range paths {
			if n, folder := writer(path); n == version {
				job = jobOf(folder)
			}
		}
		return nil
	}})
	return claim, job, err
}

// ended reports whether no worker that claimed a version for a job can still commit it.
func (o Owner) ended(ctx context.Context, job string) (bool, error) {
	if job == o.Job {
		return o.Alone(), nil
	}
	return o.Ended(ctx, job)
}
