// Package workspace is what jobs and batches keep in the work bucket while they run.
//
// A job passes from one worker to the next, and each worker may die at any moment. So the
// work bucket has what a step has done so far, below the job's own prefix: downloaded
// files, the ledger that lists them, the state of an interrupted transfer, the system
// files of the version, and the plan for storing it. The next try finds it there. All keys
// of the bucket are named here (keys.go). When the job ends, its prefix is removed.
//
//	work := workspace.Store{Bucket: bucket.Bucket{Client: client, Name: "work", Limits: bucket.DefaultLimits}}
//	err := work.PutJSON(ctx, workspace.PlanKey(job), plan, bucket.Condition{Absent: true})
package workspace

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"archivist/pkg/kernel/bucket"
)

// Store is the work bucket.
type Store struct {
	bucket.Bucket
}

// PutJSON writes a value under a condition.
func (s Store) PutJSON(ctx context.Context, key string, v any, c bucket.Condition) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("workspace: %s: %w", key, err)
	}
	return s.Put(ctx, key, data, c)
}

// GetJSON reads a value. If there is none, the error is a NotFound.
func (s Store) GetJSON(ctx context.Context, key string, into any) error {
	data, _, err := s.Read(ctx, key)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("workspace: %s: %w", key, err)
	}
	return nil
}

// Clean removes a job's work files as long as there is time, and returns whether none
// is left.
func (s Store) Clean(ctx context.Context, job string, until time.Time,
	now func() time.Time) (all bool, err error) {
	return s.DeleteAll(ctx, Prefix(job), func() bool { return now().Before(until) })
}
