package jobs

import (
	"fmt"
	"strings"

	"archivist/cmd/archivist/command"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/terminal"
)

// holdListCmd lists pauses of the queue and the storage, and holds of collections and batches. The commands that
// place and end them are those of what they hold. Jobs that are held one by one are not among them: job list
// --state held lists those.
type holdListCmd struct{ command.Limit }

func (holdListCmd) Prints() any { return v1.Hold{} }

// Run lists all active ones: for people as sentences, which wrap, since the reasons are long.
func (c *holdListCmd) Run(a *command.App) error {
	list, err := a.Client.Holds(a.Ctx, c.More())
	if err != nil {
		return err
	}

	list = command.Limited(a, c.Limit, list)
	return a.Print(list, func(p terminal.Page) {
		if !p.ForPeople() {
			terminal.Table(p, list, holdColumns...)
			return
		}
		showHolds(p, list)
	})
}

// holdColumns are for programs only. New columns come at the end, as in all lists: scripts count them.
var holdColumns = []terminal.Column[v1.Hold]{
	{Text: func(h v1.Hold) string { return h.Target }},
	{Text: func(h v1.Hold) string { return h.Since }},
	{Text: func(h v1.Hold) string { return h.Until }},
	{Text: func(h v1.Hold) string { return h.Actor }},
	{Text: func(h v1.Hold) string { return h.Reason }},
}

// showHolds prints pauses and holds in full: who, since when, why, and until when.
func showHolds(p terminal.Page, list []v1.Hold) {
	for i := range list {
		what := "held"
		if !strings.Contains(list[i].Target, ":") { // the queue or the storage
			what = "paused"
		}
		p.Fields(what, holdText(&list[i]))
	}
}

// holdText describes a hold in a sentence, "" if there is none. Without an end, a person must lift it.
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
