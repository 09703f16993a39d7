package main

import (
	"fmt"
	"slices"
	"strconv"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/fault"
	"archivist/pkg/terminal"
)

// researchFeedsCmd is for podcast feeds. Which ones there are is in the definition of the project.
type researchFeedsCmd struct {
	List feedsListCmd `cmd:"" help:"List them: when each was read, what it has, and why a look failed."`
	Show feedsShowCmd `cmd:"" help:"Show one, with its entries that are not taken."`
	Look feedsLookCmd `cmd:"" help:"Look at one soon, whatever it waits for."`
}

// feedsListCmd lists feeds.
type feedsListCmd struct{ projectName }

func (feedsListCmd) prints() any { return v1.ResearchFeedState{} }

// Help says how feeds are added and removed.
func (feedsListCmd) Help() string {
	return `Feeds are added, changed and removed in the definition of the project: archivist research apply.`
}

// Run lists all: there are at most 50.
func (c *feedsListCmd) Run(a *app) error {
	list, err := a.client.ResearchFeeds(a.ctx, c.Project)
	if err != nil {
		return err
	}
	list = limited(a, limit{}, list)
	return a.print(list, func(p terminal.Page) { terminal.Table(p, list, feedColumns...) })
}

var feedColumns = []terminal.Column[v1.ResearchFeedState]{
	{Title: "key", Text: func(f v1.ResearchFeedState) string { return f.Key }},
	{Title: "source", Text: func(f v1.ResearchFeedState) string { return f.Source }, Share: 1},
	{Title: "read", Text: func(f v1.ResearchFeedState) string { return minute(f.Read) },
		Raw: func(f v1.ResearchFeedState) string { return f.Read }},
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

func (feedsShowCmd) prints() any { return v1.ResearchFeedState{} }

// Run shows it.
func (c *feedsShowCmd) Run(a *app) error { return a.showFeed(c.oneFeed) }

// feedsLookCmd makes a feed due.
type feedsLookCmd struct{ oneFeed }

func (feedsLookCmd) prints() any { return v1.ResearchFeedState{} }

// Run requests it, and shows what is known so far.
func (c *feedsLookCmd) Run(a *app) error {
	err := a.client.LookAtFeed(a.ctx, c.Project, c.Key)
	if err != nil {
		return err
	}
	return a.showFeed(c.oneFeed)
}

func (a *app) showFeed(in oneFeed) error {
	all, err := a.client.ResearchFeeds(a.ctx, in.Project)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(f v1.ResearchFeedState) bool { return f.Key == in.Key })
	if i < 0 {
		return fault.New(fault.NotFound, "the project %s has no feed %q; archivist research feeds list %s has the keys",
			in.Project, in.Key, in.Project)
	}
	f := all[i]
	return a.print(f, func(p terminal.Page) {
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
			"looked at", "every "+terminal.Count(f.EveryMinutes, "minute"), "next", next, "looked", f.Looked,
			"read", f.Read, "changed", f.Changed, "entries", strconv.Itoa(f.Entries), "left", some(f.Left),
			"undated", some(f.Undated), "moved to", f.Moved, "ended", ended, "failures", some(f.Failures),
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

var skippedColumns = []terminal.Column[v1.ResearchSkipped]{
	{Title: "not taken", Text: func(s v1.ResearchSkipped) string { return strconv.Itoa(s.Count) }},
	{Title: "reason", Text: func(s v1.ResearchSkipped) string { return s.Reason }, Share: 2},
	{Title: "first", Text: func(s v1.ResearchSkipped) string { return s.First }, Share: 1},
}
