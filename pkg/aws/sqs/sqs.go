// Package sqs wakes the scheduler through Amazon SQS, delays messages, and sends events to queues.
package sqs

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"archivist/pkg/aws/awserror"
	"archivist/pkg/kernel/fault"
)

// longestHidden is the longest visibility time-out that SQS accepts (SQS API
// reference, "ChangeMessageVisibility").
const longestHidden = 12 * time.Hour

// Queue is one queue.
type Queue struct {
	Client *sqs.Client
	URL    string
}

// Wake makes the reader of the queue check the gates. The message has no content: the pending
// work is in the table. One that is lost costs a minute.
func (q Queue) Wake(ctx context.Context) error {
	in := &sqs.SendMessageInput{QueueUrl: &q.URL, MessageBody: aws.String(`{"look":"gates"}`)}
	_, err := q.Client.SendMessage(ctx, in)
	return err
}

// Hide delays the next delivery of a received message. SQS takes whole seconds: one is added, and
// the rest is cut off. What is longer than SQS allows is cut, too.
func (q Queue) Hide(ctx context.Context, receiptHandle string, d time.Duration) error {
	_, err := q.Client.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{
		QueueUrl:          &q.URL,
		ReceiptHandle:     &receiptHandle,
		VisibilityTimeout: int32(min(d+time.Second, longestHidden).Seconds()),
	})
	return err
}

// Limits of one request that sends messages ("Amazon SQS message quotas"). The sum of its messages
// is that of the oldest quota, which every region and emulator has.
const (
	mostMessages = 10
	mostBytes    = 256 << 10
)

// Send sends messages, several in a request. failed has the reasons of those that were not
// sent, by their index. An error of the kind Unavailable or Denied means that the queue
// cannot be reached; messages may have been sent. failed is never nil. A message alone may be
// larger than mostBytes: then SQS decides.
func (q Queue) Send(ctx context.Context, bodies []string) (failed map[int]string, err error) {
	failed = map[int]string{}
	for first := 0; first < len(bodies); {
		last, size := first, 0
		var entries []types.SendMessageBatchRequestEntry
		for last < len(bodies) && len(entries) < mostMessages {
			if len(entries) > 0 && size+len(bodies[last]) > mostBytes {
				break
			}
			size += len(bodies[last])
			entries = append(entries,
				types.SendMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(last)),
					MessageBody: &bodies[last]})
			last++
		}

		out, err := q.Client.SendMessageBatch(ctx,
			&sqs.SendMessageBatchInput{QueueUrl: &q.URL, Entries: entries})
		if err != nil {
			return failed, unsent(err)
		}

		for _, f := range out.Failed {
			if i, err := strconv.Atoi(aws.ToString(f.Id)); err == nil {
				failed[i] = aws.ToString(f.Code) + ": " + aws.ToString(f.Message)
			}
		}

		first = last
	}
	return failed, nil
}

// Put sends a message with attributes of the type String, whose values are printable and not empty
// ("SendMessage" in the SQS API reference). It returns an error as Send does.
func (q Queue) Put(ctx context.Context, body string, attributes map[string]string) error {
	in := &sqs.SendMessageInput{
		QueueUrl:          &q.URL,
		MessageBody:       &body,
		MessageAttributes: map[string]types.MessageAttributeValue{},
	}

	for name, value := range attributes {
		in.MessageAttributes[name] = types.MessageAttributeValue{DataType: aws.String("String"),
			StringValue: &value}
	}

	_, err := q.Client.SendMessage(ctx, in)
	if err != nil {
		return unsent(err)
	}
	return nil
}

// Receive receives a message. It waits for one, at most 20 s. receipt is "" if there is none.
// The message stays hidden for the visibility time-out of the queue; who has handled it
// deletes it.
func (q Queue) Receive(ctx context.Context, wait time.Duration) (body, receipt string, err error) {
	out, err := q.Client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl:            &q.URL,
		MaxNumberOfMessages: 1,
		WaitTimeSeconds:     int32(wait.Seconds()),
	})
	if err != nil {
		return "", "", unsent(err)
	}

	if len(out.Messages) == 0 {
		return "", "", nil
	}
	return aws.ToString(out.Messages[0].Body), aws.ToString(out.Messages[0].ReceiptHandle), nil
}

// Delete deletes a received message. receipt is that of its last receive.
func (q Queue) Delete(ctx context.Context, receipt string) error {
	_, err := q.Client.DeleteMessage(ctx,
		&sqs.DeleteMessageInput{QueueUrl: &q.URL, ReceiptHandle: &receipt})
	if err != nil {
		return unsent(err)
	}
	return nil
}

// unsent is why a request was refused. What SQS says of the messages has no kind. A later try
// may succeed after an Unavailable.
func unsent(err error) error {
	var long *types.BatchRequestTooLong
	var content *types.InvalidMessageContents
	switch {
	case errors.As(err, &long) || errors.As(err, &content):
		return err
	case awserror.Denied(err):
		return &fault.Error{
			Kind: fault.Denied,
			Msg:  "this deployment may not use the queue: " + err.Error(),
			Err:  err,
		}
	}
	return &fault.Error{
		Kind: fault.Unavailable,
		Msg:  "the queue cannot be reached: " + err.Error(),
		Err:  err,
	}
}
