package stage

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"archivist/pkg/ark"
	"archivist/pkg/fault"
	"archivist/pkg/ingest"
	"archivist/pkg/inventory"
	"archivist/pkg/queue"
	"archivist/pkg/table"
)

// process fixes the object's identifier and the version's time, and writes the
// system files: after it every byte and digest of the version is decided.
func (s *Stages) process(ctx context.Context, h *queue.Held) (ingest.Result, error) {
	refused, err := s.resolve(ctx, h.Job)
	if err != nil {
		return ingest.Result{}, err
	}
	if refused == "" {
		refused, err = s.overtaken(ctx, h.Job)
	}
	if err != nil {
		return ingest.Result{}, err
	}
	if refused != "" {
		return ingest.Fail(false, refused), nil
	}
	if res, err := s.identify(ctx, h); err != nil || res.Outcome != ingest.StepNext {
		return res, err
	}
	files, err := s.ledger(ctx, ledgerKey(h.Job.ID))
	if err != nil {
		return ingest.Result{}, err
	}
	system, err := s.systemFiles(ctx, h.Job, files)
	if err != nil {
		return ingest.Result{}, err
	}
	return next, s.saveVersion(ctx, h.Job.ID, append(files, system...))
}

// overtaken says that the object is not at the version that the submission was
// made for, if it named one.
func (s *Stages) overtaken(ctx context.Context, j *ingest.Job) (string, error) {
	if j.IfVersion == 0 {
		return "", nil
	}
	now := 0
	if j.Primary != "" {
		o, err := s.Inventory.Object(ctx, j.Primary)
		if err != nil && !fault.Is(err, fault.NotFound) {
			return "", err
		}
		if err == nil {
			now = o.HeadOf
		}
	}
	if now == j.IfVersion {
		return "", nil
	}
	return fmt.Sprintf("the submission was made for version %d of the object, which is at version %d; look at what changed, then submit anew", j.IfVersion, now), nil
}

// identify mints an ark if the job has none, and takes the ark's lock. Both, and
// the time of the version, are on the job's row before any use.
func (s *Stages) identify(ctx context.Context, h *queue.Held) (ingest.Result, error) {
	j := h.Job
	minted := j.Primary == ""
	for range 5 {
		if minted {
			j.Primary = ark.Mint(s.NAAN, s.Shoulder, s.Random).String()
		}
		if j.Stamp != 0 && !minted && slices.Contains(j.Locks, "ark#"+j.Primary) {
			return next, nil
		}
		before := *j
		if j.Stamp == 0 {
			j.Stamp = s.Now().UnixMilli()
		}
		j.Locks = j.Wanted()
		err := h.Checkpoint(ctx, func(tx *table.Tx) {
			if minted {
				inventory.Reserve(tx, j.Primary, j.ID)
			}
		})
		if err == nil {
			return next, nil
		}
		var ce *table.ConditionError
		if !errors.As(err, &ce) {
			return ingest.Result{}, err
		}
		taken := j.Primary
		*j = before
		switch {
		case ce.Failed(inventory.ReservedKey(taken)):
			continue // drawn before: draw again
		case ce.Failed(queue.LockKey("ark#" + taken)):
			return ingest.Result{Outcome: ingest.StepPark, Lock: "ark#" + taken}, nil
		}
		return ingest.Result{}, err
	}
	return ingest.Result{}, fault.New(fault.Unavailable, "no free ark was drawn in 5 tries on ark:/%s/%s", s.NAAN, s.Shoulder)
}

func versionKey(job string) string { return workPrefix(job) + "version.json" }

// saveVersion writes the ledger of the whole version, producer's and system's.
func (s *Stages) saveVersion(ctx context.Context, job string, files []Entry) error {
	return s.putJSON(ctx, versionKey(job), files)
}

// message is what the version says of itself: it tells whose it is.
func message(j *ingest.Job) string {
	return fmt.Sprintf("ingest of job %s, batch %s", j.ID, j.Batch)
}
