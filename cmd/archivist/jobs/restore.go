package jobs

import (
	"fmt"
	"strings"

	"archivist/cmd/archivist/command"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/terminal"
)

// RestoreCmd has what is known of restores of the table. They are made by AWS's own command line.
type RestoreCmd struct {
	Status restoreStatusCmd `cmd:"" help:"Show how far restores are, and what each table lacks."`
}

// restoreStatusCmd shows the tables that were restored from the one in use.
type restoreStatusCmd struct {
	Table string `arg:"" optional:"" help:"Only this table, also one that was made empty."`
}

func (restoreStatusCmd) Prints() any { return v1.Restores{} }

// Help says what is not known.
func (restoreStatusCmd) Help() string {
	return `A restore makes a new table, which needs some settings before the archive can be deployed on it; the command
of each is shown. DynamoDB does not say how much of a restore is done. Tables of the account and region of the
archive are looked at, at most 500: name one to see it in any case.`
}

// Run shows each table, and below it what it lacks.
func (c *restoreStatusCmd) Run(a *command.App) error {
	r, err := a.Client.Restores(a.Ctx, c.Table)
	if err == nil && r.Problem != "" {
		err = fault.New(fault.Unavailable, "what was restored is not known: %s", r.Problem)
	}
	return command.Show(a, showRestores)(r, err)
}

// restoreRow is a table, with one of the things that it lacks.
type restoreRow struct {
	v1.RestoredTable
	v1.TableLack
}

func showRestores(p terminal.Page, r v1.Restores) {
	var rows []restoreRow
	for _, t := range r.Items {
		if len(t.Lacks) == 0 {
			rows = append(rows, restoreRow{RestoredTable: t})
		}
		for _, l := range t.Lacks {
			rows = append(rows, restoreRow{t, l})
		}
	}
	if !p.ForPeople() {
		terminal.Table(p, rows, restoreColumns...)
		return
	}
	p.Fields("in use", r.Table)
	for _, t := range r.Items {
		fmt.Fprintln(p)
		p.Fields("table", t.Name, "state", restoreState(t), "copy of", t.Source, "as of", t.Moment,
			"begun", t.Begun, "stream", t.Stream)
		for _, l := range t.Lacks {
			p.Fields("lacks", l.What+": "+l.Says)
			if l.Command != "" {
				fmt.Fprintln(p, strings.ReplaceAll(l.Command, " --", " \\\n  --")) // to be pasted
			}
		}
	}
	if len(r.Items) == 0 {
		p.Fields("restores", "none of "+terminal.Count(r.Looked, "table")+" is a copy of it")
	}
	if r.More || r.Unread > 0 {
		fmt.Fprintln(p)
	}
	if r.More {
		p.Fields("others", "the account has more tables: archivist restore status TABLE")
	}
	if r.Unread > 0 {
		p.Fields("unread", terminal.Count(r.Unread, "table")+": "+r.UnreadWhy)
	}
}

// restoreState is how far a table is, in words.
func restoreState(t v1.RestoredTable) string {
	use := ""
	if t.InUse {
		use = ", in use"
	}
	switch {
	case t.Restoring || t.Status == "CREATING":
		return t.Status + ": it is being made; DynamoDB does not say how much is done"
	case t.Ready:
		return t.Status + ", has all that it needs" + use
	}
	return t.Status + use
}

var restoreColumns = []terminal.Column[restoreRow]{
	{Title: "table", Text: func(r restoreRow) string { return r.Name }},
	{Title: "state", Text: func(r restoreRow) string { return r.Status }},
	{Title: "as of", Text: func(r restoreRow) string { return r.Moment }},
	{Title: "lacks", Text: func(r restoreRow) string { return r.What }},
	{Title: "command", Text: func(r restoreRow) string { return r.Command }},
}
