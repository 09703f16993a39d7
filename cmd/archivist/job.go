package main

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/terminal"
)

// jobCmd is for operators and depositors: a job is the ingest of one object.
type jobCmd struct {
	List    jobListCmd    `cmd:"" help:"List the jobs of a collection, newest first, or of a batch, in its order."`
	Show    jobShowCmd    `cmd:"" help:"Show a job and its events."`
	Watch   jobWatchCmd   `cmd:"" help:"Follow a job until it has ended."`
	Receipt jobReceiptCmd `cmd:"" help:"Show the receipt of a job: each preserved file with its digests."`

	Hold       jobHoldCmd       `cmd:"" help:"Hold a pending job: it waits until it is released."`
	Release    jobActCmd        `cmd:"" help:"Release a held job: it continues."`
	Requeue    jobActCmd        `cmd:"" help:"Requeue a failed job: it continues at the step that failed."`
	Fail       jobActCmd        `cmd:"" help:"Fail a job that has started."`
	Delete     jobActCmd        `cmd:"" help:"Delete a failed or held job."`
	Prioritize jobPrioritizeCmd `cmd:"" help:"Set the priority of a job."`
	CleanUp    jobActCmd        `cmd:"" help:"Remove the work files of a failed job now."`
}

// jobListCmd lists the jobs of a collection or of a batch, not of both: a batch belongs to
// one collection.
type jobListCmd struct {
	Collection string   `short:"c" xor:"of" required:"" help:"Jobs of this collection." placeholder:"NAME"`
	Batch      string   `short:"b" xor:"of" required:"" help:"Jobs of this batch." placeholder:"ID"`
	State      jobState `help:"Only jobs in this state, e.g. failed." placeholder:"STATE"`
	limit
}

func (jobListCmd) prints() any { return v1.Job{} }

// Run lets the API filter: it has the states of all jobs.
func (c *jobListCmd) Run(a *app) error {
	filter := v1.Filter{Collection: c.Collection, Batch: c.Batch, State: string(c.State), Limit: c.more()}
	list, err := a.client.Jobs(a.ctx, filter)
	if err != nil {
		return err
	}
	list = limited(a, c.limit, list)
	return a.print(list, func(p terminal.Page) { terminal.Table(p, list, jobColumns...) })
}

// jobColumns has few columns for people: an id takes 32 of the 80 columns of a terminal.
var jobColumns = []terminal.Column[v1.Job]{
	{Title: "job", Text: func(j v1.Job) string { return j.ID }},
	{Title: "state", Text: func(j v1.Job) string { return j.State }, Style: stateStyle},
	{Title: "local id", Text: func(j v1.Job) string { return strings.Join(j.Identifiers.Local, ", ") }, Share: 1},
	{Title: "result", Text: resultOf, Share: 2, Human: true},

	{Text: func(j v1.Job) string { return j.Identifiers.Primary }},
	{Text: func(j v1.Job) string { return versionText(j.Version) }},
	{Text: func(j v1.Job) string { return strconv.Itoa(j.Progress.Files) }},
	{Text: func(j v1.Job) string { return strconv.FormatInt(j.Progress.Bytes, 10) }},
	{Text: func(j v1.Job) string { return j.Message }},
}

// resultOf is the result of a job: its error, or its object.
func resultOf(j v1.Job) string {
	if j.Message != "" {
		return j.Message
	}
	return j.Identifiers.Primary
}

// versionText is the name of a version, "" for none.
func versionText(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("v%d", n)
}

// jobShowCmd shows the past of a job; explain shows what it waits for.
type jobShowCmd struct {
	ID string `arg:"" name:"job" help:"Id of a job."`
}

// jobWithEvents is the output for a job, with its events.
type jobWithEvents struct {
	v1.Job
	Events []v1.Event `json:"events"`
}

func (jobShowCmd) prints() any { return jobWithEvents{} }

// Run makes two requests: the job, and its events.
func (c *jobShowCmd) Run(a *app) error {
	j, err := a.client.Job(a.ctx, c.ID)
	if err != nil {
		return err
	}
	events, err := a.client.Events(a.ctx, c.ID)
	if err != nil {
		return err
	}
	return a.print(jobWithEvents{j, events}, func(p terminal.Page) {
		retries := ""
		if j.RetryCount > 0 {
			retries = strconv.Itoa(j.RetryCount)
		}
		p.Fields("job", j.ID, "batch", j.Batch, "collection", j.Collection, "state", j.State, "message", j.Message,
			"held", holdText(j.Hold),
			"last success", j.LastSuccessfulState, "ark", j.Identifiers.Primary, "version", versionText(j.Version),
			"local ids", strings.Join(j.Identifiers.Local, ", "), "files", strconv.Itoa(j.Progress.Files),
			"size", terminal.Size(j.Progress.Bytes), "priority", strconv.Itoa(j.Priority), "retries", retries)
		warned(p, j.Warnings)

		fmt.Fprintln(p)
		terminal.Table(p, events, eventColumns...)
	})
}

// eventColumns show the reason of an event, if it has one, instead of its whole detail.
var eventColumns = []terminal.Column[v1.Event]{
	{Title: "#", Text: func(e v1.Event) string { return strconv.FormatInt(e.Version, 10) }},
	{Title: "time", Text: func(e v1.Event) string { return e.Time }},
	{Title: "event", Text: func(e v1.Event) string { return e.Type }},
	{Title: "outcome", Text: func(e v1.Event) string { return e.Outcome }, Style: stateStyle},
	{Title: "by", Text: func(e v1.Event) string { return cmp.Or(e.Actor, e.Component) },
		Raw: func(e v1.Event) string { return e.Component }, Share: 1},
	{Title: "detail", Text: detailText, Raw: func(e v1.Event) string { return string(e.Detail) }, Share: 2},
	{Text: func(e v1.Event) string { return e.Actor }},
}

// detailText is the reason that an event gives, or all of its detail.
func detailText(e v1.Event) string {
	var detail struct{ Reason string }
	if json.Unmarshal(e.Detail, &detail) == nil && detail.Reason != "" {
		return detail.Reason
	}
	return string(e.Detail)
}

// jobReceiptCmd shows the proof for the depositor: it is read from the stored object.
type jobReceiptCmd struct {
	ID string `arg:"" name:"job" help:"Id of a job."`
}

func (jobReceiptCmd) prints() any { return v1.Receipt{} }

// Run reads all pages, so that the receipt is complete.
func (c *jobReceiptCmd) Run(a *app) error {
	r, err := a.client.Receipt(a.ctx, c.ID)
	if err != nil {
		return err
	}
	return a.print(r, func(p terminal.Page) {
		change := ""
		if r.NoChange {
			change = "none: no version was created"
		}
		p.Fields("job", r.Job, "batch", r.Batch, "ark", r.ARK, "version", versionText(r.Version),
			"change", change, "created", r.Created)
		warned(p, r.Warnings)
		fmt.Fprintln(p)
		terminal.Table(p, r.Files, receiptColumns...)
	})
}

// receiptColumns show for each file which of the depositor's digests was verified.
var receiptColumns = []terminal.Column[v1.ReceiptFile]{
	{Title: "file", Text: func(f v1.ReceiptFile) string { return f.Path }, Share: 1},
	{Title: "size", Text: func(f v1.ReceiptFile) string { return terminal.Size(f.Size) },
		Raw: func(f v1.ReceiptFile) string { return strconv.FormatInt(f.Size, 10) }},
	{Title: "verified", Text: givenText},
	{Title: "sha256", Text: func(f v1.ReceiptFile) string { return f.Digests["sha256"] }, Share: 1},
}

// givenText is the algorithm of the digest that the depositor gave of a file.
func givenText(f v1.ReceiptFile) string {
	if f.Given == nil {
		return ""
	}
	return f.Given.Algorithm
}

// jobActCmd acts on a job, or on all that the flags select.
type jobActCmd struct {
	ID string `arg:"" optional:"" name:"job" help:"Id of a job."`
	acting
	selection
}

// prints is the result of an action on one job, or an operation.
func (c jobActCmd) prints() any {
	if c.selects() {
		return operationReport{}
	}
	return v1.JobActionResult{}
}

// Run does the action that the command is named after.
func (c *jobActCmd) Run(a *app, k *kong.Context) error { return c.act(a, k, ending{}, nil) }

// jobHoldCmd holds a job.
type jobHoldCmd struct {
	jobActCmd
	ending
}

// Run is that of jobActCmd, with an end.
func (c *jobHoldCmd) Run(a *app, k *kong.Context) error { return c.act(a, k, c.ending, nil) }

// jobPrioritizeCmd sets the priority of a job.
type jobPrioritizeCmd struct {
	jobActCmd
	Priority int `required:"" help:"From 0 (first) to 999 (last)." placeholder:"N"`
}

// Run is that of jobActCmd, with a priority.
func (c *jobPrioritizeCmd) Run(a *app, k *kong.Context) error {
	return c.act(a, k, ending{}, &c.Priority)
}

// act acts on the job and prints the result.
func (c *jobActCmd) act(a *app, k *kong.Context, e ending, priority *int) error {
	in, err := a.request(k, c.acting, e)
	if err != nil {
		return err
	}
	in.Priority = priority
	switch {
	case c.selects() == (c.ID != ""):
		return usage("give the id of a job, or select jobs with --batch, --collection or --state")
	case c.selects():
		return c.bulk(a, in, c.Key)
	}
	r, err := a.client.ActOnJob(a.ctx, c.ID, in, cmp.Or(c.Key, rand.Text()))
	if err != nil {
		return a.confirmable(err)
	}
	return a.print(r, func(p terminal.Page) {
		a.acted(p, r.ActionOutcome, r.Warnings, in.Reason)
		state := cmp.Or(r.To, r.State) // a change of state is that of the action, not of what the job did since
		if p.ForPeople() && r.Changed && !v1.Ended(state) && state != v1.Held {
			p.Fields("follow it", "archivist job watch "+r.ID)
		}
	})
}

// warned prints the warnings for the depositor.
func warned(p terminal.Page, warnings []string) {
	for _, w := range warnings {
		p.Fields("warning", w)
	}
}
