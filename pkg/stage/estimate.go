package stage

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"archivist/pkg/checkm"
	"archivist/pkg/fetch"
	"archivist/pkg/ingest"
	"archivist/pkg/queue"
)

// estimate fetches and checks the manifest, finds the target, and sums sizes.
// Only size never fails it.
func (s *Stages) estimate(ctx context.Context, h *queue.Held) (ingest.Result, error) {
	j := h.Job
	refused, err := s.resolve(ctx, j)
	if err != nil {
		return ingest.Result{}, err
	}
	if refused != "" {
		return ingest.Fail(false, refused), nil
	}
	if j.Done == 0 {
		if j.Detected {
			if res, err := s.detectForJob(ctx, j, h.Until); err != nil || res.Outcome != ingest.StepNext {
				return res, err
			}
		}
		j.Files, j.SpaceNeeded, j.SizeKnown = 1, 0, true
		if j.Payload.Type == ingest.TypeObjectManifest {
			if res, err := s.saveManifest(ctx, h); err != nil || res.Outcome != ingest.StepNext {
				return res, err
			}
		}
	}
	err = s.inSegments(ctx, j, func(n int, rows []checkm.Row) error {
		if n < j.Done {
			return nil
		}
		s.sizes(ctx, j, rows)
		if j.Done = n + 1; s.Now().Before(h.Until) || j.Done*segmentFiles >= j.Files {
			return nil
		}
		return errStopped
	})
	if errors.Is(err, errStopped) {
		j.Checkpoint = fmt.Sprintf("sizes of %d of %d files", j.Done*segmentFiles, j.Files)
		return ingest.Result{Outcome: ingest.StepContinue}, nil
	}
	if err != nil {
		return ingest.Result{}, err
	}
	if !j.SizeKnown {
		j.SpaceNeeded = 0
		j.Priority = min(j.Priority+ingest.UnknownSizePenalty, ingest.WorstPriority)
	}
	return next, nil
}

func manifestKey(job string) string { return workPrefix(job) + "manifest.checkm" }

// saveManifest fetches the manifest, checks it against the depositor's digest
// and its own rules, and keeps it: what was checked is what is downloaded.
func (s *Stages) saveManifest(ctx context.Context, h *queue.Held) (ingest.Result, error) {
	j := h.Job
	d := &transfer{s: s, job: j, began: s.Now(), until: h.Until}
	row := fileRow(j)
	row.Size = -1 // the depositor's size of a manifest is of no use beside its digest
	sums, err := d.fetch(ctx, manifestKey(j.ID), halfKey(j.ID, "manifest"), row)
	if errors.Is(err, fetch.ErrStop) {
		j.Checkpoint = "fetching the manifest"
		return ingest.Result{Outcome: ingest.StepContinue}, nil
	}
	if err != nil {
		return failed(fmt.Errorf("the manifest cannot be fetched: %w", err))
	}
	start, err := s.startOf(ctx, manifestKey(j.ID))
	if err != nil {
		return ingest.Result{}, err
	}
	if err := strayPage(j.Payload, start); err != nil {
		res, _ := failed(err)
		return res, s.Work.Delete(ctx, halfKey(j.ID, "manifest")) // so that it is fetched again
	}
	if why := wrongDigest("the manifest", sums, j.Payload); why != "" {
		return ingest.Fail(false, why), nil
	}
	body, _, err := s.Work.Open(ctx, manifestKey(j.ID))
	if err != nil {
		return ingest.Result{}, err
	}
	defer body.Close()
	profile, _, err := s.Collections.Profile(ctx, j.Collection)
	if err != nil {
		return ingest.Result{}, err
	}
	m, problems, err := checkm.Read(body, checkm.Options{RequireDigest: profile.RequireDigest}, nil)
	if err != nil {
		return ingest.Result{}, err
	}
	if why := rejected(m, problems, nil, checkm.Object); why != "" {
		return ingest.Fail(false, why), nil
	}
	j.Files = m.Rows
	return next, nil
}

// rejected says why a manifest that was read is not taken, "" if it is.
func rejected(m checkm.Manifest, problems []checkm.Problem, err error, want checkm.Kind) string {
	if err != nil {
		return "the manifest is corrupt: " + err.Error()
	}
	bad := checkm.Rejected(problems)
	if len(bad) == 0 && m.Kind != want {
		return fmt.Sprintf("the manifest is of the kind %q by its profile; expected %q for this payload type. Submit it with the type of its profile", m.Kind, want)
	}
	lines := make([]string, len(bad))
	for i, p := range bad {
		lines[i] = p.String()
	}
	if len(bad) == 0 {
		return ""
	}
	return "the manifest is rejected: " + strings.Join(lines, "; ")
}

// wrongDigest says how what came differs from the depositor's digest, "" if it
// does not.
func wrongDigest(what string, came *fetch.Digester, p ingest.Payload) string {
	if p.Digest == "" {
		return ""
	}
	if got := came.Sums()[p.Algorithm]; got != p.Digest {
		return fmt.Sprintf("%s: the depositor's %s is %s, but what came (%d bytes) has %s", what, p.Algorithm, p.Digest, came.Size, got)
	}
	return ""
}

// sizes adds to the job's what the servers say, and the manifest where they are
// silent.
func (s *Stages) sizes(ctx context.Context, j *ingest.Job, rows []checkm.Row) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	gate := make(chan struct{}, 4*s.Parallel)
	for _, row := range rows {
		gate <- struct{}{}
		wg.Go(func() {
			defer func() { <-gate }()
			size, ok := s.Fetch.Size(ctx, row.URL)
			if !ok && row.Size >= 0 {
				size, ok = row.Size, true
			}
			mu.Lock()
			defer mu.Unlock()
			j.SpaceNeeded += size
			j.SizeKnown = j.SizeKnown && ok
		})
	}
	wg.Wait()
}
