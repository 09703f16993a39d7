package components

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"archivist/cmd/archivist/command"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/terminal"
)

// componentName is the argument of most commands: lower-case letters, digits and hyphens.
type componentName struct {
	Name string `arg:"" name:"component" help:"Name of a component."`
}

// componentListCmd shows where items wait.
type componentListCmd struct{}

// Help says what the numbers mean.
func (componentListCmd) Help() string {
	return `READY counts the items that a component can work on now, OLDEST is the first event of the oldest of them.
FAILED items wait for a person, or for a change.`
}

func (componentListCmd) Prints() any { return v1.Component{} }

// Run lists all, by name: there are at most some dozens, so the list has no limit.
func (componentListCmd) Run(a *command.App) error {
	return command.List(a, command.Limit{}, componentColumns...)(a.Client.Components(a.Ctx))
}

// componentColumns show where items wait: what is ready and how long, and what needs a person.
var componentColumns = []terminal.Column[v1.Component]{
	{Title: "component", Text: func(c v1.Component) string { return c.Name }},
	{Title: "state", Text: componentState},
	{Title: "ready", Text: func(c v1.Component) string {
		return strconv.FormatInt(c.Counts.Ready, 10)
	}},
	{Title: "later", Text: func(c v1.Component) string {
		return strconv.FormatInt(c.Counts.Later, 10)
	}},
	{Title: "running", Text: func(c v1.Component) string { return strconv.FormatInt(c.Counts.Running, 10) }},
	{Title: "failed", Text: func(c v1.Component) string {
		return strconv.FormatInt(c.Counts.Failed, 10)
	}},
	{Title: "done", Text: func(c v1.Component) string {
		return strconv.FormatInt(c.Counts.Done, 10)
	}},
	{
		Title: "oldest",
		Text:  func(c v1.Component) string { return command.Minute(c.OldestReady) },
		Raw:   func(c v1.Component) string { return c.OldestReady },
		Share: 1,
	},
}

// componentState is what a component does, as far as it is known: paused, filling (the counts are not yet those
// of its definition), running, or idle. The first that holds is shown.
func componentState(c v1.Component) string {
	switch {
	case c.Paused:
		return "paused"
	case c.Filling != nil:
		return "filling"
	case c.Counts.Running > 0:
		return "running"
	}
	return "idle"
}

// componentShowCmd shows a component with its definition.
type componentShowCmd struct{ componentName }

func (componentShowCmd) Prints() any { return v1.Component{} }

// Run shows one component.
func (c *componentShowCmd) Run(a *command.App) error {
	return command.Show(a, showComponent)(a.Client.Component(a.Ctx, c.Name))
}

// showComponent prints a definition as sentences, without what has no value, and then its line.
func showComponent(p terminal.Page, c v1.Component) {
	n := c.Counts
	p.Fields("component", c.Name, "state", componentState(c), "description", c.Description,
		"records", c.Event,
		"needs success", listed(c.PastSuccess), "needs failure", listed(c.PastFailure),
		"not after", listed(c.Future), "until changed", listed(c.Old), "again after",
		daysText(c.EveryDays),
		"types", listed(c.Types),
		"items", itemsText(c.Items), "does", runnableText(c.Runnable), "runs", startsText(c),
		"at once", fmt.Sprintf("%d of at most %d items of a run", c.Concurrency, c.MaxItems),
		"retries", retryText(c.Retry), "version", strconv.Itoa(c.Version), "changed", c.Changed)

	// Until its end, the counts below are not those of this definition.
	if f := c.Filling; f != nil {
		p.Fields("back-fill",
			fmt.Sprintf("part %d of %d, %d items looked at", f.Parts+1, f.Of, f.Items))
	}

	p.Fields("line", fmt.Sprintf("%d ready, %d later, %d running, %d failed, %d done", n.Ready,
		n.Later, n.Running,
		n.Failed, n.Done), "oldest ready", c.OldestReady)
}

// daysText is after how many days it works on an item again; "" for never.
func daysText(days int) string {
	if days == 0 {
		return ""
	}
	return terminal.Count(days, "day")
}

// listed joins names for people.
func listed(names []string) string { return strings.Join(names, ", ") }

// itemsText is to which items a component is limited, by a filter or by their ids; "" for all.
func itemsText(i *v1.ComponentItems) string {
	switch {
	case i == nil:
		return ""
	case i.Filter != "":
		return i.Filter
	}
	return listed(i.IDs)
}

// runnableText is what does the work: a container, by its task definition, a function that ships, or a Lambda
// function.
func runnableText(r v1.ComponentRunnable) string {
	if r.Task != nil {
		return r.Task.Definition
	}
	return cmp.Or(r.Function, r.Lambda)
}

// startsText says what starts a component: an item that is ready, its schedule, both, or only a person.
func startsText(c v1.Component) string {
	var when []string
	if c.Wake {
		when = append(when, "when an item is ready")
	}

	if c.Schedule != "" {
		when = append(when, c.Schedule+" "+c.TimeZone)
	}

	if len(when) == 0 {
		return "on request: archivist component run " + c.Name
	}
	return strings.Join(when, ", ")
}

// retryText is how an item that failed is tried again; "" if a person, or a change, must come first.
func retryText(r *v1.ComponentRetry) string {
	if r == nil {
		return ""
	}
	return fmt.Sprintf("%d, the first after %d seconds, each after twice the time of the one before", r.Max,
		r.Backoff)
}

// componentApplyCmd creates or changes a component by a file.
type componentApplyCmd struct {
	File   string `arg:"" help:"YAML or JSON file that holds the definition; - reads the standard input."`
	Reason string `help:"Why. It is kept in the events." placeholder:"TEXT"`
	DryRun bool   `help:"List the items that would be ready now, but change nothing."`
	Key    string `name:"idempotency-key" help:"${help_action_key}" placeholder:"KEY"`
}

func (componentApplyCmd) Prints() any { return v1.Component{} }

// Help has the smallest definition.
func (componentApplyCmd) Help() string {
	return `A definition needs a name, the event that it records, and what does the work; all else has a default:

  name: count-words
  event: Words_counted
  pastSuccess: [Received]
  future: [Words_counted]
  wake: true
  runnable: {lambda: "arn:aws:lambda:us-east-1:111122223333:function:count-words"}

What is not in the file gets its default again.`
}

// Run creates the component, or replaces its definition as a whole. It refuses a file with an unknown field: a
// misspelt name would be ignored silently. After a change the archive decides anew for all items whether they
// are ready (filling).
func (c *componentApplyCmd) Run(a *command.App) error {
	var d v1.ComponentDefinition
	if err := a.ReadDefinition(c.File, "a component", &d); err != nil {
		return err
	}

	// The path of the request has the name.
	if d.Name == "" {
		return fault.New(fault.Invalid, "%s is not the definition of a component: it has no name", c.File)
	}

	if c.DryRun {
		return tryComponent(a, d)
	}

	got, err := a.Client.ApplyComponent(a.Ctx, d, c.Reason, cmp.Or(c.Key, rand.Text()))
	if err != nil {
		return err
	}

	for _, text := range got.Warnings {
		a.Warn("%s", text)
	}
	return command.Show(a, showComponent)(got, nil)
}

// tryComponent prints the ids of the items that would be ready, as they are found: there can be very many, so
// they are lines without an end that is known. Nothing is changed. It has no --json, because the command prints
// a component otherwise.
func tryComponent(a *command.App, d v1.ComponentDefinition) error {
	if a.JSON != nil {
		return command.Usage("--dry-run prints the ids of items, one in a line; it has no --json")
	}

	n := 0
	// A page can be empty and have a cursor: the API looks at a bounded number of items in each.
	for cursor := ""; ; {
		page, err := a.Client.TryComponent(a.Ctx, d, cursor)
		if err != nil {
			return err
		}

		for _, id := range page.Ready {
			fmt.Fprintln(a.Screen, terminal.Printable(id))
		}

		n += len(page.Ready)
		if page.Cursor == "" {
			break
		}

		cursor = page.Cursor
	}

	fmt.Fprintf(a.Errors, "%s would be ready now; nothing is changed\n", terminal.Count(n, "item"))
	return nil
}

// componentSchemaCmd prints the schema of a definition for editors and checks.
type componentSchemaCmd struct{}

// Help says what the schema is good for.
func (componentSchemaCmd) Help() string {
	return `Editors complete and check a definition with it, e.g. with this first line in a YAML file:

  # yaml-language-server: $schema=component.schema.json`
}

// Run takes the schema from the API, so that it is that of the deployment, not that of this program.
func (componentSchemaCmd) Run(a *command.App) error {
	var schema json.RawMessage
	if err := a.Client.Call(a.Ctx, http.MethodGet, "/docs/component.schema.json", nil,
		&schema); err != nil {
		return err
	}
	enc := command.NewEncoder(a.Out)
	enc.SetIndent("", "  ")
	return enc.Encode(schema)
}

// componentHistoryCmd lists what people changed in a component, with their reasons.
type componentHistoryCmd struct{ componentName }

func (componentHistoryCmd) Prints() any { return v1.Event{} }

// Run lists the changes, oldest first.
func (c *componentHistoryCmd) Run(a *command.App) error {
	return command.Show(a, command.Rows(command.ChangeColumns...))(a.Client.ComponentEvents(a.Ctx, c.Name))
}

// componentGraphCmd prints the graph for a tool that draws it, as text in a language that this has.
type componentGraphCmd struct {
	DOT     bool `name:"dot" xor:"language" help:"In the language of Graphviz. It is the default."`
	Mermaid bool `xor:"language" help:"As a flowchart of Mermaid, which Markdown files can contain."`
}

// Run prints the graph as the API draws it. It follows from the definitions alone: which event of one component
// another waits for.
func (c *componentGraphCmd) Run(a *command.App) error {
	g, err := a.Client.ComponentGraph(a.Ctx)
	if err != nil {
		return err
	}
	text := g.DOT
	if c.Mermaid {
		text = g.Mermaid
	}
	_, err = fmt.Fprint(a.Out, text)
	return err
}

// componentLineCmd lists items of a class. Those that are done have no list.
type componentLineCmd struct {
	componentName
	Class string `arg:"" optional:"" enum:"ready,later,running,failed" default:"ready" help:"${enum}."`
	command.Limit
}

func (componentLineCmd) Prints() any { return v1.LineItem{} }

// Run requests one item more than is shown, to detect that there are more.
func (c *componentLineCmd) Run(a *command.App) error {
	return command.List(a, c.Limit, lineColumns...)(a.Client.Line(a.Ctx, c.Name, c.Class, c.More()))
}

// lineColumns show of each class what it has: the priority and the first event decide the order of ready items,
// a later one has a time, a running one a lease.
var lineColumns = []terminal.Column[v1.LineItem]{
	{Title: "item", Text: func(l v1.LineItem) string { return l.Item }, Share: 1},
	{
		Title: "class",
		Text:  func(l v1.LineItem) string { return l.Class },
		Style: command.StateStyle,
	},
	{Title: "priority", Text: func(l v1.LineItem) string {
		if l.Priority == 0 {
			return ""
		}
		return strconv.Itoa(l.Priority)
	}},
	{
		Title: "first event",
		Text:  func(l v1.LineItem) string { return command.Minute(l.First) },
		Raw:   func(l v1.LineItem) string { return l.First },
	},
	{Title: "ready from", Text: func(l v1.LineItem) string { return l.From }},
	{Title: "lease ends", Text: func(l v1.LineItem) string { return l.Until }},
}

// componentActCmd pauses, resumes, interrupts or deletes a component.
type componentActCmd struct {
	componentName
	Reason string `required:"" help:"Why. It is kept in the events." placeholder:"TEXT"`
	Key    string `name:"idempotency-key" help:"${help_action_key}" placeholder:"KEY"`
}

func (componentActCmd) Prints() any { return v1.ComponentOutcome{} }

// Run does the action that the command is named after, and prints what was done in a sentence.
func (c *componentActCmd) Run(a *command.App, k *kong.Context) error {
	return command.Show(a, func(p terminal.Page, r v1.ComponentOutcome) { p.Fields("done", r.Summary) })(
		a.Client.ActOnComponent(a.Ctx, c.Name, v1.ComponentAction{Action: k.Selected().Name, Reason: c.Reason},
			cmp.Or(c.Key, rand.Text())))
}
