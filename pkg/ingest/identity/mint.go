package identity

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"archivist/pkg/formats/ark"
	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/inventory"
	"archivist/pkg/objects/ocfl"
)

const (
	drawsAtOnce = 5  // ARKs that are drawn before one is reserved
	mostDraws   = 25 // ARKs that are drawn for a job at most
)

// Draw gives numbers that follow from a job's id, and so do the ARKs that are made of
// them: a job that runs again because its table was restored gets the same ARK. They
// cannot be guessed without the id, which has 80 random bits.
func Draw(job string, try int) func(n int) int {
	calls := 0
	return func(n int) int {
		calls++
		sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %d", job, try, calls))
		return int(binary.BigEndian.Uint64(sum[:]) % uint64(n))
	}
}

// draw is the ARK of a job at a try. Whether another object has it must be looked up.
func (r Resolver) draw(shoulder, job string, try int) string {
	return ark.Mint(r.NAAN, shoulder, r.Draw(job, try)).String()
}

// Drawn reports whether a job's ARK was drawn for it; else its submission named it, or it is that of a stored object.
func (r Resolver) Drawn(ctx context.Context, j *ingest.Job) (bool, error) {
	shoulder, err := r.shoulder(ctx, j.Collection)
	for try := 0; err == nil && try < mostDraws; try++ {
		if r.draw(shoulder, j.ID, try) == j.Primary {
			return true, nil
		}
	}
	return false, err
}

// mint draws an ARK that no other object has, beginning with a try. It returns the try that it took,
// and whether the ARK must still be reserved. If a reservation has just failed (again), the row of that
// ARK is there by now: of this job, or of its stored object, which a reindex brings back, it is as good
// as made; of another, the next is drawn.
func (r Resolver) mint(ctx context.Context, j *ingest.Job, try int, again bool) (took int, reserve bool, err error) {
	shoulder, err := r.shoulder(ctx, j.Collection)
	if err != nil {
		return try, false, err
	}

	for end := try + drawsAtOnce; try < end; try++ {
		drawn := r.draw(shoulder, j.ID, try)
		// The storage root is asked, since rows can be lost.
		version, there, err := r.versionBy(ctx, drawn, j.ID)
		if err != nil {
			return try, false, err
		}

		if there && version == 0 {
			continue // another's object
		}

		var row *inventory.Reserved
		if there || again { // the job stored it, before the table was restored
			row, err = r.Inventory.Reserved(ctx, drawn)
		}
		if err != nil {
			return try, false, err
		}

		if !there && row != nil && row.Job != j.ID {
			continue // another's reservation
		}

		j.Primary = drawn
		return try, row == nil, nil
	}

	return try, false, fault.New(fault.Unavailable,
		"no unused ARK was found on ark:/%s/%s in %d tries",
		r.NAAN, shoulder, drawsAtOnce)
}

// StoredBy finds whether the job's version is stored, and notes the version on the job.
// The object is the one that the job names; else that of one of its local ids; else one
// with an ARK that was drawn for the job. If it finds none, the job is as before.
func (r Resolver) StoredBy(ctx context.Context, j *ingest.Job) (found bool, err error) {
	if j.Primary != "" {
		_, found, err = r.storedAs(ctx, j, j.Primary)
		return found, err
	}

	for _, id := range j.LocalIDs {
		known, err := r.Inventory.ByLocalID(ctx, j.Collection, id)
		if err == nil && known != "" {
			_, found, err = r.storedAs(ctx, j, known)
		}
		if err != nil || found {
			return found, err
		}
	}

	shoulder, err := r.shoulder(ctx, j.Collection)
	// The first ARK of which nothing is stored ends the search: mint takes the first of these.
	for try, there := 0, true; err == nil && there && !found && try < mostDraws; try++ {
		there, found, err = r.storedAs(ctx, j, r.draw(shoulder, j.ID, try))
	}

	return found, err
}

// storedAs finds whether an object is there, and whether the job stored one of its versions.
func (r Resolver) storedAs(ctx context.Context, j *ingest.Job,
	ark string) (there, found bool, err error) {
	version, there, err := r.versionBy(ctx, ark, j.ID)
	if err != nil || version == 0 {
		return there, false, err
	}
	j.Primary, j.ObjectVersion, j.NoChange = ark, version, false
	return true, true, nil
}

// versionBy is the number of the version of an object that a job stored, 0 for none,
// and whether the object is there.
func (r Resolver) versionBy(ctx context.Context, ark,
	job string) (version int, there bool, err error) {
	etag, err := r.Root.ETag(ctx, ark)
	if err != nil || etag == "" {
		return 0, false, err
	}

	v, err := r.Root.Judge(ctx, ark)
	if err != nil || v.Trust == ocfl.Unused {
		return 0, true, err
	}

	if err := v.Err(); err != nil {
		return 0, true, err
	}
	return v.Object.VersionBy(job), true, nil
}
