package stage

import (
	"context"
	"fmt"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/workspace"
	"archivist/pkg/objects/aip"
)

// ScanRequest asks a virus scanner about a file.
type ScanRequest struct {
	Job        string `json:"job"`
	Collection string `json:"collection"`
	Path       string `json:"path"` // of the file in its version
	Size       int64  `json:"size"` // bytes
	SHA512     string `json:"sha512"`
	URL        string `json:"url"` // of its content, for ScanTime
}

// ScanAnswer is what a virus scanner has found.
type ScanAnswer struct {
	SHA512    string `json:"sha512"` // of the content that was scanned
	Infected  bool   `json:"infected"`
	Signature string `json:"signature"` // of what was found, e.g. "Eicar-Test-Signature"
	Scanner   string `json:"scanner"`   // its name, version and signatures, e.g. "ClamAV 1.4.2/27812"
}

// ScanTime is for how long the content can be read: as long as a function can run.
const ScanTime = 15 * time.Minute

// scanner has files scanned before they are stored.
type scanner struct {
	call func(ctx context.Context, in ScanRequest) (ScanAnswer, error)
	work workspace.Store
	job  *ingest.Job
}

// check has a file of the work bucket scanned, and notes by what. refused is what was found, or "". An error means that
// the scanner has not answered as it should: the source is not to blame, and the step is tried again.
func (s *scanner) check(ctx context.Context, e *aip.Entry) (refused string, err error) {
	if s == nil {
		return "", nil
	}

	url, err := s.work.Presign(ctx, e.Source, "", ScanTime)
	if err != nil {
		return "", err
	}

	got, err := s.call(ctx, ScanRequest{Job: s.job.ID, Collection: s.job.Collection, Path: e.Path, Size: e.Size,
		SHA512: e.Digests["sha512"], URL: url})
	switch {
	case err != nil: // its kind is not that of the source
		return "", fmt.Errorf("the virus scanner did not scan %s: %v", e.Path, err)
	case got.SHA512 != e.Digests["sha512"]:
		return "", fmt.Errorf("the virus scanner has scanned other content than that of %s: its sha512 is %q", e.Path,
			ingest.Cut(got.SHA512, maxProblem/4))
	case got.Scanner == "":
		return "", fmt.Errorf("the virus scanner does not say what it is (scanner in its answer)")
	case got.Infected:
		return fmt.Sprintf("the virus check has found %q (%s)", ingest.Cut(got.Signature, maxProblem/4),
			ingest.Cut(got.Scanner, maxProblem/4)), nil
	}
	e.Scanner = ingest.Cut(got.Scanner, maxProblem/4)
	return "", nil
}
