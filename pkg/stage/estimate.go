package stage

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"

	"archivist/pkg/bucket"
	"archivist/pkg/checkm"
	"archivist/pkg/fetch"
	"archivist/pkg/ingest"
	"archivist/pkg/queue"
)

// maxManifest bounds an object manifest in bytes: 360,000 rows of 150 bytes
// are 54 MB.
const maxManifest = 64 << 20

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
	if j.Payload.Type == ingest.TypeObjectManifest {
		if res, err := s.saveManifest(ctx, j); err != nil || res.Outcome == ingest.StepFail {
			return res, err
		}
	}
	rows, err := s.rows(ctx, j)
	if err != nil {
		return ingest.Result{}, err
	}
	j.SpaceNeeded, j.SizeKnown = s.sizes(ctx, rows)
	if !j.SizeKnown {
		j.SpaceNeeded = 0
		j.Priority = min(j.Priority+ingest.UnknownSizePenalty, ingest.WorstPriority)
	}
	return next, nil
}

func manifestKey(job string) string { return workPrefix(job) + "manifest.checkm" }

// saveManifest fetches the manifest, checks it against the depositor's digest
// and its own rules, and keeps it: what was checked is what is downloaded.
func (s *Stages) saveManifest(ctx context.Context, j *ingest.Job) (ingest.Result, error) {
	data, res, err := s.fetchManifest(ctx, j.URL, j.Payload, maxManifest)
	if err != nil || res.Outcome == ingest.StepFail {
		return res, err
	}
	m, problems, err := checkm.Read(bytes.NewReader(data), checkm.Options{}, nil)
	if why := rejected(m, problems, err, checkm.Object); why != "" {
		return ingest.Fail(false, why), nil
	}
	return next, s.Work.Put(ctx, manifestKey(j.ID), data, bucket.Condition{})
}

// fetchManifest reads a manifest of at most limit bytes and holds it against
// the depositor's digest.
func (s *Stages) fetchManifest(ctx context.Context, url string, p ingest.Payload, limit int64) ([]byte, ingest.Result, error) {
	var data []byte
	err := s.Fetch.Get(ctx, url, nil, func(body fetch.Stream) (err error) {
		data, err = io.ReadAll(io.LimitReader(body, limit+1))
		return err
	})
	if err != nil {
		res, err := failed(fmt.Errorf("the manifest cannot be fetched: %w", err))
		return nil, res, err
	}
	if int64(len(data)) > limit {
		return nil, ingest.Fail(false, fmt.Sprintf("the manifest is larger than %d bytes; split it into several submissions", limit)), nil
	}
	if why := wrongDigest("the manifest", data, p); why != "" {
		return nil, ingest.Fail(false, why), nil
	}
	return data, next, nil
}

// rejected says why a manifest that was read is not taken, "" if it is.
func rejected(m checkm.Manifest, problems []checkm.Problem, err error, want checkm.Kind) string {
	if err != nil {
		return "the manifest is corrupt: " + err.Error()
	}
	bad := checkm.Rejected(problems)
	if len(bad) == 0 && m.Kind != want {
		return fmt.Sprintf("the manifest is of the kind %q by its profile; expected %q for this payload type", m.Kind, want)
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

// wrongDigest says how data differs from the depositor's digest, "" if it does not.
func wrongDigest(what string, data []byte, p ingest.Payload) string {
	if p.Digest == "" {
		return ""
	}
	d := fetch.NewDigester(p.Algorithm)
	_, _ = d.Write(data) // a digester takes everything
	if got := d.Sums()[p.Algorithm]; got != p.Digest {
		return fmt.Sprintf("%s: the depositor's %s is %s, but what came (%d bytes) has %s", what, p.Algorithm, p.Digest, len(data), got)
	}
	return ""
}

// rows returns the files that the job is to download.
func (s *Stages) rows(ctx context.Context, j *ingest.Job) ([]checkm.Row, error) {
	if j.Payload.Type != ingest.TypeObjectManifest {
		return []checkm.Row{fileRow(j)}, nil
	}
	body, _, err := s.Work.Open(ctx, manifestKey(j.ID))
	if err != nil {
		return nil, err
	}
	defer body.Close()
	_, rows, _, err := checkm.ReadAll(body, checkm.Options{})
	return rows, err
}

func fileRow(j *ingest.Job) checkm.Row {
	size := int64(-1)
	if j.Payload.Size > 0 {
		size = j.Payload.Size
	}
	return checkm.Row{URL: j.URL, Algorithm: j.Payload.Algorithm, Digest: j.Payload.Digest, Size: size, Name: j.Payload.Filename}
}

// sizes sums what the servers say, and the manifest where they are silent.
func (s *Stages) sizes(ctx context.Context, rows []checkm.Row) (sum int64, known bool) {
	known = true
	var mu sync.Mutex
	var wg sync.WaitGroup
	gate := make(chan struct{}, 2*s.Parallel)
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
			sum += size
			known = known && ok
		})
	}
	wg.Wait()
	return sum, known
}
