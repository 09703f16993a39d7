package workspace

import (
	"context"
	"encoding/json"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/ocfl"
)

// SystemFiles are those of a job's version, written at Processing. Follows is the ETag of
// the root inventory that they were written for. If the producer's files are few, they
// are included.
type SystemFiles struct {
	Follows  string      `json:"follows"`
	Files    []ocfl.File `json:"files"`
	Producer []ocfl.File `json:"producer,omitempty"`
}

// SystemFiles reads the list of the system files of a job's version. If there is none
// it is a NotFound.
func (s Store) SystemFiles(ctx context.Context, job string) (system SystemFiles, err error) {
	err = s.GetJSON(ctx, SystemKey(job), &system)
	return system, err
}

// PutSystemFiles saves the list of the system files of a job's version.
func (s Store) PutSystemFiles(ctx context.Context, job string, system SystemFiles) error {
	return s.PutJSON(ctx, SystemKey(job), system, bucket.Condition{})
}

// Plan is how a job's version is to be stored. Its inventory and the list of its new
// content are part of it if they are small. Else they are in a folder that only the worker
// of this plan writes: a late worker does not change a plan that another follows.
type Plan struct {
	ocfl.Prepared
	Attempt   string         `json:"attempt"`
	Retry     int            `json:"retry"` // the job's retry count: a requeued job starts over
	Stamp     int64          `json:"stamp"` // the job's: one that was processed again, after a restore, starts over
	At        int64          `json:"at"`    // when it was prepared; workers that follow another plan began before
	Inventory []byte         `json:"inventory,omitempty"`
	List      []ocfl.Content `json:"list,omitempty"` // of the new and reused content, if that is one segment

	Fresh bool `json:"-"` // prepared by this worker

	etag string // of the plan that this one replaces
}

// Replacing returns a new plan for a job that takes the place of this one.
func (p *Plan) Replacing(j *ingest.Job, attempt string, now int64) *Plan {
	return &Plan{
		Attempt: attempt,
		Retry:   j.RetryCount,
		Stamp:   j.Stamp,
		At:      now,
		Fresh:   true,
		etag:    p.etag,
	}
}

// IsOf reports whether it is a plan for what the job is to store now.
func (p *Plan) IsOf(j *ingest.Job) bool {
	return p.ID == j.Primary && p.Retry == j.RetryCount && p.Stamp == j.Stamp
}

// Segments is how many lists of new and reused content there are.
func (p *Plan) Segments() int { return (p.Contents + p.Reused + SegmentFiles - 1) / SegmentFiles }

// Plan reads a job's plan; one without an ID is none.
func (s Store) Plan(ctx context.Context, job string) (*Plan, error) {
	p := &Plan{}
	data, info, err := s.Read(ctx, PlanKey(job))
	if fault.Is(err, fault.NotFound) {
		return p, nil
	}
	if err == nil {
		err = json.Unmarshal(data, p)
	}
	p.etag = info.ETag
	return p, err
}

// PutPlan saves a plan in place of the one that it replaces. It returns a Stale if another
// worker saved one meanwhile.
func (s Store) PutPlan(ctx context.Context, job string, p *Plan) error {
	return s.PutJSON(ctx, PlanKey(job), p, bucket.Condition{Absent: p.etag == "", ETag: p.etag})
}

// CreateInventory writes a plan's inventory; see Inventory.
func (s Store) CreateInventory(ctx context.Context, job string, p *Plan) *TextWriter {
	return s.Create(ctx, inventoryKey(job, p.Attempt), smallInventory)
}

// Inventory opens a plan's inventory.
func (s Store) Inventory(job string, p *Plan) ocfl.Text {
	if p.Inventory != nil {
		return InMemory(p.Inventory)
	}
	return s.Text(inventoryKey(job, p.Attempt))
}

// Contents reads segment n of a plan's new and reused content.
func (s Store) Contents(ctx context.Context, job string, p *Plan,
	n int) (list []ocfl.Content, err error) {
	if p.List != nil {
		return p.List, nil
	}
	err = s.GetJSON(ctx, contentKey(job, p.Attempt, n), &list)
	return list, err
}

// ContentWriter writes the list of a plan's new and reused content, segment by segment.
type ContentWriter struct {
	store Store
	job   string
	plan  *Plan
	n     int
	list  []ocfl.Content
}

// CreateContents begins the list of a plan's new and reused content.
func (s Store) CreateContents(job string, p *Plan) *ContentWriter {
	return &ContentWriter{store: s, job: job, plan: p}
}

// Add adds the next file.
func (w *ContentWriter) Add(ctx context.Context, file ocfl.Content) error {
	if len(w.list) == SegmentFiles {
		if err := w.flush(ctx); err != nil {
			return err
		}
	}
	w.list = append(w.list, file)
	return nil
}

// Close ends the list. One of a single segment is kept in the plan. Otherwise the last segment is
// written, which has at least one file.
func (w *ContentWriter) Close(ctx context.Context) error {
	if w.n == 0 {
		w.plan.List = w.list
		return nil
	}
	return w.flush(ctx)
}

// flush writes a segment under a key of this attempt, so it needs no condition.
func (w *ContentWriter) flush(ctx context.Context) error {
	err := w.store.PutJSON(ctx, contentKey(w.job, w.plan.Attempt, w.n), w.list, bucket.Condition{})
	w.n, w.list = w.n+1, w.list[:0]
	return err
}
