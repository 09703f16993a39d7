package main

import (
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/checkm"
	"archivist/pkg/ingest"
	"archivist/pkg/source"
	"archivist/pkg/terminal"
)

// submitCmd submits content by reference: the archive itself downloads it, so this
// computer need not stay on.
type submitCmd struct {
	Source     string   `arg:"" name:"url" help:"${help_source}"`
	Collection string   `required:"" short:"c" help:"Collection of the objects." placeholder:"NAME"`
	Type       string   `enum:"${payload_types}" default:"" help:"${help_type}" placeholder:"TYPE"`
	Filename   string   `help:"${help_filename}" placeholder:"NAME"`
	Digest     string   `help:"Digest of the file or manifest, e.g. sha256:2cf2…" placeholder:"ALGORITHM:HEX"`
	Local      []string `name:"local-id" help:"${help_local_id}" placeholder:"ID" sep:"none"`
	ARK        string   `help:"ARK of the object." placeholder:"ARK"`
	Who        string   `help:"Creator of the object." placeholder:"TEXT"`
	What       string   `help:"Title of the object." placeholder:"TEXT"`
	When       string   `help:"Date of the object." placeholder:"TEXT"`
	Submitter  string   `help:"Name or account of the submitter." env:"USER" placeholder:"NAME"`
	Notify     []string `help:"Mail address that receives the report. Can be repeated." placeholder:"ADDRESS"`
	Note       string   `help:"Note for the report and the stored version." placeholder:"TEXT"`
	IfVersion  int      `help:"${help_if_version}" placeholder:"N"`
	StopAfter  int      `name:"stop-after-failures" help:"${help_stop_after}" placeholder:"N"`
	Key        string   `name:"idempotency-key" help:"${help_key}" placeholder:"KEY"`
	Manifest   string   `help:"${help_manifest}" placeholder:"FILE"`
	DryRun     bool     `xor:"mode" help:"Check everything and show what would be done, but submit nothing."`
	Watch      bool     `xor:"mode" short:"w" help:"Follow the batch until it has ended."`
}

// submitted is the output for a submission.
type submitted struct {
	ID       string      `json:"id"` // of the batch; "" for a dry run
	State    string      `json:"state"`
	Warnings []string    `json:"warnings"`
	Manifest checkm.Kind `json:"manifest"` // "" if none was checked
	Rows     int         `json:"rows"`     // of the manifest
	Object   string      `json:"object"`   // dry run: the object that gets a version, "" for a new one
	Version  int         `json:"version"`  // dry run: the version that it gets
}

// prints is the submission or, with --watch, the batch each time it has changed.
func (c submitCmd) prints() any {
	if c.Watch {
		return v1.Batch{}
	}
	return submitted{}
}

// Run checks as much as possible before it submits, so that errors are reported at once
// and not by the archive later.
func (c *submitCmd) Run(a *app) error {
	in, err := c.request()
	if err != nil {
		return err
	}
	manifest, err := c.check(a, in)
	if err != nil {
		return err
	}
	out := submitted{Manifest: manifest.Kind, Rows: manifest.Rows}
	if c.DryRun {
		return out.dryRun(a, in)
	}

	key := c.Key
	if key == "" {
		key = rand.Text() // so that a request repeated by the network does not create a second batch
	}
	accepted, err := a.client.Submit(a.ctx, in, key)
	if err != nil {
		return err
	}
	out.ID, out.State, out.Warnings = accepted.ID, accepted.State, accepted.Warnings
	for _, w := range out.Warnings {
		a.warn("%s", w)
	}
	if c.Watch {
		fmt.Fprintf(a.errors, "batch %s\n", terminal.Printable(out.ID))
		return a.watchBatches([]string{out.ID})
	}
	return a.print(out, out.show)
}

// show prints a submission: for programs the id of its batch.
func (s submitted) show(p terminal.Page) {
	if p.ForPeople() {
		p.Fields("batch", s.ID, "state", s.State, "follow it", "archivist batch watch "+s.ID)
		return
	}
	fmt.Fprintln(p, terminal.Printable(s.ID))
}

// request makes the request of the flags.
func (c *submitCmd) request() (in v1.BatchRequest, err error) {
	if source.Check(c.Source) != nil {
		return in, usage("%q is not an http(s) URL; the archive downloads the content itself, "+
			"so put it on a web server first", c.Source)
	}

	in = v1.BatchRequest{
		Collection:   c.Collection,
		Submitter:    c.Submitter,
		Payload:      v1.Payload{URL: c.Source, Type: c.Type, Filename: c.Filename},
		Metadata:     &v1.Metadata{Who: c.Who, What: c.What, When: c.When},
		IfVersion:    c.IfVersion,
		Notification: c.Notify,
		Note:         c.Note,
	}
	in.StopAfterFailures = c.StopAfter
	in.Payload.Digest, err = c.digest()
	if err != nil {
		return in, err
	}
	in.Identifiers, err = c.identifiers()
	return in, err
}

// digest is the digest of the file or manifest; nil if none is given.
func (c *submitCmd) digest() (*v1.Digest, error) {
	if c.Digest == "" {
		return nil, nil
	}
	algorithm, value, _ := strings.Cut(c.Digest, ":")
	n, known := checkm.Lengths[checkm.Canonical(algorithm)]
	isHex := strings.Trim(value, "0123456789abcdefABCDEF") == ""
	if !known || len(value) != n || !isHex {
		return nil, usage("--digest: %q is not a digest; expected ALGORITHM:HEX with one of %s, "+
			"e.g. md5:5d41402abc4b2a76b9719d911017c592",
			c.Digest, strings.Join(slices.Sorted(maps.Keys(checkm.Lengths)), ", "))
	}
	return &v1.Digest{Algorithm: algorithm, Value: value}, nil
}

// identifiers are the identifiers of the object.
func (c *submitCmd) identifiers() (*v1.Identifiers, error) {
	local, err := ingest.CleanLocalIDs(c.Local)
	if err != nil {
		return nil, usage("--local-id: %v", err)
	}
	if c.ARK == "" {
		return &v1.Identifiers{Local: local}, nil
	}
	primary, err := parseARK(c.ARK)
	return &v1.Identifiers{Primary: primary, Local: local}, err
}
