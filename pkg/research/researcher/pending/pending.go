// Package pending receives work items from the SQS queue of pending work of a project, by long
// polling: faster than by asking the API, for a researcher that has credentials for the queue.
//
//	source, err := pending.New(ctx, "https://sqs.eu-west-1.amazonaws.com/123456789012/pending-work-x", server, log)
package pending

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/research/researcher"
)

// polling is how long a request waits for a message, in seconds: the longest that SQS allows
// ("ReceiveMessage").
const polling = 20

// Queue is a queue of pending work. Acceptance is by the API: a message alone gives no right to its
// pairs. It can be used by several goroutines, each with tokens of its own.
type Queue struct {
	client *sqs.Client
	url    string            // of the queue
	server researcher.Server // accepts
	log    *slog.Logger

	mu      sync.Mutex
	pending map[string]types.Message // by the token of the acceptance, until that was answered
}

// New uses the credentials of the environment (AWS SDK, "Configuration"). It is an Invalid if they
// cannot be read; whether they allow the queue is found out by Next.
func New(ctx context.Context, url string, server researcher.Server,
	log *slog.Logger) (*Queue, error) {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, fault.New(fault.Invalid,
			"the AWS settings of this computer cannot be used: %w", err)
	}
	return &Queue{
		client:  sqs.NewFromConfig(cfg),
		url:     url,
		server:  server,
		log:     log,
		pending: map[string]types.Message{},
	}, nil
}

// Next receives a message and accepts its work item, nil if there is none. A message is deleted
// when it was accepted, or is no longer valid. One that is for another researcher, or comes while this
// one is paused, is given back; else it comes again.
//
// After any other error the caller calls it again with the same token, which accepts the same
// message. The request for a message ends with stop, but the acceptance does not: what was accepted
// has to be worked on or given back.
func (q *Queue) Next(ctx, stop context.Context, token string) (*researcher.Work, error) {
	m, err := q.message(stop, token)
	if m == nil || err != nil {
		return nil, err
	}

	work, err := q.accept(ctx, m, token)
	done := q.remove
	switch {
	case fault.Is(err, fault.Held):
		q.log.Info("a work item is for others", "reason", err)
		done = q.giveBack
	case fault.Is(err, fault.Conflict) || fault.Is(err, fault.NotFound):
		q.log.Info("a work item is no longer available", "reason", err)
	case err != nil:
		return nil, err
	}

	q.mu.Lock()
	delete(q.pending, token)
	q.mu.Unlock()
	err = done(ctx, m)
	if err != nil {
		q.log.Warn("a message was not deleted or given back; it comes again later", "error", err)
	}
	return work, nil
}

// remove deletes a message.
func (q *Queue) remove(ctx context.Context, m *types.Message) error {
	_, err := q.client.DeleteMessage(ctx,
		&sqs.DeleteMessageInput{QueueUrl: &q.url, ReceiptHandle: m.ReceiptHandle})
	return err
}

// forOthers is how long a message that was given back is hidden, in seconds: this researcher asks again at once.
const forOthers = 10

// giveBack lets others receive a message soon.
func (q *Queue) giveBack(ctx context.Context, m *types.Message) error {
	_, err := q.client.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{QueueUrl: &q.url,
		ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: forOthers})
	return err
}

// message is the message of an acceptance that was not answered, or the next one, nil if none comes
// within polling. It is kept until its acceptance was answered: another message under the same
// token would be another work item.
func (q *Queue) message(stop context.Context, token string) (*types.Message, error) {
	q.mu.Lock()
	known, ok := q.pending[token]
	q.mu.Unlock()
	if ok {
		return &known, nil
	}

	out, err := q.client.ReceiveMessage(stop, &sqs.ReceiveMessageInput{
		QueueUrl:            &q.url,
		MaxNumberOfMessages: 1,
		WaitTimeSeconds:     polling,
	})

	if stop.Err() != nil {
		return nil, nil // a message that was on its way comes again
	}

	if err != nil {
		return nil, fault.New(fault.Unavailable,
			"the queue of pending work cannot be read: %w", err)
	}

	if len(out.Messages) == 0 {
		return nil, nil
	}

	q.mu.Lock()
	q.pending[token] = out.Messages[0]
	q.mu.Unlock()
	return &out.Messages[0], nil
}

// accept accepts the work item of a message. A message that is none is a NotFound, by which it is
// deleted.
func (q *Queue) accept(ctx context.Context, m *types.Message,
	token string) (*researcher.Work, error) {
	var item struct {
		Lease string `json:"lease"`
	}
	err := json.Unmarshal([]byte(aws.ToString(m.Body)), &item)
	if err != nil || item.Lease == "" {
		return nil, fault.New(fault.NotFound, "the message %s is no work item",
			aws.ToString(m.MessageId))
	}
	return q.server.Accept(ctx, item.Lease, token)
}
