package api

import (
	"context"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/fault"
)

// EventInput names an event.
type EventInput struct {
	Subject string `query:"subject" required:"true" maxLength:"1200"`
	Version int64  `query:"version" required:"true" minimum:"1"`
}

// eventLog registers the routes of the log of events.
func (a *API) eventLog(h huma.API) {
	get(a, h, "/v1/events", "listEvents", "List events", a.listEvents)
	get(a, h, "/v1/event", "getEvent", "Get an event",
		func(ctx context.Context, in *EventInput) (v1.LogEvent, error) {
			e, err := a.event(ctx, *in)
			return wireLogEvent(e), err
		})
	get(a, h, "/v1/acts", "listActs", "List what people did", a.listActs)
	get(a, h, "/v1/partitions", "listPartitions", "List the partitions of the log of events",
		a.listPartitions)
}

// listEvents lists events in one of four ways, which need different reads: those of the subject, the partition or the
// collection that is given, or the newest of all. The filter is compiled first, so that a wrong one is refused
// before anything is read.
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
	case len(given) > 1:
		return out, fault.New(fault.Invalid,
			"subject, partition, collection: expected only one of them")
	case len(given) == 0:
		return a.newestOfAll(ctx, in.Cursor, picks)
	case in.Subject != "":
		return a.subjectEvents(ctx, in, picks)
	case in.Partition != "":
		return a.partitionEvents(ctx, in, picks)
	}
	return a.newestEvents(ctx, in, picks)
}

// maxSubject is the longest id of a subject, in bytes: it is in a key of the table, of 2,048 bytes.
const maxSubject = 1500

// subjectOf reads a subject: its type, a colon and its id. The type is compared without case. The id
// may have colons itself. An error is an Invalid that lists the types.
func subjectOf(text string) (event.Subject, error) {
	name, id, _ := strings.Cut(text, ":")
	if len(id) > maxSubject {
		return event.Subject{},
			fault.New(fault.Invalid, "subject: the id has %d bytes; at most %d are accepted",
				len(id), maxSubject)
	}

	var names []string
	for _, t := range event.Types {
		if strings.EqualFold(t.String(), name) && id != "" {
			return event.Subject{Type: t, ID: id}, nil
		}
		names = append(names, t.String())
	}
	return event.Subject{},
		fault.New(fault.Invalid, "subject: %q: expected TYPE:ID, e.g. Job:%s; the types are %s",
			text, jobID, strings.Join(names, ", "))
}

// subjectEvents are the events of a subject, oldest first. A page is one page of rows, so it can be
// short, and even empty, with a filter, before the end. A subject that does not exist has no events: an
// empty list.
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

// partitionEvents are the events of a partition in order, from a place on. It reads until there are
// enough selected events, or the time is over; After is then the place up to which it has looked, and
// the cursor continues there. At the end of the log there is no cursor, but After, with which a client
// can ask for what comes later.
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

// event reads one event. It is read by its key. A NotFound says which subject has no event of that
// number.
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

// listPartitions lists all partitions of all logs on one page, also those that are closed.
func (a *API) listPartitions(ctx context.Context, _ *struct{}) (v1.List[v1.LogPartition], error) {
	all, err := a.EventLog.Partitions(ctx)
	return list(queue.Page[envelope.Partition]{Items: all},
		func(p envelope.Partition) v1.LogPartition {
			return v1.LogPartition{
				Name:    p.Name,
				Log:     p.Log,
				Head:    p.Head,
				Horizon: p.Horizon,
				Closed:  p.Closed,
			}
		}), err
}
