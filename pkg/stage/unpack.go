package stage

import (
	"bytes"
	"context"
	"errors"
	"io"

	"archivist/pkg/bucket"
	"archivist/pkg/checkm"
	"archivist/pkg/collection"
	"archivist/pkg/fault"
	"archivist/pkg/fetch"
	"archivist/pkg/ingest"
	"archivist/pkg/queue"
)

// maxBatchManifest bounds a batch manifest in bytes (source: the running
// system's limit).
const maxBatchManifest = 5 << 20

// batchKinds are the payload types that list objects: what each row is, and the
// kind of their manifest.
var batchKinds = map[string]struct {
	row  string
	kind checkm.Kind
}{
	ingest.TypeBatchManifest:   {ingest.TypeObjectManifest, checkm.Batch},
	ingest.TypeSingleFileBatch: {ingest.TypeFile, checkm.SingleFileBatch},
}

// unpack makes the batch's jobs, one per object.
func (s *Stages) unpack(ctx context.Context, h *queue.Held) (ingest.Result, error) {
	b := h.Batch
	kind := b.Payload.Type
	if kind == "" {
		kind = s.sniff(ctx, b.URL)
	}
	if list, many := batchKinds[kind]; many {
		return s.unpackList(ctx, h, list.row, list.kind)
	}
	j := ingest.Job{Collection: b.Collection, Submitter: b.Submitter, Mode: b.Mode, Payload: b.Payload, Metadata: b.Metadata,
		Primary: b.Primary, LocalIDs: b.LocalIDs, IfVersion: b.IfVersion}
	j.Payload.Type = kind
	profile, _, err := s.Collections.Profile(ctx, b.Collection)
	if err != nil {
		return ingest.Result{}, err
	}
	j.Priority = priority(profile, 1)
	if err := s.tellQueued(ctx, b, 1); err != nil {
		return ingest.Result{}, err
	}
	return next, h.Unpack(ctx, []ingest.Job{j}, 1)
}

// unpackList makes a job of each row of a batch manifest, chunk by chunk from
// where an earlier try got to.
func (s *Stages) unpackList(ctx context.Context, h *queue.Held, row string, kind checkm.Kind) (ingest.Result, error) {
	data, res, err := s.batchManifest(ctx, h.Batch)
	if err == nil && res.Outcome == ingest.StepFail {
		return s.refuse(ctx, h.Batch, res)
	}
	if err != nil {
		return res, err
	}
	profile, _, err := s.Collections.Profile(ctx, h.Batch.Collection)
	if err != nil {
		return ingest.Result{}, err
	}
	m, rows, problems, err := checkm.ReadAll(bytes.NewReader(data), checkm.Options{RequireDigest: profile.RequireDigest && row == ingest.TypeFile})
	if why := rejected(m, problems, err, kind); why != "" {
		return s.refuse(ctx, h.Batch, ingest.Fail(false, why))
	}
	if err := s.tellQueued(ctx, h.Batch, len(rows)); err != nil {
		return ingest.Result{}, err
	}
	jobs := make([]ingest.Job, len(rows))
	for i, r := range rows {
		jobs[i] = jobOf(h.Batch, r, row, priority(profile, len(rows)))
	}
	for h.Batch.Unpacked < len(jobs) {
		left := jobs[h.Batch.Unpacked:]
		if err := h.Unpack(ctx, left[:queue.Chunk(left)], len(jobs)); err != nil {
			return ingest.Result{}, err
		}
		if !s.Now().Before(h.Until) {
			return ingest.Result{Outcome: ingest.StepContinue}, nil
		}
	}
	return next, nil
}

// priority of a batch's jobs: the profile's, else by how many there are.
func priority(p collection.Profile, jobs int) int {
	if p.Priority != nil {
		return *p.Priority
	}
	return ingest.BatchPriority(jobs)
}

func batchManifestKey(batch string) string { return "batches/" + batch + "/manifest.checkm" }

// batchManifest fetches the manifest once and keeps it: every try of unpacking
// sees the same rows.
func (s *Stages) batchManifest(ctx context.Context, b *ingest.Batch) ([]byte, ingest.Result, error) {
	key := batchManifestKey(b.ID)
	data, _, err := s.Work.Read(ctx, key)
	if !fault.Is(err, fault.NotFound) {
		return data, next, err
	}
	data, res, err := s.fetchManifest(ctx, b.URL, b.Payload, maxBatchManifest)
	if err != nil || res.Outcome == ingest.StepFail {
		return nil, res, err
	}
	return data, next, s.Work.Put(ctx, key, data, bucket.Condition{})
}

// jobOf makes a row's job. What the row says goes before what the form says.
func jobOf(b *ingest.Batch, r checkm.Row, kind string, priority int) ingest.Job {
	or := func(row, form string) string {
		if row != "" {
			return row
		}
		return form
	}
	size := max(r.Size, 0)
	return ingest.Job{Collection: b.Collection, Submitter: b.Submitter, Mode: b.Mode, Primary: r.Primary, LocalIDs: r.Local, Priority: priority,
		Payload:  ingest.Payload{URL: r.URL, Type: kind, Filename: r.Name, Size: size, Algorithm: r.Algorithm, Digest: r.Digest},
		Metadata: ingest.Metadata{Who: or(r.Creator, b.Who), What: or(r.Title, b.What), When: or(r.Date, b.When), Where: b.Where}}
}

// errSeen ends reading after the first row.
var errSeen = errors.New("seen")

// sniff tells a manifest from a file by its first bytes, and its kind by its
// profile. What cannot be read now is taken for a file; its job says what is wrong.
func (s *Stages) sniff(ctx context.Context, url string) string {
	found := ingest.TypeFile
	err := s.Fetch.Get(ctx, url, nil, func(body fetch.Stream) error {
		start := make([]byte, 4096)
		n, err := io.ReadFull(body, start)
		if err != nil && err != io.ErrUnexpectedEOF && err != io.EOF {
			return err
		}
		if !checkm.IsManifest(start[:n]) {
			return nil
		}
		found = ingest.TypeObjectManifest
		m, _, _ := checkm.Read(bytes.NewReader(start[:n]), checkm.Options{}, func(checkm.Row) error { return errSeen })
		for t, list := range batchKinds {
			if list.kind == m.Kind {
				found = t
			}
		}
		return nil
	})
	if err != nil {
		s.Queue.Log.Info("the payload's type could not be sniffed", "url", fetch.Redact(url), "error", err)
	}
	return found
}
