package events

import (
	"cmp"
	"crypto/rand"
	"strconv"

	"archivist/cmd/archivist/command"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/terminal"
)

// eventVerifyCmd checks the archive of events. A request takes seconds, so a full check makes many, one after
// the other.
type eventVerifyCmd struct{}

func (eventVerifyCmd) Prints() any { return v1.EventsVerified{} }

// Run exits with the code of a conflict if anything is not as it was written. If a request fails, nothing is
// printed: a part of a check proves nothing.
func (c *eventVerifyCmd) Run(a *command.App) error {
	var sum v1.EventsVerified
	for cursor, first := "", true; first || cursor != ""; first = false {
		step, err := a.Client.VerifyEvents(a.Ctx, cursor)
		if err != nil {
			return err
		}
		sum.Files, sum.Events = sum.Files+step.Files, sum.Events+step.Events
		sum.Findings = append(sum.Findings, step.Findings...)
		cursor = step.Cursor
	}

	err := a.Print(sum, func(p terminal.Page) {
		p.Fields("files", strconv.Itoa(sum.Files), "events", strconv.FormatInt(sum.Events, 10),
			"findings", strconv.Itoa(len(sum.Findings)))
		terminal.Table(p, sum.Findings, archiveColumns...)
	})
	if err != nil || len(sum.Findings) == 0 {
		return err
	}
	return fault.New(fault.Conflict, "the archive of events is not as it was written: %s; "+
		"the bucket keeps the earlier versions of its objects",
		terminal.Count(len(sum.Findings), "finding"))
}

// archiveColumns show in which file of the archive of events something is wrong.
var archiveColumns = []terminal.Column[v1.ArchiveFinding]{
	{Title: "partition", Text: func(f v1.ArchiveFinding) string { return f.Partition }},
	{Title: "file", Text: func(f v1.ArchiveFinding) string { return f.File }},
	{Title: "problem", Text: func(f v1.ArchiveFinding) string { return f.Problem }, Share: 1},
}

// eventRaiseEpochCmd is a step of a restore (docs/restore.md): what the log has placed after the backup is gone,
// so the places of consumers may be those of other events. They stop until a person resets each.
type eventRaiseEpochCmd struct {
	Reason string `required:"" help:"Why. It is kept in the events." placeholder:"TEXT"`
	Key    string `name:"idempotency-key" help:"${help_action_key}" placeholder:"KEY"`
}

func (eventRaiseEpochCmd) Prints() any { return v1.EventLogOutcome{} }

// Run raises the epoch of the log.
func (c *eventRaiseEpochCmd) Run(a *command.App) error {
	return command.Show(a, func(p terminal.Page, r v1.EventLogOutcome) { p.Fields("done", r.Summary) })(
		a.Client.ActOnEventLog(a.Ctx, v1.EventLogAction{Action: "raise-epoch", Reason: c.Reason},
			cmp.Or(c.Key, rand.Text())))
}
