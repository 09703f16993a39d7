package main

import (
	"fmt"
	"strings"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/terminal"
)

// holdCmd lists holds. The commands that place and end them are those of what they hold.
type holdCmd struct {
	List holdListCmd `cmd:"" help:"List the pauses and the holds of collections and batches."`
}

// holdListCmd does not list jobs that are held one by one: job list --state held does.
type holdListCmd struct{ limit }

func (holdListCmd) prints() any { return v1.Hold{} }

// Run lists all active ones.
func (c *holdListCmd) Run(a *app) error {
	list, err := a.client.Holds(a.ctx, c.more())
	if err != nil {
		return err
	}
	list = limited(a, c.limit, list)
	return a.print(list, func(p terminal.Page) {
		if !p.ForPeople() {
			terminal.Table(p, list, holdColumns...)
			return
		}
		showHolds(p, list)
	})
}

// holdColumns are for programs only.
var holdColumns = []terminal.Column[v1.Hold]{
	{Text: func(h v1.Hold) string { return h.Target }},
	{Text: func(h v1.Hold) string { return h.Since }},
	{Text: func(h v1.Hold) string { return h.Until }},
	{Text: func(h v1.Hold) string { return h.Actor }},
	{Text: func(h v1.Hold) string { return h.Reason }},
}

// showHolds prints pauses and holds in full.
func showHolds(p terminal.Page, list []v1.Hold) {
	for i := range list {
		what := "held"
		if !strings.Contains(list[i].Target, ":") { // the queue or the storage
			what = "paused"
		}
		p.Fields(what, holdText(&list[i]))
	}
}

// holdText describes a hold, "" if there is none.
func holdText(h *v1.Hold) string {
	if h == nil {
		return ""
	}
	text := fmt.Sprintf("%s since %s by %s: %s", h.Target, h.Since, h.Actor, h.Reason)
	if h.Until != "" {
		text += " (until " + h.Until + ")"
	}
	return text
}
