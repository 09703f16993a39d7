package jobs

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"archivist/cmd/archivist/command"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/terminal"
)

// Cmd is for operators and depositors: a job is the ingest of one object. Its actions take the id of one job, or
// the flags that select several.
type Cmd struct {
	List    jobListCmd    `cmd:"" help:"List jobs: of all collections, of one, or of a batch."`
	Show    jobShowCmd    `cmd:"" help:"Show a job and its events."`
	Receipt jobReceiptCmd `cmd:"" help:"Show the receipt of a job: each preserved file with its digests."`

	Hold       jobHoldCmd       `cmd:"" help:"Hold a pending job: it waits until it is released."`
	Release    jobActCmd        `cmd:"" help:"Release a held job: it continues."`
	Requeue    jobActCmd        `cmd:"" help:"Requeue a failed job: it continues at the step that failed."`
	Counts     jobCountsCmd     `cmd:"" help:"Count the jobs that wait, run, are held or have failed, by collection."`
	Fail       jobActCmd        `cmd:"" help:"Fail a job that has started."`
	Delete     jobActCmd        `cmd:"" help:"Delete a failed or held job."`
	Prioritize jobPrioritizeCmd `cmd:"" help:"Set the priority of a job."`
	CleanUp    jobActCmd        `cmd:"" help:"Remove the work files of a failed job now."`
}

// jobListCmd lists the jobs of all collections, of one, or of a batch, which belongs to one collection.
type jobListCmd struct {
	Collection string   `short:"c" xor:"of" help:"Only jobs of this collection." placeholder:"NAME"`
	Batch      string   `short:"b" xor:"of" help:"Jobs of this batch, in its order." placeholder:"ID"`
	State      jobState `help:"Only jobs in this state, e.g. failed." placeholder:"STATE"`
	Callback   callback `help:"Of a batch: only jobs with such a callback." placeholder:"STATE"`
	Sort       jobSort  `help:"By state, since, space or title." placeholder:"FIELD"`
	LocalID    string   `help:"Only jobs with this local id." placeholder:"ID"`
	ARK        string   `help:"Only jobs of the object with this ARK." placeholder:"ARK"`
	found
	command.Limit
}

// found are the filters that lists of batches and of jobs have in common.
type found struct {
	Submitter string    `help:"Only those of this submitter." placeholder:"NAME"`
	Message   string    `help:"Only those whose message has this text." placeholder:"TEXT"`
	After     string    `help:"Only those created then or later: a day or a time." placeholder:"TIME"`
	Before    string    `help:"Only those created before that." placeholder:"TIME"`
	Order     listOrder `help:"newest or oldest; with --sort: ascending or descending." placeholder:"ORDER"`
}

func (f found) filter() v1.Filter {
	return v1.Filter{Submitter: f.Submitter, Message: f.Message, After: f.After, Before: f.Before,
		Order: string(f.Order)}
}

func (jobListCmd) Prints() any { return v1.Job{} }

// Run lets the API filter and sort. The list of a batch has the filter by state only.
func (c *jobListCmd) Run(a *command.App) error {
	filter := c.filter()
	filter.LocalID, filter.ARK = c.LocalID, c.ARK
	if c.Batch != "" && filter != (v1.Filter{Order: string(c.Order)}) {
		return command.Usage("of the filters, --batch takes --state and --callback only")
	}
	if c.Batch == "" && c.Callback != "" {
		return command.Usage("--callback needs --batch: no list of more has what became of " +
			"callbacks")
	}

	filter.Collection, filter.Batch, filter.State, filter.Limit = c.Collection, c.Batch, string(c.State), c.More()
	filter.Sort, filter.Callback = string(c.Sort), string(c.Callback)
	return command.List(a, c.Limit, jobColumns...)(a.Client.Jobs(a.Ctx, filter))
}

// jobColumns has few columns for people: an id takes 32 of the 80 columns of a terminal. The result is in one
// column for them; programs get its parts.
var jobColumns = []terminal.Column[v1.Job]{
	{Title: "job", Text: func(j v1.Job) string { return j.ID }},
	{Title: "state", Text: func(j v1.Job) string { return j.State }, Style: command.StateStyle},
	{
		Title: "local id",
		Text:  func(j v1.Job) string { return strings.Join(j.Identifiers.Local, ", ") },
		Share: 1,
	},
	{Title: "result", Text: resultOf, Share: 2, Human: true},

	{Text: func(j v1.Job) string { return j.Identifiers.Primary }},
	{Text: func(j v1.Job) string { return command.VersionText(j.Version) }},
	{Text: func(j v1.Job) string { return strconv.Itoa(j.Progress.Files) }},
	{Text: func(j v1.Job) string { return strconv.FormatInt(j.Progress.Bytes, 10) }},
	{Text: func(j v1.Job) string { return j.Message }},
}

// resultOf is the result of a job for people: its error, else its object, "" while it has neither.
func resultOf(j v1.Job) string {
	if j.Message != "" {
		return causeOf(j.Message)
	}
	return j.Identifiers.Primary
}

var (
	// beforeCause is what a message says before its cause, up to the first URL or the name of a file.
	beforeCause = regexp.MustCompile(
		`^(?:[^:]*: )?https?://\S+?(?:: | )(?:answered |the server answers )?|^file [^:]+: `)
	// beforeRefusal is what Go says of a connection before why there is none.
	beforeRefusal = regexp.MustCompile(`^dial \w+(?: \S+: (?:connect: )?|: lookup \S+(?: on \S+)?: )`)
)

// causeOf is a message that begins with its cause, for a column of a list, which has no room for what was asked of
// whom; job show has all of it.
func causeOf(message string) string {
	short := message
	for _, context := range []*regexp.Regexp{beforeCause, beforeCause, beforeRefusal} {
		short = short[len(context.FindString(short)):]
	}
	return cmp.Or(short, message)
}

// jobShowCmd shows the past of a job; explain shows what it waits for. With --watch it shows its current step.
type jobShowCmd struct {
	ID string `arg:"" name:"job" help:"Id of a job."`
	command.Followed
}

// jobWithEvents is the output for a job, with its events, the oldest first.
type jobWithEvents struct {
	v1.Job
	Events []v1.Event `json:"events"`
}

// Prints is the job with its events or, with --watch, the job each time it has changed.
func (c jobShowCmd) Prints() any {
	if c.Watch {
		return v1.Job{}
	}
	return jobWithEvents{}
}

// Run makes two requests: the job, and its events. The job may go on between them, so that there is an event
// which the state does not show yet.
func (c *jobShowCmd) Run(a *command.App) error {
	if c.Watch {
		return watchJob(a, c.ID)
	}

	j, err := a.Client.Job(a.Ctx, c.ID)
	if err != nil {
		return err
	}

	events, err := a.Client.Events(a.Ctx, c.ID)
	if err != nil {
		return err
	}
	return a.Print(jobWithEvents{j, events}, func(p terminal.Page) {
		// Most jobs have none, which is not worth a line.
		retries := ""
		if j.RetryCount > 0 {
			retries = strconv.Itoa(j.RetryCount)
		}

		recoverable := ""
		if j.Recoverable {
			recoverable = "yes: requeue it once the cause is corrected"
		}

		p.Fields("job", j.ID, "batch", j.Batch, "collection", j.Collection,
			"title", j.Title, "source", j.Source, "created", j.Created, "state", j.State,
			"message", j.Message, "recoverable", recoverable,
			"held", holdText(j.Hold),
			"last success", j.LastSuccessfulState, "ark", j.Identifiers.Primary, "version",
			command.VersionText(j.Version),
			"local ids", strings.Join(j.Identifiers.Local, ", "), "files",
			strconv.Itoa(j.Progress.Files),
			"size", terminal.Size(j.Progress.Bytes), "so far", j.Progress.Done,
			"container", containerText(j.Container),
			"update", updateText(j.Update), "priority", strconv.Itoa(j.Priority),
			"retries", retries)

		warned(p, j.Warnings)
		noticed(p, "callback", j.Callbacks)
		if len(j.Stages) > 0 && p.ForPeople() {
			fmt.Fprintln(p)
			terminal.Table(p, j.Stages, stageColumns...)
		}

		fmt.Fprintln(p)
		terminal.Table(p, events, eventColumns...)
	})
}

// stageColumns show how long a job was in its states.
var stageColumns = []terminal.Column[v1.JobStage]{
	{Title: "state", Text: func(s v1.JobStage) string { return s.State }},
	{Title: "since", Text: func(s v1.JobStage) string { return s.Since }},
	{Title: "took", Text: func(s v1.JobStage) string {
		if s.Until == "" {
			return ""
		}
		return time.Duration(s.Seconds * float64(time.Second)).Round(time.Millisecond).String()
	}},
	{Title: "times", Text: func(s v1.JobStage) string { return strconv.Itoa(s.Times) }},
	{Title: "tries", Text: func(s v1.JobStage) string {
		if s.Tries == 0 {
			return ""
		}
		return strconv.Itoa(s.Tries)
	}},
}

// containerText is the container that a job's files come from, "" if there is none.
func containerText(c *v1.JobContainer) string {
	if c == nil {
		return ""
	}
	text := fmt.Sprintf("%s (%s, %s)", c.Name, c.Kind, terminal.Size(c.Size))
	if c.Fetched > 0 {
		text += fmt.Sprintf("; %s fetched", terminal.Count(c.Fetched, "file"))
	}
	return text
}

// updateText is what an update made of the files of the version before, "" if the job is none.
func updateText(u *v1.JobUpdate) string {
	if u == nil {
		return ""
	}
	return fmt.Sprintf("%s; %d kept from the version before, %d deleted", terminal.Count(u.Files, "file"), u.Kept,
		u.Deleted)
}

// eventColumns show the reason of an event, if it has one, instead of its whole detail, and the person instead
// of the component if there was one. Programs get all.
var eventColumns = []terminal.Column[v1.Event]{
	{Title: "#", Text: func(e v1.Event) string { return strconv.FormatInt(e.Version, 10) }},
	{Title: "time", Text: func(e v1.Event) string { return e.Time }},
	{Title: "event", Text: func(e v1.Event) string { return e.Type }},
	{
		Title: "outcome",
		Text:  func(e v1.Event) string { return e.Outcome },
		Style: command.StateStyle,
	},
	{
		Title: "by",
		Text:  func(e v1.Event) string { return cmp.Or(e.Actor, e.Component) },
		Raw:   func(e v1.Event) string { return e.Component },
		Share: 1,
	},
	{
		Title: "detail",
		Text:  detailText,
		Raw:   func(e v1.Event) string { return string(e.Detail) },
		Share: 2,
	},
	{Text: func(e v1.Event) string { return e.Actor }},
}

// detailText is the reason that an event gives, or all of its detail as JSON.
func detailText(e v1.Event) string {
	var detail struct{ Reason string }
	if json.Unmarshal(e.Detail, &detail) == nil && detail.Reason != "" {
		return detail.Reason
	}
	return string(e.Detail)
}

// jobReceiptCmd shows the proof for the depositor: it is read from the stored object, not from what the job has
// reported.
type jobReceiptCmd struct {
	ID  string `arg:"" name:"job" help:"Id of a job."`
	CSV bool   `name:"csv" help:"Print its files as CSV."`
}

func (jobReceiptCmd) Prints() any { return v1.Receipt{} }

// Run reads all pages, so that the receipt is complete: a depositor keeps it as a proof.
func (c *jobReceiptCmd) Run(a *command.App) error {
	if c.CSV && len(a.JSON) > 0 {
		return errTwoForms
	}
	if c.CSV {
		return a.Client.ReceiptCSV(a.Ctx, c.ID, a.Out)
	}
	r, err := a.Client.Receipt(a.Ctx, c.ID)
	if err != nil {
		return err
	}
	return a.Print(r, func(p terminal.Page) {
		// Content that is the same as that of the version before makes none.
		change := ""
		if r.NoChange {
			change = "none: no version was created"
		}
		p.Fields("job", r.Job, "batch", r.Batch, "ark", r.ARK, "version", command.VersionText(r.Version),
			"change", change, "created", r.Created)
		warned(p, r.Warnings)
		fmt.Fprintln(p)
		terminal.Table(p, r.Files, receiptColumns...)
	})
}

// receiptColumns show for each file which of the depositor's digests was verified, "" for a file without one,
// and the SHA-256 that the archive has computed.
var receiptColumns = []terminal.Column[v1.ReceiptFile]{
	{Title: "file", Text: func(f v1.ReceiptFile) string { return f.Path }, Share: 1},
	{
		Title: "size",
		Text:  func(f v1.ReceiptFile) string { return terminal.Size(f.Size) },
		Raw:   func(f v1.ReceiptFile) string { return strconv.FormatInt(f.Size, 10) },
	},
	{Title: "verified", Text: givenText},
	{Title: "sha256", Text: func(f v1.ReceiptFile) string { return f.Digests["sha256"] }, Share: 1},
	{Title: "warning", Text: func(f v1.ReceiptFile) string { return f.Warning }, Share: 1},
}

// givenText is the algorithm of the digest that the depositor gave of a file.
func givenText(f v1.ReceiptFile) string {
	if f.Given == nil {
		return ""
	}
	return f.Given.Algorithm
}

// jobActCmd acts on a job, or on all that the flags select: exactly one of the two.
type jobActCmd struct {
	ID string `arg:"" optional:"" name:"job" help:"Id of a job."`
	acting
	selection
}

// Prints is the result of an action on one job, or an operation.
func (c jobActCmd) Prints() any {
	if c.selects() {
		return operationReport{}
	}
	return v1.JobActionResult{}
}

// Run does the action that the command is named after.
func (c *jobActCmd) Run(a *command.App, k *kong.Context) error { return c.act(a, k, ending{}, nil) }

// jobHoldCmd holds a job, or all that the flags select, until a person releases it or until the hold's end.
type jobHoldCmd struct {
	jobActCmd
	ending
}

// Run is that of jobActCmd, with an end.
func (c *jobHoldCmd) Run(a *command.App, k *kong.Context) error { return c.act(a, k, c.ending, nil) }

// jobPrioritizeCmd sets the priority of a job: 0 is first, 999 last.
type jobPrioritizeCmd struct {
	jobActCmd
	Priority int `required:"" help:"From 0 (first) to 999 (last)." placeholder:"N"`
}

// Run is that of jobActCmd, with a priority.
func (c *jobPrioritizeCmd) Run(a *command.App, k *kong.Context) error {
	return c.act(a, k, ending{}, &c.Priority)
}

// act acts on the job and prints the result, or starts an operation on the selected jobs. priority is nil but
// for prioritize.
func (c *jobActCmd) act(a *command.App, k *kong.Context, e ending, priority *int) error {
	in, err := request(a, k, c.acting, e)
	if err != nil {
		return err
	}

	in.Priority = priority
	switch {
	// Both or neither: it is not clear on what to act.
	case c.selects() == (c.ID != ""):
		return command.Usage("give the id of a job, or select jobs with --batch, --collection or --state")
	case c.selects():
		return c.bulk(a, in, c.Key)
	}

	r, err := a.Client.ActOnJob(a.Ctx, c.ID, in, cmp.Or(c.Key, rand.Text()))
	if err != nil {
		return confirmable(a, err)
	}
	return a.Print(r, func(p terminal.Page) {
		acted(a, p, r.ActionOutcome, r.Warnings, in.Reason)
		state := cmp.Or(r.To, r.State) // a change of state is that of the action, not of what the job did since
		if p.ForPeople() && r.Changed && !v1.Ended(state) && state != v1.Held {
			p.Fields("follow it", "archivist job show "+r.ID+" --watch")
		}
	})
}

// warned prints the warnings for the depositor, a field for each.
func warned(p terminal.Page, warnings []string) {
	for _, w := range warnings {
		p.Fields("warning", w)
	}
}
