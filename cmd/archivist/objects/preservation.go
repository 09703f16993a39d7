package objects

import (
	"fmt"
	"strconv"
	"strings"

	"archivist/cmd/archivist/command"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/terminal"
)

// fixityText is when an object was checked last, and what was found; "" before its first check.
func fixityText(o v1.Object) string {
	if o.FixityChecked == "" {
		return ""
	}
	return o.FixityChecked + ": " + o.FixityOutcome
}

// objectFixityCmd shows what is wrong with the stored files of an object, of all versions. The check itself is
// made by the archive.
type objectFixityCmd struct {
	named
	InCopy bool `help:"The check of the copy in the second bucket."`
}

func (objectFixityCmd) Prints() any { return v1.FixityCheck{} }

// Run shows the last check. Damage is no failure of the command: the exit code is 0. Of the damaged files the
// archive keeps the first 20 and the number of the others.
func (c *objectFixityCmd) Run(a *command.App) error {
	id, err := c.ark(a)
	if err != nil {
		return err
	}

	f, err := a.Client.Fixity(a.Ctx, id, in(c.InCopy))
	if err != nil {
		return err
	}
	return a.Print(f, func(p terminal.Page) {
		p.Fields("outcome", f.Outcome, "in", f.In, "checked", f.Checked, "version", command.VersionText(f.Version),
			"on record", onRecord(f.OnRecord), "files", strconv.Itoa(f.Files), "size", terminal.Size(f.Bytes))
		// An object without damage needs no table.
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

// onRecord says with what the inventories of an object were compared.
func onRecord(version int) string {
	if version == 0 {
		return "nothing: the inventories were compared with each other only"
	}
	return command.VersionText(version)
}

// problemColumns have the digests for programs: the one that the file must have, and the one that it has.
var problemColumns = []terminal.Column[v1.FixityProblem]{
	{Title: "problem", Text: func(f v1.FixityProblem) string { return f.Kind }},
	{Title: "key", Text: func(f v1.FixityProblem) string { return f.Key }, Share: 1},
	{Text: func(f v1.FixityProblem) string { return f.Expected }},
	{Text: func(f v1.FixityProblem) string { return f.Actual }},
}

// objectFormatsCmd lists the formats of the depositor's files.
type objectFormatsCmd struct{ version }

func (objectFormatsCmd) Prints() any { return v1.FileFormats{} }

// Run lists those of the newest version unless another is named. A file of no known format is listed, with a
// warning.
func (c *objectFormatsCmd) Run(a *command.App) error {
	o, err := c.find(a)
	if err != nil {
		return err
	}
	return command.Show(a, command.Rows(formatColumns...))(a.Client.Formats(a.Ctx, o.ARK, c.Number))
}

// each joins a text of each format of a file: identification can find several.
func each(text func(v1.Format) string) func(v1.FileFormats) string {
	return func(f v1.FileFormats) string {
		var all []string
		for _, m := range f.Formats {
			all = append(all, text(m))
		}
		return strings.TrimSpace(strings.Join(all, "; "))
	}
}

// formatColumns have the basis for programs: what in the file shows that it has the format.
var formatColumns = []terminal.Column[v1.FileFormats]{
	{Title: "path", Text: func(f v1.FileFormats) string { return f.Path }, Share: 1},
	{Title: "format", Text: each(func(m v1.Format) string { return m.ID })},
	{
		Title: "name",
		Text: each(func(m v1.Format) string {
			return strings.TrimSpace(m.Name + " " +
				m.Version)
		}),
		Share: 1,
	},
	{Title: "warning", Text: each(func(m v1.Format) string { return m.Warning }), Share: 1},
	{Text: each(func(m v1.Format) string { return m.Basis })},
}

// preservationCmd has the commands on all objects together.
type preservationCmd struct {
	Status preservationStatusCmd `cmd:"" help:"Count objects by their verified copies; name those that need attention."`
	Report preservationReportCmd `cmd:"" help:"Write the status as a signed report, as evidence for an auditor."`
	Verify preservationVerifyCmd `cmd:"" help:"Verify the signatures of a report."`
}
