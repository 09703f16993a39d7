package main

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"archivist/pkg/fault"
	"archivist/pkg/terminal"
	"archivist/pkg/workflow"
)

// workflowCmd is for those who write definitions of tasks. It needs no API.
type workflowCmd struct {
	Lint   workflowLintCmd   `cmd:"" help:"Check files with tasks, offline. Exit code 2: something is wrong."`
	Graph  workflowGraphCmd  `cmd:"" help:"Print what the tasks of an archive wait for as a graph."`
	Plan   workflowPlanCmd   `cmd:"" help:"Show what a commit would plan, and what each task would wait for."`
	Schema workflowSchemaCmd `cmd:"" help:"Print the JSON Schema of a file with tasks."`
}

// workflowFolder is the argument of most commands.
type workflowFolder struct {
	Folder string `arg:"" name:"folder" default:"." help:"Working copy of an archive, or a folder with its files."`
}

// workflowLintCmd checks files before they are committed.
type workflowLintCmd struct {
	Paths []string `arg:"" name:"path" optional:"" help:"Files, or working copies of archives. Standard: this folder."`
}

func (workflowLintCmd) offline()    {}
func (workflowLintCmd) prints() any { return workflow.Problem{} }

// Help says how to use it.
func (workflowLintCmd) Help() string {
	return `It prints FILE:LINE:COLUMN: what is wrong, for all that is wrong. Tasks of several files can depend on
each other, so check all files of an archive together: archivist workflow lint DIR`
}

// Run reads all paths together, as the archive would.
func (c *workflowLintCmd) Run(a *app) error {
	if len(c.Paths) == 0 {
		c.Paths = []string{"."}
	}
	files, err := workflowFiles(c.Paths...)
	if err != nil {
		return err
	}
	d, problems := workflow.Parse(files)
	err = a.print(problems, func(p terminal.Page) {
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
	case len(a.json) == 0:
		fmt.Fprintf(a.errors, "%s in %s: nothing is wrong\n", terminal.Count(len(d.Tasks), "task"),
			terminal.Count(len(files), "file"))
	}
	return nil
}

// workflowFiles reads files with tasks, and those of folders.
func workflowFiles(paths ...string) ([]workflow.File, error) {
	var out []workflow.File
	for _, path := range paths {
		info, err := os.Stat(path)
		switch {
		case err != nil:
			return nil, fault.New(fault.NotFound, "%w", err)
		case info.IsDir():
			files, err := filesBelow(path)
			if err != nil {
				return nil, err
			}
			out = append(out, files...)
		case !workflow.IsFile(workflow.Folder + "/" + info.Name()):
			return nil, fault.New(fault.Invalid, "%s: files with tasks end with .yaml, .yml or .json", path)
		default:
			f, err := workflowFile(path)
			if err != nil {
				return nil, err
			}
			out = append(out, f)
		}
	}
	return out, nil
}

// filesBelow reads the files of an archive's folder of definitions; that can be the folder itself.
func filesBelow(folder string) ([]workflow.File, error) {
	definitions := filepath.Join(folder, workflow.Folder)
	info, err := os.Lstat(definitions)
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return nil, notFollowed(definitions)
	}
	if err == nil && info.IsDir() {
		folder = definitions
	}
	var out []workflow.File
	err = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !workflow.IsFile(workflow.Folder+"/"+entry.Name()) {
			return err
		}
		if !entry.Type().IsRegular() {
			return notFollowed(path)
		}
		if len(out) > workflow.MaxFiles {
			return filepath.SkipAll // one more than accepted is enough to say so
		}
		f, err := workflowFile(path)
		out = append(out, f)
		return err
	})
	if err == nil && len(out) == 0 {
		err = fault.New(fault.NotFound, "%s: there are no files with tasks", folder)
	}
	return out, err
}

// notFollowed is the error of what the queue would leave out without a word.
func notFollowed(path string) error {
	return fault.New(fault.Invalid, "%s is a link, which archives do not follow: its tasks would not be planned; put "+
		"the file itself there", path)
}

// workflowFile reads a file, and no more of it than shows that it is too large.
func workflowFile(path string) (workflow.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return workflow.File{}, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, workflow.MaxFile+1))
	return workflow.File{Path: filepath.ToSlash(path), Data: data}, err
}

// read reads the definition of a folder. What is wrong is one error; lint prints all.
func (c workflowFolder) read() (*workflow.Definition, error) {
	files, err := workflowFiles(c.Folder)
	if err != nil {
		return nil, err
	}
	d, problems := workflow.Parse(files)
	if len(problems) == 0 {
		return d, nil
	}
	more := ""
	if n := len(problems) - 1; n > 0 {
		more = fmt.Sprintf(" (and %d more; run archivist workflow lint %s)", n, c.Folder)
	}
	return nil, fault.New(fault.Invalid, "%s%s", problems[0], more)
}

// workflowGraphCmd prints the graph for a tool that draws it, or draws it.
type workflowGraphCmd struct {
	workflowFolder
	graphFormat
}

func (workflowGraphCmd) offline() {}

// Run prints the graph.
func (c *workflowGraphCmd) Run(a *app) error {
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
	_, err = fmt.Fprint(a.out, text)
	return err
}

// workflowPlanCmd shows the edges of a revision.
type workflowPlanCmd struct {
	workflowFolder
	Revision int64 `default:"2" help:"Number of the revision. The one before has all tasks."`
}

func (workflowPlanCmd) offline()    {}
func (workflowPlanCmd) prints() any { return workflow.Planned{} }

// Run plans as the queue does.
func (c *workflowPlanCmd) Run(a *app) error {
	if c.Revision < 1 {
		return usage("--revision: expected at least 1")
	}
	d, err := c.read()
	if err != nil {
		return err
	}
	plan := workflow.Plan(d, c.Revision, func(string) (int64, bool) { return c.Revision - 1, c.Revision > 1 })
	var rows []plannedRow
	for _, p := range plan {
		for _, w := range p.Awaits {
			rows = append(rows, plannedRow{p.Task, "waits for", w.Task, w.Revision, w.Why})
		}
		for _, s := range p.Cancels {
			rows = append(rows, plannedRow{p.Task, "cancels", s.Task, s.Revision, s.Why})
		}
	}
	return a.print(plan, func(p terminal.Page) { terminal.Table(p, rows, plannedColumns...) })
}

// plannedRow is one line of the table.
type plannedRow struct {
	task, how, other string
	revision         int64
	why              string
}

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

// workflowSchemaCmd prints the schema for editors.
type workflowSchemaCmd struct{}

func (workflowSchemaCmd) offline() {}

// Help says what the schema is good for.
func (workflowSchemaCmd) Help() string {
	return strings.TrimSpace(`
Editors complete and check a file with it, e.g. with this first line in a YAML file:

  # yaml-language-server: $schema=workflow.schema.json`)
}

// Run prints what this program accepts.
func (workflowSchemaCmd) Run(a *app) error {
	_, err := a.out.Write(workflow.Schema)
	return err
}
