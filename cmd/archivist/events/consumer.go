package events

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"strconv"

	"github.com/alecthomas/kong"

	"archivist/cmd/archivist/command"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/terminal"
)

// consumerName is the argument of most commands.
type consumerName struct {
	Name string `arg:"" name:"consumer" help:"Name of a consumer."`
}

// consumerListCmd shows which consumers are behind, and by how much.
type consumerListCmd struct{}

// Help says what the numbers mean.
func (consumerListCmd) Help() string {
	return `BEHIND counts the events of the log that a consumer has still to handle, SECONDS how long the oldest of
them had waited. PARKED counts events that it could not handle. The numbers are of the time COUNTED: they are
counted each minute. Where they are empty, nothing was counted yet. consumer show counts anew.`
}

func (consumerListCmd) Prints() any { return v1.Consumer{} }

// Run lists all, by name: there are at most some hundreds.
func (consumerListCmd) Run(a *command.App) error {
	return command.List(a, command.Limit{}, consumerColumns...)(a.Client.Consumers(a.Ctx))
}

// consumerColumns show which consumers are behind, and which need a person: one that is stopped, or has parked
// events.
var consumerColumns = []terminal.Column[v1.Consumer]{
	{Title: "consumer", Text: func(c v1.Consumer) string { return c.Name }},
	{Title: "state", Text: func(c v1.Consumer) string { return shownState(c) }},
	{Title: "behind", Text: func(c v1.Consumer) string {
		if c.AtLeast {
			return "more than " + strconv.FormatInt(c.Behind, 10)
		}
		return ifCounted(c, c.Behind)
	}},
	{Title: "seconds", Text: func(c v1.Consumer) string {
		if c.AtLeast && c.LagSince == "" {
			return "" // it is not known
		}
		return ifCounted(c, c.LagSeconds)
	}},
	{Title: "parked", Text: func(c v1.Consumer) string { return ifCounted(c, c.Parked) }},
	{Title: "counted", Text: func(c v1.Consumer) string { return command.Minute(c.Counted) }},
	{Title: "filter", Text: func(c v1.Consumer) string { return c.Filter }, Share: 1},
}

// ifCounted is a number of a consumer, "" if nothing was counted yet.
func ifCounted(c v1.Consumer, n int64) string {
	if c.Counted == "" {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// consumerShowCmd shows where in the log a consumer is, and why it does not go on.
type consumerShowCmd struct{ consumerName }

func (consumerShowCmd) Prints() any { return v1.Consumer{} }

// Run shows one consumer.
func (c *consumerShowCmd) Run(a *command.App) error {
	return command.Show(a, showConsumer)(a.Client.Consumer(a.Ctx, c.Name))
}

// showConsumer prints a definition with its place in each partition of the log, if those were read.
func showConsumer(p terminal.Page, c v1.Consumer) {
	p.Fields("consumer", c.Name, "state", shownState(c), "rebuilt by", c.Rebuild, "description",
		c.Description,
		"filter", c.Filter, "target", cmp.Or(c.Target.Handler, c.Target.Lambda, c.Target.Queue),
		"wakes", wakes(c),
		"order", c.Order, "on failure", c.OnFailure, "version", strconv.Itoa(c.Version),
		"changed", c.Changed,
		"behind", behindOf(c),
		"parked", strconv.FormatInt(c.Parked, 10))
	for _, text := range c.Warnings {
		p.Fields("warning", text)
	}
	if len(c.Partitions) > 0 {
		fmt.Fprintln(p)
		terminal.Table(p, c.Partitions, partitionColumns...)
	}
}

// behindOf is how many events a consumer has still to handle, and for how long the first waits, as
// far as that is known.
func behindOf(c v1.Consumer) string {
	events := terminal.Count(int(c.Behind), "event")
	if !c.AtLeast {
		return events + ", " + terminal.Count(int(c.LagSeconds), "second")
	}
	return "more than " + events
}

// shownState is paused, rebuilding, resetting or running, or stopped if it does not go on in some partition; the
// first of them that holds, since a paused consumer needs no further reason.
func shownState(c v1.Consumer) string {
	switch {
	case c.Paused:
		return "paused"
	case c.Rebuild != "":
		return "rebuilding"
	case c.Resets > 0:
		return "resetting"
	case c.Stopped > 0:
		return "stopped"
	}
	return "running"
}

// wakes says what wakes a consumer: each event, or its schedule with the time zone.
func wakes(c v1.Consumer) string {
	if c.Schedule == "" {
		return "each event that the filter selects"
	}
	return c.Schedule + " " + cmp.Or(c.TimeZone, "UTC")
}

// partitionColumns show how far it has come in each partition, and why it does not go on in one.
var partitionColumns = []terminal.Column[v1.ConsumerPartition]{
	{Title: "partition", Text: func(c v1.ConsumerPartition) string { return c.Partition }},
	{Title: "passed", Text: func(c v1.ConsumerPartition) string {
		return strconv.FormatInt(c.Seq, 10)
	}},
	{Title: "head", Text: func(c v1.ConsumerPartition) string {
		return strconv.FormatInt(c.Head, 10)
	}},
	{Title: "seconds", Text: func(c v1.ConsumerPartition) string { return strconv.FormatInt(c.LagSeconds, 10) }},
	{Title: "parked", Text: func(c v1.ConsumerPartition) string {
		return strconv.FormatInt(c.Parked, 10)
	}},
	{Title: "problem", Text: func(c v1.ConsumerPartition) string { return c.Problem }, Share: 1},
}

// consumerApplyCmd creates or changes a consumer by a file.
type consumerApplyCmd struct {
	File   string `arg:"" help:"YAML or JSON file that holds the definition; - reads the standard input."`
	Reason string `help:"Why. It is kept in the events." placeholder:"TEXT"`
}

func (consumerApplyCmd) Prints() any { return v1.Consumer{} }

// Help has the smallest definition.
func (consumerApplyCmd) Help() string {
	return `A definition needs a name, a filter and a target; all else has a default:

  name: titles
  filter: Object+Create
  target: {lambda: "arn:aws:lambda:us-east-1:111122223333:function:titles"}

Without a place to start it gets the events from now on; with "start: horizon" also the past ones.
What is not in the file gets its default again.`
}

// Run creates the consumer, or replaces its definition as a whole: a field that the file leaves out gets its
// default. It refuses a file with an unknown field: a misspelt name would be ignored silently.
func (c *consumerApplyCmd) Run(a *command.App) error {
	d, err := consumerDefinition(a, c.File)
	if err != nil {
		return err
	}
	got, err := a.Client.ApplyConsumer(a.Ctx, d, c.Reason)
	if err != nil {
		return err
	}

	for _, text := range got.Warnings {
		a.Warn("%s", text)
	}
	return command.Show(a, showConsumer)(got, nil)
}

// consumerDefinition reads a consumer's definition from a file. The name is required here, though not by the
// API: it is a part of the path of the request.
func consumerDefinition(a *command.App, file string) (d v1.ConsumerDefinition, err error) {
	err = a.ReadDefinition(file, "a consumer", &d)
	if err != nil {
		return d, err
	}

	if d.Name == "" {
		return d, fault.New(fault.Invalid, "%s is not the definition of a consumer: it has no name", file)
	}
	return d, nil
}

// consumerActing are the flags of every action on a consumer: why, and the key by which a repeat does nothing
// more.
type consumerActing struct {
	consumerName
	Reason string `required:"" help:"Why. It is kept in the events." placeholder:"TEXT"`
	Key    string `name:"idempotency-key" help:"${help_action_key}" placeholder:"KEY"`
}

func (consumerActing) Prints() any { return v1.ConsumerOutcome{} }

// consumerActCmd acts on a consumer as a whole.
type consumerActCmd struct{ consumerActing }

// Run does the action that the command is named after.
func (c *consumerActCmd) Run(a *command.App, k *kong.Context) error {
	return actOnConsumer(a, k, c.consumerActing, v1.ConsumerAction{})
}

// consumerDeleteCmd removes a consumer and its places. One that has parked events is deleted only with
// --discard.
type consumerDeleteCmd struct {
	consumerActing
	Discard bool `help:"Give up its parked events, too."`
}

// Run deletes the consumer.
func (c *consumerDeleteCmd) Run(a *command.App, k *kong.Context) error {
	return actOnConsumer(a, k, c.consumerActing, v1.ConsumerAction{Discard: c.Discard})
}

// consumerSkipCmd passes events without handling them, e.g. one before which a consumer with onFailure: block
// stands.
type consumerSkipCmd struct {
	consumerActing
	Partition string `required:"" help:"The partition of the log." placeholder:"NAME"`
	Seq       int64  `required:"" help:"Number of the last event to be passed." placeholder:"NUMBER"`
}

// Run skips events.
func (c *consumerSkipCmd) Run(a *command.App, k *kong.Context) error {
	return actOnConsumer(a, k, c.consumerActing,
		v1.ConsumerAction{Partition: c.Partition, Seq: c.Seq})
}

// consumerResetCmd moves a consumer to another place in the log, or lets it go on where it is after a restore
// (--to cursor). Going back means that events are handled again.
type consumerResetCmd struct {
	consumerActing
	To        string `required:"" help:"latest, horizon, cursor, time:TIME, or seq:N of a partition." placeholder:"P"`
	Partition string `help:"Only in this partition of the log." placeholder:"NAME"`
}

// Run moves the consumer.
func (c *consumerResetCmd) Run(a *command.App, k *kong.Context) error {
	return actOnConsumer(a, k, c.consumerActing, v1.ConsumerAction{To: c.To, Partition: c.Partition})
}

// consumerParkedActCmd acts on parked events: on one, on those that a filter selects, or on all. The next run of
// the consumer carries it out.
type consumerParkedActCmd struct {
	consumerActing
	Event  string `xor:"which" required:"" help:"Only the event with this id." placeholder:"ID"`
	Filter string `xor:"which" required:"" help:"Only events that this filter selects." placeholder:"FILTER"`
	All    bool   `xor:"which" required:"" help:"All parked events."`
}

// Run does the action that the command is named after.
func (c *consumerParkedActCmd) Run(a *command.App, k *kong.Context) error {
	return actOnConsumer(a, k, c.consumerActing, v1.ConsumerAction{
		Event:  c.Event,
		Filter: c.Filter,
		All:    c.All,
	})
}

// actOnConsumer does the action that the command is named after, and prints what was done in a sentence.
func actOnConsumer(a *command.App, k *kong.Context, c consumerActing, in v1.ConsumerAction) error {
	in.Action, in.Reason = k.Selected().Name, c.Reason
	return command.Show(a, func(p terminal.Page, r v1.ConsumerOutcome) { p.Fields("done", r.Summary) })(
		a.Client.ActOnConsumer(a.Ctx, c.Name, in, cmp.Or(c.Key, rand.Text())))
}

// consumerParkedCmd lists what waits for a person: events that could not be handled, and those that wait behind
// them.
type consumerParkedCmd struct {
	consumerName
	command.Limit
}

func (consumerParkedCmd) Prints() any { return v1.ParkedEvent{} }

// Run lists the events in the order in which they will be handled, for people with the reason in full.
func (c *consumerParkedCmd) Run(a *command.App) error {
	list, err := a.Client.Parked(a.Ctx, c.Name, c.More())
	if err != nil {
		return err
	}

	list = command.Limited(a, c.Limit, list)
	return a.Print(list, func(p terminal.Page) {
		if !p.ForPeople() {
			terminal.Table(p, list, parkedColumns...)
			return
		}
		for i, e := range list {
			if i > 0 {
				fmt.Fprintln(p)
			}
			p.Fields("event", e.Event, "type", e.Type, "subject", e.Subject, "number",
				numberText(e.Number), "partition", e.Partition, "seq", strconv.FormatInt(e.Seq, 10),
				"since", e.Since, "tries", strconv.Itoa(e.Attempts), "reason", e.Reason)
		}
	})
}

// numberText is the number of an event among those of its subject, "" for what has none: what is shown besides
// the event of another subject, such as the files of a version.
func numberText(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// parkedColumns are for programs only.
var parkedColumns = []terminal.Column[v1.ParkedEvent]{
	{Text: func(e v1.ParkedEvent) string { return e.Event }},
	{Text: func(e v1.ParkedEvent) string { return e.Type }},
	{Text: func(e v1.ParkedEvent) string { return e.Subject }},
	{Text: func(e v1.ParkedEvent) string { return strconv.Itoa(e.Attempts) }},
	{Text: func(e v1.ParkedEvent) string { return e.Since }},
	{Text: func(e v1.ParkedEvent) string { return e.Reason }},
}

// consumerPreviewCmd tries a filter before a consumer gets it: which events of the past it would have selected.
type consumerPreviewCmd struct {
	Filter    string `arg:"" help:"A filter, e.g. 'Object+Create|Modify'."`
	Partition string `help:"Only in this partition of the log." placeholder:"NAME"`
	From      string `help:"Where to begin: horizon, time:TIME or seq:NUMBER." default:"horizon" placeholder:"PLACE"`
	Cursor    string `help:"Go on after the events of the command before, which prints it." placeholder:"CURSOR"`
}

func (consumerPreviewCmd) Prints() any { return v1.FilterTrialResult{} }

// Run applies the filter to the past log, a part of it in each call, and changes nothing. The cursor of the rest
// is on the standard error, also if there are no events in this part.
func (c *consumerPreviewCmd) Run(a *command.App) error {
	r, err := a.Client.TryFilter(a.Ctx, v1.FilterTrial{
		Filter:    c.Filter,
		Partition: c.Partition,
		From:      c.From,
		Cursor:    c.Cursor,
	})
	if err != nil {
		return err
	}
	return a.Print(r, func(p terminal.Page) {
		p.Fields("selected", fmt.Sprintf("%d of %d events", r.Selected, r.Read))
		terminal.Table(p, r.Events, selectedColumns...)
		if r.Cursor != "" {
			fmt.Fprintf(a.Errors, "archivist: there are more events; add --cursor %s\n", r.Cursor)
		}
	})
}

// selectedColumns show the first of the events that a filter selects. Programs get their ids.
var selectedColumns = []terminal.Column[v1.SelectedEvent]{
	{Text: func(e v1.SelectedEvent) string { return e.ID }},
	{Title: "type", Text: func(e v1.SelectedEvent) string { return e.Type }},
	{
		Title: "subject",
		Text:  func(e v1.SelectedEvent) string { return shownSubject(e.Subject) },
		Raw:   func(e v1.SelectedEvent) string { return e.Subject },
		Share: 1,
	},
	{Title: "no.", Text: func(e v1.SelectedEvent) string { return numberText(e.Number) }},
	{
		Title: "time",
		Text:  func(e v1.SelectedEvent) string { return command.Minute(e.Time) },
		Raw:   func(e v1.SelectedEvent) string { return e.Time },
	},
}
