package jobs

import (
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strings"

	"archivist/cmd/archivist/command"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/formats/checkm"
	"archivist/pkg/ingest"
	"archivist/pkg/kernel/source"
	"archivist/pkg/kernel/terminal"
)

// SubmitCmd submits files of this computer, which are uploaded (files.go), or content by reference: then the archive
// itself downloads it, so this computer need not stay on, and large content does not pass through it.
type SubmitCmd struct {
	Sources    []string `arg:"" name:"source" help:"${help_source}"`
	Collection string   `required:"" short:"c" help:"Collection of the objects." placeholder:"NAME"`
	Type       string   `enum:"${payload_types}" default:"" help:"${help_type}" placeholder:"TYPE"`
	Filename   string   `help:"${help_filename}" placeholder:"NAME"`
	Digest     string   `help:"Digest of the file or manifest, e.g. sha256:2cf2…" placeholder:"ALGORITHM:HEX"`
	// sep is none: a local id can have commas.
	Local     []string `name:"local-id" help:"${help_local_id}" placeholder:"ID" sep:"none"`
	ARK       string   `help:"ARK of the object." placeholder:"ARK"`
	Who       string   `help:"Creator of the object." placeholder:"TEXT"`
	What      string   `help:"Title of the object." placeholder:"TEXT"`
	When      string   `help:"Date of the object." placeholder:"TEXT"`
	Submitter string   `help:"Name or account of the submitter." env:"USER" placeholder:"NAME"`
	Notify    []string `help:"Mail address that receives the report. Can be repeated." placeholder:"ADDRESS"`
	Callback  string   `help:"${help_callback}" placeholder:"URL"`
	Note      string   `help:"Note for the report and the stored version." placeholder:"TEXT"`
	IfVersion int      `help:"${help_if_version}" placeholder:"N"`
	Update    bool     `help:"${help_update}"`
	StopAfter int      `name:"stop-after-failures" help:"${help_stop_after}" placeholder:"N"`
	// Another key for the same content makes another batch.
	Key string `name:"idempotency-key" help:"${help_key}" placeholder:"KEY"`
	// For those who cannot read the URL from here, or check a manifest before it is on its server.
	Manifest string `help:"${help_manifest}" placeholder:"FILE"`
	filesFlags
	beginning
	DryRun bool `xor:"mode" help:"Check everything and show what would be done, but submit nothing."`
	Watch  bool `xor:"mode" short:"w" help:"Follow the batch until it has ended."`
}

// submitted is the output for a submission, or for its dry run.
type submitted struct {
	ID       string      `json:"id"` // of the batch; "" for a dry run
	State    string      `json:"state"`
	Warnings []string    `json:"warnings"`
	Manifest checkm.Kind `json:"manifest"` // "" if none was checked
	Rows     int         `json:"rows"`     // of the manifest
	Object   string      `json:"object"`   // dry run: the object that gets a version, "" for a new one
	Version  int         `json:"version"`  // dry run: the version that it gets
	Upload   string      `json:"upload"`   // that has the files; "" for a URL, or a dry run
	Files    int         `json:"files"`    // of this computer
	Bytes    int64       `json:"bytes"`    // of these files
}

// Prints is the submission or, with --watch, the batch each time it has changed.
func (c SubmitCmd) Prints() any {
	if c.Watch {
		return v1.Batch{}
	}
	return submitted{}
}

// Run checks as much as possible before it submits, so that errors are reported at once and not by the archive
// hours later. With --watch it fails if the batch fails.
func (c *SubmitCmd) Run(a *command.App) error {
	byURL, err := c.byURL()
	if err != nil {
		return err
	}

	in, err := c.request()
	if err != nil {
		return err
	}

	if !byURL {
		return c.submitFiles(a, in)
	}

	in.Payload.URL = c.Sources[0]
	manifest, err := c.check(a, in)
	if err != nil {
		return err
	}

	if err := c.known(a, c.Collection, c.DryRun); err != nil {
		return err
	}

	// What is known before the request, also for a dry run.
	out := submitted{Manifest: manifest.Kind, Rows: manifest.Rows}
	if c.DryRun {
		return out.dryRun(a, in, nil)
	}

	key := c.Key
	// The key is made for each command.
	if key == "" {
		key = rand.Text() // so that a request repeated by the network does not create a second batch
	}

	accepted, err := a.Client.Submit(a.Ctx, in, key)
	if err != nil {
		return err
	}
	return c.end(a, accepted, out)
}

// byURL reports whether the source is a URL, and not files of this computer.
func (c *SubmitCmd) byURL() (bool, error) {
	for _, s := range c.Sources {
		switch {
		case !strings.Contains(s, "://"):
		case source.CheckPayload(s) != nil || strings.HasPrefix(s, source.Upload+":"):
			return true, command.Usage("%q is not an http(s) or s3 URL", s)
		case len(c.Sources) > 1:
			return true, command.Usage("give one URL; several are submitted by a manifest (archivist help manifests)")
		case c.filesFlags.isGiven():
			return true, command.Usage("--each, --exclude and --again are for files of this computer; %q is a URL", s)
		default:
			return true, nil
		}
	}
	return false, nil
}

// end tells the batch that was accepted, and follows it if that is wanted.
func (c *SubmitCmd) end(a *command.App, accepted v1.Accepted, out submitted) error {
	out.ID, out.State, out.Warnings = accepted.ID, accepted.State, accepted.Warnings
	for _, w := range out.Warnings {
		if c.NewCollection && strings.HasPrefix(w, ingest.Unused(c.Collection, nil)) {
			a.Told(terminal.Printable(w))
		}
		a.Warn("%s", w)
	}

	if c.Watch {
		// The id is told at once, so that the batch can be followed later if this is interrupted. It is not a
		// part of the output.
		fmt.Fprintf(a.Errors, "batch %s\n", terminal.Printable(out.ID))
		return watchBatches(a, []string{out.ID})
	}
	return a.Print(out, out.show)
}

// show prints a submission: for programs only the id of its batch, so that a script can keep it.
func (s submitted) show(p terminal.Page) {
	if p.ForPeople() {
		p.Fields("batch", s.ID, "state", s.State, "follow it", "archivist batch show "+s.ID+" --watch")
		return
	}
	fmt.Fprintln(p, terminal.Printable(s.ID))
}

// request makes the request of the flags. Its errors are those of the command line.
func (c *SubmitCmd) request() (in v1.BatchRequest, err error) {
	in = v1.BatchRequest{
		Collection:   c.Collection,
		Submitter:    c.Submitter,
		Payload:      v1.Payload{Type: c.Type, Filename: c.Filename},
		Metadata:     &v1.Metadata{Who: c.Who, What: c.What, When: c.When},
		IfVersion:    c.IfVersion,
		Notification: c.Notify,
		Callback:     c.Callback,
		Note:         c.Note,
	}

	if c.Update {
		in.Mode = "update"
	}

	in.StopAfterFailures = c.StopAfter
	in.Payload.Digest, err = c.digest()
	if err != nil {
		return in, err
	}

	in.Identifiers, err = c.identifiers()
	return in, err
}

// digest is the digest of the file or manifest; nil if none is given. The algorithms are those of manifests, and
// the length of the value must be that of its algorithm.
func (c *SubmitCmd) digest() (*v1.Digest, error) {
	if c.Digest == "" {
		return nil, nil
	}

	algorithm, value, _ := strings.Cut(c.Digest, ":")
	n, known := checkm.Lengths[checkm.Canonical(algorithm)]
	// Both cases of hexadecimal digits are in use.
	isHex := strings.Trim(value, "0123456789abcdefABCDEF") == ""
	if !known || len(value) != n || !isHex {
		return nil, command.Usage("--digest: %q is not a digest; expected ALGORITHM:HEX with one of %s, "+
			"e.g. md5:5d41402abc4b2a76b9719d911017c592",
			c.Digest, strings.Join(slices.Sorted(maps.Keys(checkm.Lengths)), ", "))
	}
	return &v1.Digest{Algorithm: algorithm, Value: value}, nil
}

// identifiers are the identifiers of the object: local ids as ingest keeps them, and the ARK in canonical form.
// Neither needs to be given; then the archive mints an ARK.
func (c *SubmitCmd) identifiers() (*v1.Identifiers, error) {
	local, err := ingest.CleanLocalIDs(c.Local)
	if err != nil {
		return nil, command.Usage("--local-id: %v", err)
	}
	if c.ARK == "" {
		return &v1.Identifiers{Local: local}, nil
	}
	primary, err := command.ParseARK(c.ARK)
	return &v1.Identifiers{Primary: primary, Local: local}, err
}
