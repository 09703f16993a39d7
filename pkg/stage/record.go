package stage

import (
	"context"
	"fmt"

	"archivist/pkg/anvl"
	"archivist/pkg/fault"
	"archivist/pkg/ingest"
	"archivist/pkg/inventory"
	"archivist/pkg/ocfl"
	"archivist/pkg/queue"
)

// versionsAtOnce bounds how many versions one transaction records.
const versionsAtOnce = 50

// record makes the stored version findable, by ark and by local id. What it
// writes follows from the stored object alone.
func (s *Stages) record(ctx context.Context, h *queue.Held) (ingest.Result, error) {
	j := h.Job
	stored, err := s.Root.Head(ctx, j.Primary)
	if err != nil {
		return ingest.Result{}, err
	}
	r, err := s.describe(ctx, stored, stored.Head)
	if err != nil {
		return ingest.Result{}, err
	}
	r.Actor = j.Submitter
	if err := s.preserved(ctx, r, j.ID); err != nil {
		return ingest.Result{}, err
	}
	put, err := s.Inventory.Prepare(ctx, r, s.Now().UnixMilli())
	if fault.Is(err, fault.Conflict) {
		return ingest.Fail(false, fmt.Sprintf("preserved as %s v%d, but not recorded: %v", j.Primary, j.ObjectVersion, err)), nil
	}
	if err != nil || put == nil {
		return next, err
	}
	h.Also(put)
	return next, nil
}

// Reindex writes the rows of a stored object that are missing, from the storage
// root alone. It returns whether any were.
func (s *Stages) Reindex(ctx context.Context, ark, actor string) (changed bool, err error) {
	stored, err := s.Root.Head(ctx, ark)
	if err != nil {
		return false, err
	}
	for {
		known, err := s.Inventory.Known(ctx, ark)
		if err != nil {
			return changed, err
		}
		r, err := s.describe(ctx, stored, min(known+versionsAtOnce, stored.Head))
		if err != nil {
			return changed, err
		}
		r.Actor = actor
		if err := s.preserved(ctx, r, ""); err != nil {
			return changed, err
		}
		put, err := s.Inventory.Prepare(ctx, r, s.Now().UnixMilli())
		if err != nil || put == nil {
			return changed, err
		}
		tx := s.Queue.Table.Begin(s.Queue.NewID())
		if err := put(tx); err != nil {
			return changed, err
		}
		if err := tx.Commit(ctx); err != nil && !fault.Is(err, fault.Lost) {
			return changed, err
		}
		changed = true
	}
}

// preserved notes versions that were not recorded yet on the jobs that stored them,
// except one: such a job failed, and its worker committed too late to know.
func (s *Stages) preserved(ctx context.Context, r inventory.Record, except string) error {
	for _, v := range r.Versions {
		if v.Job == "" || v.Job == except {
			continue
		}
		if err := s.Queue.Preserved(ctx, v.Job, v.Number); err != nil {
			return err
		}
	}
	return nil
}

// describe reads what is to be recorded of a stored object up to version n,
// beyond the versions that are recorded.
func (s *Stages) describe(ctx context.Context, stored *ocfl.Stored, n int) (inventory.Record, error) {
	known, err := s.Inventory.Known(ctx, stored.ID)
	if err != nil {
		return inventory.Record{}, err
	}
	var r inventory.Record
	var kept map[string][]string
	for v := min(known+1, n); v <= n; v++ {
		row, elements, err := s.describeVersion(ctx, stored, v)
		if err != nil {
			return r, err
		}
		kept = elements
		r.Versions = append(r.Versions, row)
	}
	r.Object = inventory.Object{ARK: stored.ID, Collection: first(kept["collection"]), Title: summary(kept["what"]), Who: summary(kept["who"]), When: summary(kept["when"]),
		HeadOf: n, Digest: r.Versions[len(r.Versions)-1].Digest}
	r.Object.LocalIDs = separate(kept["localIdentifier"]...)
	return r, nil
}

// describeVersion reads one version and the elements of its system files.
func (s *Stages) describeVersion(ctx context.Context, stored *ocfl.Stored, n int) (inventory.Version, map[string][]string, error) {
	v := inventory.Version{Number: n, Created: stored.Versions[n].Created.UnixMilli()}
	var err error
	if v.Files, v.Bytes, err = s.sum(ctx, stored, n); err != nil {
		return v, nil, err
	}
	if v.Digest, err = s.Root.VersionDigest(ctx, stored, n); err != nil {
		return v, nil, err
	}
	kept := map[string][]string{}
	for _, name := range []string{"system/mrt-mom.txt", "system/mrt-erc.txt", "system/mrt-ingest.txt"} {
		if err := s.read(ctx, stored, n, name, kept); err != nil {
			return v, nil, err
		}
	}
	v.Job = first(kept["job"])
	return v, kept, nil
}

func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

// read reads the elements of a stored ANVL file, whose length Processing bounded.
func (s *Stages) read(ctx context.Context, stored *ocfl.Stored, n int, path string, into map[string][]string) error {
	body, err := s.Root.Open(ctx, stored, n, path, 0)
	if err != nil {
		return err
	}
	defer body.Close()
	elements, err := anvl.Read(body)
	if err != nil {
		return fmt.Errorf("stage: %s of %s: %w", path, stored.ID, err)
	}
	for _, e := range elements {
		into[e.Name] = append(into[e.Name], e.Value)
	}
	return nil
}
