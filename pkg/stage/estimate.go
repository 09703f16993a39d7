package stage

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"archivist/pkg/checkm"
	"archivist/pkg/fetch"
	"archivist/pkg/ingest"
	"archivist/pkg/ocfl"
	"archivist/pkg/queue"
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
	d := &transfer{s: s, job: j, began: s.Now(), until: h.Until, first: j.FirstTry()}
	row := workspace.FileRow(j)
	row.Size = -1 // the depositor's size of a manifest is of no use beside its digest
	key := workspace.Prefix(j.ID) + h.Take() + "/manifest.checkm"
	came, err := d.fetch(ctx, key, workspace.PartialKey(j.ID, "manifest"), row)
	if errors.Is(err, fetch.ErrStop) {
		j.Checkpoint = "fetching the manifest"
		return nil, ingest.Result{Outcome: ingest.StepContinue}, nil
	}
	if err != nil {
		res, err := failed(fmt.Errorf("the manifest cannot be fetched: %w", err))
		return nil, res, err
	}
	if j.Manifest = key; came.Upload != nil { // begun by an earlier try
		j.Manifest = came.Upload.Key
	}
	manifest = s.Work.Text(j.Manifest)
	if came.whole != nil {
		manifest = workspace.InMemory(came.whole)
	}
	start, err := startOf(ctx, manifest)
	if err != nil {
		return nil, ingest.Result{}, err
	}
	if err := strayPage(j.Payload, start); err != nil {
		res, _ := failed(err)
		return nil, res, s.Work.Delete(ctx, workspace.PartialKey(j.ID, "manifest")) // so that it is fetched again
	}
	if why := wrongDigest("the manifest", came.sums, j.Payload); why != "" {
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
		return fmt.Sprintf("the manifest is of the kind %q by its profile; expected %q for this payload type. "+
			"Submit it with the type of its profile", m.Kind, want)
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
