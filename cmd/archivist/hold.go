package main

import (
	"fmt"

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

// Run lists all that stand.
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
		for i := range list {
			p.Fields("held", holdText(&list[i]))
		}
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
