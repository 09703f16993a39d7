package objects

import (
	"encoding/json"
	"strconv"
	"time"

	"archivist/cmd/archivist/command"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/terminal"
)

// objectHistoryCmd shows the permanent record of an object, and exports it as PREMIS: what happened to the
// object, its versions, and as an item of components.
type objectHistoryCmd struct {
	named
	PREMIS bool `name:"premis" help:"Print the record as one PREMIS 3 document, in XML."`
}

func (objectHistoryCmd) Prints() any { return v1.HistoryEvent{} }

// Run reads the whole record, oldest first: an export must be complete. PREMIS is written as it comes; if it
// breaks off, the document is not complete, and the exit code says so.
func (c *objectHistoryCmd) Run(a *command.App) error {
	id, err := c.ark(a)
	if err != nil {
		return err
	}

	if c.PREMIS {
		return a.Client.HistoryPREMIS(a.Ctx, id, a.Out)
	}

	return command.Show(a, command.Rows(historyColumns...))(a.Client.History(a.Ctx, id))
}

// historyColumns show who did what when.
var historyColumns = []terminal.Column[v1.HistoryEvent]{
	{
		Title: "time",
		Text:  func(e v1.HistoryEvent) string { return command.Minute(e.Time) },
		Raw:   func(e v1.HistoryEvent) string { return e.Time },
	},
	{Title: "event", Text: func(e v1.HistoryEvent) string { return e.Type }},
	{Title: "of", Text: func(e v1.HistoryEvent) string { return e.SubjectID }, Share: 1},
	{Title: "actor", Text: func(e v1.HistoryEvent) string { return e.Actor }, Share: 1},
	{Title: "component", Text: func(e v1.HistoryEvent) string { return e.Component }},
	{Text: func(e v1.HistoryEvent) string { return historyDetail(e.Detail) }},
}

// historyDetail is the detail of an event as JSON, for programs; null if it has none.
func historyDetail(detail map[string]any) string {
	text, _ := json.Marshal(detail) // it was read from JSON
	return string(text)
}

// StatisticsCmd shows what was ingested and downloaded, as events tell it: a consumer counts them, so the newest
// can be missing for a moment.
type StatisticsCmd struct {
	Collection string `short:"c" help:"Only this collection." placeholder:"NAME"`
	Days       int    `help:"Show each of the last days of the collection." placeholder:"N"`
}

// Prints is an empty value of what it prints; its fields are those of --json.
func (StatisticsCmd) Prints() any { return v1.Statistics{} }

// Run shows the collections, or the days of one. Events that belong to no collection are under the name site.
func (c *StatisticsCmd) Run(a *command.App) error {
	if c.Days != 0 {
		return c.days(a)
	}

	list, err := a.Client.Statistics(a.Ctx, c.Collection)
	if err != nil {
		return err
	}
	return a.Print(list, func(p terminal.Page) {
		// A sum of one is that one.
		if p.ForPeople() && len(list) > 1 {
			list = append(list, totalOf(list))
		}
		terminal.Table(p, list,
			append(statisticsColumns, countColumns(func(s v1.Statistics) v1.EventCounts {
				return s.EventCounts
			})...)...)
	})
}

// mostStatisticsDays is the API's own limit: a leap year. It is checked here, too, so that the message names the
// flag.
const mostStatisticsDays = 366

// days shows the last days of a collection, in UTC, today included. Days without counts are left out.
func (c *StatisticsCmd) days(a *command.App) error {
	if c.Collection == "" {
		return command.Usage("--days shows the days of one collection: name it with --collection")
	}

	if c.Days < 1 || c.Days > mostStatisticsDays {
		return command.Usage("--days is 1 to %d", mostStatisticsDays)
	}

	to := a.Now().UTC()
	// Today is one of the days.
	from := to.AddDate(0, 0, 1-c.Days)
	s, err := a.Client.StatisticsOf(a.Ctx, c.Collection, from.Format(time.DateOnly),
		to.Format(time.DateOnly))
	if err != nil {
		return err
	}
	return a.Print([]v1.Statistics{s}, func(p terminal.Page) {
		terminal.Table(p, s.Days,
			append(dayColumns, countColumns(func(d v1.DayCounts) v1.EventCounts {
				return d.EventCounts
			})...)...)
	})
}

// totalOf is the sum of collections, for people only: a program that adds up would count it twice.
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

// statisticsColumns and dayColumns are what stands before the counts: the collection, or the day in UTC.
var statisticsColumns = []terminal.Column[v1.Statistics]{
	{Title: "collection", Text: func(s v1.Statistics) string { return s.Collection }, Share: 1}}

// dayColumns are the days of one collection.
var dayColumns = []terminal.Column[v1.DayCounts]{{Title: "day",
	Text: func(d v1.DayCounts) string { return d.Date }}}

// countColumns are the columns of counts, for rows of which of returns the counts.
func countColumns[T any](of func(T) v1.EventCounts) []terminal.Column[T] {
	number := func(title string, n func(v1.EventCounts) int64) terminal.Column[T] {
		return terminal.Column[T]{Title: title,
			Text: func(row T) string { return strconv.FormatInt(n(of(row)), 10) }}
	}
	return []terminal.Column[T]{
		number("objects", func(c v1.EventCounts) int64 { return c.Objects }),
		number("versions", func(c v1.EventCounts) int64 { return c.Versions }),
		number("files", func(c v1.EventCounts) int64 { return c.Files }),
		{
			Title: "size",
			Text:  func(row T) string { return terminal.Size(of(row).Bytes) },
			Raw:   func(row T) string { return strconv.FormatInt(of(row).Bytes, 10) },
		},
		number("completed", func(c v1.EventCounts) int64 { return c.Completed }),
		number("failed", func(c v1.EventCounts) int64 { return c.Failed }),
		number("downloads", func(c v1.EventCounts) int64 { return c.Downloads }),
	}
}
