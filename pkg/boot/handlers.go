package boot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"archivist/pkg/fault"
	"archivist/pkg/ingest"
	"archivist/pkg/queue"
)

// StageHandler is the function of the stage that the environment names.
func (s *System) StageHandler() (func(context.Context, events.SQSEvent) (events.SQSEventResponse, error), error) {
	name := s.Env(EnvStage)
	st, known := ingest.StageNamed(name)
	step, does := s.Stages.Steps()[name]
	if !known || !does {
		return nil, fmt.Errorf("boot: %s: there is no stage %q", EnvStage, name)
	}
	worker := &queue.Worker{Queue: s.Queue, Stage: st, Step: s.faults.step(name, step), Answers: s.Answer}
	return func(ctx context.Context, in events.SQSEvent) (out events.SQSEventResponse, err error) {
		out.BatchItemFailures = []events.SQSBatchItemFailure{} // a null is not read everywhere
		defer func() { _ = s.metric.put(ctx) }()               // the log says what was lost
		for _, record := range in.Records {
			if !s.message(ctx, worker, record) {
				out.BatchItemFailures = append(out.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: record.MessageId})
			}
		}
		return out, nil
	}, nil
}

// message handles one message and reports whether it is done. One that is to be
// kept comes back after the time that the worker says.
func (s *System) message(ctx context.Context, w *queue.Worker, record events.SQSMessage) (done bool) {
	var m queue.Message
	if err := json.Unmarshal([]byte(record.Body), &m); err != nil || m.Job == "" && m.Batch == "" {
		s.Log.Error("a message that the system did not send; it goes to the dead letters", "message", record.MessageId, "error", err)
		s.hide(ctx, record, 0) // soon: it does not get better
		return false
	}
	log := s.Log.With("stage", w.Stage.Name, "job", m.Job, "batch", m.Batch, "exec", m.Exec, "state", m.State+m.Step)
	started := s.Queue.Now()
	keep, err := w.Handle(ctx, m)
	switch {
	case err != nil:
		log.Error("not handled; the message comes back", "error", err)
	case keep > 0:
		log.Info("kept", "for", keep.String())
		s.hide(ctx, record, keep)
	default:
		log.Info("handled", "ms", s.Queue.Now().Sub(started).Milliseconds())
		return true
	}
	return false
}

// hide keeps a message from coming again for a while.
func (s *System) hide(ctx context.Context, record events.SQSMessage, keep time.Duration) {
	_, err := s.SQS.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{QueueUrl: aws.String(s.Env(EnvQueue)),
		ReceiptHandle: &record.ReceiptHandle, VisibilityTimeout: int32(min(keep.Seconds()+1, 12*3600))})
	if err != nil {
		s.Log.Warn("a message could not be hidden; it comes back after its visibility time-out", "error", err)
	}
}

// SchedulerEvent is what wakes the scheduler: the minute's rule, a poke, or an
// execution that was stopped.
type SchedulerEvent struct {
	Records    []events.SQSMessage `json:"Records"`
	DetailType string              `json:"detail-type"`
	Detail     struct {
		Name   string `json:"name"`
		Status string `json:"status"`
	} `json:"detail"`
}

// busy is when a poke is tried again that met another tick; each time it is longer.
const busy = 2 * time.Second

// waits is how long a poke waits that met another tick, which may have passed what it is
// about. It is 0 for one that was sent before that tick can have begun: the tick sees what
// it is about, so it is answered. No poke becomes a dead letter by waiting.
func waits(r events.SQSMessage, now time.Time, longest time.Duration) time.Duration {
	received, sent := 1, now.UnixMilli() // where the platform does not say
	if n, err := strconv.Atoi(r.Attributes["ApproximateReceiveCount"]); err == nil {
		received = n
	}
	if ms, err := strconv.ParseInt(r.Attributes["SentTimestamp"], 10, 64); err == nil {
		sent = ms
	}
	if now.Sub(time.UnixMilli(sent)) >= longest {
		return 0
	}
	return busy * time.Duration(received)
}

// SchedulerHandler is the function of the scheduler. A scheduler whose metrics are refused fails
// each minute, since its errors are what is heard then.
func (s *System) SchedulerHandler() func(context.Context, SchedulerEvent) (events.SQSEventResponse, error) {
	return func(ctx context.Context, in SchedulerEvent) (out events.SQSEventResponse, err error) {
		out.BatchItemFailures = []events.SQSBatchItemFailure{}
		if in.DetailType == "Step Functions Execution Status Change" {
			err = s.stopped(ctx, in.Detail.Name)
			return out, errors.Join(err, s.metric.put(ctx))
		}
		poked := len(in.Records) > 0
		err = s.Scheduler.Tick(ctx, !poked)
		if fault.Is(err, fault.Held) || fault.Is(err, fault.Stale) {
			err = nil
			timing := s.Queue.Rules.Timing
			for _, r := range in.Records {
				if keep := waits(r, s.Queue.Now(), timing.Scheduler+timing.Margin); keep > 0 {
					s.hide(ctx, r, keep)
					out.BatchItemFailures = append(out.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: r.MessageId})
				}
			}
		}
		if poked {
			_ = s.metric.put(ctx) // the log says what was lost
			return out, err
		}
		return out, errors.Join(err, s.Queue.Measure(ctx), s.metric.put(ctx))
	}
}

// stopped tells the queue that an execution was stopped, if it is a job's.
func (s *System) stopped(ctx context.Context, name string) error {
	job, exec, ok := executionName(name)
	if !ok {
		return nil
	}
	err := s.Queue.Stopped(ctx, job, exec)
	if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Stale) {
		return nil
	}
	return err
}

// HTTP is the API's handler. A defect is logged here, where the request is known.
func (s *System) HTTP() http.Handler {
	api := s.API.Handler()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		started := s.Queue.Now()
		seen := &statusWriter{ResponseWriter: w, status: http.StatusOK}
		api.ServeHTTP(seen, r)
		_ = s.metric.put(r.Context()) // the log says what was lost
		s.Log.Info("request", "method", r.Method, "path", r.URL.Path, "status", seen.status, "ms", s.Queue.Now().Sub(started).Milliseconds())
	})
}

type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}
