// Package lambda is the system as AWS Lambda invokes it: one handler for the functions
// of the stages, one for the scheduler, one for the API, one each for the relay of events and
// for the consumers of events.
//
// A handler turns an event into calls of a service, returns which messages have to be
// delivered again, logs what happened, and puts the invocation's metrics. It decides
// nothing: lost, repeated or reordered events only cost time.
//
// A message that has to be delivered again is hidden for the time that the queue returns,
// and listed in the response's BatchItemFailures; SQS deletes the others.
//
// A partial failure of a batch is told by the response, so an error of a handler means that
// the whole event is delivered again. Metrics that cannot be sent are logged and lost, except
// where a handler says otherwise.
package lambda

import (
	"context"
	"log/slog"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"archivist/pkg/aws/sqs"
)

// none is the response if all messages are done. Its list is empty, not nil: the emulators do
// not accept a null.
func none() events.SQSEventResponse {
	return events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}}
}

// again marks a message that has to be delivered again.
func again(record events.SQSMessage) events.SQSBatchItemFailure {
	return events.SQSBatchItemFailure{ItemIdentifier: record.MessageId}
}

// hide delays the next delivery of a message. A message that is not hidden comes back too early
// or too late, which costs only time. 0 brings it back as soon as possible.
func hide(ctx context.Context, log *slog.Logger, q sqs.Queue, record events.SQSMessage,
	d time.Duration) {
	if err := q.Hide(ctx, record.ReceiptHandle, d); err != nil {
		log.Warn("a message could not be hidden; it comes back after its visibility time-out",
			"error", err)
	}
}
