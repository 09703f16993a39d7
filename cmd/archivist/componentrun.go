package main

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"slices"
	"strconv"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/fault"
	"archivist/pkg/terminal"
)

// componentRunCmd starts a run.
type componentRunCmd struct {
	componentName
	Reason string `required:"" help:"Why. It is kept with the run." placeholder:"TEXT"`
	Watch  bool   `short:"w" help:"Follow the run until it has ended."`
	Key    string `name:"idempotency-key" help:"${help_action_key}" placeholder:"KEY"`
}

func (componentRunCmd) prints() any { return v1.ComponentRun{} }

// Run starts a run. What is ready then is what it is expected to work on.
func (c *componentRunCmd) Run(a *app) error {
	component, err := a.client.Component(a.ctx, c.Name)
	if err != nil {
		return err
	}
	run, err := a.client.StartRun(a.ctx, c.Name, v1.ComponentRunRequest{Reason: c.Reason}, cmp.Or(c.Key, rand.Text()))
	if err != nil {
		return err
	}
	if c.Watch {
		return a.followRun(run, component.Counts.Ready+component.Counts.Running)
	}
	return a.print(run, func(p terminal.Page) { showRun(p, run) })
}

// followRun shows a run until it has ended, which is expected to work on a number of items.
func (a *app) followRun(run v1.ComponentRun, expected int64) error {
	last := run
	err := a.watch(func() (s sight, err error) {
		last, err = a.client.Run(a.ctx, run.Component, run.ID)
		return runSight(last, expected), err
	})
	if a.ctx.Err() != nil || fault.Is(err, fault.Unavailable) {
		fmt.Fprintf(a.errors, "archivist: run %s continues; archivist component interrupt %s --reason TEXT ends it\n",
			run.ID, run.Component)
		return err
	}
	if a.json == nil {
		failed := slices.DeleteFunc(slices.Clone(last.Items), func(i v1.RunItem) bool { return i.State != "failure" })
		terminal.Table(a.page(), failed, runItemColumns...)
	}
	return err
}

// runSight summarizes a run.
func runSight(r v1.ComponentRun, expected int64) sight {
	n := r.Counts
	done := n.Done + n.Failed + n.NotYet + n.Passed + n.Broken
	s := sight{things: []any{r}, state: r.State, bar: true, over: r.State != v1.RunGoing, text: runText(r),
		done: done, of: max(done, min(expected, int64(r.MaxItems)))}
	if len(r.Items) > 0 && !s.over {
		s.text += ", newest: " + r.Items[0].Item + " " + r.Items[0].State
	}
	bad := n.Failed + n.Broken
	switch {
	case r.State == v1.RunInterrupted:
		s.failed = fault.New(fault.Conflict, "run %s was interrupted; archivist component run %s --reason TEXT does "+
			"the rest", r.ID, r.Component)
	case bad > 0:
		s.failed = fault.New(fault.Conflict, "%d of %s failed; archivist component line %s failed lists them", bad,
			terminal.Count(int(done), "item"), r.Component)
	}
	return s
}

// runText is what was done in a run.
func runText(r v1.ComponentRun) string {
	n := r.Counts
	text := fmt.Sprintf("%s done", terminal.Count(int(n.Done), "item"))
	for _, part := range []struct {
		n    int64
		what string
	}{{n.Failed, "failed"}, {n.NotYet, "not yet"}, {n.Passed, "not ready any more"}, {n.Broken, "damaged"}} {
		if part.n > 0 {
			text += fmt.Sprintf(", %d %s", part.n, part.what)
		}
	}
	return text
}

func showRun(p terminal.Page, r v1.ComponentRun) {
	p.Fields("run", r.ID, "component", r.Component, "state", r.State, "why", r.Why, "result", runText(r),
		"reason", r.Reason, "by", r.Actor, "started", r.Started, "ended", r.Ended, "definition",
		strconv.Itoa(r.Definition), "damaged", listed(r.Broken))
	if len(r.Items) > 0 {
		fmt.Fprintln(p)
		terminal.Table(p, r.Items, runItemColumns...)
	}
}

var runItemColumns = []terminal.Column[v1.RunItem]{
	{Title: "item", Text: func(i v1.RunItem) string { return i.Item }, Share: 1},
	{Title: "result", Text: func(i v1.RunItem) string { return i.State }, Style: stateStyle},
	{Title: "ended", Text: func(i v1.RunItem) string { return minute(i.Ended) },
		Raw: func(i v1.RunItem) string { return i.Ended }},
	{Title: "reason", Text: func(i v1.RunItem) string { return i.Reason }, Share: 2},
	{Text: func(i v1.RunItem) string { return i.Event }},
}

// componentRunsCmd lists runs, or shows one.
type componentRunsCmd struct {
	componentName
	ID string `arg:"" optional:"" name:"run" help:"Id of a run, to show it with its newest items."`
	limit
}

func (componentRunsCmd) prints() any { return v1.ComponentRun{} }

// Run requests one run more than is shown, to detect that there are more.
func (c *componentRunsCmd) Run(a *app) error {
	if c.ID != "" {
		r, err := a.client.Run(a.ctx, c.Name, c.ID)
		if err != nil {
			return err
		}
		return a.print(r, func(p terminal.Page) { showRun(p, r) })
	}
	list, err := a.client.Runs(a.ctx, c.Name, c.more())
	if err != nil {
		return err
	}
	list = limited(a, c.limit, list)
	return a.print(list, func(p terminal.Page) { terminal.Table(p, list, runColumns...) })
}

var runColumns = []terminal.Column[v1.ComponentRun]{
	{Title: "run", Text: func(r v1.ComponentRun) string { return r.ID }},
	{Title: "state", Text: func(r v1.ComponentRun) string { return r.State }, Style: stateStyle},
	{Title: "started", Text: func(r v1.ComponentRun) string { return minute(r.Started) },
		Raw: func(r v1.ComponentRun) string { return r.Started }},
	{Title: "result", Text: runText, Share: 1},
	{Text: func(r v1.ComponentRun) string { return r.Ended }},
	{Text: func(r v1.ComponentRun) string { return r.Actor }},
	{Text: func(r v1.ComponentRun) string { return r.Reason }},
}
