package archives

import (
	"encoding/json"
	"fmt"
	"strings"

	"archivist/cmd/archivist/command"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/terminal"
)

// revisionCmd is for revisions of archives.
type revisionCmd struct {
	List   revisionListCmd   `cmd:"" help:"List the revisions of an archive, the newest first."`
	Show   revisionShowCmd   `cmd:"" help:"Show a revision with its tasks."`
	Notify revisionNotifyCmd `cmd:"" help:"Say that a revision was committed."`
	Plan   revisionPlanCmd   `cmd:"" help:"Show what a revision would plan that is not planned yet."`
	Graph  revisionGraphCmd  `cmd:"" help:"Print a revision as a graph, with the states of its tasks."`
}

// revisionListCmd lists revisions.
type revisionListCmd struct {
	archiveName
	command.Limit
}

func (revisionListCmd) Prints() any { return v1.ArchiveRevision{} }

// Run lists the newest first. It requests one more than is shown, to detect that there are more.
func (c *revisionListCmd) Run(a *command.App) error {
	return command.List(a, c.Limit, revisionColumns...)(a.Client.Revisions(a.Ctx, c.Archive, c.More()))
}

// revisionColumns show how many tasks of each revision have ended, and who committed what.
var revisionColumns = []terminal.Column[v1.ArchiveRevision]{
	{Title: "revision", Text: func(r v1.ArchiveRevision) string { return r.ID }},
	{Title: "state", Text: func(r v1.ArchiveRevision) string { return r.State }},
	{Title: "ended", Text: func(r v1.ArchiveRevision) string {
		return fmt.Sprintf("%d of %d",
			r.Ended, r.Tasks)
	}},
	{Title: "author", Text: func(r v1.ArchiveRevision) string { return r.Author }},
	{Title: "message", Text: func(r v1.ArchiveRevision) string { return r.Message }, Share: 1},
}

// revisionShowCmd shows or watches a revision.
type revisionShowCmd struct {
	revisionArg
	command.Followed
}

func (revisionShowCmd) Prints() any { return v1.RevisionPlan{} }

// Help says when it has ended.
func (revisionShowCmd) Help() string {
	return `With --watch it ends when all of its tasks have ended. The exit code is 4 if one has failed.`
}

// Run shows the revision with its tasks, or follows it. A task that would wait for itself so is refused.
func (c *revisionShowCmd) Run(a *command.App) error {
	archive, n, err := c.parse()
	if err != nil {
		return err
	}

	if c.Watch {
		return watchRevision(a, archive, n)
	}

	got, err := a.Client.RevisionPlan(a.Ctx, archive, n, "")
	if err != nil {
		return err
	}
	return a.Print(got, func(p terminal.Page) {
		p.Fields("revision", got.ID, "state", got.State, "author", got.Author, "message",
			got.Message, "made by",
			got.MadeBy, "why", got.Reason)
		for _, x := range got.Problems {
			p.Fields("problem", fmt.Sprintf("%s:%d:%d: %s", x.File, x.Line, x.Column, x.Message))
		}
		terminal.Table(p, got.Plan, taskColumns...)
	})
}

// watchRevision shows a revision until its tasks have ended. It fails if one of them failed. The API gets the
// token of the run, if this is one: it refuses one that would wait for itself by other tasks.
func watchRevision(a *command.App, archive string, n int64) error {
	err := waitsForItself(a, archive, n)
	if err != nil {
		return err
	}
	return a.Watch(func() (command.Snapshot, error) {
		got, err := a.Client.RevisionPlan(a.Ctx, archive, n, a.Getenv("ARCHIVIST_RUN_TOKEN"))
		return snapshotOfPlan(got), err
	})
}

// snapshotOfPlan summarizes a revision. It is not over before it is planned, though none of its tasks goes on then.
func snapshotOfPlan(r v1.RevisionPlan) command.Snapshot {
	s := command.Snapshot{
		Things: []any{r},
		Done:   r.Ended,
		Of:     r.Tasks,
		Bar:    true,
		Over:   r.Planned != "" && r.Ended == r.Tasks,
	}

	text, failed := []string{r.ID + " " + r.State}, []string{}
	for _, t := range r.Plan {
		s.State += t.State + " "
		if t.State == "failed" && !t.AllowFailure {
			failed = append(failed, terminal.Printable(t.ID))
		}
		// COMMIT is the revision itself, not work.
		if t.Name != "COMMIT" {
			text = append(text, taskText(t))
		}
	}

	s.Text = strings.Join(text, ", ")
	s.Failed = failedTasks(failed)
	waitForPerson(&s, r.Plan, int(r.Tasks-r.Ended))
	return s
}

// revisionNotifyCmd says that a revision was committed. Hooks of repositories call it, and people for a revision
// that was missed.
type revisionNotifyCmd struct {
	revisionArg
	Transaction string `help:"Which revision it is, e.g. the hash of the commit." placeholder:"ID"`
}

func (revisionNotifyCmd) Prints() any { return v1.ArchiveRevision{} }

// Run notifies; in a run of a task of the same archive with its token, because others do not accept it. The same
// number with another --transaction stops the archive, if the repository says so, too.
func (c *revisionNotifyCmd) Run(a *command.App) error {
	archive, n, err := c.parse()
	if err != nil {
		return err
	}

	// A token of another archive would be refused.
	token := ""
	if a.Getenv("ARCHIVIST_ARCHIVE") == archive {
		token = a.Getenv("ARCHIVIST_RUN_TOKEN")
	}

	got, err := a.Client.NotifyRevision(a.Ctx, archive,
		v1.RevisionNotice{Revision: n, Transaction: c.Transaction}, token)
	if err != nil {
		return err
	}
	return a.Print(got, func(p terminal.Page) {
		p.Fields("revision", got.ID, "state", got.State, "transaction", got.Transaction, "made by",
			got.MadeBy)
	})
}

// revisionPlanCmd previews a revision that is not planned yet.
type revisionPlanCmd struct{ revisionArg }

func (revisionPlanCmd) Prints() any { return v1.RevisionPreview{} }

// Run shows what would be planned, or what is wrong with the definitions. Nothing is stored.
func (c *revisionPlanCmd) Run(a *command.App) error {
	archive, n, err := c.parse()
	if err != nil {
		return err
	}

	got, err := a.Client.PreviewRevision(a.Ctx, archive, n)
	if err != nil {
		return err
	}
	return a.Print(got, func(p terminal.Page) {
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

// graphFormat selects how a graph is printed: for Graphviz, for Mermaid, as data, or drawn.
type graphFormat struct {
	Format string `enum:"dot,mermaid,json,svg" default:"dot" help:"One of ${enum}."`
}

// revisionGraphCmd prints the graph for a tool that draws it, or draws it.
type revisionGraphCmd struct {
	revisionArg
	graphFormat
}

// Run prints the graph of a revision. JSON has its nodes and links, for other tools.
func (c *revisionGraphCmd) Run(a *command.App) error {
	archive, n, err := c.parse()
	if err != nil {
		return err
	}

	g, err := a.Client.RevisionGraph(a.Ctx, archive, n)
	if err != nil {
		return err
	}

	// The API draws all of them; JSON is made of its data.
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

	_, err = fmt.Fprint(a.Out, text)
	return err
}
