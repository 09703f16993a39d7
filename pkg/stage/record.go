package stage

import (
	"context"
	"fmt"
	"io"
	"strings"

	"archivist/pkg/anvl"
	"archivist/pkg/fault"
	"archivist/pkg/ingest"
	"archivist/pkg/inventory"
	"archivist/pkg/ocfl"
	"archivist/pkg/queue"
)

// record makes the stored version findable, by ark and by local id. What it
// writes follows from the stored object alone.
func (s *Stages) record(ctx context.Context, h *queue.Held) (ingest.Result, error) {
	j := h.Job
	stored, err := s.Root.Head(ctx, j.Primary)
	if err != nil {
		return ingest.Result{}, err
	}
	r, err := s.describeStored(ctx, stored)
	if err != nil {
		return ingest.Result{}, err
	}
	r.Actor = j.Submitter
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

// describeStored reads what is to be recorded from the stored object.
func (s *Stages) describeStored(ctx context.Context, stored *ocfl.Stored) (inventory.Record, error) {
	n := stored.HeadNumber()
	version := stored.Versions[stored.Head]
	files, err := s.Root.Files(ctx, stored, n)
	if err != nil {
		return inventory.Record{}, err
	}
	v := inventory.Version{Number: n, Created: version.Created.UnixMilli(), Digest: stored.Digest}
	for _, f := range files {
		if strings.HasPrefix(f.Path, "producer/") {
			v.Files++
			v.Bytes += f.Size
		}
	}
	kept := map[string]string{}
	for _, name := range []string{"system/mrt-mom.txt", "system/mrt-erc.txt", "system/mrt-ingest.txt"} {
		if err := s.read(ctx, stored, n, name, kept); err != nil {
			return inventory.Record{}, err
		}
	}
	v.Job = kept["job"]
	o := inventory.Object{ARK: stored.ID, Collection: kept["collection"], Title: kept["what"], HeadOf: n, Digest: stored.Digest}
	for id := range strings.SplitSeq(kept["localIdentifier"], ";") {
		if id = strings.TrimSpace(id); id != "" {
			o.LocalIDs = append(o.LocalIDs, id)
		}
	}
	return inventory.Record{Object: o, Version: v}, nil
}

// read reads the elements of a stored ANVL file; the first of a name counts.
func (s *Stages) read(ctx context.Context, stored *ocfl.Stored, n int, path string, into map[string]string) error {
	body, err := s.Root.Open(ctx, stored, n, path)
	if err != nil {
		return err
	}
	defer body.Close()
	elements, err := anvl.Read(io.LimitReader(body, 1<<20))
	if err != nil {
		return fmt.Errorf("stage: %s of %s: %w", path, stored.ID, err)
	}
	for _, e := range elements {
		if _, had := into[e.Name]; !had {
			into[e.Name] = e.Value
		}
	}
	return nil
}

// notify ends the job's work: the work files are no longer needed.
func (s *Stages) notify(ctx context.Context, h *queue.Held) (ingest.Result, error) {
	err := s.Work.List(ctx, workPrefix(h.Job.ID), func(key string, _ int64) error { return s.Work.Delete(ctx, key) })
	return next, err
}
