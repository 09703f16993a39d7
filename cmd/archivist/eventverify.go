package main

import (
	"cmp"
	"crypto/rand"
	"strconv"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/fault"
	"archivist/pkg/terminal"
)

// eventVerifyCmd checks the archive of events. A request takes seconds, so a full check makes many.
type eventVerifyCmd struct{}

func (eventVerifyCmd) prints() any { return v1.EventsVerified{} }

// Run exits with the code of a conflict if anything is not as it was written.
func (c *eventVerifyCmd) Run(a *app) error {
	var sum v1.EventsVerified
	for cursor, first := "", true; first || cursor != ""; first = false {
		step, err := a.client.VerifyEvents(a.ctx, cursor)
		if err != nil {
			return err
		}
		sum.Files, sum.Events = sum.Files+step.Files, sum.Events+step.Events
		sum.Findings = append(sum.Findings, step.Findings...)
		cursor = step.Cursor
	}
	err := a.print(sum, func(p terminal.Page) {
		p.Fields("files", strconv.Itoa(sum.Files), "events", strconv.FormatInt(sum.Events, 10),
			"findings", strconv.Itoa(len(sum.Findings)))
		terminal.Table(p, sum.Findings, archiveColumns...)
	})
	if err != nil || len(sum.Findings) == 0 {
		return err
	}
	return fault.New(fault.Conflict, "the archive of events is not as it was written: %s; "+
		"the bucket keeps the earlier versions of its objects", terminal.Count(len(sum.Findings), "finding"))
}

var archiveColumns = []terminal.Column[v1.ArchiveFinding]{
	{Title: "partition", Text: func(f v1.ArchiveFinding) string { return f.Partition }},
	{Title: "file", Text: func(f v1.ArchiveFinding) string { return f.File }},
	{Title: "problem", Text: func(f v1.ArchiveFinding) string { return f.Problem }, Share: 1},
}

// eventRaiseEpochCmd is a step of a restore (docs/restore.md).
type eventRaiseEpochCmd struct {
	Reason string `required:"" help:"Why. It is kept in the events." placeholder:"TEXT"`
	Key    string `name:"idempotency-key" help:"${help_action_key}" placeholder:"KEY"`
}

func (eventRaiseEpochCmd) prints() any { return v1.EventLogOutcome{} }

// Run raises the epoch of the log.
func (c *eventRaiseEpochCmd) Run(a *app) error {
	r, err := a.client.ActOnEventLog(a.ctx, v1.EventLogAction{Action: "raise-epoch", Reason: c.Reason},
		cmp.Or(c.Key, rand.Text()))
	if err != nil {
		return err
	}
	return a.print(r, func(p terminal.Page) { p.Fields("done", r.Summary) })
}
