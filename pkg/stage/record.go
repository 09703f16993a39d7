package stage

import (
	"context"
	"errors"
	"fmt"

	"archivist/pkg/fault"
	"archivist/pkg/ingest"
	"archivist/pkg/queue"
	"archivist/pkg/reindex"
	"archivist/pkg/table"
	"archivist/pkg/workspace"
)

// record makes the stored version findable, by ark and by local id. What it
// writes follows from the stored object alone.
func (s *Stages) record(ctx context.Context, h *queue.Claim) (ingest.Result, error) {
	j := h.Job
	known, err := s.known(ctx, j.ID)
	if err != nil {
		return ingest.Result{}, err
	}
	by := reindex.By{Actor: j.Submitter, Job: j.ID, Known: known}
	put, err := s.Reindexer().Missing(ctx, j.Primary, by, h.Until)
	switch {
	case errors.Is(err, reindex.ErrStopped):
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

// Reindexer writes the rows of stored objects.
func (s *Stages) Reindexer() reindex.Reindexer {
	return reindex.Reindexer{Root: s.Root, Inventory: s.Inventory, NewID: s.Queue.NewID, Now: s.Now, Preserved: s.Queue.Preserved}
}

// known reads the small system files of a job's version from its work files.
func (s *Stages) known(ctx context.Context, job string) (files [][]byte, err error) {
	var system systemFiles
	err = s.Work.GetJSON(ctx, workspace.SystemKey(job), &system)
	if fault.Is(err, fault.NotFound) {
		return nil, nil
	}
	for _, f := range system.Files {
		if f.Source == "" {
			files = append(files, f.Data)
		}
	}
	return files, err
}
