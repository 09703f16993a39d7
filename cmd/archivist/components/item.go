package components

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"archivist/cmd/archivist/command"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/terminal"
)

// itemID is the argument of most commands.
type itemID struct {
	ID string `arg:"" name:"item" help:"Id of an item: item:ID, batch:ID, version:ARK/vN, or the ARK of an object."`
}

// itemListCmd finds items whose ids are not known: by their kind, by their type, or by both. An item has one
// kind, which its id begins with, and any number of types.
type itemListCmd struct {
	Kind string `enum:",object,version,batch,item" default:"" help:"Only objects, versions, batches or custom items."`
	Type string `help:"Only items of this type." placeholder:"TYPE"`
	command.Limit
}

func (itemListCmd) Prints() any { return v1.Item{} }

// Run lists items in no order. It requests one item more than is shown, to detect that there are more.
func (c *itemListCmd) Run(a *command.App) error {
	return command.List(a, c.Limit, componentItemColumns...)(a.Client.AllItems(a.Ctx, v1.ItemFilter{
		Kind:  c.Kind,
		Type:  c.Type,
		Limit: c.More(),
	}))
}

// componentItemColumns show an item as people look for it: what it is, what happened to it last, and where it
// waits. They are the same for programs.
var componentItemColumns = []terminal.Column[v1.Item]{
	{Title: "item", Text: func(i v1.Item) string { return i.ID }, Share: 2},
	{Title: "types", Text: func(i v1.Item) string { return strings.Join(i.Types, " ") }, Share: 1},
	{Title: "priority", Text: func(i v1.Item) string { return strconv.Itoa(i.Priority) }},
	{Title: "newest event", Text: newestText, Share: 1},
	{Title: "lines", Text: linesText, Share: 2},
}

// newestText is the newest event of an item that counts; "" for none. A success is the rule and not said.
func newestText(i v1.Item) string {
	if len(i.Events) == 0 {
		return ""
	}
	m := i.Events[len(i.Events)-1]
	if m.Outcome == "failure" {
		return m.Name + " (failure)"
	}
	return m.Name
}

// linesText says where an item is, without the components that are done with it: what still happens to it.
func linesText(i v1.Item) string {
	var parts []string
	if i.Stopped {
		parts = append(parts, "stopped")
	}
	for _, l := range i.Lines {
		if l.Class != "done" {
			parts = append(parts, l.Component+" "+l.Class)
		}
	}
	return strings.Join(parts, ", ")
}

// itemReport is the output for an item, with its history if that is asked for.
type itemReport struct {
	v1.Item
	// History is absent without --timeline.
	History []v1.ItemEvent `json:"history,omitempty"` // with --timeline
}

// itemShowCmd shows an item: what it is, in which lines it is, and what has happened to it.
type itemShowCmd struct {
	itemID
	Timeline bool `help:"Show its history as a timeline."`
}

func (itemShowCmd) Prints() any { return itemReport{} }

// Run makes a second request for the timeline. Without it, the events that count are shown, one of each name.
func (c *itemShowCmd) Run(a *command.App) error {
	it, err := a.Client.Item(a.Ctx, c.ID)
	if err != nil {
		return err
	}

	r := itemReport{Item: it}
	if c.Timeline {
		if r.History, err = a.Client.ItemHistory(a.Ctx, c.ID, 0); err != nil {
			return err
		}
	}
	return a.Print(r, r.show)
}

// show prints an item, where it is in the lines, and then its timeline or its events.
func (r itemReport) show(p terminal.Page) {
	stopped := ""
	if r.Stopped {
		stopped = "no component begins work on it; archivist component item revoke " + r.ID +
			" Manually_stopped --reason TEXT ends that"
	}

	p.Fields("item", r.ID, "types", listed(r.Types), "parents", parentsText(r.Parents), "known as",
		listed(r.Identifiers), "priority", fmt.Sprintf("%d (9 is first)", r.Priority),
		"first event", r.First,
		"stopped", stopped)

	if len(r.Lines) > 0 {
		fmt.Fprintln(p)
		terminal.Table(p, r.Lines, itemLineColumns...)
	}

	switch {
	// The timeline has the events that count, too.
	case len(r.History) > 0:
		fmt.Fprintln(p)
		timeline(p, r.History)
	case len(r.Events) > 0:
		fmt.Fprintln(p)
		terminal.Table(p, r.Events, markColumns...)
	}
}

// parentsText is what an item belongs to, the outermost first.
func parentsText(parents []v1.EventRef) string {
	names := make([]string, len(parents))
	for i, p := range parents {
		names[i] = p.Type + ":" + p.ID
	}
	return strings.Join(names, ", ")
}

// itemLineColumns are the lines that an item is in. Programs get the run that works on it, too.
var itemLineColumns = []terminal.Column[v1.ItemLine]{
	{Title: "component", Text: func(l v1.ItemLine) string { return l.Component }},
	{Title: "line", Text: func(l v1.ItemLine) string { return l.Class }, Style: command.StateStyle},
	{Title: "lease ends", Text: func(l v1.ItemLine) string { return l.Until }},
	{Title: "waits", Text: func(l v1.ItemLine) string { return l.Waits }, Share: 1},
	{Text: func(l v1.ItemLine) string { return l.Run }},
}

// markColumns are the events that count, the oldest first. Programs get their ids.
var markColumns = []terminal.Column[v1.ItemMark]{
	{
		Title: "time",
		Text:  func(m v1.ItemMark) string { return command.Minute(m.Time) },
		Raw:   func(m v1.ItemMark) string { return m.Time },
	},
	{Title: "event", Text: func(m v1.ItemMark) string { return m.Name }, Share: 1},
	{
		Title: "outcome",
		Text:  func(m v1.ItemMark) string { return m.Outcome },
		Style: command.StateStyle,
	},
	{Text: func(m v1.ItemMark) string { return m.Event }},
}

// timeline draws a history: a line for each event, on the days on which it happened, in UTC. The marks are
// letters of ASCII, so that it can be read without colours. Programs get rows.
func timeline(p terminal.Page, all []v1.ItemEvent) {
	if !p.ForPeople() {
		terminal.Table(p, all, itemEventColumns...)
		return
	}

	day := ""
	for i, e := range all {
		at, err := time.Parse(time.RFC3339, e.Time)
		if err != nil {
			continue // every time of the API can be read
		}

		if d := at.UTC().Format("2006-01-02"); d != day {
			// A heading for each day, since the lines below it have only the time.
			day = d
			fmt.Fprintln(p, terminal.Bold.Of(day))
		}

		// The style is for the mark alone, so the text stays readable in any theme.
		mark, style := markOf(e)
		text := terminal.Printable(happenedText(e))
		fmt.Fprintf(p, "  %s  %s %s\n", at.UTC().Format("15:04:05Z"), style.Of(mark), text)
		// The reason is below its event, on a rail that leads to the next one.
		rail := "|"
		if i == len(all)-1 {
			rail = " "
		}

		if reason := command.DetailOf(e.Detail).Reason; reason != "" {
			p.Lines("             "+rail+"   ", reason)
		}
	}

	fmt.Fprintln(p, "+ success  x failure  - revoked: it counts no longer")
}

// markOf is the mark of an event on the timeline, and its colour. A revoked one is neither success nor failure
// any more.
func markOf(e v1.ItemEvent) (string, terminal.Style) {
	switch {
	case e.Revoked:
		return "-", terminal.Yellow
	case e.Outcome == "failure":
		return "x", terminal.Red
	}
	return "+", terminal.Green
}

// happenedText says what happened, by whom, and how long it took, if that was recorded.
func happenedText(e v1.ItemEvent) string {
	text := e.Name
	if e.Revoked {
		text += " (revoked)"
	} else if e.Outcome == "failure" {
		text += " (failure)"
	}

	if who := byText(e); who != "" {
		text += ", by " + who
	}

	if d := command.DetailOf(e.Detail).Duration; d > 0 {
		text += ", in " + (time.Duration(d) * time.Millisecond).String()
	}
	return text
}

// byText is who made an event: a person, or a component. The work of a component has the component, also if a
// person has started its run.
func byText(e v1.ItemEvent) string {
	if e.Context.Actor != "" && e.Type != "component.ran" {
		return e.Context.Actor
	}
	return e.Context.Component
}

// itemHistoryCmd shows all that happened to an item and to what it follows, and exports it as PREMIS for other
// systems.
type itemHistoryCmd struct {
	itemID
	PREMIS bool `name:"premis" help:"Print the history as one PREMIS 3 document, in XML."`
	command.Limit
}

func (itemHistoryCmd) Prints() any { return v1.ItemEvent{} }

// Run reads the whole history for an export, whatever the limit: the document must be complete.
func (c *itemHistoryCmd) Run(a *command.App) error {
	if c.PREMIS {
		return a.Client.ItemPREMIS(a.Ctx, c.ID, a.Out)
	}
	return command.List(a, c.Limit, itemEventColumns...)(a.Client.ItemHistory(a.Ctx, c.ID, c.More()))
}

// itemEventColumns are for the history as rows: all events, also those that count no longer. Programs get the
// type and the id of each.
var itemEventColumns = []terminal.Column[v1.ItemEvent]{
	{
		Title: "time",
		Text:  func(e v1.ItemEvent) string { return command.Minute(e.Time) },
		Raw:   func(e v1.ItemEvent) string { return e.Time },
	},
	{Title: "event", Text: func(e v1.ItemEvent) string { return e.Name }},
	{
		Title: "outcome",
		Text:  func(e v1.ItemEvent) string { return e.Outcome },
		Style: command.StateStyle,
	},
	{Title: "counts", Text: func(e v1.ItemEvent) string {
		if e.Revoked {
			return "no"
		}
		return "yes"
	}},
	{Title: "by", Text: byText, Share: 1},
	{
		Title: "reason",
		Text:  func(e v1.ItemEvent) string { return command.DetailOf(e.Detail).Reason },
		Share: 2,
	},
	{Text: func(e v1.ItemEvent) string { return e.Type }},
	{Text: func(e v1.ItemEvent) string { return e.ID }},
}
