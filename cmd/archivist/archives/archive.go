package archives

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"archivist/cmd/archivist/command"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/terminal"
)

// archiveListCmd lists archives.
type archiveListCmd struct{}

func (archiveListCmd) Prints() any { return v1.Archive{} }

// Run lists all: there are few.
func (archiveListCmd) Run(a *command.App) error {
	return command.List(a, command.Limit{}, archivesColumns...)(a.Client.Archives(a.Ctx))
}

// archivesColumns show how far each archive is planned, against its newest revision when it was asked last.
var archivesColumns = []terminal.Column[v1.Archive]{
	{Title: "archive", Text: func(x v1.Archive) string { return x.Name }},
	{Title: "mode", Text: func(x v1.Archive) string { return x.Mode }},
	{Title: "planned up to", Text: func(x v1.Archive) string { return number(x.Watermark) }},
	{Title: "newest", Text: func(x v1.Archive) string { return number(x.Head) }},
	{Title: "at", Text: func(x v1.Archive) string { return placeOf(x.Location) }, Share: 1},
}

// number is a revision, "" for none.
func number(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// placeOf is where an archive is: the URL of a repository with its branch, or the ARK of an object.
func placeOf(l v1.ArchiveLocation) string {
	return strings.TrimSpace(l.URL + l.ARK + " " + l.Branch)
}

// archiveShowCmd shows an archive. To follow it is for people who commit, and for scripts that wait until a commit
// is worked off.
type archiveShowCmd struct {
	archiveName
	command.Followed
}

func (archiveShowCmd) Prints() any { return v1.ArchiveStatus{} }

// Help says when it has ended.
func (archiveShowCmd) Help() string {
	return `With --watch it ends when all that was notified is planned, and all tasks have
ended. If the archive is paused or stopped, it ends when nothing runs any more. The exit code is 4 if a task that was seen to be waiting or to run has
failed.`
}

// Run shows one archive: the settings, what is missing or wrong, how many tasks have not ended by state, who has
// the locks, and what runs now.
func (c *archiveShowCmd) Run(a *command.App) error {
	if c.Watch {
		return watchArchive(a, c.Archive)
	}

	got, err := a.Client.Archive(a.Ctx, c.Archive)
	if err != nil {
		return err
	}
	return a.Print(got, func(p terminal.Page) {
		fieldsOfArchive(p, got.Archive)
		if g := got.Gap; g != nil {
			p.Fields("missing",
				fmt.Sprintf("revision %d: revision %d was notified at %s", g.Missing, g.Behind, g.Since))
		}

		for _, state := range slices.Sorted(maps.Keys(got.Open)) {
			p.Fields(state, strconv.Itoa(got.Open[state]))
		}

		for _, l := range got.Locks {
			p.Fields("lock", fmt.Sprintf("%s: %s, %d wait", l.Name, orNone(l.Holder), l.Waiting))
		}

		for _, s := range got.Schedules {
			p.Fields("schedule",
				fmt.Sprintf("%s: %s %s, next at %s", s.Task, s.Cron, s.Zone, s.Next))
		}

		if b := got.Backfill; b != nil {
			p.Fields("back-fill", fmt.Sprintf("at revision %d of %d", b.Next, b.To))
		}

		terminal.Table(p, got.RunningNow, taskColumns...)
	})
}

// orNone is who has a lock.
func orNone(text string) string {
	if text == "" {
		return "nobody has it"
	}
	return text
}

// fieldsOfArchive prints an archive without what goes on in it.
func fieldsOfArchive(p terminal.Page, x v1.Archive) {
	p.Fields("archive", x.Name, "title", x.Title, "kind", x.Location.Kind, "at",
		placeOf(x.Location), "mode", x.Mode,
		"why", x.Why, "first", number(x.First), "planned up to", number(x.Watermark), "newest",
		number(x.Head))
	if t := x.Trouble; t != nil {
		p.Fields("trouble",
			fmt.Sprintf("revision %d: %s; tried again at %s", t.Revision, t.Reason, t.Next))
	}
}

// archiveAddCmd registers an archive. Secrets are named, never given: they are in AWS Secrets Manager.
type archiveAddCmd struct {
	archiveName
	Git      string `help:"URL of a Git repository." placeholder:"URL" xor:"location" required:""`
	Svn      string `help:"URL of a Subversion repository." placeholder:"URL" xor:"location" required:""`
	Object   string `help:"ARK of a preserved object." placeholder:"ARK" xor:"location" required:""`
	Branch   string `help:"Branch of the Git repository." placeholder:"NAME"`
	Secret   string `help:"Name of the secret that has user:password." placeholder:"NAME"`
	Title    string `help:"What people call it." placeholder:"TEXT"`
	Baseline int64  `help:"First revision to plan. By default the next; of an object, its newest." placeholder:"N"`
	// How often the archive itself is asked, for notices that were lost.
	Reconcile int64 `help:"Seconds between two looks at its newest revision; -1 for never." placeholder:"N"`
	Running   int   `help:"How many tasks run at once, at most." placeholder:"N"`
}

func (archiveAddCmd) Prints() any { return v1.Archive{} }

// Run registers the archive, or changes the settings of a registered one. Exactly one of --git, --svn and
// --object says where it is.
func (c *archiveAddCmd) Run(a *command.App) error {
	l := v1.ArchiveLocation{Kind: "git", URL: c.Git, Branch: c.Branch, Secret: c.Secret}
	switch {
	case c.Svn != "":
		l.Kind, l.URL = "svn", c.Svn
	case c.Object != "":
		l.Kind, l.ARK = "object", c.Object
	}

	return command.Show(a, fieldsOfArchive)(a.Client.PutArchive(a.Ctx, c.Archive, v1.ArchiveDefinition{
		Title:            c.Title,
		Location:         l,
		Baseline:         c.Baseline,
		ReconcileSeconds: c.Reconcile,
		Running:          c.Running,
	}))
}

// archiveActCmd pauses or deletes an archive. What runs goes on when it is paused, and is cancelled when it is
// deleted.
type archiveActCmd struct {
	archiveName
	because
}

func (archiveActCmd) Prints() any { return v1.Archive{} }

// Run does what the command is called.
func (c *archiveActCmd) Run(a *command.App, k *kong.Context) error {
	action := k.Selected().Name
	return command.Show(a, fieldsOfArchive)(a.Client.ActOnArchive(a.Ctx, c.Archive,
		v1.ArchiveAction{Action: action, Reason: c.Reason}))
}

// archiveResumeCmd lets an archive go on that a person has paused, or that was stopped because a revision had
// become another.
type archiveResumeCmd struct {
	archiveName
	because
	Restart int64 `help:"Of a stopped archive: begin anew at this revision." placeholder:"N"`
}

func (archiveResumeCmd) Prints() any { return v1.Archive{} }

// Run resumes. With --restart a stopped archive begins anew in a new epoch: its revisions and tasks get ids of
// their own.
func (c *archiveResumeCmd) Run(a *command.App) error {
	return command.Show(a, fieldsOfArchive)(a.Client.ActOnArchive(a.Ctx, c.Archive, v1.ArchiveAction{
		Action:  "resume",
		Reason:  c.Reason,
		Restart: c.Restart,
	}))
}

// archiveSkipCmd gives a revision no tasks: later ones can then be planned, though it cannot be read.
type archiveSkipCmd struct {
	archiveName
	because
	Revision int64 `arg:"" help:"Number of the revision."`
}

func (archiveSkipCmd) Prints() any { return v1.Archive{} }

// Run skips.
func (c *archiveSkipCmd) Run(a *command.App) error {
	return command.Show(a, fieldsOfArchive)(a.Client.ActOnArchive(a.Ctx, c.Archive, v1.ArchiveAction{
		Action:   "skip",
		Reason:   c.Reason,
		Revision: c.Revision,
	}))
}

// archiveBackfillCmd plans revisions before the first, e.g. those from before the archive was registered.
type archiveBackfillCmd struct {
	archiveName
	because
	From int64 `arg:"" help:"First revision."`
	To   int64 `arg:"" help:"Last revision."`
}

func (archiveBackfillCmd) Prints() any { return v1.Archive{} }

// Run begins the back-fill of revisions before the first that was planned. It goes on in the archive; archive
// show says how far it is.
func (c *archiveBackfillCmd) Run(a *command.App) error {
	return command.Show(a, fieldsOfArchive)(a.Client.ActOnArchive(a.Ctx, c.Archive, v1.ArchiveAction{
		Action: "backfill",
		Reason: c.Reason,
		From:   c.From,
		To:     c.To,
	}))
}
