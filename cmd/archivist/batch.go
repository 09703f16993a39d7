package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/terminal"
)

// batchCmd is for depositors: a batch is one of their submissions.
type batchCmd struct {
	List   batchListCmd   `cmd:"" help:"List a collection's batches, newest first."`
	Show   batchShowCmd   `cmd:"" help:"Show a batch and its jobs."`
	Report batchReportCmd `cmd:"" help:"Show how each job of a batch ended, once the batch has ended."`
	Watch  batchWatchCmd  `cmd:"" help:"Follow batches until they have ended."`

	Hold         batchHoldCmd `cmd:"" help:"Hold a batch: its waiting jobs do not start."`
	Release      batchActCmd  `cmd:"" help:"End the hold of a batch."`
	Cancel       batchActCmd  `cmd:"" help:"End all unfinished jobs of a batch; then it reports."`
	Delete       batchActCmd  `cmd:"" help:"Delete a failed or held batch with all its jobs."`
	UpdateReport batchActCmd  `cmd:"" help:"Report what has changed since the last report of a failed batch."`
	CleanUp      batchActCmd  `cmd:"" help:"Remove the rows of a completed batch before their retention ends."`
}

// limit is how many items of a list are shown. A collection can have a million jobs, so
// all are shown only on request; otherwise a message states that there are more.
type limit struct {
	Limit int `short:"L" default:"100" help:"Show at most this many; 0 shows all." placeholder:"N"`
}

// more is the limit of the request: one item more than is shown, to detect that there are
// more, or 0 for no limit.
func (l limit) more() int {
	if l.Limit <= 0 {
		return 0
	}
	return l.Limit + 1
}

// limited cuts a list off at its limit. It reports on standard error if it did, or if the
// list is empty.
func limited[T any](a *app, l limit, list []T) []T {
	if len(list) == 0 && a.out.Width > 0 {
		fmt.Fprintln(a.errors, "Nothing was found.")
	}
	if l.Limit <= 0 || len(list) <= l.Limit {
		return list
	}
	fmt.Fprintf(a.errors, "archivist: the first %d are shown; --limit 0 shows all\n", l.Limit)
	return list[:l.Limit]
}

// batchListCmd finds a batch whose id is not known.
type batchListCmd struct {
	Collection string     `required:"" short:"c" help:"Collection of the batches." placeholder:"NAME"`
	State      batchState `help:"Only batches in this state, e.g. failed." placeholder:"STATE"`
	limit
}

func (batchListCmd) prints() any { return v1.Batch{} }

// Run requests one batch more than is shown, to detect that there are more.
func (c *batchListCmd) Run(a *app) error {
	filter := v1.Filter{Collection: c.Collection, State: string(c.State), Limit: c.more()}
	list, err := a.client.Batches(a.ctx, filter)
	if err != nil {
		return err
	}
	list = limited(a, c.limit, list)
	return a.print(list, func(p terminal.Page) { terminal.Table(p, list, batchColumns...) })
}

// batchColumns fit 80 columns without the note, which is the first to be left out.
var batchColumns = []terminal.Column[v1.Batch]{
	{Title: "batch", Text: func(b v1.Batch) string { return b.ID }},
	{Title: "state", Text: func(b v1.Batch) string { return b.State }, Style: stateStyle},
	{Title: "created", Text: func(b v1.Batch) string { return minute(b.Created) },
		Raw: func(b v1.Batch) string { return b.Created }},
	{Title: "jobs", Text: func(b v1.Batch) string { return strconv.Itoa(b.Counts.Expected) }},
	{Title: "done", Text: func(b v1.Batch) string { return strconv.FormatInt(b.Counts.Completed, 10) }},
	{Title: "failed", Text: func(b v1.Batch) string { return strconv.FormatInt(b.Counts.Failed, 10) }},
	{Title: "note", Text: func(b v1.Batch) string { return b.Note }, Share: 1},
}

// batchShowCmd shows the state of a running batch; its report shows how it ended.
type batchShowCmd struct {
	ID string `arg:"" name:"batch" help:"Id of a batch."`
}

// batchWithJobs is the output for a batch: as text with the first jobs only, as JSON with
// all jobs if that field is requested.
type batchWithJobs struct {
	v1.Batch
	Jobs []v1.Job `json:"jobs"`
}

func (batchShowCmd) prints() any { return batchWithJobs{} }

// Run makes two requests: the batch with its counts, and its first jobs.
func (c *batchShowCmd) Run(a *app) error {
	b, err := a.client.Batch(a.ctx, c.ID)
	if err != nil {
		return err
	}

	shown := limit{100}
	if slices.Contains(a.json, "jobs") {
		shown.Limit = 0
	}
	jobs, err := a.client.Jobs(a.ctx, v1.Filter{Batch: c.ID, Limit: shown.Limit})
	if err != nil {
		return err
	}

	return a.print(batchWithJobs{b, jobs}, func(p terminal.Page) {
		p.Fields("batch", b.ID, "state", b.State, "collection", b.Collection, "submitter", b.Submitter, "note", b.Note,
			"created", b.Created, "jobs", countsText(b.Counts), "message", b.Message, "held", holdText(b.Hold),
			"cancelled", cancelledText(b))
		if b.Report != "" {
			p.Fields("report", "archivist batch report "+b.ID)
		}
		warned(p, b.Warnings)
		for _, m := range b.MailProblems {
			p.Fields("mail", m.Text)
		}

		fmt.Fprintln(p)
		terminal.Table(p, jobs, jobColumns...)
		if hidden := b.Counts.Expected - len(jobs); hidden > 0 && len(jobs) == shown.Limit {
			p.Lines("", fmt.Sprintf("and %d more: archivist job list --batch %s --limit 0", hidden, b.ID))
		}
	})
}

// cancelledText describes the cancellation of a batch, "" if there is none, or if the
// message of the batch describes it already.
func cancelledText(b v1.Batch) string {
	c := b.Cancelled
	if c == nil || strings.Contains(b.Message, c.Reason) {
		return ""
	}
	return fmt.Sprintf("at %s by %s: %s", c.At, c.Actor, c.Reason)
}

// minute shortens a time of the API to the minute, for lists.
func minute(t string) string {
	if at, err := time.Parse(time.RFC3339, t); err == nil {
		return at.UTC().Format("2006-01-02T15:04Z")
	}
	return t
}

// countsText formats a batch's counts, without those that are 0.
func countsText(n v1.Counts) string {
	parts := []string{fmt.Sprintf("%d expected", n.Expected)}
	add := func(n int64, what string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, what))
		}
	}
	add(n.Processing, "processing")
	add(n.Held, "held")
	add(n.Completed, "completed")
	add(n.Failed, "failed")
	add(n.Deleted, "deleted")
	return strings.Join(parts, ", ")
}

// explainCmd explains why a batch or a job does not progress. The form of the id
// determines which of them it is.
type explainCmd struct {
	ID string `arg:"" name:"id" help:"Id of a batch or a job."`
}

func (explainCmd) prints() any { return v1.Explanation{} }

// Run shows the explanation. Details for operators, e.g. the execution that drives the
// job, are in the JSON only.
func (c *explainCmd) Run(a *app) error {
	x, err := a.client.Explain(a.ctx, c.ID)
	if err != nil {
		return err
	}
	return a.print(x, func(p terminal.Page) {
		p.Fields("state", x.State, "why", x.Why, "waits for", x.WaitsFor, "on", x.On)
	})
}
