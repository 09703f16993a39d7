package stage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"archivist/pkg/checkm"
	"archivist/pkg/fault"
	"archivist/pkg/fetch"
	"archivist/pkg/ingest"
	"archivist/pkg/ocfl"
)

// beginning is how much of a payload is read to tell its type, in bytes.
const beginning = 64 << 10

// errSeen ends reading after the first row.
var errSeen = errors.New("seen")

// start reads the first bytes at a URL within the step's time budget.
func (s *Stages) start(ctx context.Context, url string, until time.Time) (start []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, until.Sub(s.Now()))
	defer cancel()
	err = s.Fetch.Get(ctx, url, nil, func(body fetch.Stream) (err error) {
		start, err = io.ReadAll(io.LimitReader(body, beginning))
		return err
	})
	return start, err
}

// detect tells a payload's type from its first bytes. It is never guessed: a
// payload that cannot be fetched, and a web page where none is expected, are
// errors of kind Invalid or Unavailable.
func (s *Stages) detect(ctx context.Context, p ingest.Payload, until time.Time) (string, error) {
	start, err := s.start(ctx, p.URL, until)
	if err != nil {
		return "", err
	}
	return typeOf(p, start)
}

// typeOf tells a payload's type from its first bytes: a manifest's kind by its
// profile, and anything else is a file.
func typeOf(p ingest.Payload, start []byte) (string, error) {
	if err := strayPage(p, start); err != nil {
		return "", err
	}
	if !checkm.IsManifest(start) {
		return ingest.TypeFile, nil
	}
	m, _, _ := checkm.Read(bytes.NewReader(start), checkm.Options{}, func(checkm.Row) error { return errSeen })
	for t, list := range batchKinds {
		if list.kind == m.Kind {
			return t, nil
		}
	}
	return ingest.TypeObjectManifest, nil
}

// pageExtensions are those of files that are expected to be web pages.
var pageExtensions = []string{".html", ".htm", ".xhtml", ".xht", ".shtml"}

// strayPage is an error if a web page came where the payload's type and name tell
// of something else: many servers say with status 200 that something went wrong.
func strayPage(p ingest.Payload, start []byte) error {
	named := slices.Contains(pageExtensions, strings.ToLower(path.Ext(p.Filename)))
	if !isPage(start) || p.Type == ingest.TypeFile || p.Type == "" && named {
		return nil
	}
	expected := "the payload's type was not given; give the type file if the page itself is to be kept"
	if p.Type != "" {
		expected = "expected a manifest"
	}
	return fault.New(fault.Unavailable, "%s: a web page (HTML) came; %s", fetch.Redact(p.URL), expected)
}

// isPage reports whether the beginning of a file is that of a web page.
func isPage(start []byte) bool {
	start = bytes.ToLower(bytes.TrimSpace(bytes.TrimPrefix(start[:min(len(start), 1024)], []byte("\xef\xbb\xbf"))))
	return bytes.HasPrefix(start, []byte("<!doctype html")) || bytes.HasPrefix(start, []byte("<html")) ||
		bytes.HasPrefix(start, []byte("<?xml")) && bytes.Contains(start, []byte("<html"))
}

// detectForJob tells the type of a job's payload that was submitted without one, from
// what is there now. A batch manifest is refused: it is to be unpacked into jobs.
func (s *Stages) detectForJob(ctx context.Context, j *ingest.Job, until time.Time) (ingest.Result, error) {
	j.Payload.Type = ""
	kind, err := s.detect(ctx, j.Payload, until)
	if err != nil {
		return failed(fmt.Errorf("the payload's type cannot be detected: %w", err))
	}
	if _, many := batchKinds[kind]; many {
		return ingest.Fail(false, fmt.Sprintf("%s: the payload is a batch manifest, which could not be fetched when the "+
			"submission was unpacked. Submit it again with the type %s", fetch.Redact(j.URL), kind)), nil
	}
	j.Payload.Type = kind
	return next, nil
}

// notAsDetected returns why what was downloaded is not the plain file that Estimate
// detected, "" if it is.
func notAsDetected(ctx context.Context, j *ingest.Job, came ocfl.Text) (string, error) {
	if !j.Detected || j.Payload.Type != ingest.TypeFile {
		return "", nil
	}
	start, err := startOf(ctx, came)
	if err != nil {
		return "", err
	}
	p := j.Payload
	p.Type = ""
	switch kind, err := typeOf(p, start); {
	case err != nil:
		return err.Error(), nil
	case kind != ingest.TypeFile:
		return fmt.Sprintf("%s: a manifest came; it was a plain file when its type was detected", fetch.Redact(j.URL)), nil
	}
	return "", nil
}

// startOf reads the first bytes of a text.
func startOf(ctx context.Context, text ocfl.Text) ([]byte, error) {
	body, err := text(ctx)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return io.ReadAll(io.LimitReader(body, beginning))
}
