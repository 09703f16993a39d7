// Package sqs wakes the scheduler by Amazon SQS, and keeps messages for later.
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

// Wake asks whoever reads the queue to look at the gates. The message carries no
// truth: what is to be done is in the table.
func (q Queue) Wake(ctx context.Context) error {
	in := &sqs.SendMessageInput{QueueUrl: &q.URL, MessageBody: aws.String(`{"look":"gates"}`)}
	_, err := q.Client.SendMessage(ctx, in)
	return err
}

// Hide keeps a received message from being received again for a while.
func (q Queue) Hide(ctx context.Context, receiptHandle string, d time.Duration) error {
	_, err := q.Client.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{
		QueueUrl: &q.URL, ReceiptHandle: &receiptHandle,
		VisibilityTimeout: int32(min(d+time.Second, longestHidden).Seconds())})
	return err
}
