package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/terminal"
)

// archiveCmd is for archives with revisions.
type archiveCmd struct {
	List     archiveListCmd     `cmd:"" help:"List the archives."`
	Show     archiveShowCmd     `cmd:"" help:"Show an archive: how far it is planned, what runs, and what is wrong."`
	Watch    archiveWatchCmd    `cmd:"" help:"Follow an archive until it is quiet."`
	Add      archiveAddCmd      `cmd:"" help:"Register an archive, or change its settings."`
	Pause    archiveActCmd      `cmd:"" help:"Plan and start nothing more. What runs goes on."`
	Resume   archiveResumeCmd   `cmd:"" help:"Let an archive go on that is paused or stopped."`
	Skip     archiveSkipCmd     `cmd:"" help:"Give a revision no tasks, for example because it cannot be read."`
	Backfill archiveBackfillCmd `cmd:"" help:"Plan revisions before the first."`
	Delete   archiveActCmd      `cmd:"" help:"Cancel what has not ended, and forget an archive. Its history stays."`
	Explain  archiveExplainCmd  `cmd:"" help:"Explain what an archive waits for."`
}

// archiveName is the argument of most commands.
type archiveName struct {
	Archive string `arg:"" help:"Name of an archive."`
}

// because is why a person acts.
type because struct {
	Reason string `required:"" help:"Why. It is kept in the events." placeholder:"TEXT"`
}

// archiveListCmd lists archives.
type archiveListCmd struct{}

func (archiveListCmd) prints() any { return v1.Archive{} }

// Run lists all: there are few.
func (archiveListCmd) Run(a *app) error {
	list, err := a.client.Archives(a.ctx)
	if err != nil {
		return err
	}
	list = limited(a, limit{}, list)
	return a.print(list, func(p terminal.Page) { terminal.Table(p, list, archivesColumns...) })
}

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

// placeOf is where an archive is.
func placeOf(l v1.ArchiveLocation) string {
	return strings.TrimSpace(l.URL + l.ARK + " " + l.Branch)
}

// archiveShowCmd shows an archive.
type archiveShowCmd struct{ archiveName }

func (archiveShowCmd) prints() any { return v1.ArchiveStatus{} }

// Run shows one archive.
func (c *archiveShowCmd) Run(a *app) error {
	got, err := a.client.Archive(a.ctx, c.Archive)
	if err != nil {
		return err
	}
	return a.print(got, func(p terminal.Page) {
		fieldsOfArchive(p, got.Archive)
		if g := got.Gap; g != nil {
			p.Fields("missing", fmt.Sprintf("revision %d: revision %d was notified at %s", g.Missing, g.Behind,
				g.Since))
		}
		for _, state := range slices.Sorted(maps.Keys(got.Open)) {
			p.Fields(state, strconv.Itoa(got.Open[state]))
		}
		for _, l := range got.Locks {
			p.Fields("lock", fmt.Sprintf("%s: %s, %d wait", l.Name, orNone(l.Holder), l.Waiting))
		}
		for _, s := range got.Schedules {
			p.Fields("schedule", fmt.Sprintf("%s: %s %s, next at %s", s.Task, s.Cron, s.Zone, s.Next))
		}
		if b := got.Backfill; b != nil {
			p.Fields("back-fill", fmt.Sprintf("at revision %d of %d", b.Next, b.To))
		}
		terminal.Table(p, got.RunningNow, taskColumns...)
	})
}

func orNone(text string) string {
	if text == "" {
		return "nobody has it"
	}
	return text
}

func fieldsOfArchive(p terminal.Page, x v1.Archive) {
	p.Fields("archive", x.Name, "title", x.Title, "kind", x.Location.Kind, "at", placeOf(x.Location), "mode", x.Mode,
		"why", x.Why, "first", number(x.First), "planned up to", number(x.Watermark), "newest", number(x.Head))
	if t := x.Trouble; t != nil {
		p.Fields("trouble", fmt.Sprintf("revision %d: %s; tried again at %s", t.Revision, t.Reason, t.Next))
	}
}

// archiveAddCmd registers an archive.
type archiveAddCmd struct {
	archiveName
	Git       string `help:"URL of a Git repository." placeholder:"URL" xor:"location" required:""`
	Svn       string `help:"URL of a Subversion repository." placeholder:"URL" xor:"location" required:""`
	Object    string `help:"ARK of a preserved object." placeholder:"ARK" xor:"location" required:""`
	Branch    string `help:"Branch of the Git repository." placeholder:"NAME"`
	Secret    string `help:"Name of the secret that has user:password." placeholder:"NAME"`
	Title     string `help:"What people call it." placeholder:"TEXT"`
	Baseline  int64  `help:"First revision to plan. By default the next; of an object, its newest." placeholder:"N"`
	Reconcile int64  `help:"Seconds between two looks at its newest revision; -1 for never." placeholder:"N"`
	Running   int    `help:"How many tasks run at once, at most." placeholder:"N"`
}

func (archiveAddCmd) prints() any { return v1.Archive{} }

// Run registers the archive.
func (c *archiveAddCmd) Run(a *app) error {
	l := v1.ArchiveLocation{Kind: "git", URL: c.Git, Branch: c.Branch, Secret: c.Secret}
	switch {
	case c.Svn != "":
		l.Kind, l.URL = "svn", c.Svn
	case c.Object != "":
		l.Kind, l.ARK = "object", c.Object
	}
	got, err := a.client.PutArchive(a.ctx, c.Archive, v1.ArchiveDefinition{Title: c.Title, Location: l,
		Baseline: c.Baseline, ReconcileSeconds: c.Reconcile, Running: c.Running})
	return a.showArchive(got, err)
}

func (a *app) showArchive(got v1.Archive, err error) error {
	if err != nil {
		return err
	}
	return a.print(got, func(p terminal.Page) { fieldsOfArchive(p, got) })
}

// archiveActCmd pauses or deletes an archive.
type archiveActCmd struct {
	archiveName
	because
}

func (archiveActCmd) prints() any { return v1.Archive{} }

// Run does what the command is called.
func (c *archiveActCmd) Run(a *app, k *kong.Context) error {
	action := k.Selected().Name
	return a.showArchive(a.client.ActOnArchive(a.ctx, c.Archive, v1.ArchiveAction{Action: action, Reason: c.Reason}))
}

// archiveResumeCmd lets an archive go on.
type archiveResumeCmd struct {
	archiveName
	because
	Restart int64 `help:"Of a stopped archive: begin anew at this revision." placeholder:"N"`
}

func (archiveResumeCmd) prints() any { return v1.Archive{} }

// Run resumes.
func (c *archiveResumeCmd) Run(a *app) error {
	return a.showArchive(a.client.ActOnArchive(a.ctx, c.Archive, v1.ArchiveAction{Action: "resume", Reason: c.Reason,
		Restart: c.Restart}))
}

// archiveSkipCmd skips a revision.
type archiveSkipCmd struct {
	archiveName
	because
	Revision int64 `arg:"" help:"Number of the revision."`
}

func (archiveSkipCmd) prints() any { return v1.Archive{} }

// Run skips.
func (c *archiveSkipCmd) Run(a *app) error {
	return a.showArchive(a.client.ActOnArchive(a.ctx, c.Archive, v1.ArchiveAction{Action: "skip", Reason: c.Reason,
		Revision: c.Revision}))
}

// archiveBackfillCmd plans revisions before the first.
type archiveBackfillCmd struct {
	archiveName
	because
	From int64 `arg:"" help:"First revision."`
	To   int64 `arg:"" help:"Last revision."`
}

func (archiveBackfillCmd) prints() any { return v1.Archive{} }

// Run begins the back-fill.
func (c *archiveBackfillCmd) Run(a *app) error {
	return a.showArchive(a.client.ActOnArchive(a.ctx, c.Archive, v1.ArchiveAction{Action: "backfill", Reason: c.Reason,
		From: c.From, To: c.To}))
}

// archiveExplainCmd explains an archive.
type archiveExplainCmd struct{ archiveName }

func (archiveExplainCmd) prints() any { return v1.WaitExplanation{} }

// Run explains.
func (c *archiveExplainCmd) Run(a *app) error {
	return a.showWaits(a.client.ExplainArchive(a.ctx, c.Archive))
}

func (a *app) showWaits(x v1.WaitExplanation, err error) error {
	if err != nil {
		return err
	}
	return a.print(x, func(p terminal.Page) {
		for _, l := range x.Chain {
			p.Fields(l.ID, l.State+": "+l.Why)
		}
	})
}
