package lambda

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"unicode"

	"github.com/aws/aws-lambda-go/events"

	"archivist/pkg/kernel/fault"
)

// DeadLetter puts a message that can never be handled on a dead-letter queue, with attributes that
// say why. After an error the message is delivered again, and becomes a dead letter then.
type DeadLetter func(ctx context.Context, body string, attributes map[string]string) error

// inbox handles messages one by one. One that can never be handled becomes a dead letter with its
// reason; one that may be handled later is listed in the response. Neither keeps the others back.
type inbox struct {
	handle     func(ctx context.Context, body string) error
	deadLetter DeadLetter
	log        *slog.Logger
}

// all handles the messages in their order, and returns which of them have to be delivered
// again.
func (m inbox) all(ctx context.Context, records []events.SQSMessage) events.SQSEventResponse {
	out := none()
	for _, r := range records {
		err := m.one(ctx, r)
		if err != nil {
			m.log.Error("a message was not handled; it comes back", "message", r.MessageId, "error", err)
			out.BatchItemFailures = append(out.BatchItemFailures, again(r))
		}
	}
	return out
}

// one handles a message. The error means that it may be handled later. A dead letter counts as
// done: else SQS would deliver it until its own limit, and give no reason.
func (m inbox) one(ctx context.Context, r events.SQSMessage) error {
	err := m.try(ctx, r.Body)
	switch fault.Of(err) {
	case fault.Invalid, fault.NotFound, fault.Conflict: // it would fail in the same way again
		m.log.Error("a message that can never be handled; it becomes a dead letter", "message",
			r.MessageId,
			"error", err)
		return m.deadLetter(ctx, r.Body, map[string]string{"reason": reason(err), "message": r.MessageId,
			"queue": r.EventSourceARN})
	}
	return err
}

// try makes an Invalid of a panic: a message by which the process ends would keep the others back.
func (m inbox) try(ctx context.Context, body string) (err error) {
	defer func() {
		p := recover()
		if p != nil {
			m.log.Error("a defect", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = fault.New(fault.Invalid, "a defect of this software: %v", p)
		}
	}()
	return m.handle(ctx, body)
}

// mostReason is how many bytes of a reason are sent with a message.
const mostReason = 1000

// reason is the text of an error as the attribute of a message can have it: printable, and not
// empty ("SendMessage" in the SQS API reference).
func reason(err error) string {
	text := err.Error()
	if len(text) > mostReason {
		text = text[:mostReason] + "…"
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
}
