package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"archivist/pkg/checkm"
	"archivist/pkg/fault"
)

type manifestCmd struct {
	Check manifestCheckCmd `cmd:"" help:"Check a manifest offline. Exit code 0: accepted, 1: rejected, 2: it cannot be read."`
}

type manifestCheckCmd struct {
	File          string `arg:"" help:"File, or - for standard input."`
	RequireDigest bool   `help:"Reject files without a digest."`
}

// errRejected is exit code 1; what is wrong has been printed.
var errRejected = errors.New("rejected")

// checked is the result as JSON.
type checked struct {
	Accepted bool             `json:"accepted"`
	Kind     checkm.Kind      `json:"kind"`
	Rows     int              `json:"rows"`
	Problems []checkm.Problem `json:"problems"`
}

func (c *manifestCheckCmd) Run(a *app) error {
	in := io.ReadCloser(os.Stdin)
	if c.File != "-" {
		f, err := os.Open(c.File)
		if err != nil {
			return fault.New(fault.Invalid, "%w", err)
		}
		in = f
	}
	defer in.Close()
	m, problems, err := checkm.Read(in, checkm.Options{RequireDigest: c.RequireDigest}, nil)
	if err != nil {
		return fault.New(fault.Invalid, "%s: %w", c.File, err)
	}
	out := checked{len(checkm.Rejected(problems)) == 0, m.Kind, m.Rows, append([]checkm.Problem{}, problems...)}
	err = a.print(out, func(w io.Writer) {
		for _, p := range problems {
			fmt.Fprintf(w, "%s: %s: %s\n", c.File, p.Severity, p)
		}
		verdict := "accepted"
		if !out.Accepted {
			verdict = "rejected"
		}
		fmt.Fprintf(w, "%s: %s: %s manifest with %d rows\n", c.File, verdict, m.Kind, m.Rows)
	})
	if err == nil && !out.Accepted {
		return errRejected
	}
	return err
}
