package main

import (
	"errors"
	"fmt"
	"io"

	"archivist/pkg/checkm"
	"archivist/pkg/fault"
	"archivist/pkg/terminal"
)

// manifestCmd is for those who write manifests.
type manifestCmd struct {
	Check manifestCheckCmd `cmd:"" help:"Check a manifest file against every rule, offline. Exit code 1: rejected."`
}

// manifestCheckCmd needs no API: a manifest is checked before it is put on a web server.
type manifestCheckCmd struct {
	File          string `arg:"" help:"Manifest file (archivist help manifests); - reads the standard input."`
	RequireDigest bool   `help:"Reject files without a digest, as a collection with requireDigest does."`
}

func (manifestCheckCmd) offline()    {}
func (manifestCheckCmd) prints() any { return checked{} }

// errRejected is exit code 1; the problems have been printed already.
var errRejected = errors.New("rejected")

// checked is the result of a check.
type checked struct {
	Accepted bool             `json:"accepted"`
	Kind     checkm.Kind      `json:"kind"`
	Rows     int              `json:"rows"`
	Problems []checkm.Problem `json:"problems"`
}

// Run ends with exit code 1 if the manifest is rejected, so that scripts can stop there.
func (c *manifestCheckCmd) Run(a *app) error {
	in, err := a.open(c.File)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := checkManifest(in, c.RequireDigest)
	if err != nil {
		return fault.New(fault.Invalid, "%s: %w", c.File, err)
	}
	err = a.print(out, func(p terminal.Page) { out.show(p, c.File) })
	if err == nil && !out.Accepted {
		return errRejected
	}
	return err
}

// checkManifest reads a manifest and validates it against every rule.
func checkManifest(in io.Reader, requireDigest bool) (checked, error) {
	m, problems, err := checkm.Read(in, checkm.Options{RequireDigest: requireDigest}, nil)
	return checked{Accepted: len(checkm.Rejected(problems)) == 0, Kind: m.Kind, Rows: m.Rows, Problems: problems}, err
}

// show prints the problems of a manifest, one per line, and the verdict.
func (c checked) show(p terminal.Page, name string) {
	verdict := "accepted"
	if !c.Accepted {
		verdict = "rejected"
	}
	for _, problem := range c.Problems {
		p.Lines("", fmt.Sprintf("%s: %s: %s", name, problem.Severity, problem))
	}
	verdict = stateStyle(verdict).Of(verdict)
	rows := terminal.Count(c.Rows, "row")
	fmt.Fprintf(p, "%s: %s: %s manifest with %s\n", terminal.Printable(name), verdict, c.Kind, rows)
}
