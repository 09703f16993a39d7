package api

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/envelope"
	"archivist/pkg/event"
	"archivist/pkg/fault"
	"archivist/pkg/filter"
	"archivist/pkg/queue"
)

// EventQuery selects events: those of a subject, those of a partition of the log in order, or
// the newest of a collection.
type EventQuery struct {
	Subject    string `query:"subject" maxLength:"1200"`
	Partition  string `query:"partition" maxLength:"200"`
	After      int64  `query:"after" minimum:"0"`
	Collection string `query:"collection" maxLength:"100"`
	Filter     string `query:"filter" maxLength:"4000"`
	Cursor     string `query:"cursor" maxLength:"4000"`
}

// EventInput names an event.
type EventInput struct {
	Subject string `query:"subject" required:"true" maxLength:"1200"`
	Version int64  `query:"version" required:"true" minimum:"1"`
}

// ExplainInput names an event and a consumer.
type ExplainInput struct {
	EventInput
	Consumer string `query:"consumer" required:"true" maxLength:"100"`
}

// eventLog registers the routes of the log of events.
func (a *API) eventLog(h huma.API) {
	get(a, h, "/v1/events", "listEvents", "List events", a.listEvents)
	get(a, h, "/v1/event", "getEvent", "Get an event", func(ctx context.Context, in *EventInput) (v1.LogEvent, error) {
		e, err := a.event(ctx, *in)
		return wireLogEvent(e), err
	})
	get(a, h, "/v1/event/explain", "explainEvent", "Explain what became of an event", a.explainEvent)
	get(a, h, "/v1/partitions", "listPartitions", "List the partitions of the log of events", a.listPartitions)
}

func (a *API) listEvents(ctx context.Context, in *EventQuery) (out v1.EventPage, err error) {
	picks, err := selectionOf(in.Filter)
	if err != nil {
		return out, err
	}
	var given []string
	for _, one := range []string{in.Subject, in.Partition, in.Collection} {
		if one != "" {
			given = append(given, one)
		}
	}
	switch {
	case len(given) != 1:
		return out, fault.New(fault.Invalid, "subject, partition, collection: expected exactly one of them")
	case in.Subject != "":
		return a.subjectEvents(ctx, in, picks)
	case in.Partition != "":
		return a.partitionEvents(ctx, in, picks)
	}
	return a.newestEvents(ctx, in, picks)
}

// selection is what a filter selects; without a filter it is all stored events.
type selection struct{ filter *filter.Filter }

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
	return s.filter == nil || s.filter.SelectsFiles(e) || slices.ContainsFunc(envelope.Present(e), s.filter.Match)
}

// show is what is listed of a selected event: what consumers see of it. An event whose files only
// are selected stands for them.
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

// maxSubject is the longest id of a subject, in bytes: it is in a key of the table, of 2,048 bytes.
const maxSubject = 1500

// subjectOf reads a subject: its type, a colon and its id.
func subjectOf(text string) (event.Subject, error) {
	name, id, _ := strings.Cut(text, ":")
	if len(id) > maxSubject {
		return event.Subject{}, fault.New(fault.Invalid, "subject: the id has %d bytes; at most %d are accepted",
			len(id), maxSubject)
	}
	var names []string
	for _, t := range event.Types {
		if strings.EqualFold(t.String(), name) && id != "" {
			return event.Subject{Type: t, ID: id}, nil
		}
		names = append(names, t.String())
	}
	return event.Subject{}, fault.New(fault.Invalid, "subject: %q: expected TYPE:ID, e.g. Job:%s; the types are %s",
		text, jobID, strings.Join(names, ", "))
}

// subjectEvents are the events of a subject, oldest first.
func (a *API) subjectEvents(ctx context.Context, in *EventQuery, picks selection) (
	out v1.EventPage, err error) {
	s, err := subjectOf(in.Subject)
	if err != nil {
		return out, err
	}
	out.Items = []v1.LogEvent{}
	p, err := a.Queue.Events(ctx, s, in.Cursor)
	if err != nil {
		return out, err
	}
	for _, row := range p.Items {
		e, err := row.Envelope()
		if err != nil {
			return out, err
		}
		if picks.has(e) {
			out.Items = append(out.Items, picks.show(e)...)
		}
	}
	out.Cursor = p.Cursor
	return out, nil
}

// atOnce is how many events of a partition one look reads.
const atOnce = 100

// partitionEvents are the events of a partition in order, from a place on.
func (a *API) partitionEvents(ctx context.Context, in *EventQuery, picks selection) (
	out v1.EventPage, err error) {
	out.After = in.After
	if in.Cursor != "" {
		if out.After, err = strconv.ParseInt(in.Cursor, 10, 64); err != nil || out.After < 0 {
			return out, badCursor(in.Cursor)
		}
	}
	if _, err := a.EventLog.Partition(ctx, in.Partition); err != nil {
		return out, err
	}
	var found []envelope.Event
	for until := a.Queue.Now().Add(searchFor); ; {
		facts, err := a.EventLog.Read(ctx, in.Partition, out.After, atOnce)
		if err != nil {
			return out, err
		}
		for _, e := range facts {
			if len(found) == enough {
				break
			}
			out.After = e.Seq
			if picks.has(e) {
				found = append(found, e)
			}
		}
		if len(facts) > 0 && (len(found) == enough || !a.Queue.Now().Before(until)) {
			out.Cursor = strconv.FormatInt(out.After, 10)
			break
		}
		if len(facts) == 0 {
			break
		}
	}
	out.Items, err = a.whole(ctx, found, picks)
	return out, err
}

// whole is what is shown of events of the log, with all that they say.
func (a *API) whole(ctx context.Context, facts []envelope.Event, picks selection) ([]v1.LogEvent, error) {
	items := []v1.LogEvent{}
	all, err := a.EventLog.Events(ctx, facts)
	for _, e := range all {
		items = append(items, picks.show(e)...)
	}
	return items, err
}

// event reads one event.
func (a *API) event(ctx context.Context, in EventInput) (e envelope.Event, err error) {
	s, err := subjectOf(in.Subject)
	if err != nil {
		return e, err
	}
	var row event.Row
	err = a.Queue.Table.Get(ctx, event.Key(s, in.Version), &row)
	if fault.Is(err, fault.NotFound) {
		return e, fault.New(fault.NotFound, "%s %q has no event %d", s.Type, s.ID, in.Version)
	}
	if err != nil {
		return e, err
	}
	return row.Envelope()
}

func (a *API) explainEvent(ctx context.Context, in *ExplainInput) (out v1.EventExplanation, err error) {
	e, err := a.event(ctx, in.EventInput)
	if err != nil {
		return out, err
	}
	x, err := a.Consumers.Explain(ctx, in.Consumer, e)
	return v1.EventExplanation{Consumer: x.Consumer, Event: x.Event, State: x.State, Reason: x.Reason}, err
}

func (a *API) listPartitions(ctx context.Context, _ *struct{}) (v1.List[v1.LogPartition], error) {
	all, err := a.EventLog.Partitions(ctx)
	return list(queue.Page[envelope.Partition]{Items: all}, func(p envelope.Partition) v1.LogPartition {
		return v1.LogPartition{Name: p.Name, Log: p.Log, Head: p.Head, Horizon: p.Horizon, Closed: p.Closed}
	}), err
}

// wireLogEvent is the wire form of an event.
func wireLogEvent(e envelope.Event) v1.LogEvent {
	c := v1.EventContext{Actor: e.Context.Actor, Component: e.Context.Component, Version: e.Context.Version,
		Request: e.Context.Request, Transaction: v1.EventTransaction(e.Context.Transaction)}
	for _, m := range e.Context.Modules {
		c.Modules = append(c.Modules, v1.EventModule(m))
	}
	return v1.LogEvent{ID: e.ID, Subject: v1.EventRef(e.Subject), Version: e.Version, Type: e.Type, Action: e.Action,
		Time:    time.UnixMilli(e.Time).UTC().Format("2006-01-02T15:04:05.000Z"),
		Outcome: e.Outcome, Objects: refs(e.Objects), Parents: refs(e.Parents), Identifiers: e.Identifiers,
		Properties: e.Properties, Context: c, Cause: v1.EventCause(e.Cause), Detail: e.Detail, Before: e.Before,
		After: e.After, Schema: e.Schema, Partition: e.Partition, Seq: e.Seq}
}

func refs(all []envelope.Ref) (out []v1.EventRef) {
	for _, r := range all {
		out = append(out, v1.EventRef(r))
	}
	return out
}
