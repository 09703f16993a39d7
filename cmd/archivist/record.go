package main

import (
	"encoding/json"
	"strconv"
	"time"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/terminal"
)

// objectHistoryCmd shows the permanent record of an object, and exports it.
type objectHistoryCmd struct {
	ARK    string `arg:"" name:"ark" help:"ARK of an object, e.g. ark:/99999/fk4tq65d6k."`
	PREMIS bool   `name:"premis" help:"Print the record as one PREMIS 3 document, in XML."`
}

func (objectHistoryCmd) prints() any { return v1.HistoryEvent{} }

// Run reads the whole record: an export must be complete.
func (c *objectHistoryCmd) Run(a *app) error {
	id, err := parseARK(c.ARK)
	if err != nil {
		return err
	}
	if c.PREMIS {
		return a.client.HistoryPREMIS(a.ctx, id, a.out)
	}
	events, err := a.client.History(a.ctx, id)
	if err != nil {
		return err
	}
	return a.print(events, func(p terminal.Page) { terminal.Table(p, events, historyColumns...) })
}

// historyColumns show who did what when.
var historyColumns = []terminal.Column[v1.HistoryEvent]{
	{Title: "time", Text: func(e v1.HistoryEvent) string { return minute(e.Time) },
		Raw: func(e v1.HistoryEvent) string { return e.Time }},
	{Title: "event", Text: func(e v1.HistoryEvent) string { return e.Type }},
	{Title: "of", Text: func(e v1.HistoryEvent) string { return e.SubjectID }, Share: 1},
	{Title: "actor", Text: func(e v1.HistoryEvent) string { return e.Actor }, Share: 1},
	{Title: "component", Text: func(e v1.HistoryEvent) string { return e.Component }},
	{Text: func(e v1.HistoryEvent) string { return historyDetail(e.Detail) }},
}

// historyDetail is the detail of an event as JSON, for programs.
func historyDetail(detail map[string]any) string {
	text, _ := json.Marshal(detail) // it was read from JSON
	return string(text)
}

// statisticsCmd shows what was ingested and downloaded.
type statisticsCmd struct {
	Collection string `short:"c" help:"Only this collection." placeholder:"NAME"`
	Days       int    `help:"Show each of the last days of the collection." placeholder:"N"`
}

func (statisticsCmd) prints() any { return v1.Statistics{} }

// Run shows the collections, or the days of one.
func (c *statisticsCmd) Run(a *app) error {
	if c.Days != 0 {
		return c.days(a)
	}
	list, err := a.client.Statistics(a.ctx, c.Collection)
	if err != nil {
		return err
	}
	return a.print(list, func(p terminal.Page) {
		if p.ForPeople() && len(list) > 1 {
			list = append(list, totalOf(list))
		}
		terminal.Table(p, list, append(statisticsColumns, countColumns(func(s v1.Statistics) v1.EventCounts {
			return s.EventCounts
		})...)...)
	})
}

// mostStatisticsDays is the API's own limit.
const mostStatisticsDays = 366

// days shows the last days of a collection, in UTC.
func (c *statisticsCmd) days(a *app) error {
	if c.Collection == "" {
		return usage("--days shows the days of one collection: name it with --collection")
	}
	if c.Days < 1 || c.Days > mostStatisticsDays {
		return usage("--days is 1 to %d", mostStatisticsDays)
	}
	to := a.now().UTC()
	from := to.AddDate(0, 0, 1-c.Days)
	s, err := a.client.StatisticsOf(a.ctx, c.Collection, from.Format(time.DateOnly), to.Format(time.DateOnly))
	if err != nil {
		return err
	}
	return a.print([]v1.Statistics{s}, func(p terminal.Page) {
		terminal.Table(p, s.Days, append(dayColumns, countColumns(func(d v1.DayCounts) v1.EventCounts {
			return d.EventCounts
		})...)...)
	})
}

// totalOf is the sum of collections.
func totalOf(list []v1.Statistics) (sum v1.Statistics) {
	sum.Collection = "(all)"
	for _, s := range list {
		sum.Objects += s.Objects
		sum.Versions += s.Versions
		sum.Files += s.Files
		sum.Bytes += s.Bytes
		sum.Completed += s.Completed
		sum.Failed += s.Failed
		sum.Downloads += s.Downloads
	}
	return sum
}

var statisticsColumns = []terminal.Column[v1.Statistics]{
	{Title: "collection", Text: func(s v1.Statistics) string { return s.Collection }, Share: 1}}

var dayColumns = []terminal.Column[v1.DayCounts]{{Title: "day", Text: func(d v1.DayCounts) string { return d.Date }}}

// countColumns are the columns of counts.
func countColumns[T any](of func(T) v1.EventCounts) []terminal.Column[T] {
	number := func(title string, n func(v1.EventCounts) int64) terminal.Column[T] {
		return terminal.Column[T]{Title: title, Text: func(row T) string { return strconv.FormatInt(n(of(row)), 10) }}
	}
	return []terminal.Column[T]{
		number("objects", func(c v1.EventCounts) int64 { return c.Objects }),
		number("versions", func(c v1.EventCounts) int64 { return c.Versions }),
		number("files", func(c v1.EventCounts) int64 { return c.Files }),
		{Title: "size", Text: func(row T) string { return terminal.Size(of(row).Bytes) },
			Raw: func(row T) string { return strconv.FormatInt(of(row).Bytes, 10) }},
		number("completed", func(c v1.EventCounts) int64 { return c.Completed }),
		number("failed", func(c v1.EventCounts) int64 { return c.Failed }),
		number("downloads", func(c v1.EventCounts) int64 { return c.Downloads }),
	}
}
