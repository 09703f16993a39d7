// Package lambda is the system as AWS Lambda invokes it: one handler for the functions
// of the stages, one for the scheduler, one for the API.
//
// A handler turns an event into calls of the queue, says which messages have to come
// again, logs what happened, and puts the invocation's metrics. It decides nothing:
// losing, repeating or reordering events changes nothing but time.
//
// A message that has to come again is hidden for as long as the queue says, and named
// in the response's BatchItemFailures; SQS deletes the others.
package lambda

import (
	"context"
	"log/slog"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"archivist/pkg/sqs"
)

// none is the response to messages that are all done. Its list is empty, not nil: the
// emulators do not read a null.
func none() events.SQSEventResponse {
	return events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}}
}

// again names a message that has to come again.
func again(record events.SQSMessage) events.SQSBatchItemFailure {
	return events.SQSBatchItemFailure{ItemIdentifier: record.MessageId}
}

// hide keeps a message from coming again for a while.
func hide(ctx context.Context, log *slog.Logger, q sqs.Queue, record events.SQSMessage, d time.Duration) {
	if err := q.Hide(ctx, record.ReceiptHandle, d); err != nil {
		log.Warn("a message could not be hidden; it comes back after its visibility time-out", "error", err)
	}
}
