package api

import (
	"context"
	"slices"
	"time"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/events/envelope"
	"archivist/pkg/events/filter"
	"archivist/pkg/kernel/fault"
)

// EventQuery selects events: those of a subject, those of a partition of the log in order, or the
// newest of a collection, or with none of Subject, Partition and Collection the newest of all. After is for a
// partition; Cursor is that of the page before, and takes its place.
type EventQuery struct {
	Subject    string `query:"subject" maxLength:"1200"`
	Partition  string `query:"partition" maxLength:"200"`
	After      int64  `query:"after" minimum:"0"`
	Collection string `query:"collection" maxLength:"100"`
	Filter     string `query:"filter" maxLength:"4096"`
	Cursor     string `query:"cursor" maxLength:"4000"`
}

// selection is what a filter selects; without a filter it is all stored events. Its zero value selects
// everything.
type selection struct{ filter *filter.Filter }

// selectionOf compiles a filter. An Invalid says what is wrong with it.
func selectionOf(text string) (s selection, err error) {
	if text == "" {
		return s, nil
	}
	if s.filter, err = filter.Compile(text); err != nil {
		return s, fault.New(fault.Invalid, "%w", err)
	}
	return s, nil
}

// has reports whether an event is selected, by its facts, or one that consumers see besides it.
func (s selection) has(e envelope.Event) bool {
	return s.filter == nil || s.filter.SelectsFiles(e) ||
		slices.ContainsFunc(envelope.Present(e), s.filter.Match)
}

// show is what is listed of a selected event: what consumers see of it. An event whose files only are
// selected stands for them. It is not empty for a selected event.
func (s selection) show(e envelope.Event) (items []v1.LogEvent) {
	if s.filter == nil {
		return []v1.LogEvent{wireLogEvent(e)}
	}

	for _, p := range envelope.Present(e) {
		if s.filter.Match(p) {
			items = append(items, wireLogEvent(p))
		}
	}

	if len(items) == 0 {
		items = append(items, wireLogEvent(e))
	}
	return items
}

// whole is what is shown of events of the log, with their payloads. These are read for the events that
// are shown, not for all that were looked at. An event that is gone meanwhile is a NotFound.
func (a *API) whole(ctx context.Context, facts []envelope.Event,
	picks selection) ([]v1.LogEvent, error) {
	items := []v1.LogEvent{}
	all, err := a.EventLog.Events(ctx, facts)
	for _, e := range all {
		items = append(items, picks.show(e)...)
	}
	return items, err
}

// wireLogEvent is the wire form of an event. Its time has milliseconds.
func wireLogEvent(e envelope.Event) v1.LogEvent {
	c := v1.EventContext{
		Actor:       e.Context.Actor,
		Component:   e.Context.Component,
		Version:     e.Context.Version,
		Request:     e.Context.Request,
		Transaction: v1.EventTransaction(e.Context.Transaction),
	}

	for _, m := range e.Context.Modules {
		c.Modules = append(c.Modules, v1.EventModule(m))
	}
	return v1.LogEvent{
		ID:          e.ID,
		Subject:     v1.EventRef(e.Subject),
		Version:     e.Version,
		Type:        e.Type,
		Action:      e.Action,
		Time:        time.UnixMilli(e.Time).UTC().Format("2006-01-02T15:04:05.000Z"),
		Outcome:     e.Outcome,
		Objects:     refs(e.Objects),
		Parents:     refs(e.Parents),
		Identifiers: e.Identifiers,
		Properties:  e.Properties,
		Context:     c,
		Cause:       v1.EventCause(e.Cause),
		Detail:      e.Detail,
		Before:      e.Before,
		After:       e.After,
		Schema:      e.Schema,
		Partition:   e.Partition,
		Seq:         e.Seq,
	}
}

// refs is the wire form of references, nil for none.
func refs(all []envelope.Ref) (out []v1.EventRef) {
	for _, r := range all {
		out = append(out, v1.EventRef(r))
	}
	return out
}
