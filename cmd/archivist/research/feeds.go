package research

import (
	"fmt"
	"slices"
	"strconv"

	"archivist/cmd/archivist/command"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/terminal"
)

// researchFeedsCmd is for podcast feeds. Which ones there are is in the definition of the project, so they are
// not added here.
type researchFeedsCmd struct {
	List feedsListCmd `cmd:"" help:"List feeds: when each was read, what it has, and why a look failed."`
	Show feedsShowCmd `cmd:"" help:"Show a feed, with its entries that are not taken."`
	Look feedsLookCmd `cmd:"" help:"Look at one soon, whatever it waits for."`
}

// feedsListCmd lists feeds.
type feedsListCmd struct{ projectName }

func (feedsListCmd) Prints() any { return v1.ResearchFeedState{} }

// Help says how feeds are added and removed.
func (feedsListCmd) Help() string {
	return `Feeds are added, changed and removed in the definition of the project: archivist research apply.`
}

// Run lists all: a project has at most 50.
func (c *feedsListCmd) Run(a *command.App) error {
	return command.List(a, command.Limit{}, feedColumns...)(a.Client.ResearchFeeds(a.Ctx, c.Project))
}

// feedColumns show whether each feed is read: when it was last, how many looks have failed since, and why.
var feedColumns = []terminal.Column[v1.ResearchFeedState]{
	{Title: "key", Text: func(f v1.ResearchFeedState) string { return f.Key }},
	{Title: "source", Text: func(f v1.ResearchFeedState) string { return f.Source }, Share: 1},
	{
		Title: "read",
		Text:  func(f v1.ResearchFeedState) string { return command.Minute(f.Read) },
		Raw:   func(f v1.ResearchFeedState) string { return f.Read },
	},
	{Title: "failures", Text: func(f v1.ResearchFeedState) string { return strconv.Itoa(f.Failures) }},
	{Title: "problem", Text: func(f v1.ResearchFeedState) string { return f.Problem }, Share: 2},
}

// oneFeed names a feed.
type oneFeed struct {
	projectName
	Key string `arg:"" help:"Its key."`
}

// feedsShowCmd shows a feed.
type feedsShowCmd struct{ oneFeed }

func (feedsShowCmd) Prints() any { return v1.ResearchFeedState{} }

// Run shows it.
func (c *feedsShowCmd) Run(a *command.App) error { return showFeed(a, c.oneFeed) }

// feedsLookCmd makes a feed due.
type feedsLookCmd struct{ oneFeed }

func (feedsLookCmd) Prints() any { return v1.ResearchFeedState{} }

// Run requests a look, and shows what is known so far: the look itself comes within a minute or two.
func (c *feedsLookCmd) Run(a *command.App) error {
	err := a.Client.LookAtFeed(a.Ctx, c.Project, c.Key)
	if err != nil {
		return err
	}
	return showFeed(a, c.oneFeed)
}

// showFeed prints a feed: when it is read, what it has, and which entries are not taken and why. The API lists
// all feeds, so one that is not among them is NotFound here.
func showFeed(a *command.App, in oneFeed) error {
	all, err := a.Client.ResearchFeeds(a.Ctx, in.Project)
	if err != nil {
		return err
	}

	i := slices.IndexFunc(all, func(f v1.ResearchFeedState) bool { return f.Key == in.Key })
	if i < 0 {
		return fault.New(fault.NotFound,
			"the project %s has no feed %q; archivist research feeds list %s has the keys",
			in.Project, in.Key, in.Project)
	}

	f := all[i]
	return a.Print(f, func(p terminal.Page) {
		next, ended := f.Next, ""
		switch {
		case f.Looking:
			next = "now"
		case next == "":
			next = "within a minute or two"
		}

		if f.Gone {
			ended = "yes, its server says"
		}

		p.Fields("key", f.Key, "feed", f.URL, "source", f.Source, "kind", f.Kind,
			"looked at", "every "+terminal.Count(f.EveryMinutes, "minute"), "next", next, "looked",
			f.Looked,
			"read", f.Read, "changed", f.Changed, "entries", strconv.Itoa(f.Entries), "left",
			some(f.Left),
			"undated", some(f.Undated), "moved to", f.Moved, "ended", ended, "failures",
			some(f.Failures),
			"problem", f.Problem)

		terminal.Table(p, f.Skipped, skippedColumns...)
	})
}

// some is a number that is not shown if it is 0.
func some(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

// skippedColumns say how many entries of a feed are not taken, for each reason with one of them as an example.
var skippedColumns = []terminal.Column[v1.ResearchSkipped]{
	{Title: "not taken", Text: func(s v1.ResearchSkipped) string { return strconv.Itoa(s.Count) }},
	{Title: "reason", Text: func(s v1.ResearchSkipped) string { return s.Reason }, Share: 2},
	{Title: "first", Text: func(s v1.ResearchSkipped) string { return s.First }, Share: 1},
}
