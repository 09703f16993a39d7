package api

import (
	"context"
	"encoding/json"
	"strings"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/events/event"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/collection"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/fault"
)

// events makes the handler of a list of a subject's events, oldest first, for subjects of a type. A
// subject without events does not exist: a NotFound.
func (a *API) events(
	subject event.Type) func(context.Context, *IDCursor) (v1.List[v1.Event], error) {
	return func(ctx context.Context, in *IDCursor) (v1.List[v1.Event], error) {
		p, err := a.Queue.Events(ctx, event.Subject{Type: subject, ID: in.ID}, in.Cursor)
		if err != nil {
			return list(p, wireEvent), err
		}

		// Whatever exists has an event: that of its beginning. A later page may be empty.
		if len(p.Items) == 0 && in.Cursor == "" {
			return list(p, wireEvent), fault.New(fault.NotFound, "there is no %s %q",
				strings.ToLower(subject.String()), in.ID)
		}
		out := list(p, wireEvent)
		if subject == event.Batch {
			err = a.mailEvents(ctx, in.ID, out.Items)
		}
		return out, err
	}
}

// wireEvent is the wire form of an event of a subject. The details of a few types are stored in forms
// of our own: they are shown as the wire types that the document describes. A detail that cannot be
// read is shown as it is.
func wireEvent(r event.Row) v1.Event {
	detail := json.RawMessage(r.Detail)
	var profile collection.Profile
	if r.Type == v1.EventCollectionProfile && json.Unmarshal(detail, &profile) == nil {
		// It cannot fail: it has only strings and numbers.
		detail, _ = json.Marshal(wireProfile(profile))
	}

	var change queue.OperationChange
	if strings.HasPrefix(r.Type, operationEvents) && json.Unmarshal(detail, &change) == nil {
		detail, _ = json.Marshal(wireChange(change))
	}
	return v1.Event{
		ID:        r.ID,
		Version:   r.Version,
		Type:      r.Type,
		Time:      ingest.Timestamp(r.Time),
		Outcome:   r.Outcome,
		Actor:     r.Actor,
		Component: r.Component,
		Detail:    detail,
	}
}

// operationEvents begins the types of the events of operations.
const operationEvents = "operation."
