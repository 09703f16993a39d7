package consumer

import (
	"slices"

	"archivist/pkg/events/envelope"
	"archivist/pkg/events/filter"
)

// Reasons why a consumer does not handle an event.
const (
	// These are texts that explain shows to people; decide's callers compare them, too.
	skipFilter = "its filter does not select it"
	skipEarly  = "it happened before the time at which the consumer starts"
	skipOwn    = "the consumer made it itself"
	skipChain  = "it was caused by a change that the consumer made itself"
	skipDepth  = "its chain of causes is longer than the consumer's maxDepth"
)

// decide returns why a consumer does not handle an event, "" if it does. from is the time at which
// the consumer starts, in milliseconds since 1970. It looks at the event's facts only, so it can be
// asked before the payload is read. The depth comes last: an alarm is raised only for events that
// the consumer would handle otherwise.
func decide(c Consumer, f *filter.Filter, e envelope.Event, from int64) string {
	switch {
	case !selects(f, e):
		return skipFilter
	case e.Time < from:
		return skipEarly
	case c.OwnEvents != OwnHandle && e.Cause.AskedBy() == c.Name:
		return skipOwn
	case c.OwnEvents == OwnChain && slices.Contains(e.Cause.Components, c.Name):
		return skipChain
	case c.MaxDepth != AnyDepth && e.Cause.Depth > c.MaxDepth:
		return skipDepth
	}
	return ""
}

// key is the order key of an event. In a log that is split, the events of a collection are in order
// only within each part. Without an order, each event is a key of its own.
func key(c Consumer, e envelope.Event) string {
	switch c.Order {
	case OrderCollection:
		return e.Log()
	case OrderNone:
		return e.ID
	}
	return e.Subject.Type + "/" + e.Subject.ID
}
