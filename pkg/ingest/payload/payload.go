// Package payload detects what the payload of a submission is: a file, or a manifest that
// lists files or objects.
//
// A depositor may omit the type. It is then detected from the first bytes of the content,
// and never guessed: a payload that cannot be fetched, and a web page instead of a
// manifest, are errors. What is downloaded later is checked against the detected type.
//
//	d := payload.Detector{Fetch: client, Now: time.Now}
//	kind, err := d.Type(ctx, job.Payload, claim.Until)
package payload

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

	"archivist/pkg/formats/checkm"
	"archivist/pkg/formats/container"
	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/fetch"
	"archivist/pkg/objects/ocfl"
)

// List is a payload type that lists objects.
type List struct {
	Row  string      // the type of each row's payload
	Kind checkm.Kind // of the manifest
}

// Lists are the payload types that list objects.
var Lists = map[string]List{
	ingest.TypeBatchManifest:   {ingest.TypeObjectManifest, checkm.Batch},
	ingest.TypeSingleFileBatch: {ingest.TypeFile, checkm.SingleFileBatch},
	ingest.TypeContainerBatch:  {ingest.TypeContainer, checkm.ContainerBatch},
}

// Beginning is how much of a payload is read to detect its type, in bytes.
const Beginning = 64 << 10

// Detector detects the type of payloads from the content at their URLs.
type Detector struct {
	Fetch *fetch.Client
	Now   func() time.Time
}

// Type detects a payload's type from its first bytes, until a time. The error is an Invalid
// or Unavailable if it cannot be fetched, or is an unexpected web page.
func (d Detector) Type(ctx context.Context, p ingest.Payload, until time.Time) (string, error) {
	start, err := d.start(ctx, p.URL, until)
	if err != nil {
		return "", err
	}
	return TypeOf(p, start)
}

// start reads the first bytes at a URL.
func (d Detector) start(ctx context.Context, url string,
	until time.Time) (start []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, until.Sub(d.Now()))
	defer cancel()
	err = d.Fetch.Get(ctx, url, nil, func(body fetch.Stream) (err error) {
		start, err = io.ReadAll(io.LimitReader(body, Beginning))
		return err
	})
	return start, err
}

// errSeen ends reading after the first row.
var errSeen = errors.New("seen")

// TypeOf is a payload's type by its first bytes: a manifest's kind follows from its profile. A container is one by its
// name, too: the files of many programs are zip files inside (docx, epub). Anything else is a file.
func TypeOf(p ingest.Payload, start []byte) (string, error) {
	if err := CheckPage(p, start); err != nil {
		return "", err
	}

	if !checkm.IsManifest(start) {
		if kind := container.Detect(start); kind != "" && kind == container.Named(p.Filename) {
			return ingest.TypeContainer, nil
		}
		return ingest.TypeFile, nil
	}

	// Only the header counts here: what is wrong with the manifest is found when it is read as one.
	m, _, _ := checkm.Read(bytes.NewReader(start), checkm.Options{},
		func(checkm.Row) error { return errSeen })
	for t, list := range Lists {
		if list.Kind == m.Kind {
			return t, nil
		}
	}

	return ingest.TypeObjectManifest, nil
}

// pageExtensions are those of files that are expected to be web pages.
var pageExtensions = []string{".html", ".htm", ".xhtml", ".xht", ".shtml"}

// CheckPage returns an error if a web page was received, although the payload's type and
// name announce something else: many servers send an error page with status 200. It is an
// Unavailable, since the server may answer with the content later.
func CheckPage(p ingest.Payload, start []byte) error {
	named := slices.Contains(pageExtensions, strings.ToLower(path.Ext(p.Filename)))
	if !isPage(start) || p.Type == ingest.TypeFile || p.Type == "" && named {
		return nil
	}
	expected := "expected a manifest"
	switch p.Type {
	case "":
		expected = "no payload type was given. To preserve the page itself, submit it with the type file"
	case ingest.TypeContainer:
		expected = "expected a container"
	}
	return fault.New(fault.Unavailable, "%s: received a web page (HTML); %s", p.Source(), expected)
}

// pageText are extensions of names that a file with the text of a web page can have, too.
var pageText = []string{"", ".xml", ".txt", ".md", ".php", ".asp", ".aspx", ".jsp", ".cgi", ".tpl", ".mht", ".mhtml"}

// PageWarning says that a file that is a web page was received under a name and a media type that say otherwise, ""
// if it is none: many servers send an error page with status 200.
func PageWarning(name, mediaType string, start []byte) string {
	ext := strings.ToLower(path.Ext(name))
	if slices.Contains(pageExtensions, ext) || slices.Contains(pageText, ext) ||
		strings.Contains(strings.ToLower(mediaType), "html") || !isPage(start) {
		return ""
	}
	return "its content is a web page (HTML), although its name says otherwise: the source may have sent an error " +
		"page in place of the file"
}

// isPage reports whether the beginning of a file is that of a web page.
func isPage(start []byte) bool {
	start = bytes.ToLower(bytes.TrimSpace(bytes.TrimPrefix(start[:min(len(start), 1024)],
		[]byte("\xef\xbb\xbf"))))
	return bytes.HasPrefix(start, []byte("<!doctype html")) ||
		bytes.HasPrefix(start, []byte("<html")) ||
		bytes.HasPrefix(start, []byte("<?xml")) && bytes.Contains(start, []byte("<html"))
}

// Changed returns why the downloaded content is not the plain file that was detected, or "".
func Changed(ctx context.Context, j *ingest.Job, came ocfl.Text) (why string, err error) {
	if !j.Detected || j.Payload.Type != ingest.TypeFile {
		return "", nil
	}

	start, err := Start(ctx, came)
	if err != nil {
		return "", err
	}

	p := j.Payload
	// As when the type was detected: a page is accepted under the same names only.
	p.Type = ""
	switch kind, err := TypeOf(p, start); {
	case err != nil:
		return err.Error(), nil
	case kind != ingest.TypeFile:
		return fmt.Sprintf("%s: received a payload of the type %s; it was a plain file when its type was detected",
			j.Payload.Source(), kind), nil
	}

	return "", nil
}

// Start reads as many of the first bytes of a text as are needed to detect its type.
func Start(ctx context.Context, text ocfl.Text) ([]byte, error) {
	body, err := text(ctx)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return io.ReadAll(io.LimitReader(body, Beginning))
}
