package components

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"slices"
	"strconv"

	"archivist/cmd/archivist/command"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/terminal"
)

// componentRunCmd starts a run now, also of a component that has a schedule, or that runs when an item is ready.
type componentRunCmd struct {
	componentName
	Reason string `required:"" help:"Why. It is kept with the run." placeholder:"TEXT"`
	// Without it the command ends at once: runs can last for hours.
	command.Followed
	Key string `name:"idempotency-key" help:"${help_action_key}" placeholder:"KEY"`
}

func (componentRunCmd) Prints() any { return v1.ComponentRun{} }

// Run starts a run. What is ready or running then is what it is expected to work on; it is counted before,
// because the run begins at once. Items that become ready meanwhile can be worked on, too.
func (c *componentRunCmd) Run(a *command.App) error {
	// It is read first, since it is not known afterwards how many items were ready.
	component, err := a.Client.Component(a.Ctx, c.Name)
	if err != nil {
		return err
	}

	run, err := a.Client.StartRun(a.Ctx, c.Name, v1.ComponentRunRequest{Reason: c.Reason},
		cmp.Or(c.Key, rand.Text()))
	if err != nil {
		return err
	}

	if c.Watch {
		return followRun(a, run, component.Counts.Ready+component.Counts.Running)
	}
	return command.Show(a, showRun)(run, nil)
}

// followRun shows a run until it has ended, which is expected to work on a number of items, and then the items
// that failed. The run goes on by itself: an interrupt, or an API that does not answer, ends only the command.
func followRun(a *command.App, run v1.ComponentRun, expected int64) error {
	last := run
	err := a.Watch(func() (s command.Snapshot, err error) {
		last, err = a.Client.Run(a.Ctx, run.Component, run.ID)
		return runSnapshot(last, expected), err
	})
	if a.Ctx.Err() != nil || fault.Is(err, fault.Unavailable) {
		fmt.Fprintf(a.Errors,
			"archivist: run %s continues; archivist component interrupt %s --reason TEXT ends it\n",
			run.ID, run.Component)
		return err
	}

	if a.JSON == nil {
		// What went well is a number; what failed needs a person.
		failed := slices.DeleteFunc(slices.Clone(last.Items),
			func(i v1.RunItem) bool { return i.State != "failure" })
		terminal.Table(a.Page(), failed, runItemColumns...)
	}
	return err
}

// runSnapshot summarizes a run. It fails if it was interrupted, or if items failed or are damaged. How many items
// there are is a guess, bounded by the most that a run works on: another run may take some of them.
func runSnapshot(r v1.ComponentRun, expected int64) command.Snapshot {
	n := r.Counts
	// Every end of the work on an item counts: what was asked for later is done for this run.
	done := n.Done + n.Failed + n.NotYet + n.Passed + n.Broken
	s := command.Snapshot{
		Things: []any{r},
		State:  r.State,
		Bar:    true,
		Over:   r.State != v1.RunGoing,
		Text:   runText(r),
		Done:   done,
		Of:     max(done, min(expected, int64(r.MaxItems))),
	}
	// The newest item shows that it goes on, also while the counts stay.
	if len(r.Items) > 0 && !s.Over {
		s.Text += ", newest: " + r.Items[0].Item + " " + r.Items[0].State
	}

	// Not yet, and not ready any more, are no failures.
	bad := n.Failed + n.Broken
	switch {
	case r.State == v1.RunInterrupted:
		s.Failed = fault.New(fault.Conflict,
			"run %s was interrupted; archivist component run %s --reason TEXT does "+
				"the rest", r.ID, r.Component)
	case bad > 0:
		s.Failed = fault.New(fault.Conflict,
			"%d of %s failed; archivist component line %s failed lists them", bad,
			terminal.Count(int(done), "item"), r.Component)
	}
	return s
}

// runText is what was done in a run, without what is 0. Not yet: the component asked for later; not ready any
// more: something else happened to the item before its turn.
func runText(r v1.ComponentRun) string {
	n := r.Counts
	text := fmt.Sprintf("%s done", terminal.Count(int(n.Done), "item"))
	for _, part := range []struct {
		n    int64
		what string
	}{{n.Failed, "failed"}, {n.NotYet, "not yet"}, {n.Passed, "not ready any more"},
		{n.Broken, "damaged"}} {
		if part.n > 0 {
			text += fmt.Sprintf(", %d %s", part.n, part.what)
		}
	}
	return text
}

// showRun prints a run with its newest items.
func showRun(p terminal.Page, r v1.ComponentRun) {
	p.Fields("run", r.ID, "component", r.Component, "state", r.State, "why", r.Why, "result",
		runText(r),
		"reason", r.Reason, "by", r.Actor, "started", r.Started, "ended", r.Ended, "definition",
		strconv.Itoa(r.Definition), "damaged", listed(r.Broken))
	if len(r.Items) > 0 {
		fmt.Fprintln(p)
		terminal.Table(p, r.Items, runItemColumns...)
	}
}

// runItemColumns have the id of the recorded event at the end, for programs.
var runItemColumns = []terminal.Column[v1.RunItem]{
	{Title: "item", Text: func(i v1.RunItem) string { return i.Item }, Share: 1},
	{
		Title: "result",
		Text:  func(i v1.RunItem) string { return i.State },
		Style: command.StateStyle,
	},
	{
		Title: "ended",
		Text:  func(i v1.RunItem) string { return command.Minute(i.Ended) },
		Raw:   func(i v1.RunItem) string { return i.Ended },
	},
	{Title: "reason", Text: func(i v1.RunItem) string { return i.Reason }, Share: 2},
	{Text: func(i v1.RunItem) string { return i.Event }},
}

// componentRunsCmd lists runs, or shows one with its newest items and what became of them.
type componentRunsCmd struct {
	componentName
	ID string `arg:"" optional:"" name:"run" help:"Id of a run, to show it with its newest items."`
	command.Limit
}

func (componentRunsCmd) Prints() any { return v1.ComponentRun{} }

// Run lists the newest runs first, or shows one. It requests one run more than is shown, to detect that there
// are more.
func (c *componentRunsCmd) Run(a *command.App) error {
	if c.ID != "" {
		return command.Show(a, showRun)(a.Client.Run(a.Ctx, c.Name, c.ID))
	}

	return command.List(a, c.Limit, runColumns...)(a.Client.Runs(a.Ctx, c.Name, c.More()))
}

// runColumns have the end, the person and the reason of a run for programs; people find these in its details.
var runColumns = []terminal.Column[v1.ComponentRun]{
	{Title: "run", Text: func(r v1.ComponentRun) string { return r.ID }},
	{
		Title: "state",
		Text:  func(r v1.ComponentRun) string { return r.State },
		Style: command.StateStyle,
	},
	{
		Title: "started",
		Text:  func(r v1.ComponentRun) string { return command.Minute(r.Started) },
		Raw:   func(r v1.ComponentRun) string { return r.Started },
	},
	{Title: "result", Text: runText, Share: 1},
	{Text: func(r v1.ComponentRun) string { return r.Ended }},
	{Text: func(r v1.ComponentRun) string { return r.Actor }},
	{Text: func(r v1.ComponentRun) string { return r.Reason }},
}
