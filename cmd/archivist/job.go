package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	v1 "archivist/pkg/api/v1"
)

type jobCmd struct {
	List    jobListCmd    `cmd:"" help:"List a collection's or a batch's jobs."`
	Show    jobShowCmd    `cmd:"" help:"Show a job and what happened to it."`
	Watch   jobWatchCmd   `cmd:"" help:"Watch a job until it ends."`
	Receipt jobReceiptCmd `cmd:"" help:"Show what is preserved of a job, file by file, with its digests."`
	Requeue jobRequeueCmd `cmd:"" help:"Put a failed job back at the state where it broke."`
	Fail    jobFailCmd    `cmd:"" help:"Fail a job that runs or waits."`
}

type jobListCmd struct {
	Collection string `short:"c" xor:"of" required:""`
	Batch      string `short:"b" xor:"of" required:""`
	State      string `help:"Only jobs in this state."`
}

func (c *jobListCmd) Run(a *app) error {
	list, err := a.client.Jobs(a.ctx, v1.Filter{Collection: c.Collection, Batch: c.Batch, State: c.State})
	if err != nil {
		return err
	}
	return a.print(list, func(w io.Writer) { jobTable(w, list) })
}

func jobTable(w io.Writer, list []v1.Job) {
	var body []table.Row
	for _, j := range list {
		version := ""
		if j.Version > 0 {
			version = fmt.Sprintf("v%d", j.Version)
		}
		body = append(body, table.Row{j.ID, j.State, j.Identifiers.Primary, version, j.Progress.Files, size(j.Progress.Bytes), j.Message})
	}
	t := table.Row{"job", "state", "ark", "version", "files", "size", "message"}
	rows(w, t, body)
}

type jobShowCmd struct {
	ID string `arg:""`
}

func (c *jobShowCmd) Run(a *app) error {
	j, err := a.client.Job(a.ctx, c.ID)
	if err != nil {
		return err
	}
	events, err := a.client.Events(a.ctx, c.ID)
	if err != nil {
		return err
	}
	return a.print(struct {
		v1.Job
		Events []v1.Event `json:"events"`
	}{j, events}, func(w io.Writer) {
		fields(w, "job", j.ID, "batch", j.Batch, "state", j.State, "last success", j.LastSuccessfulState, "ark", j.Identifiers.Primary, "local ids", strings.Join(j.Identifiers.Local, ", "),
			"version", j.Version, "files", j.Progress.Files, "size", size(j.Progress.Bytes), "progress", j.Progress.Done, "priority", j.Priority, "retries", j.RetryCount, "message", j.Message)
		var body []table.Row
		for _, e := range events {
			body = append(body, table.Row{e.Version, e.Time, e.Type, e.Outcome, e.Component, string(e.Detail)})
		}
		rows(w, table.Row{"#", "time", "event", "outcome", "by", "detail"}, body)
	})
}

type jobReceiptCmd struct {
	ID string `arg:""`
}

func (c *jobReceiptCmd) Run(a *app) error {
	r, err := a.client.Receipt(a.ctx, c.ID)
	if err != nil {
		return err
	}
	return a.print(r, func(w io.Writer) {
		fields(w, "job", r.Job, "batch", r.Batch, "ark", r.ARK, "version", r.Version, "created", r.Created)
		if r.NoChange {
			fmt.Fprintln(w, "Nothing had changed: no version was made.")
		}
		var body []table.Row
		for _, f := range r.Files {
			given := ""
			if f.Given != nil {
				given = f.Given.Algorithm
			}
			body = append(body, table.Row{f.Path, f.Size, f.Digests["sha256"], given})
		}
		rows(w, table.Row{"file", "bytes", "sha256", "depositor's digest, found right"}, body)
	})
}

type jobRequeueCmd struct {
	ID      string `arg:""`
	Reason  string `required:"" help:"Why it will succeed now."`
	Confirm bool   `help:"Also if the object has a version by a later submission, which the job then replaces as the newest."`
}

func (c *jobRequeueCmd) Run(a *app) error {
	return a.act(c.ID, v1.Action{Action: "requeue", Reason: c.Reason, Confirm: c.Confirm})
}

type jobFailCmd struct {
	ID     string `arg:""`
	Reason string `required:"" help:"Why it shall not go on."`
}

func (c *jobFailCmd) Run(a *app) error {
	return a.act(c.ID, v1.Action{Action: "fail", Reason: c.Reason})
}

func (a *app) act(id string, action v1.Action) error {
	j, err := a.client.Act(a.ctx, id, action)
	if err != nil {
		return err
	}
	return a.print(j, func(w io.Writer) { fmt.Fprintf(w, "job %s %s\n", printable(j.ID), printable(j.State)) })
}
