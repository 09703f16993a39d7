package jobs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"archivist/cmd/archivist/command"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/formats/ark"
	"archivist/pkg/formats/checkm"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/terminal"
)

// check makes the checks that are possible before content of a URL is submitted, and returns the result for the
// manifest, if there is one. A manifest that this computer cannot read is only warned of; one that it can read, and
// that breaks the rules, is not submitted.
func (c *SubmitCmd) check(a *command.App, in v1.BatchRequest) (m checked, err error) {
	checkARK(a, in)
	body, err := c.manifest(a)
	if body == nil || err != nil {
		return m, err
	}
	defer body.Close()

	m, err = c.checkManifest(a, body, c.manifestName())
	// Reading it has failed, e.g. because the connection broke off: the archive will try by itself.
	if errors.As(err, new(*unreadManifest)) && c.Manifest == "" {
		a.Warn("the manifest was not checked: %v", errors.Unwrap(err))
		return checked{}, a.Ctx.Err()
	}
	return m, err
}

// checkARK warns of an ARK that may have a typing error.
func checkARK(a *command.App, in v1.BatchRequest) {
	id, err := ark.Parse(in.Identifiers.Primary)
	if err == nil && !id.Valid() {
		a.Warn("the check character of %s is wrong; check the ARK for typing errors", id)
	}
}

// unreadManifest is the error of a manifest that cannot be read to its end.
type unreadManifest struct{ error }

// Unwrap returns the cause.
func (e *unreadManifest) Unwrap() error { return errors.Unwrap(e.error) }

// checkManifest checks a manifest by the rules of its collection, and shows what is wrong.
func (c *SubmitCmd) checkManifest(a *command.App, body io.Reader, name string) (m checked, err error) {
	collection, err := a.Client.Collection(a.Ctx, c.Collection)
	// A depositor may not read the profile: then the archive alone compares with it.
	if err != nil && !fault.Is(err, fault.Denied) {
		return m, err
	}

	m, err = checkManifest(body, collection.Profile.RequireDigest)
	if err != nil {
		return m, &unreadManifest{fault.New(fault.Invalid, "%s: %w", name, err)}
	}

	if len(m.Problems) > 0 {
		m.show(terminal.Page{Writer: a.Errors, Width: a.Err.Width}, name)
	}

	if !m.Accepted {
		return m, c.rejected()
	}
	return m, c.applies(m.Kind)
}

// rejected is the error for a manifest that breaks the rules, with what to do. If its type was guessed here, it
// may be meant as a file.
func (c *SubmitCmd) rejected() error {
	otherwise := ""
	if c.Type == "" {
		otherwise = "; --type file preserves it as a file"
	}
	return fault.New(fault.Invalid, "the manifest is rejected and nothing was submitted; "+
		"correct it and submit it again%s", otherwise)
}

// applies refuses the flags for one object if the manifest lists several: the archive would not know which
// object they are of.
func (c *SubmitCmd) applies(kind checkm.Kind) error {
	if kind == checkm.Object {
		return nil
	}

	var lost []string
	check := func(flag string, isGiven bool) {
		if isGiven {
			lost = append(lost, flag)
		}
	}

	check("--ark", c.ARK != "")
	check("--filename", c.Filename != "")
	check("--if-version", c.IfVersion > 0)
	check("--local-id", len(c.Local) > 0)
	if len(lost) == 0 {
		return nil
	}
	return command.Usage("%s cannot be used with a %s manifest, which has an object in each row; leave it out, "+
		"or give identifiers in the manifest's columns", strings.Join(lost, " and "), kind)
}

// isManifest reports whether a manifest is expected at the URL: by --type, else by the extension .checkm. The
// archive looks at the content; here, no file of any size is downloaded only to learn that it is no manifest.
func (c *SubmitCmd) isManifest() bool {
	if c.Type != "" {
		return c.Type != "file" && c.Type != "container"
	}
	return path.Ext(c.manifestName()) == ".checkm"
}

// manifestName is the name of the manifest in messages: the local file, or the last part of the URL.
func (c *SubmitCmd) manifestName() string {
	if c.Manifest != "" {
		return c.Manifest
	}
	u, err := url.Parse(c.Sources[0])
	if err != nil {
		return "manifest"
	}
	return path.Base(u.Path)
}

// fetchFor is the maximum time for downloading the manifest from its URL, with reading it.
const fetchFor = 30 * time.Second

// manifest opens the submitted manifest: the local copy, or what is at the URL. It returns nil if there is none,
// or if this computer cannot read it: the archive may have access that this computer does not have. The caller
// closes it, which ends the request.
func (c *SubmitCmd) manifest(a *command.App) (io.ReadCloser, error) {
	if c.Manifest != "" {
		return a.Open(c.Manifest)
	}

	if !c.isManifest() {
		return nil, nil
	}

	ctx, cancel := context.WithTimeout(a.Ctx, fetchFor)
	resp, err := c.fetch(ctx, a)
	if err != nil {
		cancel()
		a.Warn("the manifest was not checked: it cannot be read from this computer")
		return nil, a.Ctx.Err()
	}

	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		cancel()
		a.Warn("the manifest was not checked: the server answered %s", resp.Status)
		return nil, nil
	}
	return closing{resp.Body, cancel}, nil
}

// fetch requests the manifest as the archive would, but from this computer.
func (c *SubmitCmd) fetch(ctx context.Context, a *command.App) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.Sources[0], nil)
	if err != nil {
		return nil, err
	}
	return a.HTTP.Do(req)
}

// closing is a response body; closing it ends the request.
type closing struct {
	io.ReadCloser
	cancel context.CancelFunc
}

// Close ends the request.
func (c closing) Close() error {
	defer c.cancel()
	return c.ReadCloser.Close()
}

// dryRun prints what a submission would do, as far as it is known now: a job before it, or another submission
// meanwhile, can change the number of the version. For files, more prints their manifests, as text only.
func (s submitted) dryRun(a *command.App, in v1.BatchRequest, more func(io.Writer) error) error {
	head, err := headOf(a, in)
	if err != nil {
		return err
	}

	s.Object, s.Version = head.ARK, head.Version+1

	var failed error
	err = a.Print(s, func(p terminal.Page) {
		makes := "v1 of a new object"
		switch {
		case s.Manifest != "" && s.Manifest != checkm.Object:
			makes = terminal.Count(s.Rows, "object")
		case s.Object == "" && in.Mode == "update":
			makes = "nothing: an update needs an object that exists"
		case s.Object != "":
			makes = fmt.Sprintf("v%d of %s", s.Version, s.Object)
		}
		files := ""
		if s.Files > 0 {
			files = fmt.Sprintf("%d, %s", s.Files, terminal.Size(s.Bytes))
		}
		p.Fields("dry run", "nothing is submitted", "collection", in.Collection, "url", in.Payload.URL,
			"files", files, "content", s.content(in.Payload.Type), "makes", makes)
		if more != nil {
			failed = more(p)
		}
	})
	return errors.Join(err, failed)
}

// content describes the payload as far as it is known: what the manifest has, the type that was given, or that
// the archive will find out.
func (s submitted) content(given string) string {
	switch {
	case s.Manifest == checkm.Object:
		return "an object manifest of " + terminal.Count(s.Rows, "file")
	case s.Manifest != "":
		return fmt.Sprintf("a %s manifest of %s", s.Manifest, terminal.Count(s.Rows, "row"))
	case given != "":
		return given
	}
	return "a file or a manifest, detected from the content"
}

// headOf finds the object of which a submission would create the next version: by its ARK, else by the first
// local id that the collection knows. The result has no ARK if there is no such object.
func headOf(a *command.App, in v1.BatchRequest) (head v1.Object, err error) {
	if in.Identifiers.Primary != "" {
		head, err = a.Client.Object(a.Ctx, in.Identifiers.Primary)
		if !fault.Is(err, fault.NotFound) {
			return head, err
		}
	}

	for _, id := range in.Identifiers.Local {
		found, err := a.Client.Objects(a.Ctx, v1.Filter{Collection: in.Collection, LocalID: id})
		if err != nil {
			return head, err
		}
		if len(found) > 0 {
			return found[0], nil
		}
	}
	return head, nil
}
