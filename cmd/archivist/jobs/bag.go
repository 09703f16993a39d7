package jobs

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"archivist/cmd/archivist/command"
	"archivist/pkg/formats/bagit"
	"archivist/pkg/formats/container"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/terminal"
)

// checkBagCmd needs no API: a bag is checked where it is, by those who make bags, or get them.
type checkBagCmd struct {
	Path    string `arg:"" help:"Folder of the bag, or a zip or tar file of it, or the URL of one."`
	Profile string `name:"bagit-profile" placeholder:"FILE" help:"BagIt profile (JSON) that the bag must conform to."`
}

func (checkBagCmd) Offline() {}

func (checkBagCmd) Prints() any { return bagChecked{} }

// Help says what is checked.
func (checkBagCmd) Help() string {
	return `Bags of BagIt 0.93 to 0.97 and 1.0 (RFC 8493) are checked: each file of the payload is listed and has the digests
that all manifests say, nothing that is listed is missing, and so with the tag files; Payload-Oxum is compared.
Warnings are of what other tools, or other systems, may read differently. A bag whose files are to be fetched is
not complete. Nothing is sent anywhere; what a URL names is downloaded. A zip, tar, tar.gz or tar.bz2 file is read as
a deposit of it would be, whatever its name. With --bagit-profile the bag must also be as the profile says (BagIt
Profiles Specification 1.3.0).`
}

// bagChecked is the result of a check. Problems make a bag invalid, warnings do not.
type bagChecked struct {
	Valid      bool       `json:"valid"`
	Version    string     `json:"version"`
	Algorithms []string   `json:"algorithms"`
	Files      int        `json:"files"`
	Bytes      int64      `json:"bytes"`
	Problems   []bagIssue `json:"problems"`
	Warnings   []bagIssue `json:"warnings"`
}

// bagIssue is a problem or a warning. Line is that of a tag file, 0 for none.
type bagIssue struct {
	File   string `json:"file"`
	Line   int    `json:"line,omitempty"`
	Reason string `json:"reason"`
}

// Run ends with exit code 1 if the bag is invalid, so that scripts can stop there; the problems are printed as the
// output. What is no bag at all is invalid, too; what cannot be read is Invalid input.
func (c *checkBagCmd) Run(a *command.App) error {
	line := a.StatusTo(io.Discard)
	bag, err := openBag(a, c.Path, line)
	if err != nil {
		line.End()
		return fault.New(fault.Invalid, "%s: %w", c.Path, err)
	}
	report, err := bagit.Check(a.Ctx, bag.FS, func(files, of int, bytes int64) {
		line.Show(fmt.Sprintf("%d of %s, %s", files, terminal.Count(of, "file"), terminal.Size(bytes)), false)
	})
	line.End()
	if err != nil {
		return fault.New(fault.Invalid, "%s: %w", c.Path, err)
	}

	if err := c.conforms(report, bag.kind); err != nil {
		return err
	}

	out := bagChecked{Valid: len(report.Problems) == 0, Version: report.Version,
		Algorithms: slices.Concat([]string{}, report.Algorithms), // never nil: it is [] in JSON
		Files:      report.Files, Bytes: report.Bytes,
		Problems: issues(report.Problems), Warnings: issues(report.Warnings)}
	if err := a.Print(out, func(p terminal.Page) { showBag(p, c.Path, report) }); err != nil {
		return err
	}
	if !out.Valid {
		return command.ErrReported
	}
	return nil
}

// conforms adds to a report what is not as the profile says.
func (c *checkBagCmd) conforms(report *bagit.Report, kind container.Kind) error {
	if c.Profile == "" {
		return nil
	}

	in, err := os.Open(c.Profile)
	if err != nil {
		return fault.New(fault.Invalid, "%w", err)
	}
	defer in.Close()

	p, err := bagit.ReadProfile(in)
	if err != nil {
		return fault.New(fault.Invalid, "%s: %w", c.Profile, err)
	}

	report.Problems = append(report.Problems, p.Check(report, string(kind))...)
	return nil
}

// issues is never nil, so that it is [] in JSON.
func issues(all []bagit.Problem) []bagIssue {
	out := []bagIssue{}
	for _, p := range all {
		out = append(out, bagIssue{p.File, p.Line, p.Reason})
	}
	return out
}

// showBag prints the problems and warnings, one per line, and the verdict.
func showBag(p terminal.Page, name string, r *bagit.Report) {
	for _, w := range r.Warnings {
		p.Lines("", "warning: "+w.String())
	}
	for _, e := range r.Problems {
		p.Lines("", "error: "+e.String())
	}

	verdict := "valid"
	if len(r.Problems) > 0 {
		verdict = "invalid"
	}
	fmt.Fprintf(p, "%s: %s", terminal.Printable(name), command.StateStyle(verdict).Of(verdict))
	if r.Version != "" {
		fmt.Fprintf(p, ": BagIt %s with %s of %s; digests: %s", r.Version, terminal.Count(r.Files, "file"),
			terminal.Size(r.Bytes), strings.Join(r.Algorithms, ", "))
	}
	fmt.Fprintln(p)
}
