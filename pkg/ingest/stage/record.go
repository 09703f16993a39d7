package stage

import (
	"context"
	"errors"
	"fmt"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/reindex"
	"archivist/pkg/ingest/workspace"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/objects/ocfl"
)

// Record makes the stored version findable, by ARK and by local id. What it
// writes follows from the stored object alone, so that reindexing writes the same.
//
// The last rows are part of the transaction that ends the step: if a job is past this
// stage, its version can be found.
type Record struct {
	Reindexer reindex.Reindexer
	Work      workspace.Store
}

// Run records a job's version.
func (r Record) Run(ctx context.Context, claim *queue.Claim) (ingest.Result, error) {
	j := claim.Job
	known, err := r.known(ctx, j.ID)
	if err != nil {
		return ingest.Result{}, err
	}

	by := reindex.By{
		Actor:   j.Actor(),
		Job:     j.ID,
		Change:  j.Change(),
		Known:   known,
		Digest:  j.Inventory,
		Version: j.ObjectVersion,
	}
	put, err := r.Reindexer.Missing(ctx, j.Primary, by, claim.Until)
	switch {
	case errors.Is(err, reindex.ErrStopped):
		j.Checkpoint = "recording earlier versions"
		return ingest.Result{Outcome: ingest.StepContinue}, nil
	// Before the next case, since its kind is a Conflict, too: see untrusting.
	case errors.As(err, new(*ocfl.DamagedError)):
		return ingest.Result{}, err
	case fault.Is(err, fault.Conflict):
		return ingest.Fail(true, fmt.Sprintf("the version could not be recorded: %v", err)), nil
	case err != nil:
		return ingest.Result{}, err
	case put != nil:
		claim.OnCommit(func(_ context.Context, tx *table.Tx) error { return put(tx) })
	}
	return next, nil
}

// known reads the small system files of the job's version from its work files.
func (r Record) known(ctx context.Context, job string) (files [][]byte, err error) {
	system, err := r.Work.SystemFiles(ctx, job)
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
