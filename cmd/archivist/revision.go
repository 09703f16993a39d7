package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/fault"
	"archivist/pkg/terminal"
)

// revisionCmd is for revisions of archives.
type revisionCmd struct {
	List    revisionListCmd    `cmd:"" help:"List the revisions of an archive, the newest first."`
	Show    revisionShowCmd    `cmd:"" help:"Show a revision with its tasks."`
	Notify  revisionNotifyCmd  `cmd:"" help:"Say that a revision was committed."`
	Explain revisionExplainCmd `cmd:"" help:"Explain what a revision waits for."`
	Plan    revisionPlanCmd    `cmd:"" help:"Show what a revision would plan that is not planned yet."`
	Graph   revisionGraphCmd   `cmd:"" help:"Print a revision as a graph, with the states of its tasks."`
}

// revisionArg is the argument of most commands.
type revisionArg struct {
	ID string `arg:"" name:"revision" help:"Archive and number of a revision, e.g. maps/12."`
}

// parse returns the archive and the number.
func (r revisionArg) parse() (archive string, n int64, err error) {
	archive, text, _ := strings.Cut(r.ID, "/")
	n, err = strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 || archive == "" {
		return "", 0, usage("%q is no revision; expected ARCHIVE/NUMBER, e.g. maps/12", r.ID)
	}
	return archive, n, nil
}

// revisionListCmd lists revisions.
type revisionListCmd struct {
	archiveName
	limit
}

func (revisionListCmd) prints() any { return v1.ArchiveRevision{} }

// Run lists.
func (c *revisionListCmd) Run(a *app) error {
	list, err := a.client.Revisions(a.ctx, c.Archive, c.more())
	if err != nil {
		return err
	}
	list = limited(a, c.limit, list)
	return a.print(list, func(p terminal.Page) { terminal.Table(p, list, revisionColumns...) })
}

var revisionColumns = []terminal.Column[v1.ArchiveRevision]{
	{Title: "revision", Text: func(r v1.ArchiveRevision) string { return r.ID }},
	{Title: "state", Text: func(r v1.ArchiveRevision) string { return r.State }},
	{Title: "ended", Text: func(r v1.ArchiveRevision) string { return fmt.Sprintf("%d of %d", r.Ended, r.Tasks) }},
	{Title: "author", Text: func(r v1.ArchiveRevision) string { return r.Author }},
	{Title: "message", Text: func(r v1.ArchiveRevision) string { return r.Message }, Share: 1},
}

// revisionShowCmd shows or watches a revision.
type revisionShowCmd struct {
	revisionArg
	Watch bool `help:"Show its progress until all of its tasks have ended. Fails with exit code 4 if one has failed."`
}

func (revisionShowCmd) prints() any { return v1.RevisionPlan{} }

// Run shows the revision. One that a task would wait for for ever is refused.
func (c *revisionShowCmd) Run(a *app) error {
	archive, n, err := c.parse()
	if err != nil {
		return err
	}
	if c.Watch {
		return a.watchRevision(archive, n)
	}
	got, err := a.client.RevisionPlan(a.ctx, archive, n, "")
	if err != nil {
		return err
	}
	return a.print(got, func(p terminal.Page) {
		p.Fields("revision", got.ID, "state", got.State, "author", got.Author, "message", got.Message, "made by",
			got.MadeBy, "why", got.Reason)
		for _, x := range got.Problems {
			p.Fields("problem", fmt.Sprintf("%s:%d:%d: %s", x.File, x.Line, x.Column, x.Message))
		}
		terminal.Table(p, got.Plan, taskColumns...)
	})
}

// waitsForItself refuses that a run waits for its own revision of an archive, or a later one: it would wait for ever.
// 0 stands for all that goes on in the archive.
func (a *app) waitsForItself(archive string, n int64) error {
	own, err := strconv.ParseInt(a.getenv("ARCHIVIST_REVISION"), 10, 64)
	isRun := err == nil && a.getenv("ARCHIVIST_RUN_TOKEN") != "" && a.getenv("ARCHIVIST_ARCHIVE") == archive
	if !isRun || n > 0 && n < own {
		return nil
	}
	what := "the archive"
	if n > 0 {
		what = fmt.Sprintf("revision %d", n)
	}
	return fault.New(fault.Conflict, "this is a run of revision %d of %s: if it waited for %s, it would wait for "+
		"itself", own, archive, what)
}

// watchRevision shows a revision until its tasks have ended. It fails if one of them failed.
func (a *app) watchRevision(archive string, n int64) error {
	err := a.waitsForItself(archive, n)
	if err != nil {
		return err
	}
	return a.watch(func() (sight, error) {
		got, err := a.client.RevisionPlan(a.ctx, archive, n, a.getenv("ARCHIVIST_RUN_TOKEN"))
		return sightOfPlan(got), err
	})
}

// sightOfPlan summarizes a revision.
func sightOfPlan(r v1.RevisionPlan) sight {
	s := sight{things: []any{r}, done: r.Ended, of: r.Tasks, bar: true, over: r.Planned != "" && r.Ended == r.Tasks}
	text, failed := []string{r.ID + " " + r.State}, []string{}
	for _, t := range r.Plan {
		s.state += t.State + " "
		if t.State == "failed" {
			failed = append(failed, terminal.Printable(t.ID))
		}
		if t.Name != "COMMIT" {
			text = append(text, taskText(t))
		}
	}
	s.text = strings.Join(text, ", ")
	s.failed = failedTasks(failed)
	return s
}

// revisionNotifyCmd says that a revision was committed.
type revisionNotifyCmd struct {
	revisionArg
	Transaction string `help:"Which revision it is, e.g. the hash of the commit." placeholder:"ID"`
}

func (revisionNotifyCmd) prints() any { return v1.ArchiveRevision{} }

// Run notifies; in a run of a task of the same archive, with its token. Others do not accept it.
func (c *revisionNotifyCmd) Run(a *app) error {
	archive, n, err := c.parse()
	if err != nil {
		return err
	}
	token := ""
	if a.getenv("ARCHIVIST_ARCHIVE") == archive {
		token = a.getenv("ARCHIVIST_RUN_TOKEN")
	}
	got, err := a.client.NotifyRevision(a.ctx, archive, v1.RevisionNotice{Revision: n, Transaction: c.Transaction},
		token)
	if err != nil {
		return err
	}
	return a.print(got, func(p terminal.Page) {
		p.Fields("revision", got.ID, "state", got.State, "transaction", got.Transaction, "made by", got.MadeBy)
	})
}

// revisionExplainCmd explains a revision.
type revisionExplainCmd struct{ revisionArg }

func (revisionExplainCmd) prints() any { return v1.WaitExplanation{} }

// Run explains.
func (c *revisionExplainCmd) Run(a *app) error {
	archive, n, err := c.parse()
	if err != nil {
		return err
	}
	return a.showWaits(a.client.ExplainRevision(a.ctx, archive, n))
}

// revisionPlanCmd previews a revision.
type revisionPlanCmd struct{ revisionArg }

func (revisionPlanCmd) prints() any { return v1.RevisionPreview{} }

// Run shows what would be planned.
func (c *revisionPlanCmd) Run(a *app) error {
	archive, n, err := c.parse()
	if err != nil {
		return err
	}
	got, err := a.client.PreviewRevision(a.ctx, archive, n)
	if err != nil {
		return err
	}
	return a.print(got, func(p terminal.Page) {
		for _, x := range got.Problems {
			p.Fields("problem", fmt.Sprintf("%s:%d:%d: %s", x.File, x.Line, x.Column, x.Message))
		}
		for _, t := range got.Tasks {
			p.Fields("task", t.Task)
			for _, w := range t.Awaits {
				p.Fields("waits", w.Why)
			}
			for _, w := range t.Cancels {
				p.Fields("cancels", w.Why)
			}
		}
	})
}

// graphFormat selects how a graph is printed.
type graphFormat struct {
	Format string `enum:"dot,mermaid,json,svg" default:"dot" help:"One of ${enum}."`
}

// revisionGraphCmd prints the graph for a tool that draws it, or draws it.
type revisionGraphCmd struct {
	revisionArg
	graphFormat
}

// Run prints the graph.
func (c *revisionGraphCmd) Run(a *app) error {
	archive, n, err := c.parse()
	if err != nil {
		return err
	}
	g, err := a.client.RevisionGraph(a.ctx, archive, n)
	if err != nil {
		return err
	}
	text := map[string]string{"dot": g.DOT, "mermaid": g.Mermaid, "svg": g.SVG}[c.Format]
	if c.Format == "json" {
		data, err := json.MarshalIndent(struct {
			Nodes []v1.GraphNode `json:"nodes"`
			Links []v1.GraphLink `json:"links"`
		}{g.Nodes, g.Links}, "", "  ")
		if err != nil {
			return err
		}
		text = string(data) + "\n"
	}
	_, err = fmt.Fprint(a.out, text)
	return err
}
