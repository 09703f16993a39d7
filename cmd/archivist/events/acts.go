package events

import (
	"archivist/cmd/archivist/command"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/terminal"
)

// eventActsCmd lists what people did, over all logs.
type eventActsCmd struct {
	Actor  string `short:"a" help:"Only what this person did: a token's subject." placeholder:"NAME"`
	Filter string `help:"Only what this filter selects, e.g. Collection+All." placeholder:"FILTER"`
	Before string `help:"Only those before this time, or before the beginning of this day in UTC." placeholder:"TIME"`
	command.Limit
}

func (eventActsCmd) Prints() any { return v1.Act{} }

// Help says what is in the list.
func (eventActsCmd) Help() string {
	return `The newest first, of all logs: holds, requeues, deletions, corrections, settings, and all else that a person
did or gave a reason for. An act on many jobs is one; "archivist operation show" lists its jobs. Deposits are in
"archivist batch list".`
}

// Run lists the acts. It requests one more than is shown, to detect that there are more.
func (c *eventActsCmd) Run(a *command.App) error {
	return command.List(a, c.Limit, actColumns...)(a.Client.Acts(a.Ctx,
		v1.ActFilter{Actor: c.Actor, Filter: c.Filter, Before: c.Before}, c.More()))
}

// actColumns show who did what to what, and why. Programs get what "event show" takes, too.
var actColumns = []terminal.Column[v1.Act]{
	{
		Title: "time",
		Text:  func(x v1.Act) string { return command.Minute(x.Time) },
		Raw:   func(x v1.Act) string { return x.Time },
	},
	{Title: "actor", Text: func(x v1.Act) string { return x.Actor }, Share: 1},
	{Title: "type", Text: func(x v1.Act) string { return x.Type }},
	{
		Title: "subject",
		Text:  func(x v1.Act) string { return shownSubject(x.Subject.Type + ":" + x.Subject.ID) },
		Raw:   func(x v1.Act) string { return x.Subject.Type + ":" + x.Subject.ID },
		Share: 2,
	},
	{Title: "reason", Text: func(x v1.Act) string { return x.Reason }, Share: 2},
	{Text: func(x v1.Act) string { return numberText(x.Version) }},
	{Text: func(x v1.Act) string { return x.Outcome }},
	{Text: func(x v1.Act) string { return x.Event }},
}
