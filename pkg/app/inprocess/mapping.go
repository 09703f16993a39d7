package inprocess

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// mapping is an event source mapping: it invokes a function with messages of a queue. There
// is one for each queue, so its id follows from the queue's name.
type mapping struct {
	id       string
	queue    *queue
	function string
	batch    int // messages of an invocation, at most
	at       int // invocations at once, at most
	disabled atomic.Bool
}

// enable turns the mapping on or off. Invocations that run go on.
func (m *mapping) enable(on bool) {
	m.disabled.Store(!on)
	m.queue.mu.Lock()
	defer m.queue.mu.Unlock()
	m.queue.notify()
}

// poll invokes the function until the end of ctx. A slot is taken before messages are
// received: those that wait for a slot would use up their visibility time-out.
func (m *mapping) poll(ctx context.Context, l *functions) {
	var running sync.WaitGroup
	defer running.Wait()
	slots := make(chan struct{}, m.at)
	for {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return
		}

		batch := m.next(ctx)
		if len(batch) == 0 {
			return
		}

		running.Go(func() {
			defer func() { <-slots }()
			m.deliver(ctx, l, batch)
		})
	}
}

// next waits for messages. There is none at the end of ctx only. There is no batching window:
// a batch is what is visible when the first message is.
func (m *mapping) next(ctx context.Context) (batch []message) {
	for len(batch) == 0 && ctx.Err() == nil {
		if m.disabled.Load() {
			m.queue.await(ctx)
			continue
		}
		batch = m.queue.receive(ctx, m.batch, time.Hour, m.queue.visibility)
	}
	return batch
}

// deliver invokes the function, and deletes the messages that it has handled. The others come
// back after the visibility time-out of the queue, or when the function wants it. An
// invocation that failed as a whole deletes none.
func (m *mapping) deliver(ctx context.Context, l *functions, batch []message) {
	var in events.SQSEvent
	for _, x := range batch {
		in.Records = append(in.Records, m.record(x))
	}

	payload, err := json.Marshal(in)
	if err != nil {
		panic(err) // texts can always be encoded
	}

	a, err := l.invoke(ctx, m.function, payload)
	if err != nil || a.failed != nil {
		return
	}

	again, err := failures(a.out, batch)
	if err != nil {
		l.log.Error("the answer of an invocation is not understood; all messages come back",
			"function", m.function,
			"error", err)
		return
	}

	for _, x := range batch {
		if !again[x.id] {
			m.queue.remove(x.receipt())
		}
	}
}

// record is a message as a function gets it.
func (m *mapping) record(x message) events.SQSMessage {
	attributes := map[string]events.SQSMessageAttribute{}
	for name, a := range x.attributes {
		attributes[name] = attribute(a)
	}
	return events.SQSMessage{
		MessageId:         x.id,
		ReceiptHandle:     x.receipt(),
		Body:              x.body,
		Md5OfBody:         x.md5(),
		Attributes:        x.system(),
		MessageAttributes: attributes,
		EventSourceARN:    m.queue.arn(),
		EventSource:       "aws:sqs",
		AWSRegion:         region,
	}
}

// attribute is an attribute of a message as a function gets it.
func attribute(a types.MessageAttributeValue) events.SQSMessageAttribute {
	return events.SQSMessageAttribute{
		DataType:    *a.DataType,
		StringValue: a.StringValue,
		BinaryValue: a.BinaryValue,
	}
}

// failures are the messages that a function's answer names. An answer that names another one
// fails all ("Reporting batch item failures").
func failures(out []byte, batch []message) (map[string]bool, error) {
	var answer events.SQSEventResponse
	err := json.Unmarshal(out, &answer)
	if err != nil {
		return nil, err
	}

	known, again := map[string]bool{}, map[string]bool{}
	for _, x := range batch {
		known[x.id] = true
	}

	for _, f := range answer.BatchItemFailures {
		if !known[f.ItemIdentifier] {
			return nil, fmt.Errorf("it names the message %q", f.ItemIdentifier)
		}
		again[f.ItemIdentifier] = true
	}
	return again, nil
}
