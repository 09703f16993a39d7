package v1

import (
	"context"
	"encoding/json"
	"strconv"
)

// EventRef names something that an event is about.
type EventRef struct {
	// What it is to the event, e.g. version. Only of objects.
	Role string `json:"role,omitempty" example:"version"`
	// The type of the thing: Object, Version, File, Collection, Batch, Job, Operation, Queue, User, Consumer,
	// Component, ComponentItem, ResearchProject, Episode, Clip or ResearchLease.
	Type string `json:"type" example:"Version"`
	// The id of the thing.
	ID string `json:"id" example:"ark:/99999/fk4tq65d6k/v1"`
}

// EventModule is a piece of software that took part in a change.
type EventModule struct {
	// The name.
	Name string `json:"name" example:"go"`
	// The version.
	Version string `json:"version" example:"go1.26.0"`
}

// EventTransaction is the change that an event is part of.
type EventTransaction struct {
	// The id of the change.
	ID string `json:"id" example:"01M7ZBMEYHBB62YP6RY21T1GQ7"`
	// The number of the event in it, from 0.
	Index int `json:"index" example:"0"`
	// The number of its events. 0 in an event that an earlier release wrote.
	Count int `json:"count" example:"2"`
}

// EventContext says who made a change, and with what.
type EventContext struct {
	// The person or account.
	Actor string `json:"actor,omitempty" example:"Map Library"`
	// The part of the system, or the consumer, that made the change.
	Component string `json:"component,omitempty" example:"record"`
	// The version of the software.
	Version string `json:"componentVersion,omitempty" example:"v1.4.0"`
	// The other software that took part.
	Modules []EventModule `json:"modules,omitempty"`
	// The id of the request of a person, if there was one. API Gateway returns it in x-amzn-RequestId.
	Request string `json:"request,omitempty" example:"c6af9ac6-7b61-11e6-9a41-93e8deadbeef"`
	// The change that the event is part of.
	Transaction EventTransaction `json:"transaction"`
}

// EventCause is the event because of which a consumer made a change.
type EventCause struct {
	// The id of the event. Absent if no other event was the cause.
	Event string `json:"event,omitempty" example:"01M7ZBMEYHBB62YP6RY21T1GQ6.0"`
	// The id of the event at the beginning of the chain of causes.
	Root string `json:"root,omitempty" example:"01M7ZBMEYHBB62YP6RY21T1GQ6.0"`
	// The length of the chain.
	Depth int `json:"depth,omitempty" example:"1"`
	// The components that made the events of the chain, the root's first.
	Components []string `json:"components,omitempty" example:"[\"record\"]"`
}

// LogEvent is an event with all that it says.
type LogEvent struct {
	// The id of the event.
	ID string `json:"id" example:"01M7ZBMEYHBB62YP6RY21T1GQ7.1"`
	// What the event is about.
	Subject EventRef `json:"subject"`
	// The number of the event among those of its subject, from 1.
	Version int64 `json:"version" example:"1"`
	// The type of the event.
	Type string `json:"type" example:"object.create"`
	// What happened to the subject, as filters name it.
	Action string `json:"action" enum:"create,modify,modify-metadata,add,remove,delete,install,disseminate"`
	// When it happened.
	Time string `json:"time" format:"date-time" example:"2026-11-22T09:31:12.250Z"`
	// Whether it succeeded.
	Outcome string `json:"outcome" enum:"success,failure"`
	// Other things that the event is about, each with its role.
	Objects []EventRef `json:"objects,omitempty"`
	// The containers of the subject at that time, the outermost first.
	Parents []EventRef `json:"parents,omitempty"`
	// The identifiers by which the subject is known.
	Identifiers []string `json:"identifiers,omitempty" example:"[\"ark:/99999/fk4tq65d6k\",\"map-1851\"]"`
	// The names of what changed.
	Properties []string `json:"properties,omitempty" example:"[\"title\",\"version\"]"`
	// Who made the change, and with what.
	Context EventContext `json:"context"`
	// The event because of which a consumer made the change.
	Cause EventCause `json:"cause"`
	// More about the event. Its form depends on the type and on schema.
	Detail json.RawMessage `json:"detail,omitempty"`
	// What changed, as it was before.
	Before json.RawMessage `json:"before,omitempty"`
	// What changed, as it was after.
	After json.RawMessage `json:"after,omitempty"`
	// The version of the form of detail, before and after.
	Schema int `json:"schema" example:"2"`
	// The partition of the log in which the event has its place. Absent until it has one.
	Partition string `json:"partition,omitempty" example:"maps"`
	// The place of the event in the partition.
	Seq int64 `json:"seq,omitempty" example:"42"`
}

// EventPage is a page of a list of events.
type EventPage struct {
	// The events of this page. A page may be short or empty even if it is not the last one.
	Items []LogEvent `json:"items"`
	// The cursor of the next page, to pass as the parameter cursor. Absent on the last page.
	Cursor string `json:"cursor,omitempty"`
	// Of a partition: the place up to which it was read, to pass as the parameter after to read what
	// is added later.
	After int64 `json:"after,omitempty" example:"42"`
	// Of all collections: how many logs are not in the list, which has the 100 that had got an event last
	// when it began. Each of the others has a list of its own. Absent if there are none.
	Others int `json:"others,omitempty" example:"12"`
	// Of all collections: why the list ends here though there are earlier events. Absent: it ends with
	// the first one that is kept of these logs, or it goes on.
	Incomplete string `json:"incomplete,omitempty"`
}

// Act is something that a person did.
type Act struct {
	// When it was done.
	Time string `json:"time" format:"date-time" example:"2026-11-22T09:31:12.250Z"`
	// Who did it.
	Actor string `json:"actor" example:"ann"`
	// The type of the event that tells of it.
	Type string `json:"type" example:"collection.held"`
	// What happened to the subject, as filters name it.
	Action string `json:"action" enum:"create,modify,modify-metadata,add,remove,delete,install,disseminate"`
	// What it was done to.
	Subject EventRef `json:"subject"`
	// The containers of the subject at that time, the outermost first.
	Parents []EventRef `json:"parents,omitempty"`
	// Whether it succeeded.
	Outcome string `json:"outcome" enum:"success,failure"`
	// Why it was done. Absent if no reason was given.
	Reason string `json:"reason,omitempty" example:"Rights are unclear."`
	// The number of its event among those of the subject, from 1.
	Version int64 `json:"version" example:"3"`
	// The id of the event.
	Event string `json:"event" example:"01M7ZBMEYHBB62YP6RY21T1GQ7.1"`
}

// ActPage is a page of what people did.
type ActPage struct {
	// The acts of this page. A page may be short or empty even if it is not the last one.
	Items []Act `json:"items"`
	// The cursor of the next page, to pass as the parameter cursor. Absent on the last page.
	Cursor string `json:"cursor,omitempty"`
	// The time back to which this page has looked. Absent on the last page.
	Looked string `json:"looked,omitempty" format:"date-time" example:"2026-11-21T09:31:12Z"`
}

// LogPartition is a part of the log of events. The events of a partition are in order.
type LogPartition struct {
	// The name of the partition.
	Name string `json:"name" example:"maps"`
	// The collection whose events it has, or site.
	Log string `json:"log" example:"maps"`
	// The place of its newest event. 0 if it has none.
	Head int64 `json:"head" example:"42"`
	// The place of the oldest event that is kept.
	Horizon int64 `json:"horizon" example:"1"`
	// Whether nothing more is added to it, because the log was split anew.
	Closed bool `json:"closed,omitempty"`
}

// EventFilter selects events. One of Subject, Partition and Collection is given.
type EventFilter struct {
	Subject    string // its type, a colon and its id
	Partition  string
	After      int64  // of Partition: the place after which it begins
	Collection string // its newest events first; "site" has the events without a collection
	Filter     string
	Limit      int // most events to return; 0 = all
}

// LogEvents lists events, all pages as one, with what the last of them says: After is up to which
// place a partition was read.
func (c *Client) LogEvents(ctx context.Context, f EventFilter) (EventPage, error) {
	all := EventPage{Items: []LogEvent{}, After: f.After}
	for {
		from := ""
		if f.Partition != "" {
			from = strconv.FormatInt(all.After, 10)
		}

		page, err := get[EventPage](ctx, c, "/v1/events"+
			query("subject", f.Subject, "partition", f.Partition, "after", from,
				"collection", f.Collection, "filter", f.Filter, "cursor", all.Cursor))
		if err != nil {
			return all, err
		}

		page.Items, page.After = append(all.Items, page.Items...), max(all.After, page.After)
		all = page
		if f.Limit > 0 && len(all.Items) >= f.Limit {
			all.Items = all.Items[:f.Limit]
			return all, nil
		}
		if all.Cursor == "" {
			return all, nil
		}
	}
}

// LogEvent returns the event of a version of a subject, which is named by its type, a colon and its id.
func (c *Client) LogEvent(ctx context.Context, subject string, version int64) (LogEvent, error) {
	return get[LogEvent](ctx, c, "/v1/event"+
		query("subject", subject, "version", strconv.FormatInt(version, 10)))
}

// ActFilter selects acts of people.
type ActFilter struct {
	Actor  string // "" = of all
	Filter string // of events
	Before string // a time, or a day
}

// query is the filter in the form of a query.
func (f ActFilter) query() []string {
	return []string{"actor", f.Actor, "filter", f.Filter, "before", f.Before}
}

// Acts lists what people did, the newest first; limit 0 = all.
func (c *Client) Acts(ctx context.Context, f ActFilter, limit int) ([]Act, error) {
	return list[Act](ctx, c, "/v1/acts", limit, f.query()...)
}

// ActPage reads a page of what people did, as Acts orders it.
func (c *Client) ActPage(ctx context.Context, f ActFilter, cursor string) (ActPage, error) {
	return get[ActPage](ctx, c, "/v1/acts"+query(append([]string{"cursor", cursor}, f.query()...)...))
}

// LogPartitions lists the partitions of the log of events.
func (c *Client) LogPartitions(ctx context.Context) ([]LogPartition, error) {
	return list[LogPartition](ctx, c, "/v1/partitions", 0)
}
