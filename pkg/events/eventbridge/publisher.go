// Package eventbridge publishes public events on a bus of Amazon EventBridge, so that rules
// of others can react to them. An event on the bus has the source "archivist", the type of
// the event as its detail type, and the envelope.Event as its detail. The directory events
// has a JSON Schema of each type; filter.Filter.Pattern makes patterns for rules.
//
// EventBridge delivers at least once and in any order. A receiver recognises a repeated event
// by detail.id, and the order by detail.partition and detail.seq.
package eventbridge

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"

	"archivist/pkg/events/consumer"
	"archivist/pkg/events/envelope"
	"archivist/pkg/events/filter"
	"archivist/pkg/kernel/fault"
)

// Limits of one request (source: Amazon EventBridge API reference, "PutEvents", and User
// Guide, "Calculating PutEvents event entry size").
const (
	MaxEntries = 10
	// MaxBytes is of all entries.
	MaxBytes = 256 << 10
	// timeBytes is what the time of an entry counts for.
	timeBytes = 14
)

// Name of the consumer, and of its handler.
const Name = "eventbridge"

// Definition is the consumer that publishes. A bus has no order, so no event waits for
// another. What was published cannot be taken back, so nothing is replayed.
var Definition = consumer.Definition{
	Name:          Name,
	Version:       1,
	Description:   "Publishes public events on the EventBridge bus.",
	Filter:        "All+All",
	Target:        consumer.Target{Handler: Name},
	Order:         consumer.OrderNone,
	Batch:         50,
	Start:         consumer.StartLatest,
	IgnoreReplays: true,
}

// Client is what is used of EventBridge's client.
type Client interface {
	PutEvents(ctx context.Context, in *eventbridge.PutEventsInput,
		_ ...func(*eventbridge.Options)) (
		*eventbridge.PutEventsOutput, error)
}

// Publisher is the handler of the consumer.
type Publisher struct {
	Client Client
	Bus    string // its name or ARN
}

// Handle publishes the public events of the batch, in their order. Its failures are those that
// EventBridge refused, or that were in a request without an answer or after it: these may be on the
// bus, and are published again. It returns an Invalid for a replay.
func (p Publisher) Handle(ctx context.Context, b consumer.Batch) ([]consumer.Failure, error) {
	if b.Replay {
		return nil, fault.New(fault.Invalid,
			"the consumer %s publishes events to others; it cannot be replayed",
			b.Consumer)
	}

	pending, failures := entries(b.Events)
	for len(pending) > 0 {
		n := fitting(pending)
		refused, err := p.put(ctx, pending[:n])
		if err != nil {
			return append(failures, failed(pending, err)...), nil
		}
		failures = append(failures, refused...)
		pending = pending[n:]
	}
	return failures, nil
}

// entry is an event to be published, with its JSON.
type entry struct {
	event  envelope.Event
	detail string
}

// entries are the public events. The failures are those that no request can hold.
func entries(items []consumer.Item) (public []entry, failures []consumer.Failure) {
	for _, item := range items {
		if kind, known := envelope.KindOf(item.Type); !known || !kind.Public {
			continue
		}
		e, err := newEntry(item.Event)
		if err != nil {
			failures = append(failures, consumer.Failure{ID: item.ID, Reason: err.Error()})
			continue
		}
		public = append(public, e)
	}
	return public, failures
}

// newEntry is the event with all that it says, or, if that is too large for a bus, its facts:
// the API has the rest.
func newEntry(e envelope.Event) (entry, error) {
	for _, say := range []envelope.Event{e, e.Facts()} {
		detail, err := json.Marshal(say)
		if err != nil {
			return entry{}, fmt.Errorf("eventbridge: %w", err)
		}
		if made := (entry{e, string(detail)}); made.size() <= MaxBytes {
			return made, nil
		}
	}
	return entry{}, fmt.Errorf("eventbridge: the facts of the event have more than %d bytes",
		MaxBytes)
}

// size is that of the entry in a request, in bytes.
func (e entry) size() int {
	return timeBytes + len(filter.Source) + len(e.event.Type) + len(e.detail)
}

// fitting is how many of the first entries fit into one request; at least 1, since newEntry makes
// none that is larger.
func fitting(pending []entry) int {
	n, size := 0, 0
	for n < min(len(pending), MaxEntries) {
		size += pending[n].size()
		if size > MaxBytes {
			break
		}
		n++
	}
	return n
}

// put sends one request. The failures are the entries that EventBridge refused.
func (p Publisher) put(ctx context.Context, some []entry) (refused []consumer.Failure, err error) {
	in := &eventbridge.PutEventsInput{}
	for _, e := range some {
		in.Entries = append(in.Entries, types.PutEventsRequestEntry{
			EventBusName: aws.String(p.Bus),
			Source:       aws.String(filter.Source),
			DetailType:   aws.String(e.event.Type),
			Time:         aws.Time(time.UnixMilli(e.event.Time)),
			Detail:       aws.String(e.detail),
		})
	}

	out, err := p.Client.PutEvents(ctx, in)
	if err != nil {
		return nil, fmt.Errorf("eventbridge: %w", err)
	}

	if len(out.Entries) != len(some) {
		return nil, fmt.Errorf("eventbridge: %d events were sent, the answer is about %d",
			len(some), len(out.Entries))
	}

	for i, r := range out.Entries {
		if r.ErrorCode != nil {
			refused = append(refused,
				consumer.Failure{ID: some[i].event.ID, Reason: fmt.Sprintf("eventbridge: %s: %s",
					*r.ErrorCode, aws.ToString(r.ErrorMessage))})
		}
	}
	return refused, nil
}

// failed are failures of all of these events.
func failed(pending []entry, err error) []consumer.Failure {
	failures := make([]consumer.Failure, len(pending))
	for i, e := range pending {
		failures[i] = consumer.Failure{ID: e.event.ID, Reason: err.Error()}
	}
	return failures
}
