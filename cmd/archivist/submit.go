package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ark"
	"archivist/pkg/checkm"
	"archivist/pkg/fault"
	"archivist/pkg/ingest"
)

type submitCmd struct {
	Source     string   `arg:"" name:"url" help:"http(s) URL from which the archive downloads a file, an object manifest (the files of one object) or a batch manifest (a row for each object); see archivist help manifests."`
	Collection string   `required:"" short:"c" help:"Collection that it belongs to." placeholder:"NAME"`
	Type       string   `enum:",file,object-manifest,batch-manifest,single-file-batch-manifest" default:"" help:"file, object-manifest, batch-manifest or single-file-batch-manifest; detected from the content if it is left out." placeholder:"TYPE"`
	Filename   string   `help:"Name under which a file is kept; by default the last part of its URL." placeholder:"NAME"`
	Digest     string   `help:"Digest of the file or manifest, e.g. sha256:2cf2…" placeholder:"ALGORITHM:HEX"`
	Local      []string `name:"local-id" help:"Your own identifier of the object. If the archive knows it, this is the next version of that object. Can be repeated." placeholder:"ID" sep:"none"`
	ARK        string   `help:"ARK of the object." placeholder:"ARK"`
	Who        string   `help:"Creator of the object." placeholder:"TEXT"`
	What       string   `help:"Title of the object." placeholder:"TEXT"`
	When       string   `help:"Date of the object." placeholder:"TEXT"`
	Submitter  string   `help:"Who submits it." env:"USER" placeholder:"NAME"`
	Notify     []string `help:"Mail address that gets the report. Can be repeated." placeholder:"ADDRESS"`
	Note       string   `help:"Note that the report and the stored version carry." placeholder:"TEXT"`
	IfVersion  int      `help:"Refuse it if the object is at another version." placeholder:"N"`
	Key        string   `name:"idempotency-key" help:"Submitting again with the same key gives the same batch." placeholder:"KEY"`
	Manifest   string   `help:"Local copy of the manifest, which is checked first. Without it the manifest at the URL is." placeholder:"FILE"`
	DryRun     bool     `help:"Check everything and say what would be done, but submit nothing."`
	Watch      bool     `short:"w" help:"Follow the batch until it has ended."`
}

// submitted is a submission as it is printed.
type submitted struct {
	ID       string      `json:"id"` // of the batch; "" for a dry run
	State    string      `json:"state"`
	Warnings []string    `json:"warnings"`
	Manifest checkm.Kind `json:"manifest"` // "" if none was checked
	Rows     int         `json:"rows"`     // of the manifest
	Object   string      `json:"object"`   // dry run: the object that gets a version, "" for a new one
	Version  int         `json:"version"`  // dry run: the version that it gets
}

func (submitCmd) prints() any { return submitted{} }

func (c *submitCmd) Run(a *app) error {
	in, err := c.request()
	if err != nil {
		return err
	}
	plan, err := c.check(a, &in)
	if err != nil {
		return err
	}
	if c.DryRun {
		return a.print(submitted{Manifest: plan.manifest.Kind, Rows: plan.manifest.Rows, Object: plan.ark, Version: plan.version + 1}, plan.show)
	}
	key := c.Key
	if key == "" {
		key = rand.Text() // so that a repeat by the network is no second batch
	}
	out, err := a.client.Submit(a.ctx, in, key)
	if err != nil {
		return err
	}
	for _, w := range out.Warnings {
		a.warn("%s", w)
	}
	if c.Watch {
		fmt.Fprintf(a.errors, "batch %s\n", printable(out.ID))
		return a.watchBatches([]string{out.ID})
	}
	done := submitted{ID: out.ID, State: out.State, Warnings: out.Warnings, Manifest: plan.manifest.Kind, Rows: plan.manifest.Rows}
	return a.print(done, func(p page) {
		if p.width == 0 {
			fmt.Fprintln(p, printable(out.ID))
			return
		}
		p.fields("batch", out.ID, "state", out.State, "follow it", "archivist batch watch "+out.ID)
	})
}

// request is what is submitted.
func (c *submitCmd) request() (v1.BatchRequest, error) {
	in := v1.BatchRequest{Collection: c.Collection, Submitter: c.Submitter, Note: c.Note, IfVersion: c.IfVersion, Notification: c.Notify,
		Payload:     v1.Payload{URL: c.Source, Type: c.Type, Filename: c.Filename},
		Identifiers: &v1.Identifiers{Primary: c.ARK, Local: c.Local}, Metadata: &v1.Metadata{Who: c.Who, What: c.What, When: c.When}}
	u, err := url.Parse(c.Source)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return in, usage("%q is no http(s) URL; the archive downloads what is submitted, so put it on a web server first", c.Source)
	}
	if c.Digest != "" {
		algorithm, value, _ := strings.Cut(c.Digest, ":")
		if n, known := checkm.Lengths[checkm.Canonical(algorithm)]; !known || len(value) != n || strings.Trim(value, "0123456789abcdefABCDEF") != "" {
			return in, usage("--digest: %q is no digest; expected ALGORITHM:HEX with one of %s, e.g. md5:5d41402abc4b2a76b9719d911017c592",
				c.Digest, strings.Join(slices.Sorted(maps.Keys(checkm.Lengths)), ", "))
		}
		in.Payload.Digest = &v1.Digest{Algorithm: algorithm, Value: value}
	}
	if in.Identifiers.Local, err = ingest.CleanLocalIDs(c.Local); err != nil {
		return in, usage("--local-id: %v", err)
	}
	if c.ARK == "" {
		return in, nil
	}
	if in.Identifiers.Primary, err = parseARK(c.ARK); err != nil {
		return in, err
	}
	return in, nil
}

// plan is what a submission would do.
type plan struct {
	in       v1.BatchRequest
	manifest checked // if there is one
	version  int     // of the object that is there
	ark      string
}

// check makes the checks that can be made before something is submitted: those of the
// manifest, and that no flag is lost.
func (c *submitCmd) check(a *app, in *v1.BatchRequest) (p plan, err error) {
	p = plan{in: *in}
	if id, err := ark.Parse(in.Identifiers.Primary); err == nil && !id.Valid() {
		a.warn("%s does not end in its check character; is it mistyped?", id)
	}
	if c.DryRun {
		if err := p.lookUp(a); err != nil {
			return p, err
		}
	}
	body, err := c.manifest(a)
	if body == nil || err != nil {
		return p, err
	}
	defer body.Close()
	profile, err := a.client.Collection(a.ctx, c.Collection)
	if err != nil {
		return p, err
	}
	p.manifest, err = check(body, profile.Profile.RequireDigest)
	if err != nil {
		return p, fault.New(fault.Invalid, "%s: %w", c.manifestName(), err)
	}
	if len(p.manifest.Problems) > 0 {
		p.manifest.show(page{a.errors, a.err.width}, c.manifestName())
	}
	if !p.manifest.Accepted {
		otherwise := ""
		if c.Type == "" {
			otherwise = "; --type file preserves it as a file"
		}
		return p, fault.New(fault.Invalid, "the manifest is rejected and nothing was submitted; correct it and submit it again%s", otherwise)
	}
	return p, c.applies(p.manifest.Kind)
}

// applies refuses the flags that say something of one object, for a manifest of many.
func (c *submitCmd) applies(kind checkm.Kind) error {
	if kind == checkm.Object {
		return nil
	}
	var lost []string
	for flag, given := range map[string]bool{"--local-id": len(c.Local) > 0, "--ark": c.ARK != "", "--if-version": c.IfVersion > 0, "--filename": c.Filename != ""} {
		if given {
			lost = append(lost, flag)
		}
	}
	if len(lost) == 0 {
		return nil
	}
	slices.Sort(lost)
	return usage("%s cannot be used with a %s manifest, whose rows are objects of their own; leave it out, "+
		"or give identifiers in the manifest's columns", strings.Join(lost, " and "), kind)
}

// looksLikeManifest reports whether a manifest is expected at the URL.
func (c *submitCmd) looksLikeManifest() bool {
	if c.Type != "" {
		return c.Type != "file"
	}
	u, err := url.Parse(c.Source)
	return err == nil && path.Ext(u.Path) == ".checkm"
}

// manifestName is how messages call the manifest.
func (c *submitCmd) manifestName() string {
	if c.Manifest != "" {
		return c.Manifest
	}
	u, err := url.Parse(c.Source)
	if err != nil {
		return "manifest"
	}
	return path.Base(u.Path)
}

// fetchFor is how long the manifest may take to come from its URL.
const fetchFor = 30 * time.Second

// manifest opens the manifest that is submitted; nil if there is none, or if it cannot
// be read from here: the archive may have a way that this computer has not.
func (c *submitCmd) manifest(a *app) (io.ReadCloser, error) {
	if c.Manifest != "" {
		return a.open(c.Manifest)
	}
	if !c.looksLikeManifest() {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(a.ctx, fetchFor)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.Source, nil)
	if err != nil {
		cancel()
		return nil, err
	}
	resp, err := a.http.Do(req)
	why := ""
	switch {
	case err != nil:
		why = "it cannot be read from here"
	case resp.StatusCode != http.StatusOK:
		resp.Body.Close()
		why = "the server answers " + resp.Status
	default:
		return closing{resp.Body, cancel}, nil
	}
	cancel()
	a.warn("the manifest was not checked: %s", why)
	return nil, a.ctx.Err()
}

// closing is a body whose request ends when it is closed.
type closing struct {
	io.ReadCloser
	cancel context.CancelFunc
}

// Close ends the request.
func (c closing) Close() error { c.cancel(); return c.ReadCloser.Close() }

// lookUp finds the object of which this would be a version.
func (p *plan) lookUp(a *app) error {
	ids := p.in.Identifiers
	for _, id := range ids.Local {
		found, err := a.client.Objects(a.ctx, v1.Filter{Collection: p.in.Collection, LocalID: id})
		if err != nil {
			return err
		}
		if len(found) > 0 {
			p.ark, p.version = found[0].ARK, found[0].Version
		}
	}
	if ids.Primary == "" {
		return nil
	}
	o, err := a.client.Object(a.ctx, ids.Primary)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	p.ark, p.version = o.ARK, o.Version
	return err
}

// show says what would be done.
func (p *plan) show(out page) {
	what := "a file, or a manifest: that is told from its content"
	switch {
	case p.manifest.Kind == checkm.Object:
		what = "one object of " + count(p.manifest.Rows, "file")
	case p.manifest.Kind != "":
		what = count(p.manifest.Rows, "object")
	case p.in.Payload.Type != "":
		what = p.in.Payload.Type
	}
	version := "v1 of a new object"
	if p.version > 0 {
		version = fmt.Sprintf("v%d of %s", p.version+1, p.ark)
	}
	if p.manifest.Kind != "" && p.manifest.Kind != checkm.Object {
		version = ""
	}
	out.fields("dry run", "nothing is submitted", "collection", p.in.Collection, "url", p.in.Payload.URL,
		"content", what, "makes", version)
}
