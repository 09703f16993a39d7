// Package sqs wakes the scheduler through Amazon SQS, and delays messages.
package sqs

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// longestHidden is the longest visibility time-out that SQS accepts (SQS API
// reference, "ChangeMessageVisibility").
const longestHidden = 12 * time.Hour

// Queue is one queue.
type Queue struct {
	Client *sqs.Client
	URL    string
}

// Wake makes the reader of the queue check the gates. The message has no content: the
// pending work is in the table.
func (q Queue) Wake(ctx context.Context) error {
	in := &sqs.SendMessageInput{QueueUrl: &q.URL, MessageBody: aws.String(`{"look":"gates"}`)}
	_, err := q.Client.SendMessage(ctx, in)
	return err
}

// Hide delays the next delivery of a received message.
func (q Queue) Hide(ctx context.Context, receiptHandle string, d time.Duration) error {
	_, err := q.Client.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{
		QueueUrl: &q.URL, ReceiptHandle: &receiptHandle,
		VisibilityTimeout: int32(min(d+time.Second, longestHidden).Seconds())})
	return err
}
