package jobs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"archivist/cmd/archivist/command"
	"archivist/cmd/archivist/jobs/deposit"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/api/v1/plan"
	"archivist/pkg/formats/checkm"
	"archivist/pkg/formats/container"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/payload"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/source"
	"archivist/pkg/kernel/terminal"
)

// filesFlags are those of files of this computer.
type filesFlags struct {
	Each     bool     `help:"${help_each}" group:"Files of this computer:"`
	Exclude  []string `help:"${help_exclude}" placeholder:"PATTERN" sep:"none" group:"Files of this computer:"`
	Parallel int      `help:"${help_parallel}" default:"4" placeholder:"N" group:"Files of this computer:"`
	Again    bool     `help:"${help_again}" group:"Files of this computer:"`
}

// isGiven reports whether one of the flags is given that change what is submitted.
func (f filesFlags) isGiven() bool { return f.Each || f.Again || len(f.Exclude) > 0 }

// submitFiles uploads files of this computer, and submits them. What it does is the same each time for the same files:
// it goes on where it was interrupted, and ends with the same batch.
func (c *SubmitCmd) submitFiles(a *command.App, in v1.BatchRequest) error {
	d, err := c.deposit(a)
	if err != nil {
		return err
	}

	kind, err := c.typeOf(d)
	if err != nil {
		return err
	}

	plan, err := d.Plan(source.NoUpload, kind)
	if err != nil {
		return err
	}

	manifest, err := c.checkFiles(a, in, plan)
	if err != nil {
		return err
	}

	if err := c.known(a, c.Collection, c.DryRun); err != nil {
		return err
	}

	out := submitted{Manifest: manifest.Kind, Rows: manifest.Rows}
	out.Files, out.Bytes = d.Size()
	if c.DryRun {
		in.Payload.Type = plan.Payload.Type
		return out.dryRun(a, in, plan.WriteManifests)
	}

	sender := &deposit.Sender{Client: a.Client, HTTP: a.HTTP, Wait: a.Wait, Parallel: c.Parallel}
	upload, err := c.open(a, sender, plan)
	if err != nil {
		return err
	}

	plan, err = d.Plan(upload.ID, kind)
	if err != nil {
		return err
	}

	if upload.State == v1.UploadOpen {
		if err := send(a, sender, plan, upload); err != nil {
			return err
		}
	}

	out.Upload = upload.ID
	in.Payload = plan.Payload
	if in.Payload.Digest, err = c.digest(); err != nil {
		return err
	}
	return c.submitUpload(a, sender, in, upload, out)
}

// deposit lists the files and computes their digests. What is wrong with them is shown, as far as possible all at once.
func (c *SubmitCmd) deposit(a *command.App) (*deposit.Deposit, error) {
	if err := c.checkFlags(); err != nil {
		return nil, err
	}

	d, err := deposit.Scan(deposit.Options{Sources: c.Sources, Name: c.Filename, Each: c.Each,
		Exclude: c.Exclude})
	if err != nil {
		return nil, command.Usage("--exclude: %v", err)
	}

	for _, w := range d.Warnings {
		a.Warn("%s", w)
	}

	if err := wrong(a, d); err != nil {
		return nil, err
	}

	_, size := d.Size()
	progress := terminal.NewTransfer(a.StatusTo(nil), "digests", size)
	err = d.Digest(a.Ctx, c.Parallel, progress)
	progress.End()
	if err != nil {
		return nil, err
	}
	return d, wrong(a, d)
}

// checkFlags refuses flags that do not fit the sources.
func (c *SubmitCmd) checkFlags() error {
	isFile, err := c.isFile()
	switch {
	case err != nil:
		return err
	case c.Parallel < 1 || c.Parallel > maxParallel:
		return command.Usage("--parallel: expected 1 to %d", maxParallel)
	case c.Manifest != "":
		return command.Usage("--manifest is for content of a URL; a manifest of this computer is " +
			"given as the source")
	case c.Each && c.What != "":
		return command.Usage("--what cannot be used with --each, which makes several objects; a " +
			"batch manifest can give each a title (archivist help manifests)")
	case !isFile && c.Filename+c.Digest != "":
		return command.Usage("--filename and --digest are for one file; leave them out")
	case c.Each:
		return c.applies(checkm.Batch)
	}
	return nil
}

// isFile reports whether the source is a single file. It refuses sources that are not there.
func (c *SubmitCmd) isFile() (bool, error) {
	folders := 0
	for _, source := range c.Sources {
		info, err := os.Stat(source)
		if errors.Is(err, os.ErrNotExist) {
			return false, command.Usage("there is no file or folder %q here; content of a web "+
				"server is named by its URL, which begins with https:// or http://", source)
		}
		if err == nil && info.IsDir() {
			folders++
		}
	}
	return len(c.Sources) == 1 && folders == 0 && !c.Each, nil
}

// maxParallel is how many requests a sender may make at once.
const maxParallel = 32

// wrong shows what is wrong with a deposit, and is the error then.
func wrong(a *command.App, d *deposit.Deposit) error {
	switch {
	case d.Wrong == 0:
		return nil
	case d.Wrong == 1:
		return fault.New(fault.Invalid, "%s; nothing was sent", d.Problems[0])
	}
	for _, p := range d.Problems {
		fmt.Fprintln(a.Errors, terminal.Printable(p))
	}
	if more := d.Wrong - len(d.Problems); more > 0 {
		fmt.Fprintf(a.Errors, "and %d more\n", more)
	}
	return fault.New(fault.Invalid, "there are %d problems; nothing was sent", d.Wrong)
}

// typeOf is the type of the payload. Only the type of a single file is not known: that of a manifest follows from its
// content, and a container is detected by the archive.
func (c *SubmitCmd) typeOf(d *deposit.Deposit) (string, error) {
	if c.Each && c.Type == "" && allContainers(d) {
		return "", command.Usage("all files are containers by their names: say --type container " +
			"to make objects of their files, or --type file to preserve them as they are")
	}
	if c.Type != "" || d.Listed || d.Each {
		return c.Type, nil
	}

	f := d.Objects[0].Files[0]
	in, err := os.Open(f.Path)
	if err != nil {
		return "", fault.New(fault.Invalid, "%w", err)
	}
	defer in.Close()

	start, err := io.ReadAll(io.LimitReader(in, payload.Beginning))
	if err != nil {
		return "", fault.New(fault.Invalid, "%w", err)
	}
	kind, err := payload.TypeOf(ingest.Payload{Filename: f.Name}, start)
	switch {
	case filepath.Ext(f.Name) == ".checkm" && kind == ingest.TypeFile:
		// It is said to be one, and is rejected with the reasons.
		return ingest.TypeObjectManifest, nil
	case err != nil:
		// A web page, which may be the error of a server. Here it is what it is.
		return ingest.TypeFile, nil
	case kind == ingest.TypeFile || kind == ingest.TypeContainer:
		return "", nil
	}
	return kind, nil
}

// allContainers reports whether all objects are files with the name of a container. The archive would not look into
// them: each row of a batch has the same type.
func allContainers(d *deposit.Deposit) bool {
	for _, o := range d.Objects {
		if !o.IsFile || container.Named(o.Files[0].Name) == "" {
			return false
		}
	}
	return true
}

// checkFiles checks the manifest that is submitted, if there is one, as that of a URL is checked.
func (c *SubmitCmd) checkFiles(a *command.App, in v1.BatchRequest, plan plan.Plan) (m checked,
	err error) {
	checkARK(a, in)
	text := plan.Manifest()
	switch {
	case text != nil:
		return c.checkManifest(a, bytes.NewReader(text), "the manifest of these files")
	case !strings.Contains(plan.Payload.Type, "manifest"):
		return m, nil
	}

	body, err := os.Open(c.Sources[0])
	if err != nil {
		return m, fault.New(fault.Invalid, "%w", err)
	}
	defer body.Close()
	return c.checkManifest(a, body, c.Sources[0])
}

// open opens the upload of the files, or finds that of an earlier run: it has the same key. The archive decides which
// one that is, in one step: so a run that was interrupted at any point goes on with the newest.
func (c *SubmitCmd) open(a *command.App, s *deposit.Sender, plan plan.Plan) (u v1.Upload,
	err error) {
	err = s.Again(a.Ctx, func() (err error) {
		in, key := plan.Request(c.Collection, c.Again), plan.Key(c.Collection, c.Key)
		u, err = a.Client.OpenUpload(a.Ctx, in, key)
		return err
	})
	return u, err
}

// send sends what is missing in the upload. If that fails or is interrupted, it says how to go on.
func send(a *command.App, s *deposit.Sender, plan plan.Plan, upload v1.Upload) error {
	s.Progress = terminal.NewTransfer(a.StatusTo(nil), "", plan.Bytes())
	err := s.Send(a.Ctx, plan)
	s.Progress.End()
	if err == nil {
		return nil
	}

	there := fmt.Sprintf("%d of %s are in the upload %s until %s, and nothing was submitted",
		max(s.Stored(), upload.Stored.Files),
		terminal.Count(len(plan.Contents), "file"), upload.ID, command.Minute(upload.Expires))
	var file *deposit.FileError
	switch {
	case a.Ctx.Err() != nil:
		fmt.Fprintf(a.Errors, "archivist: interrupted: %s; run the same command again to go on "+
			"there\n",
			terminal.Printable(there))
		return a.Ctx.Err()
	case errors.As(err, &file):
		// The upload is for the files as they were.
		return fault.New(fault.Of(err), "%w. %s; run the same command again: it goes on there if "+
			"the file is what it was, and sends all anew if not", err, there)
	}
	return fault.New(fault.Of(err), "%w. %s; run the same command again to go on there", err, there)
}

// submitUpload submits an upload. Its key follows from the upload, so that a repeat ends with the same batch.
func (c *SubmitCmd) submitUpload(a *command.App, s *deposit.Sender, in v1.BatchRequest,
	upload v1.Upload,
	out submitted) error {
	if upload.Batch != "" {
		fmt.Fprintf(a.Errors, "these files are submitted already, as batch %s; --again submits "+
			"them once more\n",
			terminal.Printable(upload.Batch))
	}

	var accepted v1.Accepted
	err := s.Again(a.Ctx, func() (err error) {
		accepted, err = a.Client.Submit(a.Ctx, in, "upload-"+upload.ID)
		return err
	})
	switch {
	case upload.Batch != "" && fault.Is(err, fault.Conflict):
		return fault.New(fault.Conflict, "the batch %s of these files was not submitted with the "+
			"same flags, or more than %d days ago; --again submits them once more", upload.Batch,
			keptKeys)
	case err != nil && c.Again && (a.Ctx.Err() != nil || fault.Is(err, fault.Unavailable)):
		// The same command would make one more, if this one was made.
		fmt.Fprintf(a.Errors, "archivist: it is not known whether the upload %s was submitted; "+
			"run the same command without --again: it submits that one, or ends with its "+
			"batch\n", terminal.Printable(upload.ID))
		return err
	case err != nil:
		return err
	case upload.Batch != "" && upload.Batch != accepted.ID:
		return fault.New(fault.Conflict, "the upload %s belongs to batch %s, and batch %s was "+
			"submitted; tell the operator", upload.ID, upload.Batch, accepted.ID)
	}
	return c.end(a, accepted, out)
}

// keptKeys is how many days the archive knows a submission by its key.
const keptKeys = 7
