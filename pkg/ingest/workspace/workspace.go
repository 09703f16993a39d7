// Package workspace is what jobs and batches keep in the work bucket while they run.
//
// A job passes from one worker to the next, and each worker may die at any moment. So the
// work bucket has what a step has done so far, below the job's own prefix: downloaded
// files, the ledger that lists them, the state of an interrupted transfer, the system
// files of the version, and the plan for storing it. The next try finds it there. All keys
// of the bucket are named here (keys.go). When the job ends, its prefix is removed.
//
//	jobs/{job}/files/{n}                        the content of file n of the submission
//	jobs/{job}/ledger/{segment}.json            what is known of 500 files, at most, that are there
//	jobs/{job}/unfinished/{segment}.json        the same, until all are there
//	jobs/{job}/partial/{file}.json              an interrupted transfer
//	jobs/{job}/{attempt}/…                      what one try has written: a manifest, system files
//	jobs/{job}/version.json                     the list of the version's system files
//	jobs/{job}/plan.json, plan/{attempt}/…      how the version is stored
//	batches/{batch}/…                           the manifest, and the pages of a report in progress
//	reports/{batch}.json, {batch}.{n}.json      saved reports; .summary.json is the part for mails
//	uploads/{collection}/{upload}/{sha256}      what was uploaded for a submission (package upload)
//
// A value is kept as JSON:
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

// PutJSON writes a value under a condition. A Stale means that the condition did not hold.
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
