package stage

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"archivist/pkg/aip"
	"archivist/pkg/ark"
	"archivist/pkg/description"
	"archivist/pkg/fault"
	"archivist/pkg/ingest"
	"archivist/pkg/inventory"
	"archivist/pkg/ocfl"
	"archivist/pkg/queue"
	"archivist/pkg/spill"
	"archivist/pkg/systemfile"
	"archivist/pkg/table"
)

// process fixes the object's identifier and the version's time, and writes the
// system files: after it every byte and digest of the version is decided.
func (s *Stages) process(ctx context.Context, h *queue.Claim) (ingest.Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	files, described, err := s.gather(ctx, h.Job)
	if err != nil {
		return ingest.Result{}, err
	}
	var d description.Description
	for _, ask := range []func() (string, error){
		func() (refused string, err error) {
			d, refused, err = s.describeJob(ctx, h.Job, described)
			return refused, err
		},
		func() (string, error) { return s.resolve(ctx, h.Job) },
		func() (string, error) { return s.adopt(ctx, h.Job, d) },
		func() (string, error) { return systemfile.Refused(h.Job, d), nil },
		func() (string, error) {
			if h.Job.Primary != "" {
				return "", nil // asked again below the object's lock
			}
			return unexpected(h.Job, 0), nil
		},
	} {
		refused, err := ask()
		if err != nil {
			return ingest.Result{}, err
		}
		if refused != "" {
			return ingest.Fail(false, refused), nil
		}
	}
	minted := h.Job.Primary == ""
	if res, err := s.identify(ctx, h); err != nil || res.Outcome != ingest.StepNext {
		return res, err
	}
	stored := &ocfl.Stored{} // of an ark that was minted nothing is stored: it was looked for
	if !minted {
		if stored, err = s.stored(ctx, h.Job.Primary); err != nil {
			return ingest.Result{}, err
		}
	}
	return s.settle(ctx, h, stored, d, files)
}

// stored is an object as it stands in the storage root; one that is not there has no
// version.
func (s *Stages) stored(ctx context.Context, ark string) (*ocfl.Stored, error) {
	stored, err := s.Root.Head(ctx, ark)
	if fault.Is(err, fault.NotFound) {
		return &ocfl.Stored{}, nil
	}
	return stored, err
}

// gather sorts the job's files by their paths, and finds the descriptions among them.
func (s *Stages) gather(ctx context.Context, j *ingest.Job) (files *spill.Sorter[aip.Entry], described map[string]aip.Entry, err error) {
	files, described = spill.New[aip.Entry](ctx), map[string]aip.Entry{}
	for e, err := range s.Work.Entries(ctx, j) {
		if err == nil {
			err = files.Add(e.Path, e)
		}
		if err != nil {
			return nil, nil, err
		}
		if description.IsSource(e.Path) {
			described[e.Path] = e
		}
	}
	return files, described, nil
}

// unexpected says that the object is not at the version that the submission was
// made for, if it named one. head is 0 where there is no object.
func unexpected(j *ingest.Job, head int) string {
	if j.IfVersion == 0 || j.IfVersion == head {
		return ""
	}
	return fmt.Sprintf("the submission was made for version %d of the object, which is at version %d; "+
		"look at what changed, then submit anew", j.IfVersion, head)
}

// identify mints an ark if the job has none, reserves it, and takes the locks of the
// job's identifiers. These, and the time of the version, are on the job's row before
// any use.
func (s *Stages) identify(ctx context.Context, h *queue.Claim) (ingest.Result, error) {
	j := h.Job
	minted, tries := j.Primary == "", 0
	for range 5 {
		reserve, refused, err := s.claimARK(ctx, j, minted, &tries)
		if err != nil || refused != "" {
			return ingest.Fail(false, refused), err
		}
		if j.Stamp != 0 && !reserve && len(j.Locks) == len(j.LockKeys()) {
			return next, nil
		}
		before := *j
		if j.Stamp == 0 {
			j.Stamp = s.Now().UnixMilli()
		}
		j.Locks = j.LockKeys()
		err = h.Checkpoint(ctx, func(tx *table.Tx) {
			if reserve {
				inventory.Reserve(tx, j.Primary, j.Collection, j.ID)
			}
		})
		if err == nil {
			return next, nil
		}
		var ce *table.ConditionError
		if !errors.As(err, &ce) {
			return ingest.Result{}, err
		}
		tried := *j
		if *j = before; minted {
			j.Primary = ""
		}
		if reserve && ce.Failed(inventory.ReservedKey(tried.Primary)) {
			continue // reserved meanwhile
		}
		for _, lock := range tried.LockKeys() {
			if ce.Failed(queue.LockKey(lock)) {
				return ingest.Result{Outcome: ingest.StepPark, Lock: lock}, nil
			}
		}
		return ingest.Result{}, err
	}
	return ingest.Result{}, fault.New(fault.Unavailable, "no free ark was found in 5 tries for job %s", j.ID)
}

// claimARK draws an ark for the job, or looks whether the one that it has is its
// collection's to use. It returns whether that has to be reserved still.
func (s *Stages) claimARK(ctx context.Context, j *ingest.Job, mint bool, tries *int) (reserve bool, refused string, err error) {
	if !mint {
		row, err := s.Inventory.Reserved(ctx, j.Primary)
		if err == nil && row != nil && row.Collection != "" && row.Collection != j.Collection && row.Job != j.ID {
			refused = foreign(j.Primary)
		}
		return row == nil, refused, err
	}
	shoulder, err := s.shoulder(ctx, j)
	if err != nil {
		return false, "", err
	}
	for range 5 {
		drawn := s.draw(shoulder, j.ID, *tries)
		*tries++
		version, there, err := s.versionBy(ctx, drawn, j.ID)
		if err != nil || there && version == 0 {
			if err != nil {
				return false, "", err
			}
			continue // another's object
		}
		j.Primary = drawn
		if !there {
			return true, "", nil
		}
		row, err := s.Inventory.Reserved(ctx, drawn) // the job stored it, before the table was restored
		return row == nil, "", err
	}
	return false, "", fault.New(fault.Unavailable, "5 arks were drawn on ark:/%s/%s that are objects' already",
		s.NAAN, shoulder)
}

// mostDraws is how many arks are drawn for a job at most.
const mostDraws = 25

// draw is the ark that a job gets at its first, second … try.
func (s *Stages) draw(shoulder, job string, try int) string {
	return ark.Mint(s.NAAN, shoulder, s.Draw(job, try)).String()
}

// Draw gives numbers that follow from a job's id, and so do the arks that are made of
// them: a job that runs again because its table was restored gets the same ark. Who
// does not know the id, which has 80 random bits, cannot guess them.
func Draw(job string, try int) func(n int) int {
	calls := 0
	return func(n int) int {
		calls++
		sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %d", job, try, calls))
		return int(binary.BigEndian.Uint64(sum[:]) % uint64(n))
	}
}
