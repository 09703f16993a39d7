package main

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/fault"
	"archivist/pkg/terminal"
)

// operationCmd is for bulk operations, which commands such as job requeue --batch start.
type operationCmd struct {
	List      operationListCmd  `cmd:"" help:"List bulk operations, newest first."`
	Show      operationShowCmd  `cmd:"" help:"Show a bulk operation, and what it refused or found."`
	Watch     operationWatchCmd `cmd:"" help:"Follow a bulk operation until it has ended."`
	Interrupt operationActCmd   `cmd:"" help:"Stop a bulk operation. What is done, stays done."`
	Continue  operationActCmd   `cmd:"" help:"Continue an interrupted bulk operation."`
}

// operationReport is the output for an operation: what it refused or found is there when it
// has ended.
type operationReport struct {
	v1.Operation
	Refusals []v1.Refusal `json:"refusals"`
	Findings []v1.Finding `json:"findings"`

	Items []v1.OperationItem `json:"items,omitempty"` // with --jobs
}

// operationListCmd finds an operation whose id is not known.
type operationListCmd struct{ limit }

func (operationListCmd) prints() any { return v1.Operation{} }

// Run requests one operation more than is shown, to detect that there are more.
func (c *operationListCmd) Run(a *app) error {
	list, err := a.client.Operations(a.ctx, c.more())
	if err != nil {
		return err
	}
	list = limited(a, c.limit, list)
	return a.print(list, func(p terminal.Page) { terminal.Table(p, list, operationColumns...) })
}

var operationColumns = []terminal.Column[v1.Operation]{
	{Title: "operation", Text: func(o v1.Operation) string { return o.ID }},
	{Title: "state", Text: func(o v1.Operation) string { return o.State }, Style: stateStyle},
	{Title: "action", Text: func(o v1.Operation) string { return o.Action }},
	{Title: "result", Text: shortResult, Human: true},
	{Title: "started", Text: func(o v1.Operation) string { return minute(o.Started) },
		Raw: func(o v1.Operation) string { return o.Started }, Share: 1},
	{Title: "jobs", Text: selectedText, Share: 1},

	{Text: func(o v1.Operation) string { return strconv.Itoa(o.Counts.Planned) }},
	{Text: func(o v1.Operation) string { return strconv.Itoa(o.Counts.Done) }},
	{Text: func(o v1.Operation) string { return strconv.Itoa(o.Counts.Refused) }},
	{Text: func(o v1.Operation) string { return strconv.Itoa(o.Counts.Findings) }},
	{Text: func(o v1.Operation) string { return o.Actor }},
	{Text: func(o v1.Operation) string { return o.Reason }},
}

// shortResult is how far an operation is, for a table.
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

// selectedText describes the jobs that an operation selects.
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

// operationText is how far an operation is, or how it ended.
func operationText(o v1.Operation) string {
	n := o.Counts
	if o.Action == v1.Doctor {
		text := fmt.Sprintf("%s checked, %s", terminal.Count(n.Checked, "item"), terminal.Count(n.Findings, "finding"))
		if n.Repaired > 0 {
			text += fmt.Sprintf(", %d repaired", n.Repaired)
		}
		return text
	}
	if n.Planned == 0 && o.State == v1.OperationDone {
		return "no job matches"
	}
	done := "done"
	if o.DryRun {
		done = "would be done"
	}
	text := fmt.Sprintf("%d of %s %s", n.Done, terminal.Count(n.Planned, "job"), done)
	if o.Planning && o.State != v1.OperationDone {
		text = fmt.Sprintf("%s found so far", terminal.Count(n.Planned, "job"))
	}
	if n.Refused > 0 {
		text += fmt.Sprintf(", %d refused", n.Refused)
	}
	return text
}

// operationShowCmd shows also an operation that runs.
type operationShowCmd struct {
	ID   string `arg:"" name:"operation" help:"Id of a bulk operation."`
	Jobs bool   `help:"List all jobs, with what was done or would be done, in addition to those refused."`
	limit
}

func (operationShowCmd) prints() any { return operationReport{} }

// Run makes two requests: the operation, and what it refused or found. A third lists its jobs.
func (c *operationShowCmd) Run(a *app) error {
	o, err := a.client.Operation(a.ctx, c.ID)
	if err != nil {
		return err
	}
	r, err := a.details(o, c.more())
	if err != nil {
		return err
	}
	if len(r.Refusals) > 0 {
		r.Refusals = limited(a, c.limit, r.Refusals)
	}
	if len(r.Findings) > 0 {
		r.Findings = limited(a, c.limit, r.Findings)
	}
	if c.Jobs {
		items, err := a.client.Items(a.ctx, c.ID, c.more())
		if err != nil {
			return err
		}
		r.Items = limited(a, c.limit, items)
	}
	return a.print(r, r.show)
}

// details adds to an operation what it refused or found.
func (a *app) details(o v1.Operation, most int) (r operationReport, err error) {
	r.Operation = o
	if o.Action == v1.Doctor {
		r.Findings, err = a.client.Findings(a.ctx, o.ID, most)
	} else if o.Counts.Refused > 0 {
		r.Refusals, err = a.client.Refusals(a.ctx, o.ID, most)
	}
	return r, err
}

// show prints an operation.
func (r operationReport) show(p terminal.Page) {
	dry := ""
	if r.DryRun {
		dry = "nothing is changed"
	}
	p.Fields("operation", r.ID, "action", r.Action, "jobs", selectedText(r.Operation), "state", r.State, "dry run", dry,
		"result", operationText(r.Operation), "progress", r.Progress, "reason", r.Reason, "by", r.Actor,
		"started", r.Started, "ended", r.Ended, "execution", r.Execution)
	r.showDetails(p)
}

// showDetails prints what an operation refused or found.
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

// showFinding prints a finding for people.
func showFinding(p terminal.Page, f v1.Finding) {
	state := terminal.Red.Of("broken")
	if f.Repaired {
		state = terminal.Green.Of("repaired")
	}
	fmt.Fprintf(p, "\n%s  %s  %s\n", state, terminal.Printable(f.Invariant), terminal.Printable(f.Subject))
	p.Lines("  ", f.Evidence)
	if f.Command != "" && !f.Repaired {
		fmt.Fprintf(p, "  %s\n", terminal.Printable(f.Command))
	}
}

// findingColumns are for programs only.
var findingColumns = []terminal.Column[v1.Finding]{
	{Text: func(f v1.Finding) string { return f.Invariant }},
	{Text: func(f v1.Finding) string { return f.Subject }},
	{Text: func(f v1.Finding) string { return strconv.FormatBool(f.Repaired) }},
	{Text: func(f v1.Finding) string { return f.Evidence }},
	{Text: func(f v1.Finding) string { return f.Command }},
}

// operationWatchCmd follows an operation that somebody has started.
type operationWatchCmd struct {
	ID string `arg:"" name:"operation" help:"Id of a bulk operation."`
}

func (operationWatchCmd) prints() any { return operationReport{} }

// Run fails if the operation has refused or found something.
func (c *operationWatchCmd) Run(a *app) error { return a.follow(c.ID) }

// operationActCmd interrupts or continues an operation.
type operationActCmd struct {
	ID     string `arg:"" name:"operation" help:"Id of a bulk operation."`
	Reason string `required:"" help:"Why. It is kept in the events." placeholder:"TEXT"`
}

func (operationActCmd) prints() any { return v1.Operation{} }

// Run does the action that the command is named after.
func (c *operationActCmd) Run(a *app, k *kong.Context) error {
	in := v1.OperationAction{Action: k.Selected().Name, Reason: c.Reason}
	o, err := a.client.ActOnOperation(a.ctx, c.ID, in)
	if err != nil {
		return err
	}
	return a.print(o, operationReport{Operation: o}.show)
}

// doctorCmd checks the system with an operation that reads everything, page by page.
type doctorCmd struct {
	Repair bool   `help:"Repair what can be repaired without loss."`
	Reason string `help:"Why. It is kept in the events." default:"a check" placeholder:"TEXT"`
	Key    string `name:"idempotency-key" help:"${help_action_key}" placeholder:"KEY"`
	Watch  bool   `default:"true" negatable:"" help:"Follow it until it has ended."`
}

func (doctorCmd) prints() any { return operationReport{} }

// Run fails if there are findings that are not repaired.
func (c *doctorCmd) Run(a *app) error {
	in := v1.OperationRequest{Action: v1.Doctor, Repair: c.Repair}
	in.Reason = c.Reason
	return a.start(in, c.Key, c.Watch)
}

// start starts an operation and follows it.
func (a *app) start(in v1.OperationRequest, key string, follow bool) error {
	o, err := a.client.Start(a.ctx, in, cmp.Or(key, rand.Text()))
	if err != nil {
		return err
	}
	if follow {
		fmt.Fprintf(a.errors, "operation %s\n", terminal.Printable(o.ID))
		err := a.follow(o.ID)
		if in.DryRun && a.json == nil && a.ctx.Err() == nil {
			showCommand(a.page(), "to do it", a.again([]string{"--dry-run"}))
		}
		return err
	}
	return a.print(operationReport{Operation: o}, func(p terminal.Page) {
		if !p.ForPeople() {
			fmt.Fprintln(p, terminal.Printable(o.ID))
			return
		}
		p.Fields("operation", o.ID, "state", o.State, "follow it", "archivist operation watch "+o.ID)
	})
}

// mostShown limits the refusals and findings that are listed when an operation has ended.
const mostShown = 100

// follow shows an operation until it has ended. It runs by itself: an interrupt ends only the
// command.
func (a *app) follow(id string) error {
	var last operationReport
	err := a.watch(func() (sight, error) {
		o, err := a.client.Operation(a.ctx, id)
		if err != nil {
			return sight{}, err
		}
		last = operationReport{Operation: o}
		if o.State != v1.OperationRunning {
			last, err = a.details(o, mostShown)
		}
		return operationSight(last), err
	})
	if a.ctx.Err() != nil || fault.Is(err, fault.Unavailable) {
		fmt.Fprintf(a.errors, "archivist: operation %s continues; to follow it, run archivist operation watch %s, "+
			"to stop it, archivist operation interrupt %s --reason TEXT\n", id, id, id)
		return err
	}
	if a.json == nil {
		last.showDetails(a.page())
	}
	return err
}

// operationSight summarizes an operation.
func operationSight(r operationReport) sight {
	o, n := r.Operation, r.Counts
	s := sight{things: []any{r}, state: o.State, text: operationText(o), bar: true,
		over: o.State != v1.OperationRunning}
	if !o.Planning {
		s.done, s.of = int64(n.Done+n.Refused), int64(n.Planned)
	}
	if o.Progress != "" && !s.over {
		s.text += ", " + o.Progress
	}
	left := n.Findings - n.Repaired
	switch {
	case o.State == v1.OperationInterrupted:
		s.failed = fault.New(fault.Conflict, "operation %s is interrupted; to let it do the rest, run "+
			"archivist operation continue %s --reason TEXT", o.ID, o.ID)
	case n.Refused > 0:
		s.failed = fault.New(fault.Conflict, "%d of %s refused; archivist operation show %s lists them", n.Refused,
			terminal.Count(n.Planned, "job"), o.ID)
	case left > 0:
		s.failed = fault.New(fault.Conflict, "%s not repaired; archivist operation show %s lists what was found",
			terminal.Count(left, "finding"), o.ID)
	}
	return s
}
