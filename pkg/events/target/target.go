// Package target calls the functions and the queues that handle events for consumers.
//
// A function is called with a consumer.Batch as JSON, and answers which events failed:
//
//	{"consumer": "mine", "version": 1, "events": [{"id": …, "type": …, …}], "replay": false, "cause": "…"}
//	{"failed": [{"id": "…", "reason": "…"}]}
//
// A queue gets a message for each event (or for several that were coalesced), whose body is a batch
// with this one event.
package target

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"archivist/pkg/aws/invoke"
	"archivist/pkg/aws/sqs"
	"archivist/pkg/events/consumer"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/fault"
)

// Call is what a function or a queue gets. Cause is the value of the header Archivist-Cause for
// requests to the API that are made because of these events: so a loop of consumers ends.
type Call struct {
	consumer.Batch
	Cause string `json:"cause,omitempty"`
}

// Caller calls targets. What is not Allowed is refused here, too: a definition may be older than
// the settings of the deployment.
type Caller struct {
	Functions *invoke.Functions
	Queues    *awssqs.Client

	// Allowed are ARNs of functions and URLs of queues.
	Allowed []string

	// Limit is the longest time of one call.
	Limit time.Duration
}

// Call calls a target with events, and returns those that it did not handle. An error of the kind
// Unavailable or Denied means that the target cannot be called. Any other error is about all of the
// events.
func (c *Caller) Call(ctx context.Context, t consumer.Target,
	b consumer.Batch) ([]consumer.Failure, error) {
	ctx, cancel := context.WithTimeout(ctx, c.Limit)
	defer cancel()
	if to := t.Lambda + t.Queue; !slices.Contains(c.Allowed, to) {
		return nil, fault.New(fault.Denied,
			"this deployment does not allow consumers to call %s; add it to the "+
				"setting consumerTargets", to)
	}

	call := Call{Batch: b, Cause: event.OriginOf(ctx).Cause.Encode()}
	if t.Queue != "" {
		return c.send(ctx, t.Queue, call)
	}

	var answer json.RawMessage
	if err := c.Functions.Call(ctx, t.Lambda, call, &answer); err != nil {
		return nil, err
	}
	return failures(answer)
}

// failures reads what a function has answered: those that it did not handle, or null, since many languages answer that
// if nothing is returned. Anything else is an error: a function that names what failed in another way, e.g. as for SQS,
// must not be taken for one that has handled all.
func failures(answer []byte) ([]consumer.Failure, error) {
	var said struct {
		Failed []consumer.Failure `json:"failed"`
	}
	d := json.NewDecoder(bytes.NewReader(answer))
	d.DisallowUnknownFields()
	if err := d.Decode(&said); err != nil {
		return nil, fmt.Errorf(`the function's answer is not what is expected, {"failed": [{"id": "…", "reason": "…"}]} `+
			"or nothing: %w", err)
	}
	return said.Failed, nil
}

// send sends a message for each event. Those that the queue refused are failures; an error means
// that it is not known which were sent.
func (c *Caller) send(ctx context.Context, url string,
	b Call) (failed []consumer.Failure, err error) {
	bodies := make([]string, len(b.Events))
	for i := range b.Events {
		one := b
		one.Events = b.Events[i : i+1]
		data, err := json.Marshal(one)
		if err != nil {
			return nil, fmt.Errorf("target: %s: %w", b.Events[i].ID, err)
		}
		bodies[i] = string(data)
	}

	unsent, err := sqs.Queue{Client: c.Queues, URL: url}.Send(ctx, bodies)
	for i, e := range b.Events {
		if reason, is := unsent[i]; is {
			failed = append(failed, consumer.Failure{ID: e.ID, Reason: reason})
		}
	}
	return failed, err
}
