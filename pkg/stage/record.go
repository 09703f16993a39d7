package stage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"archivist/pkg/aip"
	"archivist/pkg/fault"
	"archivist/pkg/ingest"
	"archivist/pkg/inventory"
	"archivist/pkg/ocfl"
	"archivist/pkg/queue"
	"archivist/pkg/table"
	"archivist/pkg/workspace"
)

// Bounds of the rows of one transaction. The last one has as many local ids and
// versions as fit beside what a job at its limits gives back; those before have
// nothing else.
const (
	idsAtLast      = ingest.MaxLocalIDs
	versionsAtLast = 10
	rowsAtOnce     = 50
)

// record makes the stored version findable, by ark and by local id. What it
// writes follows from the stored object alone.
func (s *Stages) record(ctx context.Context, h *queue.Claim) (ingest.Result, error) {
	j := h.Job
	put, err := s.missingRows(ctx, j.Primary, who{j.Submitter, j.ID}, h.Until)
	switch {
	case errors.Is(err, errStopped):
		j.Checkpoint = "recording earlier versions"
		return ingest.Result{Outcome: ingest.StepContinue}, nil
	case fault.Is(err, fault.Conflict):
		return ingest.Fail(true, fmt.Sprintf("it could not be recorded: %v", err)), nil
	case err != nil:
		return ingest.Result{}, err
	case put != nil:
		h.OnCommit(put)
	}
	return next, nil
}

func (s *Stages) commit(ctx context.Context, put func(*table.Tx) error) error {
	tx := s.Queue.Table.Begin(s.Queue.NewID())
	if err := put(tx); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// who records: a job, or a person.
type who struct{ actor, job string }

// missingRows reads a stored object and writes those of its missing rows that do not
// fit into the last transaction: local ids first, then versions. It returns what puts
// the rest, and nil if no row is missing; see inventory.Store.Prepare. At until it
// stops with errStopped.
func (s *Stages) missingRows(ctx context.Context, ark string, by who, until time.Time) (func(*table.Tx) error, error) {
	stored, err := s.Root.Head(ctx, ark)
	if fault.Is(err, fault.NotFound) {
		return nil, fault.New(fault.NotFound, "there is no object %s in the storage root", ark)
	}
	if err != nil {
		return nil, err
	}
	if err := s.know(ctx, stored, by.job); err != nil {
		return nil, err
	}
	r, err := aip.Head(s.Root, stored).Record(ctx)
	if err != nil {
		return nil, err
	}
	r.Actor = by.actor
	if by.job != "" && stored.Job(stored.Head) == by.job {
		r.Job = by.job
	}
	if len(r.Object.LocalIDs) > idsAtLast {
		err := s.recordIDs(ctx, &r.Object, idsAtLast, until)
		if err != nil && !fault.Is(err, fault.Conflict) { // that is told in the end
			return nil, err
		}
	}
	missing, err := s.Inventory.Missing(ctx, ark, stored.Head)
	if err != nil {
		return nil, err
	}
	for i, n := range missing {
		if len(r.Versions) == rowsAtOnce {
			if err := s.putVersions(ctx, ark, r.Versions); err != nil {
				return nil, err
			}
			r.Versions = nil
		}
		if i > 0 && !s.Now().Before(until) {
			return nil, errors.Join(s.putVersions(ctx, ark, r.Versions), errStopped)
		}
		v, err := aip.Of(s.Root, stored, n).Row(ctx)
		if err == nil && v.Job != "" && v.Job != by.job { // it failed, and its worker committed too late to know
			err = s.Queue.Preserved(ctx, v.Job, ark, n)
		}
		if err != nil {
			return nil, err
		}
		r.Versions = append(r.Versions, v)
	}
	if last := len(r.Versions) - 1; last >= versionsAtLast {
		if err := s.putVersions(ctx, ark, r.Versions[:last]); err != nil {
			return nil, err
		}
		r.Versions = r.Versions[last:]
	}
	return s.Inventory.Prepare(ctx, r, s.Now().UnixMilli())
}

// know takes the small system files from a job's work file, so that each need not be
// read from the storage root. They count only where the object names their digests.
func (s *Stages) know(ctx context.Context, stored *ocfl.Stored, job string) error {
	if job == "" {
		return nil
	}
	var system systemFiles
	err := s.Work.GetJSON(ctx, workspace.SystemKey(job), &system)
	for _, f := range system.Files {
		if f.Source == "" {
			stored.Know(f.Data)
		}
	}
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	return err
}

// recordIDs writes the missing rows of an object's local ids but for the last ones. A
// Conflict names those that are another object's; the others are written.
func (s *Stages) recordIDs(ctx context.Context, o *inventory.Object, last int, until time.Time) error {
	fresh, conflict := s.Inventory.Fresh(ctx, o)
	if conflict != nil && !fault.Is(conflict, fault.Conflict) {
		return conflict
	}
	for len(fresh) > last {
		if !s.Now().Before(until) {
			return errStopped
		}
		chunk := fresh[:min(rowsAtOnce, len(fresh)-last)]
		if err := s.commit(ctx, func(tx *table.Tx) error { inventory.PutLocalIDs(tx, o, chunk); return nil }); err != nil {
			return err
		}
		fresh = fresh[len(chunk):]
	}
	return conflict
}

func (s *Stages) putVersions(ctx context.Context, ark string, versions []inventory.Version) error {
	if len(versions) == 0 {
		return nil
	}
	return s.commit(ctx, func(tx *table.Tx) error { inventory.PutVersions(tx, ark, versions); return nil })
}
