package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	v1 "archivist/pkg/api/v1"
)

type batchCmd struct {
	List   batchListCmd   `cmd:"" help:"List a collection's batches, newest first."`
	Show   batchShowCmd   `cmd:"" help:"Show a batch and its jobs."`
	Report batchReportCmd `cmd:"" help:"Show how each job of an ended batch ended; with --json everything that is known of it."`
	Watch  batchWatchCmd  `cmd:"" help:"Watch batches until they end."`
}

type batchListCmd struct {
	Collection string `required:"" short:"c"`
	State      string `help:"Only batches in this state."`
}

func (c *batchListCmd) Run(a *app) error {
	list, err := a.client.Batches(a.ctx, v1.Filter{Collection: c.Collection, State: c.State})
	if err != nil {
		return err
	}
	return a.print(list, func(w io.Writer) {
		var body []table.Row
		for _, b := range list {
			body = append(body, table.Row{b.ID, b.State, b.Created, b.Counts.Expected, b.Counts.Completed, b.Counts.Failed})
		}
		rows(w, table.Row{"batch", "state", "created", "jobs", "completed", "failed"}, body)
	})
}

type batchShowCmd struct {
	ID string `arg:""`
}

func (c *batchShowCmd) Run(a *app) error {
	b, err := a.client.Batch(a.ctx, c.ID)
	if err != nil {
		return err
	}
	jobs, err := a.client.Jobs(a.ctx, v1.Filter{Batch: c.ID})
	if err != nil {
		return err
	}
	return a.print(struct {
		v1.Batch
		Jobs []v1.Job `json:"jobs"`
	}{b, jobs}, func(w io.Writer) {
		fields(w, "batch", b.ID, "state", b.State, "collection", b.Collection, "submitter", b.Submitter, "created", b.Created, "message", b.Message,
			"jobs", fmt.Sprintf("%d expected, %d processing, %d held, %d completed, %d failed, %d deleted", b.Counts.Expected, b.Counts.Processing, b.Counts.Held, b.Counts.Completed, b.Counts.Failed, b.Counts.Deleted))
		if b.Report != "" {
			fields(w, "report", "archivist batch report "+b.ID)
		}
		for _, p := range b.MailProblems {
			fields(w, "mail", p.Text)
		}
		jobTable(w, jobs)
	})
}

type queueCmd struct{}

func (c *queueCmd) Run(a *app) error {
	q, err := a.client.Queue(a.ctx)
	if err != nil {
		return err
	}
	return a.print(q, func(w io.Writer) {
		fields(w, "running", fmt.Sprintf("%d of %d slots", q.Running, q.MaxInFlight), "pending", q.Waiting["pending"], "provisioning", q.Waiting["provisioning"],
			"parked", q.Waiting["parked"], "space free", size(q.SpaceFree), "oldest", strings.TrimSpace(q.OldestWaiting+" "+q.OldestSince), "last sweep", q.LastSweep)
	})
}

type explainCmd struct {
	ID string `arg:"" help:"Id of a job or a batch."`
}

func (c *explainCmd) Run(a *app) error {
	x, err := a.client.Explain(a.ctx, c.ID)
	if err != nil {
		return err
	}
	return a.print(x, func(w io.Writer) {
		fields(w, "state", x.State, "waits for", x.WaitsFor, "on", x.On, "why", x.Why)
	})
}
