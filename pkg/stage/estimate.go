package stage

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"archivist/pkg/checkm"
	"archivist/pkg/fetch"
	"archivist/pkg/ingest"
	"archivist/pkg/ocfl"
	"archivist/pkg/payload"
	"archivist/pkg/queue"
	"archivist/pkg/transfer"
	"archivist/pkg/workspace"
)

// estimate fetches and checks the manifest, finds the target, and sums sizes.
// Only size never fails it.
func (s *Stages) estimate(ctx context.Context, h *queue.Claim) (ingest.Result, error) {
	j := h.Job
	refused, err := s.resolve(ctx, j)
	if err != nil {
		return ingest.Result{}, err
	}
	if refused != "" {
		return ingest.Fail(false, refused), nil
	}
	manifest := s.Work.Text(workspace.ManifestKey(j))
	if j.Done == 0 {
		if j.Detected {
			if res, err := s.detectForJob(ctx, j, h.Until); err != nil || res.Outcome != ingest.StepNext {
				return res, err
			}
		}
		if why, err := s.undigested(ctx, j.Collection, j.Payload); err != nil || why != "" {
			return ingest.Fail(false, why), err
		}
		j.Files, j.SpaceNeeded, j.SizeKnown = 1, 0, true
		if j.Payload.Type == ingest.TypeObjectManifest {
			var res ingest.Result
			if manifest, res, err = s.saveManifest(ctx, h); err != nil || res.Outcome != ingest.StepNext {
				return res, err
			}
		}
	}
	if err := s.sizes(ctx, h, manifest); errors.Is(err, errStopped) {
		j.Checkpoint = fmt.Sprintf("sizes of %d of %d files", j.Done, j.Files)
		return ingest.Result{Outcome: ingest.StepContinue}, nil
	} else if err != nil {
		return ingest.Result{}, err
	}
	if !j.SizeKnown {
		j.SpaceNeeded = 0
		j.Priority = min(j.Priority+ingest.UnknownSizePenalty, ingest.WorstPriority)
	}
	return next, nil
}

// undigested says that a file without a digest is not taken by its collection, or "".
func (s *Stages) undigested(ctx context.Context, collection string, p ingest.Payload) (string, error) {
	if p.Type != ingest.TypeFile || p.Digest != "" {
		return "", nil
	}
	profile, _, err := s.Collections.Profile(ctx, collection)
	if err != nil || !profile.RequireDigest {
		return "", err
	}
	return fmt.Sprintf("the file has no digest, and the collection %s takes none without one. "+
		"Submit it again with its digest", collection), nil
}

// saveManifest fetches the manifest, checks it against the depositor's digest
// and its own rules, and keeps it: what was checked is what is downloaded.
func (s *Stages) saveManifest(ctx context.Context, h *queue.Claim) (manifest ocfl.Text, res ingest.Result, err error) {
	j := h.Job
	t := transfer.Transfer{Fetch: s.Fetch, Work: s.Work, Now: s.Now, Began: s.Now(), Until: h.Until, First: j.FirstTry()}
	row := workspace.FileRow(j)
	row.Size = -1 // the depositor's size of a manifest is of no use beside its digest
	key, noted := workspace.AttemptKey(j.ID, h.Take(), "manifest.checkm"), workspace.PartialKey(j.ID, "manifest")
	came, err := t.File(ctx, row, key, noted)
	if errors.Is(err, fetch.ErrStop) {
		j.Checkpoint = "fetching the manifest"
		return nil, ingest.Result{Outcome: ingest.StepContinue}, nil
	}
	if err != nil {
		res, err := failed(fmt.Errorf("the manifest cannot be fetched: %w", err))
		return nil, res, err
	}
	j.Manifest, manifest = came.Key, came.Text()
	start, err := payload.Start(ctx, manifest)
	if err != nil {
		return nil, ingest.Result{}, err
	}
	if err := payload.CheckPage(j.Payload, start); err != nil {
		res, _ := failed(err)
		return nil, res, s.Work.Delete(ctx, noted) // so that it is fetched again
	}
	if why := payload.WrongDigest("the manifest", came.Sums, j.Payload); why != "" {
		return nil, ingest.Fail(false, why), nil
	}
	res, err = s.checkManifest(ctx, j, manifest)
	return manifest, res, err
}

// checkManifest holds a job's manifest against its rules, and counts its files.
func (s *Stages) checkManifest(ctx context.Context, j *ingest.Job, manifest ocfl.Text) (ingest.Result, error) {
	body, err := manifest(ctx)
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
	if why := payload.Rejected(m, problems, nil, checkm.Object); why != "" {
		return ingest.Fail(false, why), nil
	}
	j.Files = m.Rows
	return next, nil
}

// sizePage is how many files are asked for at once: what is known of a page is
// kept when the time is up.
const sizePage = 100

// sizes adds up what the servers say, and the manifest where they are silent. It
// returns errStopped when the time is up; the job's Done is how many files are
// counted by then.
func (s *Stages) sizes(ctx context.Context, h *queue.Claim, manifest ocfl.Text) error {
	j, n := h.Job, 0
	budget := h.Until.Sub(s.Now())
	ctx, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	a := &asker{s: s, last: h.Until.Add(-min(2*s.Fetch.Limits.Small, budget/2)), silent: map[string]bool{}}
	page := make([]checkm.Row, 0, sizePage)
	count := func() error {
		known := a.ask(ctx, page)
		for _, size := range known {
			j.SizeKnown = j.SizeKnown && size >= 0
			j.SpaceNeeded = min(j.SpaceNeeded, math.MaxInt64/2) + min(max(size, 0), math.MaxInt64/2)
		}
		j.Done += len(known)
		if len(known) < len(page) {
			return errStopped
		}
		page = page[:0]
		return nil
	}
	err := workspace.Rows(ctx, j, manifest, func(row checkm.Row) error {
		if n++; n <= j.Done {
			return nil
		}
		if page = append(page, row); len(page) < sizePage {
			return nil
		}
		return count()
	})
	if err == nil {
		err = count()
	}
	return err
}

// asker asks servers for sizes. One that was silent is not asked again.
type asker struct {
	s    *Stages
	last time.Time // to begin with a file, so that both of its requests end in time
	any  bool

	mu     sync.Mutex
	silent map[string]bool // by host
}

// ask returns the sizes of the first rows, in bytes; -1 is unknown. There are fewer
// than rows when the time is up, but the first of all is always asked for: each try
// gets further.
func (a *asker) ask(ctx context.Context, rows []checkm.Row) []int64 {
	sizes := make([]int64, len(rows))
	gate := make(chan struct{}, 4*a.s.Parallel)
	var wg sync.WaitGroup
	asked := 0
	for i, row := range rows {
		gate <- struct{}{}
		if a.any && !a.s.Now().Before(a.last) {
			break
		}
		a.any = true
		asked++
		wg.Go(func() {
			defer func() { <-gate }()
			sizes[i] = a.size(ctx, row)
		})
	}
	wg.Wait()
	return sizes[:asked]
}

func (a *asker) size(ctx context.Context, row checkm.Row) int64 {
	host := fetch.Host(row.URL)
	a.mu.Lock()
	known := a.silent[host]
	a.mu.Unlock()
	if known {
		return row.Size
	}
	size, err := a.s.Fetch.Size(ctx, row.URL)
	if err == nil {
		return size
	}
	var silent *fetch.SilentError
	if errors.As(err, &silent) {
		a.mu.Lock()
		a.silent[host] = true
		a.mu.Unlock()
	}
	return row.Size
}

// detectForJob tells the type of a job's payload that was submitted without one, from
// what is there now. A batch manifest is refused: it is to be unpacked into jobs.
func (s *Stages) detectForJob(ctx context.Context, j *ingest.Job, until time.Time) (ingest.Result, error) {
	j.Payload.Type = ""
	kind, err := payload.Detector{Fetch: s.Fetch, Now: s.Now}.Type(ctx, j.Payload, until)
	if err != nil {
		return failed(fmt.Errorf("the payload's type cannot be detected: %w", err))
	}
	if _, many := payload.Lists[kind]; many {
		return ingest.Fail(false, fmt.Sprintf("%s: the payload is a batch manifest, which could not be fetched when the "+
			"submission was unpacked. Submit it again with the type %s", fetch.Redact(j.URL), kind)), nil
	}
	j.Payload.Type = kind
	return next, nil
}
