package command

import (
	"encoding/json"
	"fmt"
	"time"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/terminal"
)

// Limit is how many items of a list are shown. A collection can have a million jobs, so
// all are shown only on request; otherwise a message states that there are more.
type Limit struct {
	Limit int `short:"L" default:"100" help:"Show at most this many; 0 shows all." placeholder:"N"`
}

// More is the limit of the request: one item more than is shown, to detect that there are more, or 0 for no
// limit. The client reads as many pages as that needs.
func (l Limit) More() int {
	if l.Limit <= 0 {
		return 0
	}
	return l.Limit + 1
}

// Limited cuts a list off at its limit. It reports on standard error if it did, so that nobody takes a part for
// the whole; and if the list is empty, but only on a terminal: for a program an empty list is an answer like
// others.
func Limited[T any](a *App, l Limit, list []T) []T {
	if len(list) == 0 && a.Out.Width > 0 {
		fmt.Fprintln(a.Errors, "Nothing was found.")
	}
	if l.Limit <= 0 || len(list) <= l.Limit {
		return list
	}
	fmt.Fprintf(a.Errors, "archivist: the first %d are shown; --limit 0 shows all\n", l.Limit)
	return list[:l.Limit]
}

// List is Show for a list with a limit, as a table. The request is for one item more (More).
func List[T any](a *App, l Limit, columns ...terminal.Column[T]) func([]T, error) error {
	return func(list []T, err error) error {
		if err != nil {
			return err
		}
		return Show(a, Rows(columns...))(Limited(a, l, list), nil)
	}
}

// Minute shortens a time of the API to the minute, in UTC, for lists. What is no time, such as the "" of what
// has not happened, stays as it is.
func Minute(t string) string {
	if at, err := time.Parse(time.RFC3339, t); err == nil {
		return at.UTC().Format("2006-01-02T15:04Z")
	}
	return t
}

// ChangeColumns show who changed something, when and why: the events of what people define or decide.
var ChangeColumns = []terminal.Column[v1.Event]{
	{
		Title: "time",
		Text:  func(e v1.Event) string { return Minute(e.Time) },
		Raw:   func(e v1.Event) string { return e.Time },
	},
	{Title: "event", Text: func(e v1.Event) string { return e.Type }},
	{Title: "by", Text: func(e v1.Event) string { return e.Actor }, Share: 1},
	{Title: "reason", Text: func(e v1.Event) string { return DetailOf(e.Detail).Reason }, Share: 2},
}

// Detail is what events of items, components and research have in their details, as far as it is shown.
type Detail struct {
	Reason   string `json:"reason"`
	Duration int64  `json:"duration"` // milliseconds
}

// DetailOf reads a detail. That of another event has neither field, and one that is no object is as empty as
// none.
func DetailOf(text json.RawMessage) (d Detail) {
	_ = json.Unmarshal(text, &d)
	return d
}
