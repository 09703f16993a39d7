package lambda

import (
	"context"
	"encoding/json"
	"log/slog"

	"github.com/aws/aws-lambda-go/events"

	"archivist/pkg/aws/cloudwatch"
	"archivist/pkg/aws/sqs"
	"archivist/pkg/ingest/queue"
)

// Stage is the function of one stage: a worker with its queue.
type Stage struct {
	Worker  *queue.Worker
	Queue   sqs.Queue
	Metrics *cloudwatch.Metrics
	Log     *slog.Logger
}

// Handle handles messages of the stage's queue. The response lists those that have to be
// delivered again. It returns no error: what failed is in the response and in the log.
func (s *Stage) Handle(ctx context.Context, in events.SQSEvent) (events.SQSEventResponse, error) {
	defer func() { _ = s.Metrics.Put(ctx) }() // the log has what was lost
	out := none()
	for _, record := range in.Records {
		if !s.handled(ctx, record) {
			out.BatchItemFailures = append(out.BatchItemFailures, again(record))
		}
	}
	return out, nil
}

// handled handles one message and reports whether it is done. A message that is kept comes
// back after the time that the worker returns. After an error it comes back when its
// visibility time-out ends, which is later than the lease.
func (s *Stage) handled(ctx context.Context, record events.SQSMessage) bool {
	var m queue.Message
	if err := json.Unmarshal([]byte(record.Body), &m); err != nil || m.Job == "" && m.Batch == "" {
		s.Log.Error("a message that the system did not send; it becomes a dead letter",
			"message", record.MessageId, "error", err)
		hide(ctx, s.Log, s.Queue, record, 0) // at once: waiting does not help
		return false
	}

	log := s.Log.With("stage", s.Worker.Stage.Name, "job", m.Job, "batch", m.Batch,
		"exec", m.Exec, "state", m.State+m.Step)
	now := s.Worker.Queue.Now
	started := now()
	keep, err := s.Worker.Handle(ctx, m)
	switch {
	case err != nil:
		log.Error("not handled; the message comes back", "error", err)
	case keep > 0:
		log.Info("kept", "for", keep.String())
		hide(ctx, log, s.Queue, record, keep)
	default:
		log.Info("handled", "ms", now().Sub(started).Milliseconds())
		return true
	}
	return false
}
