package archives

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"archivist/cmd/archivist/command"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/terminal"
	"archivist/pkg/revisions/workflow"
)

// workflowCmd is for those who write definitions of tasks. It needs no API, so it can be used in a hook before a
// commit, and on any machine.
type workflowCmd struct {
	Lint   workflowLintCmd   `cmd:"" help:"Check files with tasks, offline. Exit code 2: something is wrong."`
	Graph  workflowGraphCmd  `cmd:"" help:"Print what the tasks of an archive wait for as a graph."`
	Run    workflowRunCmd    `cmd:"" help:"Play a task on this computer, with the files of a working copy."`
	Plan   workflowPlanCmd   `cmd:"" help:"Show what a commit would plan, and what each task would wait for."`
	Schema workflowSchemaCmd `cmd:"" help:"Print the JSON Schema of a file with tasks."`
}

// workflowLintCmd checks files before they are committed.
type workflowLintCmd struct {
	// Paths are read together: tasks of one file can depend on those of another.
	Paths []string `arg:"" name:"path" optional:"" help:"Files, or working copies of archives. By default this folder."`
}

func (workflowLintCmd) Offline() {}

func (workflowLintCmd) Prints() any { return workflow.Problem{} }

// Help says how to use it.
func (workflowLintCmd) Help() string {
	return `It prints FILE:LINE:COLUMN: what is wrong, for all that is wrong. Tasks of several files can depend on
each other, so check all files of an archive together: archivist archive workflow lint DIR`
}

// Run reads all paths together, as the archive would, because tasks of different files can depend on each other.
// Problems are the output; that there are any is Invalid.
func (c *workflowLintCmd) Run(a *command.App) error {
	if len(c.Paths) == 0 {
		c.Paths = []string{"."}
	}

	files, err := workflowFiles(c.Paths...)
	if err != nil {
		return err
	}

	d, problems := workflow.Parse(files)
	err = a.Print(problems, func(p terminal.Page) {
		for _, problem := range problems {
			p.Lines("", problem.String())
		}
	})

	switch {
	case err != nil:
		return err
	case len(problems) > 0:
		return fault.New(fault.Invalid, "%s in %s", terminal.Count(len(problems), "problem"),
			terminal.Count(len(files), "file"))
	// A person wants to be told that all is well; a program has the empty list.
	case len(a.JSON) == 0:
		fmt.Fprintf(a.Errors, "%s in %s: nothing is wrong\n", terminal.Count(len(d.Tasks), "task"),
			terminal.Count(len(files), "file"))
	}
	return nil
}

// workflowGraphCmd prints the graph for a tool that draws it, or draws it.
type workflowGraphCmd struct {
	workflowFolder
	graphFormat
}

func (workflowGraphCmd) Offline() {}

// Run prints the graph of the definition alone, without revisions.
func (c *workflowGraphCmd) Run(a *command.App) error {
	d, err := c.read()
	if err != nil {
		return err
	}

	g := d.Graph()
	text := ""
	switch c.Format {
	case "dot":
		text = g.DOT()
	case "mermaid":
		text = g.Mermaid()
	case "svg":
		text = g.SVG()
	case "json":
		data, err := json.MarshalIndent(g, "", "  ")
		if err != nil {
			return err
		}
		text = string(data) + "\n"
	}

	_, err = fmt.Fprint(a.Out, text)
	return err
}

// workflowPlanCmd shows what a commit would plan, before it is made: the relations of the tasks of a revision.
type workflowPlanCmd struct {
	workflowFolder
	Revision int64 `default:"2" help:"Number of the revision. The one before has all tasks."`
}

func (workflowPlanCmd) Offline() {}

func (workflowPlanCmd) Prints() any { return workflow.Planned{} }

// Run plans as the queue does, with its code (workflow.Plan). The revision before is taken to have all tasks;
// revision 1 has none before it.
func (c *workflowPlanCmd) Run(a *command.App) error {
	if c.Revision < 1 {
		return command.Usage("--revision: expected at least 1")
	}

	d, err := c.read()
	if err != nil {
		return err
	}

	// The function says which revision of a task is the nearest before: for each task the one before this.
	plan := workflow.Plan(d, c.Revision,
		func(string) (int64, bool) { return c.Revision - 1, c.Revision > 1 })
	var rows []plannedRow
	for _, p := range plan {
		for _, w := range p.Awaits {
			rows = append(rows, plannedRow{p.Task, "waits for", w.Task, w.Revision, w.Why})
		}
		for _, s := range p.Cancels {
			rows = append(rows, plannedRow{p.Task, "cancels", s.Task, s.Revision, s.Why})
		}
	}
	return a.Print(plan, func(p terminal.Page) { terminal.Table(p, rows, plannedColumns...) })
}

// plannedRow is one line of the table. revision is 0 if there is none with the other task.
type plannedRow struct {
	task, how, other string
	revision         int64
	why              string
}

// plannedColumns show each relation of a task of the revision: what it waits for or cancels, of which revision,
// and why.
var plannedColumns = []terminal.Column[plannedRow]{
	{Title: "task", Text: func(r plannedRow) string { return r.task }},
	{Title: "how", Text: func(r plannedRow) string { return r.how }},
	{Title: "other", Text: func(r plannedRow) string { return r.other }},
	{Title: "revision", Text: func(r plannedRow) string {
		if r.revision == 0 {
			return "none"
		}
		return strconv.FormatInt(r.revision, 10)
	}},
	{Title: "why", Text: func(r plannedRow) string { return r.why }, Share: 1},
}

// workflowSchemaCmd prints the schema for editors. It is a part of this program, so that it is there offline.
type workflowSchemaCmd struct{}

func (workflowSchemaCmd) Offline() {}

// Help says what the schema is good for.
func (workflowSchemaCmd) Help() string {
	return strings.TrimSpace(`
Editors complete and check a file with it, e.g. with this first line in a YAML file:

  # yaml-language-server: $schema=workflow.schema.json`)
}

// Run prints what this program accepts.
func (workflowSchemaCmd) Run(a *command.App) error {
	_, err := a.Out.Write(workflow.Schema)
	return err
}
