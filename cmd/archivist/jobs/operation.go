package jobs

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"archivist/cmd/archivist/command"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/terminal"
)

// OperationCmd is for bulk operations, which commands such as job requeue --batch start, and for runs of the
// doctor.
type OperationCmd struct {
	List      operationListCmd `cmd:"" help:"List bulk operations, newest first."`
	Show      operationShowCmd `cmd:"" help:"Show a bulk operation, and what it refused or found."`
	Interrupt operationActCmd  `cmd:"" help:"Stop a bulk operation. What is done, stays done."`
	Continue  operationActCmd  `cmd:"" help:"Continue an interrupted bulk operation."`
}

// operationReport is the output for an operation: what it refused or found is there when it has ended, each with
// as many as the limit allows.
type operationReport struct {
	v1.Operation
	Refusals []v1.Refusal `json:"refusals"`
	Findings []v1.Finding `json:"findings"`

	Items []v1.OperationItem `json:"items,omitempty"` // with --jobs
}

// operationListCmd finds an operation whose id is not known: they are kept for 90 days.
type operationListCmd struct{ command.Limit }

func (operationListCmd) Prints() any { return v1.Operation{} }

// Run requests one operation more than is shown, to detect that there are more.
func (c *operationListCmd) Run(a *command.App) error {
	return command.List(a, c.Limit, operationColumns...)(a.Client.Operations(a.Ctx, c.More()))
}

// operationColumns have the result in words for people, and its numbers for programs, with who started it and
// why.
var operationColumns = []terminal.Column[v1.Operation]{
	{Title: "operation", Text: func(o v1.Operation) string { return o.ID }},
	{
		Title: "state",
		Text:  func(o v1.Operation) string { return o.State },
		Style: command.StateStyle,
	},
	{Title: "action", Text: func(o v1.Operation) string { return o.Action }},
	{Title: "result", Text: shortResult, Human: true},
	{
		Title: "started",
		Text:  func(o v1.Operation) string { return command.Minute(o.Started) },
		Raw:   func(o v1.Operation) string { return o.Started },
		Share: 1,
	},
	{Title: "jobs", Text: selectedText, Share: 1},

	{Text: func(o v1.Operation) string { return strconv.Itoa(o.Counts.Planned) }},
	{Text: func(o v1.Operation) string { return strconv.Itoa(o.Counts.Done) }},
	{Text: func(o v1.Operation) string { return strconv.Itoa(o.Counts.Refused) }},
	{Text: func(o v1.Operation) string { return strconv.Itoa(o.Counts.Findings) }},
	{Text: func(o v1.Operation) string { return o.Actor }},
	{Text: func(o v1.Operation) string { return o.Reason }},
}

// shortResult is how far an operation is, for a table: done and planned jobs, or what the doctor has found.
func shortResult(o v1.Operation) string {
	n := o.Counts
	if o.Action == v1.Doctor {
		return terminal.Count(n.Findings, "finding")
	}
	text := fmt.Sprintf("%d/%d", n.Done, n.Planned)
	if n.Refused > 0 {
		text += fmt.Sprintf(", %d refused", n.Refused)
	}
	return text
}

// selectedText describes the jobs that an operation selects, in the words of the flags; "" for the doctor.
func selectedText(o v1.Operation) string {
	if o.Filter == nil {
		return ""
	}

	f := *o.Filter
	text := strings.TrimSpace(f.State + " jobs")
	for _, part := range []struct{ before, value string }{
		{" of batch ", f.Batch}, {" of collection ", f.Collection}, {" since before ", f.Before}} {
		if part.value != "" {
			text += part.before + part.value
		}
	}

	if f.Message != "" {
		text += fmt.Sprintf(" with %q", f.Message)
	}

	if f.KeepOwnHolds {
		text += " without a hold of their own"
	}
	return text
}

// operationText is how far an operation is, or how it ended, for people.
func operationText(o v1.Operation) string {
	n := o.Counts
	if o.Action == v1.Doctor {
		text := fmt.Sprintf("%s checked, %s", terminal.Count(n.Checked, "item"),
			terminal.Count(n.Findings, "finding"))
		if n.Repaired > 0 {
			text += fmt.Sprintf(", %d repaired", n.Repaired)
		}
		return text
	}

	// A filter that matches nothing is the most usual mistake, so it is not told as "0 of 0 jobs done".
	if n.Planned == 0 && o.State == v1.OperationDone {
		return "no job matches"
	}

	done := "done"
	if o.DryRun {
		done = "would be done"
	}

	text := fmt.Sprintf("%d of %s %s", n.Done, terminal.Count(n.Planned, "job"), done)
	// While jobs are being selected, the number rises, and a share of it would fall.
	if o.Planning && o.State != v1.OperationDone {
		text = fmt.Sprintf("%s found so far", terminal.Count(n.Planned, "job"))
	}

	if n.Refused > 0 {
		text += fmt.Sprintf(", %d refused", n.Refused)
	}
	return text
}

// operationShowCmd shows an operation that runs or has ended. What it has refused or found so far is shown, too.
type operationShowCmd struct {
	ID   string `arg:"" name:"operation" help:"Id of a bulk operation."`
	Jobs bool   `xor:"look" help:"List all jobs, with what was done or would be done, in addition to those refused."`
	// It follows counts, not jobs: the two flags exclude each other.
	Watch bool `xor:"look" short:"w" help:"Follow it until it has ended."`
	command.Limit
}

func (operationShowCmd) Prints() any { return operationReport{} }

// Run makes two requests: the operation, and what it refused or found. A third lists its jobs. With --watch it
// fails if the operation has refused or found something.
func (c *operationShowCmd) Run(a *command.App) error {
	if c.Watch {
		return followOperation(a, c.ID)
	}

	o, err := a.Client.Operation(a.Ctx, c.ID)
	if err != nil {
		return err
	}

	r, err := detailsOf(a, o, c.More())
	if err != nil {
		return err
	}

	// An empty list is not reported as one that was not found.
	if len(r.Refusals) > 0 {
		r.Refusals = command.Limited(a, c.Limit, r.Refusals)
	}

	if len(r.Findings) > 0 {
		r.Findings = command.Limited(a, c.Limit, r.Findings)
	}

	if c.Jobs {
		items, err := a.Client.Items(a.Ctx, c.ID, c.More())
		if err != nil {
			return err
		}
		r.Items = command.Limited(a, c.Limit, items)
	}
	return a.Print(r, r.show)
}

// detailsOf adds to an operation what it refused or found, at most so many; 0 is no limit. Refusals are
// requested only if the counts have some, findings of the doctor always.
func detailsOf(a *command.App, o v1.Operation, most int) (r operationReport, err error) {
	r.Operation = o
	if o.Action == v1.Doctor {
		r.Findings, err = a.Client.Findings(a.Ctx, o.ID, most)
	} else if o.Counts.Refused > 0 {
		r.Refusals, err = a.Client.Refusals(a.Ctx, o.ID, most)
	}
	return r, err
}

// show prints an operation.
func (r operationReport) show(p terminal.Page) {
	dry := ""
	if r.DryRun {
		dry = "nothing is changed"
	}
	p.Fields("operation", r.ID, "action", r.Action, "jobs", selectedText(r.Operation), "state",
		r.State, "dry run", dry,
		"result", operationText(r.Operation), "progress", r.Progress, "reason", r.Reason, "by",
		r.Actor,
		"started", r.Started, "ended", r.Ended, "execution", r.Execution)
	r.showDetails(p)
}

// showDetails prints what an operation refused or found: for people a paragraph for each with the command that
// repairs it, for programs rows.
func (r operationReport) showDetails(p terminal.Page) {
	if !p.ForPeople() {
		terminal.Table(p, r.Refusals, refusalColumns...)
		terminal.Table(p, r.Findings, findingColumns...)
		terminal.Table(p, r.Items, itemColumns...)
		return
	}

	for _, i := range r.Items {
		if i.Outcome != v1.ItemRefused { // these follow
			fmt.Fprintf(p, "\n%s  %s\n", i.Outcome, terminal.Printable(i.Job))
			p.Lines("  ", i.Message)
		}
	}

	for _, refused := range r.Refusals {
		fmt.Fprintf(p, "\n%s  %s\n", terminal.Red.Of("refused"), terminal.Printable(refused.Job))
		p.Lines("  ", refused.Reason)
	}

	for _, f := range r.Findings {
		showFinding(p, f)
	}
}

// itemColumns are for programs only.
var itemColumns = []terminal.Column[v1.OperationItem]{
	{Text: func(i v1.OperationItem) string { return i.Job }},
	{Text: func(i v1.OperationItem) string { return i.Outcome }},
	{Text: func(i v1.OperationItem) string { return i.Message }},
}

// refusalColumns are for programs only.
var refusalColumns = []terminal.Column[v1.Refusal]{
	{Text: func(r v1.Refusal) string { return r.Job }},
	{Text: func(r v1.Refusal) string { return r.Reason }},
}

// showFinding prints a finding for people: what is wrong, of what, the evidence, and the command that helps,
// unless it has been repaired.
func showFinding(p terminal.Page, f v1.Finding) {
	state := terminal.Red.Of("broken")
	if f.Repaired {
		state = terminal.Green.Of("repaired")
	}
	fmt.Fprintf(p, "\n%s  %s  %s\n", state, terminal.Printable(f.Invariant),
		terminal.Printable(f.Subject))
	p.Lines("  ", f.Evidence)
	if f.Command != "" && !f.Repaired {
		fmt.Fprintf(p, "  %s\n", terminal.Printable(f.Command))
	}
}

// findingColumns are for programs only: the rule that is broken, of what, whether it was repaired, how one sees
// it, and the command that helps.
var findingColumns = []terminal.Column[v1.Finding]{
	{Text: func(f v1.Finding) string { return f.Invariant }},
	{Text: func(f v1.Finding) string { return f.Subject }},
	{Text: func(f v1.Finding) string { return strconv.FormatBool(f.Repaired) }},
	{Text: func(f v1.Finding) string { return f.Evidence }},
	{Text: func(f v1.Finding) string { return f.Command }},
}

// operationActCmd interrupts or continues an operation.
type operationActCmd struct {
	ID     string `arg:"" name:"operation" help:"Id of a bulk operation."`
	Reason string `required:"" help:"Why. It is kept in the events." placeholder:"TEXT"`
}

func (operationActCmd) Prints() any { return v1.Operation{} }

// Run does the action that the command is named after.
func (c *operationActCmd) Run(a *command.App, k *kong.Context) error {
	in := v1.OperationAction{Action: k.Selected().Name, Reason: c.Reason}
	o, err := a.Client.ActOnOperation(a.Ctx, c.ID, in)
	if err != nil {
		return err
	}
	return a.Print(o, operationReport{Operation: o}.show)
}

// DoctorCmd checks the system with an operation that reads everything, page by page: rows, the storage root, and
// work files.
type DoctorCmd struct {
	Repair bool   `help:"Repair what can be repaired without loss."`
	Reason string `help:"Why. It is kept in the events." default:"a check" placeholder:"TEXT"`
	Key    string `name:"idempotency-key" help:"${help_action_key}" placeholder:"KEY"`
	command.FollowedByDefault
}

// Prints is an empty value of what it prints; its fields are those of --json.
func (DoctorCmd) Prints() any { return operationReport{} }

// Run fails with the exit code of a conflict if there are findings that are not repaired. Without --watch it
// only starts the operation.
func (c *DoctorCmd) Run(a *command.App) error {
	in := v1.OperationRequest{Action: v1.Doctor, Repair: c.Repair}
	in.Reason = c.Reason
	return startOperation(a, in, c.Key, c.Watch)
}

// startOperation starts an operation and follows it, or prints its id. After a dry run it prints the command
// that does what was shown, unless the user has interrupted it.
func startOperation(a *command.App, in v1.OperationRequest, key string, follow bool) error {
	o, err := a.Client.Start(a.Ctx, in, cmp.Or(key, rand.Text()))
	if err != nil {
		return err
	}

	if follow {
		fmt.Fprintf(a.Errors, "operation %s\n", terminal.Printable(o.ID))
		err := followOperation(a, o.ID)
		if in.DryRun && a.JSON == nil && a.Ctx.Err() == nil {
			showCommand(a.Page(), "to do it", again(a, []string{"--dry-run"}))
		}
		return err
	}
	return a.Print(operationReport{Operation: o}, func(p terminal.Page) {
		if !p.ForPeople() {
			fmt.Fprintln(p, terminal.Printable(o.ID))
			return
		}
		p.Fields("operation", o.ID, "state", o.State, "follow it",
			"archivist operation show "+o.ID+" --watch")
	})
}

// mostShown limits the refusals and findings that are listed when an operation has ended; operation show --limit
// 0 lists all.
const mostShown = 100

// followOperation shows an operation until it has ended, and then what it refused or found. The operation runs
// by itself: an interrupt, or an API that does not answer, ends only the command, which says how to follow and
// how to stop the operation.
func followOperation(a *command.App, id string) error {
	var last operationReport
	err := a.Watch(func() (command.Snapshot, error) {
		o, err := a.Client.Operation(a.Ctx, id)
		if err != nil {
			return command.Snapshot{}, err
		}
		last = operationReport{Operation: o}
		// The details are requested once, at the end: while it runs, the counts say enough.
		if o.State != v1.OperationRunning {
			last, err = detailsOf(a, o, mostShown)
		}
		return operationSnapshot(last), err
	})
	if a.Ctx.Err() != nil || fault.Is(err, fault.Unavailable) {
		fmt.Fprintf(a.Errors,
			"archivist: operation %s continues; to follow it, run archivist operation show %s --watch, "+
				"to stop it, archivist operation interrupt %s --reason TEXT\n", id, id, id)
		return err
	}

	if a.JSON == nil {
		last.showDetails(a.Page())
	}
	return err
}

// operationSnapshot summarizes an operation. It fails if it was interrupted, if jobs were refused, or if findings
// are left; how many jobs there are is known only when all are selected.
func operationSnapshot(r operationReport) command.Snapshot {
	o, n := r.Operation, r.Counts
	s := command.Snapshot{
		Things: []any{r},
		State:  o.State,
		Text:   operationText(o),
		Bar:    true,
		Over:   o.State != v1.OperationRunning,
	}

	// Until all jobs are selected there is no whole of which a part is done.
	if !o.Planning {
		s.Done, s.Of = int64(n.Done+n.Refused), int64(n.Planned)
	}

	if o.Progress != "" && !s.Over {
		s.Text += ", " + o.Progress
	}

	// What is repaired needs nobody.
	left := n.Findings - n.Repaired
	switch {
	case o.State == v1.OperationInterrupted:
		s.Failed = fault.New(fault.Conflict,
			"operation %s is interrupted; to let it do the rest, run "+
				"archivist operation continue %s --reason TEXT", o.ID, o.ID)
	case n.Refused > 0:
		s.Failed = fault.New(fault.Conflict,
			"%d of %s refused; archivist operation show %s lists them", n.Refused,
			terminal.Count(n.Planned, "job"), o.ID)
	case left > 0:
		s.Failed = fault.New(fault.Conflict,
			"%s not repaired; archivist operation show %s lists what was found",
			terminal.Count(left, "finding"), o.ID)
	}
	return s
}
