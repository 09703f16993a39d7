package identity

import (
	"context"
	"errors"
	"fmt"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/reindex"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/objects/aip"
	"archivist/pkg/objects/inventory"
)

// Registrar makes identifiers stand for a job's object.
type Registrar struct {
	Resolver
	Reindexer reindex.Reindexer
	Now       func() time.Time
}

var next = ingest.Result{Outcome: ingest.StepNext}

// Assign mints an ARK if the job has none, reserves it, and acquires the locks of the
// job's identifiers. These, and the time of the version, are on the job's row before
// any use. If another job holds a lock, the job is parked.
func (r Registrar) Assign(ctx context.Context, claim *queue.Claim) (ingest.Result, error) {
	j, try := claim.Job, 0
	minted := j.Primary == ""
	for round := range 5 {
		before := *j
		reserve, refused, err := r.choose(ctx, j, minted, round > 0, &try)
		if err != nil || refused != "" {
			return ingest.Fail(false, refused), err
		}

		// An earlier try has saved all of it.
		if j.Stamp != 0 && !reserve && len(j.Locks) == len(j.LockKeys()) {
			return next, nil
		}

		err = r.saveIdentifiers(ctx, claim, reserve)
		var lost *table.ConditionError
		if !errors.As(err, &lost) {
			return next, err
		}

		tried := *j
		// The row does not have what was tried.
		*j = before
		if reserve && lost.Failed(inventory.ReservedKey(tried.Primary)) {
			continue // reserved meanwhile: by another, or by a reindex of this job's object
		}

		for _, lock := range tried.LockKeys() {
			if lost.Failed(queue.LockKey(lock)) {
				return ingest.Result{Outcome: ingest.StepPark, Lock: lock}, nil
			}
		}
		return ingest.Result{}, err
	}

	return ingest.Result{},
		fault.New(fault.Unavailable, "no unused ARK could be reserved for job %s in 5 tries", j.ID)
}

// choose draws an ARK for the job, or checks that its collection may use the one that it
// has. It returns whether the ARK must still be reserved. An ARK that another collection has
// reserved is refused.
func (r Registrar) choose(
	ctx context.Context, j *ingest.Job, mint, again bool, try *int,
) (reserve bool, refused string, err error) {
	if mint {
		*try, reserve, err = r.mint(ctx, j, *try, again)
		return reserve, "", err
	}
	row, err := r.Inventory.Reserved(ctx, j.Primary)
	if err == nil && row != nil && row.Collection != "" && row.Collection != j.Collection &&
		row.Job != j.ID {
		refused = Foreign(j.Primary)
	}
	return row == nil, refused, err
}

// saveIdentifiers saves the job's identifiers with its locks and the time of its version. The time
// is fixed once, in milliseconds: each try makes the same bytes of it.
func (r Registrar) saveIdentifiers(ctx context.Context, claim *queue.Claim, reserve bool) error {
	j := claim.Job
	if j.Stamp == 0 {
		j.Stamp = r.Now().UnixMilli()
	}
	j.Locks = j.LockKeys()
	return claim.Checkpoint(ctx, func(tx *table.Tx) {
		if reserve {
			inventory.Reserve(tx, j.Primary, j.Collection, j.ID)
		}
	})
}

// ReserveLocalIDs makes the job's local ids stand for its object before anything of it
// is stored, and refuses those that are another object's by now. The job owns their
// locks. A job that fails later releases the locks: without these rows the next
// submission with one of its ids would create a second object.
func (r Registrar) ReserveLocalIDs(ctx context.Context, j *ingest.Job) (refused string, err error) {
	o := inventory.Object{ARK: j.Primary, Collection: j.Collection, LocalIDs: j.LocalIDs}
	err = r.Reindexer.ReserveLocalIDs(ctx, &o)
	if fault.Is(err, fault.Conflict) {
		return err.Error() + ". Submit one object at a time", nil
	}
	return "", err
}

// BringBack restores the missing rows of the local ids of a stored object that has no
// row of its own: a submission with one of them must find this object. Its other rows
// are written when the job's version is recorded. If the time is up before all are written, the
// step continues with them.
func (r Registrar) BringBack(ctx context.Context, ark string, id aip.Identity,
	until time.Time) (ingest.Result, error) {
	if _, err := r.Inventory.Object(ctx, ark); !fault.Is(err, fault.NotFound) {
		return next, err
	}

	o := inventory.Object{ARK: ark, Collection: id.Collection, LocalIDs: id.LocalIDs}
	err := r.Reindexer.LocalIDs(ctx, &o, until)
	switch {
	case fault.Is(err, fault.Conflict):
		return ingest.Fail(true,
			fmt.Sprintf("%s is stored, but its missing rows cannot be restored: %v. "+
				"Contact the archive's operator", ark, err)), nil
	case errors.Is(err, reindex.ErrStopped):
		return ingest.Result{Outcome: ingest.StepContinue}, nil
	}
	return next, err
}
