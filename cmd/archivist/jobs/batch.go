package jobs

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"archivist/cmd/archivist/command"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/terminal"
)

// BatchCmd is for depositors: a batch is one of their submissions. The first commands read, the others act on
// the batch and so on all of its jobs.
type BatchCmd struct {
	List   batchListCmd   `cmd:"" help:"List the batches of a collection, or of all, newest first."`
	Counts batchCountsCmd `cmd:"" help:"Count the batches that have not ended well, by state."`
	Show   batchShowCmd   `cmd:"" help:"Show a batch and its jobs."`
	Report batchReportCmd `cmd:"" help:"Show how each job of a batch ended, once the batch has ended."`

	CheckManifest checkManifestCmd `cmd:"" help:"Check a manifest against every rule, offline. Exit code 1: rejected."`
	CheckBag      checkBagCmd      `cmd:"" help:"Check that a bag is valid, offline. Exit code 1: it is not."`

	Uploads batchUploadsCmd `cmd:"" help:"List the uploads of a collection: files that are sent to be submitted."`
	Discard batchDiscardCmd `cmd:"" help:"Discard an upload that is not submitted; its files are removed."`

	Hold         batchHoldCmd `cmd:"" help:"Hold a batch: its waiting jobs do not start."`
	Release      batchActCmd  `cmd:"" help:"End the hold of a batch."`
	Cancel       batchActCmd  `cmd:"" help:"End all unfinished jobs of a batch; then it reports."`
	Delete       batchActCmd  `cmd:"" help:"Delete a failed or held batch with all its jobs."`
	UpdateReport batchActCmd  `cmd:"" help:"Report what has changed since the last report of a failed batch."`
	CleanUp      batchActCmd  `cmd:"" help:"Remove the rows of a completed batch before their retention ends."`
}

// batchListCmd finds a batch whose id is not known.
type batchListCmd struct {
	Collection string     `short:"c" help:"Only batches of this collection." placeholder:"NAME"`
	State      batchState `help:"Only batches in this state, e.g. failed." placeholder:"STATE"`
	Sort       batchSort  `help:"By state, since, jobs, failed, bytes or submitter." placeholder:"FIELD"`
	found
	command.Limit
}

func (batchListCmd) Prints() any { return v1.Batch{} }

// Run lists the newest batches first, unless they are sorted by something else. It requests one
// more than is shown, to detect that there are more.
func (c *batchListCmd) Run(a *command.App) error {
	columns := batchColumns
	if c.Collection == "" {
		columns = slices.Insert(slices.Clone(columns), 1, terminal.Column[v1.Batch]{Title: "collection",
			Text: func(b v1.Batch) string { return b.Collection }})
	}
	filter := c.filter()
	filter.Collection, filter.State, filter.Limit = c.Collection, string(c.State), c.More()
	filter.Sort = string(c.Sort)
	return command.List(a, c.Limit, columns...)(a.Client.Batches(a.Ctx, filter))
}

// batchColumns fit 80 columns without the note, which is the first to be left out. On 60 columns how many jobs have
// failed counts more than when the batch came.
var batchColumns = []terminal.Column[v1.Batch]{
	{Title: "batch", Text: func(b v1.Batch) string { return b.ID }},
	{Title: "state", Text: func(b v1.Batch) string { return b.State }, Style: command.StateStyle},
	{
		Title: "created",
		Text:  func(b v1.Batch) string { return command.Minute(b.Created) },
		Raw:   func(b v1.Batch) string { return b.Created },
		Extra: true,
	},
	{Title: "jobs", Text: func(b v1.Batch) string { return strconv.Itoa(b.Counts.Expected) }},
	{Title: "done", Text: func(b v1.Batch) string {
		return strconv.FormatInt(b.Counts.Completed, 10)
	}},
	{Title: "failed", Text: func(b v1.Batch) string {
		return strconv.FormatInt(b.Counts.Failed, 10)
	}},
	{Title: "note", Text: func(b v1.Batch) string { return b.Note }, Share: 1},
	{Title: "submitter", Text: func(b v1.Batch) string { return b.Submitter }, Share: 1},
}

// batchShowCmd shows the state of a running batch; its report shows how it ended. Several batches are followed
// together: one line has the sum of their jobs.
type batchShowCmd struct {
	IDs []string `arg:"" name:"batch" help:"Id of a batch; several with --watch."`
	command.Followed
}

// batchWithJobs is the output for a batch: as text with the first 100 jobs only, as JSON with all jobs if that
// field is requested. A batch can have a million of them.
type batchWithJobs struct {
	v1.Batch
	Jobs []v1.Job `json:"jobs"`
}

// Prints is the batch with its jobs or, with --watch, the batch each time it has changed.
func (c batchShowCmd) Prints() any {
	if c.Watch {
		return v1.Batch{}
	}
	return batchWithJobs{}
}

// Run makes two requests: the batch with its counts, and its first jobs. Between them the batch can go on, so
// the counts and the jobs may differ. With --watch it fails with the exit code of a conflict if a batch fails, so
// that scripts can detect it. That ends also when all that go on are on hold, which it says: a person must come.
func (c *batchShowCmd) Run(a *command.App) error {
	if c.Watch {
		return watchBatches(a, c.IDs)
	}

	if len(c.IDs) > 1 {
		return command.Usage("give one batch; several are followed with --watch")
	}

	b, err := a.Client.Batch(a.Ctx, c.IDs[0])
	if err != nil {
		return err
	}

	// Text has the first jobs; JSON has either all of them or, if the field is not requested, does not show
	// them.
	shown := command.Limit{Limit: 100}
	if slices.Contains(a.JSON, "jobs") {
		shown.Limit = 0
	}

	jobs, err := a.Client.Jobs(a.Ctx, v1.Filter{Batch: b.ID, Limit: shown.Limit})
	if err != nil {
		return err
	}

	return a.Print(batchWithJobs{b, jobs}, func(p terminal.Page) {
		p.Fields("batch", b.ID, "state", b.State, "collection", b.Collection, "submitter",
			b.Submitter, "note", b.Note, "callback", b.Callback, "upload", b.Upload,
			"created", b.Created, "jobs", countsText(b.Counts), "content", contentText(b.Bytes),
			"message", b.Message, "held", holdText(b.Hold),
			"cancelled", cancelledText(b), "report", reportText(b),
			"callbacks", callbacksText(b.Callbacks))

		warned(p, b.Warnings)
		noticed(p, "mail", b.Mails)
		for _, m := range b.MailProblems {
			if len(b.Mails) == 0 { // an API of an earlier version
				p.Fields("mail", m.Text)
			}
		}

		calledBack(p, jobs)

		fmt.Fprintln(p)
		terminal.Table(p, jobs, jobColumns...)
		if hidden := b.Counts.Expected - len(jobs); hidden > 0 && len(jobs) == shown.Limit {
			p.Lines("", fmt.Sprintf("and %d more: archivist job list --batch %s --limit 0", hidden, b.ID))
		}
	})
}

// contentText is a size, "" if there is none.
func contentText(bytes int64) string {
	if bytes == 0 {
		return ""
	}
	return terminal.Size(bytes)
}

// reportText is how to see the reports of a batch, "" if there are none.
func reportText(b v1.Batch) string {
	switch {
	case b.Report == "":
		return ""
	case b.Reports > 1:
		return fmt.Sprintf("archivist batch report %s; the earlier ones: --number 1 to %d", b.ID, b.Reports-1)
	}
	return "archivist batch report " + b.ID
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
