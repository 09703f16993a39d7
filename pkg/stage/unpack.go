package stage

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"archivist/pkg/ark"
	"archivist/pkg/bucket"
	"archivist/pkg/checkm"
	"archivist/pkg/collection"
	"archivist/pkg/erc"
	"archivist/pkg/fault"
	"archivist/pkg/fetch"
	"archivist/pkg/ingest"
	"archivist/pkg/payload"
	"archivist/pkg/queue"
	"archivist/pkg/workspace"
)

// maxBatchManifest bounds a batch manifest in bytes (source: the running
// system's limit).
const maxBatchManifest = 5 << 20

// unpack makes the batch's jobs, one per object. What is refused is not kept.
func (s *Stages) unpack(ctx context.Context, h *queue.Claim) (ingest.Result, error) {
	res, err := s.unpackAny(ctx, h)
	if err == nil && res.Outcome == ingest.StepFail {
		s.forget(ctx, h.Batch.ID)
	}
	return res, err
}

// forget removes the saved manifest of a batch, which has the URLs as they were
// submitted. If that fails, a lifecycle rule removes it.
func (s *Stages) forget(ctx context.Context, batch string) {
	if err := s.Work.Delete(ctx, workspace.BatchManifestKey(batch)); err != nil {
		s.Queue.Log.Warn("the manifest of a batch could not be removed", "batch", batch, "error", err)
	}
}

func (s *Stages) unpackAny(ctx context.Context, h *queue.Claim) (ingest.Result, error) {
	if h.Batch.Unpacked > 0 { // the source may have other rows by now
		if _, err := s.Work.Head(ctx, workspace.BatchManifestKey(h.Batch.ID)); fault.Is(err, fault.NotFound) {
			return ingest.Fail(false, fmt.Sprintf("the saved manifest is gone after %d of its objects; "+
				"submit the others again", h.Batch.Unpacked)), nil
		} else if err != nil {
			return ingest.Result{}, err
		}
	}
	kind, err := s.batchType(ctx, h)
	if err != nil {
		return s.unreachable(ctx, h, err)
	}
	if list, many := payload.Lists[kind]; many {
		if why := h.Batch.ForOneObject(); why != "" {
			return ingest.Fail(false, why), nil
		}
		return s.unpackList(ctx, h, list.Row, list.Kind)
	}
	b := h.Batch
	j := ingest.Job{Collection: b.Collection, Submitter: b.Submitter, Mode: b.Mode, Note: b.Note, Payload: b.Payload, Metadata: b.Metadata,
		Primary: b.Primary, LocalIDs: b.LocalIDs, IfVersion: b.IfVersion}
	j.Payload.Type, j.Payload.Detected = kind, b.Payload.Type == ""
	if why, err := s.undigested(ctx, b.Collection, j.Payload); err != nil {
		return ingest.Result{}, err
	} else if why != "" {
		return ingest.Fail(false, why), nil
	}
	profile, _, err := s.Collections.Profile(ctx, b.Collection)
	if err != nil {
		return ingest.Result{}, err
	}
	j.Priority = priority(profile, 1)
	return next, h.Unpack(ctx, []ingest.Job{j}, 1)
}

// patience is how many tries of unpacking wait for a payload that cannot be fetched.
const patience = 5

// batchType is the type of a batch's payload: the depositor's, else that of what was
// fetched. It is "" if the payload still cannot be fetched when the patience is
// over: its one job finds the type, or says what is wrong and can be requeued.
func (s *Stages) batchType(ctx context.Context, h *queue.Claim) (string, error) {
	p := h.Batch.Payload
	if p.Type != "" {
		return p.Type, nil
	}
	saved, err := payload.Start(ctx, s.Work.Text(workspace.BatchManifestKey(h.Batch.ID)))
	if err == nil {
		return payload.TypeOf(p, saved) // what an earlier try has begun to unpack
	}
	if !fault.Is(err, fault.NotFound) {
		return "", err
	}
	kind, err := payload.Detector{Fetch: s.Fetch, Now: s.Now}.Type(ctx, p, h.Until)
	if mayRecover(err) && h.Batch.Tries >= patience {
		s.Queue.Log.Info("the payload's type could not be detected; its job tries again", "batch", h.Batch.ID, "error", err)
		return "", nil
	}
	return kind, err
}

// unreachable ends a try of unpacking a payload that could not be fetched: it is
// tried again, and refused when the patience is over.
func (s *Stages) unreachable(ctx context.Context, h *queue.Claim, err error) (ingest.Result, error) {
	switch {
	case !unfetched(err) || mayRecover(err) && h.Batch.Tries < patience:
		return ingest.Result{}, err
	case mayRecover(err):
		return ingest.Fail(true, unfetchable+err.Error()+". Correct it at the source, then submit it again"), nil
	}
	return ingest.Fail(false, unfetchable+err.Error()+". Correct the URL, then submit it again"), nil
}

const unfetchable = "the payload cannot be fetched: "

// unpackList makes a job of each row of a batch manifest, chunk by chunk from
// where an earlier try got to.
func (s *Stages) unpackList(ctx context.Context, h *queue.Claim, row string, kind checkm.Kind) (ingest.Result, error) {
	data, why, err := s.batchManifest(ctx, h)
	if err != nil {
		return s.unreachable(ctx, h, err)
	}
	if why != "" {
		return ingest.Fail(false, why), nil
	}
	profile, _, err := s.Collections.Profile(ctx, h.Batch.Collection)
	if err != nil {
		return ingest.Result{}, err
	}
	options := checkm.Options{RequireDigest: profile.RequireDigest && row == ingest.TypeFile, Check: checkRow}
	m, rows, problems, err := checkm.ReadAll(bytes.NewReader(data), options)
	why = payload.Rejected(m, problems, err, kind)
	if why == "" && len(rows) > ingest.MaxJobs {
		why = fmt.Sprintf("the manifest lists %d objects; at most %d are taken. Split it into several submissions",
			len(rows), ingest.MaxJobs)
	}
	if why != "" {
		return ingest.Fail(false, why), nil
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
		if h.Batch.Unpacked < len(jobs) && !s.Now().Before(h.Until) {
			return ingest.Result{Outcome: ingest.StepContinue}, nil
		}
	}
	s.forget(ctx, h.Batch.ID)
	return next, nil
}

// checkRow asks whether every later step can hold what a row of a batch manifest says.
func checkRow(r checkm.Row, wrong func(column, why string)) {
	if _, err := ingest.CleanLocalIDs(r.Local); err != nil {
		wrong("localIdentifier", err.Error())
	}
	if _, err := ark.Parse(r.Primary); r.Primary != "" && err != nil {
		wrong("primaryIdentifier", err.Error())
	}
	for _, cell := range []struct{ column, text string }{{"creator", r.Creator}, {"title", r.Title}, {"date", r.Date}} {
		if err := ingest.CheckText("the "+cell.column, cell.text, ingest.MaxMetadata); err != nil {
			wrong(cell.column, err.Error())
		}
	}
}

// priority of a batch's jobs: the profile's, else by how many there are.
func priority(p collection.Profile, jobs int) int {
	if p.Priority != nil {
		return *p.Priority
	}
	return ingest.BatchPriority(jobs)
}

// batchManifest fetches the manifest once and keeps it: every try of unpacking
// sees the same rows. It returns why the manifest is refused, or "".
func (s *Stages) batchManifest(ctx context.Context, h *queue.Claim) (data []byte, refused string, err error) {
	key := workspace.BatchManifestKey(h.Batch.ID)
	data, _, err = s.Work.Read(ctx, key)
	if !fault.Is(err, fault.NotFound) {
		return data, "", err
	}
	p := h.Batch.Payload
	inTime, cancel := context.WithTimeout(ctx, h.Until.Sub(s.Now()))
	defer cancel()
	err = s.Fetch.Get(inTime, p.URL, nil, func(body fetch.Stream) (err error) {
		data, err = io.ReadAll(io.LimitReader(body, maxBatchManifest+1))
		return err
	})
	if err != nil {
		return nil, "", err
	}
	if err := payload.CheckPage(p, data); err != nil {
		return nil, "", err
	}
	if len(data) > maxBatchManifest {
		return nil, fmt.Sprintf("the manifest is larger than %d bytes; split it into several submissions", maxBatchManifest), nil
	}
	d := fetch.NewDigester(p.Algorithm)
	_, _ = d.Write(data) // a digester takes everything
	if why := payload.WrongDigest("the manifest", d, p); why != "" {
		return nil, why, nil
	}
	err = s.Work.Put(ctx, key, data, bucket.Condition{Absent: true})
	if fault.Is(err, fault.Stale) { // another try kept what it fetched
		data, _, err = s.Work.Read(ctx, key)
	}
	return data, "", err
}

// jobOf makes a row's job. What the row says goes before what the form says.
func jobOf(b *ingest.Batch, r checkm.Row, kind string, priority int) ingest.Job {
	or := func(row, form string) string {
		if !erc.Absent(row) {
			return row
		}
		return form
	}
	size := max(r.Size, 0)
	return ingest.Job{Collection: b.Collection, Submitter: b.Submitter, Mode: b.Mode, Note: b.Note, Primary: r.Primary, LocalIDs: r.Local, Priority: priority,
		Payload: ingest.Payload{URL: r.URL, Type: kind, Filename: r.Name, Size: size, Empty: r.Size == 0,
			Algorithm: r.Algorithm, Digest: r.Digest},
		Metadata: ingest.Metadata{Who: or(r.Creator, b.Who), What: or(r.Title, b.What), When: or(r.Date, b.When)}}
}
