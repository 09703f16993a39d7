package jobs

import (
	"fmt"
	"io"

	"archivist/cmd/archivist/command"
	"archivist/pkg/formats/checkm"
	"archivist/pkg/ingest/payload"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/terminal"
)

// checkManifestCmd needs no API: a manifest is checked before it is put on a web server.
type checkManifestCmd struct {
	File          string `arg:"" help:"Manifest file (archivist help manifests); - reads the standard input."`
	RequireDigest bool   `help:"Reject files without a digest, as a collection with requireDigest does."`
}

func (checkManifestCmd) Offline() {}

func (checkManifestCmd) Prints() any { return checked{} }

// checked is the result of a check. Rows counts the rows of the manifest, the rejected ones too; problems of the
// severity warning do not reject it.
type checked struct {
	Accepted bool             `json:"accepted"`
	Kind     checkm.Kind      `json:"kind"`
	Rows     int              `json:"rows"`
	Problems []checkm.Problem `json:"problems"`
}

// Run ends with exit code 1 if the manifest is rejected, so that scripts can stop there; the problems are
// printed as the output. A file that cannot be read is Invalid, like any wrong input.
func (c *checkManifestCmd) Run(a *command.App) error {
	in, err := a.Open(c.File)
	if err != nil {
		return err
	}

	defer in.Close()
	out, err := checkManifest(in, c.RequireDigest)
	if err != nil {
		return fault.New(fault.Invalid, "%s: %w", c.File, err)
	}

	err = a.Print(out, func(p terminal.Page) { out.show(p, c.File) })
	if err != nil {
		return err
	}

	if !out.Accepted {
		return command.ErrReported
	}
	return nil
}

// checkManifest reads a manifest and validates it against every rule, with one pass over it. The rules are those
// of the archive itself, which uses the same code (pkg/formats/checkm). The error is one of reading.
func checkManifest(in io.Reader, requireDigest bool) (checked, error) {
	m, problems, err := checkm.Read(in,
		checkm.Options{RequireDigest: requireDigest, Check: payload.CheckRow(nil)}, nil)
	return checked{
		Accepted: len(checkm.Rejected(problems)) == 0,
		Kind:     m.Kind,
		Rows:     m.Rows,
		Problems: problems,
	}, err
}

// show prints the problems of a manifest, one per line with its number of the line in the manifest, and the
// verdict.
func (c checked) show(p terminal.Page, name string) {
	verdict := "accepted"
	if !c.Accepted {
		verdict = "rejected"
	}
	for _, problem := range c.Problems {
		p.Lines("", fmt.Sprintf("%s: %s: %s", name, problem.Severity, problem))
	}
	verdict = command.StateStyle(verdict).Of(verdict)
	rows := terminal.Count(c.Rows, "row")
	fmt.Fprintf(p, "%s: %s: %s manifest with %s\n", terminal.Printable(name), verdict, c.Kind, rows)
}
