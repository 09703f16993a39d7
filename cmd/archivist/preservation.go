package main

import (
	"fmt"
	"strconv"
	"strings"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/terminal"
)

// fixityText is when an object was checked last, and what was found.
func fixityText(o v1.Object) string {
	if o.FixityChecked == "" {
		return ""
	}
	return o.FixityChecked + ": " + o.FixityOutcome
}

// objectFixityCmd shows what is wrong with the stored files of an object.
type objectFixityCmd struct {
	ARK string `arg:"" name:"ark" help:"ARK of an object, e.g. ark:/99999/fk4tq65d6k."`
}

func (objectFixityCmd) prints() any { return v1.FixityCheck{} }

// Run shows the last check.
func (c *objectFixityCmd) Run(a *app) error {
	id, err := parseARK(c.ARK)
	if err != nil {
		return err
	}
	f, err := a.client.Fixity(a.ctx, id)
	if err != nil {
		return err
	}
	return a.print(f, func(p terminal.Page) {
		p.Fields("outcome", f.Outcome, "checked", f.Checked, "version", versionText(f.Version),
			"files", strconv.Itoa(f.Files), "size", terminal.Size(f.Bytes))
		if len(f.Problems) == 0 {
			return
		}
		fmt.Fprintln(p)
		terminal.Table(p, f.Problems, problemColumns...)
		if f.More > 0 {
			fmt.Fprintf(p, "\nand %d more\n", f.More)
		}
	})
}

// problemColumns have the digests for programs.
var problemColumns = []terminal.Column[v1.FixityProblem]{
	{Title: "problem", Text: func(f v1.FixityProblem) string { return f.Kind }},
	{Title: "key", Text: func(f v1.FixityProblem) string { return f.Key }, Share: 1},
	{Text: func(f v1.FixityProblem) string { return f.Expected }},
	{Text: func(f v1.FixityProblem) string { return f.Actual }},
}

// objectFormatsCmd lists the formats of the depositor's files.
type objectFormatsCmd struct{ version }

func (objectFormatsCmd) prints() any { return v1.FileFormats{} }

// Run lists those of the newest version unless another is named.
func (c *objectFormatsCmd) Run(a *app) error {
	o, err := c.find(a)
	if err != nil {
		return err
	}
	files, err := a.client.Formats(a.ctx, o.ARK, c.Number)
	if err != nil {
		return err
	}
	return a.print(files, func(p terminal.Page) { terminal.Table(p, files, formatColumns...) })
}

// each joins a text of each format of a file.
func each(text func(v1.Format) string) func(v1.FileFormats) string {
	return func(f v1.FileFormats) string {
		var all []string
		for _, m := range f.Formats {
			all = append(all, text(m))
		}
		return strings.TrimSpace(strings.Join(all, "; "))
	}
}

// formatColumns have the basis for programs.
var formatColumns = []terminal.Column[v1.FileFormats]{
	{Title: "path", Text: func(f v1.FileFormats) string { return f.Path }, Share: 1},
	{Title: "format", Text: each(func(m v1.Format) string { return m.ID })},
	{Title: "name", Text: each(func(m v1.Format) string { return strings.TrimSpace(m.Name + " " + m.Version) }),
		Share: 1},
	{Title: "warning", Text: each(func(m v1.Format) string { return m.Warning }), Share: 1},
	{Text: each(func(m v1.Format) string { return m.Basis })},
}
