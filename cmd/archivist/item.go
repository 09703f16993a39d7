package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/terminal"
)

// itemCmd is for what components work on.
type itemCmd struct {
	List    itemListCmd    `cmd:"" help:"List items."`
	Show    itemShowCmd    `cmd:"" help:"Show an item, its events that count, and where it is in the lines."`
	History itemHistoryCmd `cmd:"" help:"List what happened to an item, or export it as PREMIS."`
	Create  itemCreateCmd  `cmd:"" help:"Create an item, item:ID, for what is not ingested yet, e.g. a delivery."`
	Change  itemChangeCmd  `cmd:"" help:"Replace types, parents and identifiers of an item that was created by hand."`
	Forget  itemActCmd     `cmd:"" help:"Remove an item that was created by hand from all lines. Its history stays."`
	Import  itemImportCmd  `cmd:"" help:"Import the events of a PREMIS document into an item."`

	Event      itemEventCmd      `cmd:"" help:"Record an event by hand."`
	Revoke     itemRevokeCmd     `cmd:"" help:"Let events count no longer. They stay in the history."`
	Restart    itemRestartCmd    `cmd:"" help:"Begin again: from the first failure on, or from an event on."`
	Stop       itemActCmd        `cmd:"" help:"Let no component begin work, until Manually_stopped is revoked."`
	Prioritize itemPrioritizeCmd `cmd:"" help:"Give an item another priority."`
	Release    itemReleaseCmd    `cmd:"" help:"End the lease of a component on an item."`
}

// itemID is the argument of most commands.
type itemID struct {
	ID string `arg:"" name:"item" help:"Id of an item: item:ID, batch:ID, version:ARK/vN, or the ARK of an object."`
}

// itemListCmd finds items.
type itemListCmd struct {
	Kind string `enum:",object,version,batch,item" default:"" help:"Only objects, versions, batches or free items."`
	Type string `help:"Only items of this type." placeholder:"TYPE"`
	limit
}

func (itemListCmd) prints() any { return v1.Item{} }

// Run requests one item more than is shown, to detect that there are more.
func (c *itemListCmd) Run(a *app) error {
	list, err := a.client.AllItems(a.ctx, v1.ItemFilter{Kind: c.Kind, Type: c.Type, Limit: c.more()})
	if err != nil {
		return err
	}
	list = limited(a, c.limit, list)
	return a.print(list, func(p terminal.Page) { terminal.Table(p, list, componentItemColumns...) })
}

var componentItemColumns = []terminal.Column[v1.Item]{
	{Title: "item", Text: func(i v1.Item) string { return i.ID }, Share: 2},
	{Title: "types", Text: func(i v1.Item) string { return strings.Join(i.Types, " ") }, Share: 1},
	{Title: "priority", Text: func(i v1.Item) string { return strconv.Itoa(i.Priority) }},
	{Title: "newest event", Text: newestText, Share: 1},
	{Title: "lines", Text: linesText, Share: 2},
}

// newestText is the newest event of an item that counts.
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

// linesText says where an item is, without the components that are done with it.
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

// itemReport is the output for an item.
type itemReport struct {
	v1.Item
	History []v1.ItemEvent `json:"history,omitempty"` // with --timeline
}

// itemShowCmd shows an item.
type itemShowCmd struct {
	itemID
	Timeline bool `help:"Show its history as a timeline."`
}

func (itemShowCmd) prints() any { return itemReport{} }

// Run makes a second request for the timeline.
func (c *itemShowCmd) Run(a *app) error {
	it, err := a.client.Item(a.ctx, c.ID)
	if err != nil {
		return err
	}
	r := itemReport{Item: it}
	if c.Timeline {
		if r.History, err = a.client.ItemHistory(a.ctx, c.ID, 0); err != nil {
			return err
		}
	}
	return a.print(r, r.show)
}

func (r itemReport) show(p terminal.Page) {
	stopped := ""
	if r.Stopped {
		stopped = "no component begins work on it; archivist item revoke " + r.ID + " Manually_stopped --reason TEXT " +
			"ends that"
	}
	p.Fields("item", r.ID, "types", listed(r.Types), "parents", parentsText(r.Parents), "known as",
		listed(r.Identifiers), "priority", fmt.Sprintf("%d (9 is first)", r.Priority), "first event", r.First,
		"stopped", stopped)
	if len(r.Lines) > 0 {
		fmt.Fprintln(p)
		terminal.Table(p, r.Lines, itemLineColumns...)
	}
	switch {
	case len(r.History) > 0:
		fmt.Fprintln(p)
		timeline(p, r.History)
	case len(r.Events) > 0:
		fmt.Fprintln(p)
		terminal.Table(p, r.Events, markColumns...)
	}
}

func parentsText(parents []v1.EventRef) string {
	names := make([]string, len(parents))
	for i, p := range parents {
		names[i] = p.Type + ":" + p.ID
	}
	return strings.Join(names, ", ")
}

var itemLineColumns = []terminal.Column[v1.ItemLine]{
	{Title: "component", Text: func(l v1.ItemLine) string { return l.Component }},
	{Title: "line", Text: func(l v1.ItemLine) string { return l.Class }, Style: stateStyle},
	{Title: "lease ends", Text: func(l v1.ItemLine) string { return l.Until }},
	{Title: "waits", Text: func(l v1.ItemLine) string { return l.Waits }, Share: 1},
	{Text: func(l v1.ItemLine) string { return l.Run }},
}

var markColumns = []terminal.Column[v1.ItemMark]{
	{Title: "time", Text: func(m v1.ItemMark) string { return minute(m.Time) },
		Raw: func(m v1.ItemMark) string { return m.Time }},
	{Title: "event", Text: func(m v1.ItemMark) string { return m.Name }, Share: 1},
	{Title: "outcome", Text: func(m v1.ItemMark) string { return m.Outcome }, Style: stateStyle},
	{Text: func(m v1.ItemMark) string { return m.Event }},
}

// timeline draws a history: a line for each event, on the days on which it happened.
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
			day = d
			fmt.Fprintln(p, terminal.Bold.Of(day))
		}
		mark, style := markOf(e)
		text := terminal.Printable(happenedText(e))
		fmt.Fprintf(p, "  %s  %s %s\n", at.UTC().Format("15:04:05Z"), style.Of(mark), text)
		rail := "|"
		if i == len(all)-1 {
			rail = " "
		}
		if reason := detailOf(e.Detail).Reason; reason != "" {
			p.Lines("             "+rail+"   ", reason)
		}
	}
	fmt.Fprintln(p, "+ success  x failure  - revoked: it counts no longer")
}

// markOf is the mark of an event on the timeline.
func markOf(e v1.ItemEvent) (string, terminal.Style) {
	switch {
	case e.Revoked:
		return "-", terminal.Yellow
	case e.Outcome == "failure":
		return "x", terminal.Red
	}
	return "+", terminal.Green
}

// happenedText says what happened, by whom, and how long it took.
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
	if d := detailOf(e.Detail).Duration; d > 0 {
		text += ", in " + (time.Duration(d) * time.Millisecond).String()
	}
	return text
}

// byText is who made an event: a person, or a component.
func byText(e v1.ItemEvent) string {
	if e.Context.Actor != "" && e.Type != "component.ran" {
		return e.Context.Actor
	}
	return e.Context.Component
}

// eventDetail is what events of items and components have in their details.
type eventDetail struct {
	Reason   string `json:"reason"`
	Duration int64  `json:"duration"` // milliseconds
}

// detailOf reads a detail; that of another event has neither.
func detailOf(text json.RawMessage) (d eventDetail) {
	_ = json.Unmarshal(text, &d)
	return d
}

// itemHistoryCmd shows all that happened, and exports it.
type itemHistoryCmd struct {
	itemID
	PREMIS bool `name:"premis" help:"Print the history as one PREMIS 3 document, in XML."`
	limit
}

func (itemHistoryCmd) prints() any { return v1.ItemEvent{} }

// Run reads the whole history for an export.
func (c *itemHistoryCmd) Run(a *app) error {
	if c.PREMIS {
		return a.client.ItemPREMIS(a.ctx, c.ID, a.out)
	}
	list, err := a.client.ItemHistory(a.ctx, c.ID, c.more())
	if err != nil {
		return err
	}
	list = limited(a, c.limit, list)
	return a.print(list, func(p terminal.Page) { terminal.Table(p, list, itemEventColumns...) })
}

var itemEventColumns = []terminal.Column[v1.ItemEvent]{
	{Title: "time", Text: func(e v1.ItemEvent) string { return minute(e.Time) },
		Raw: func(e v1.ItemEvent) string { return e.Time }},
	{Title: "event", Text: func(e v1.ItemEvent) string { return e.Name }},
	{Title: "outcome", Text: func(e v1.ItemEvent) string { return e.Outcome }, Style: stateStyle},
	{Title: "counts", Text: func(e v1.ItemEvent) string {
		if e.Revoked {
			return "no"
		}
		return "yes"
	}},
	{Title: "by", Text: byText, Share: 1},
	{Title: "reason", Text: func(e v1.ItemEvent) string { return detailOf(e.Detail).Reason }, Share: 2},
	{Text: func(e v1.ItemEvent) string { return e.Type }},
	{Text: func(e v1.ItemEvent) string { return e.ID }},
}
