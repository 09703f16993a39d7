package lambda

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"archivist/pkg/aws/cloudwatch"
	"archivist/pkg/aws/sqs"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/fault"
)

// Scheduler is the function of the scheduler.
type Scheduler struct {
	Scheduler *queue.Scheduler
	// Components does what is due of components, at a minute.
	Components func(ctx context.Context, until time.Time) error
	Queue      sqs.Queue // its wake-ups
	Metrics    *cloudwatch.Metrics
	Log        *slog.Logger
}

// SchedulerEvent is what invokes the scheduler: the minute's rule, wake-ups from its queue,
// or an execution whose status changed. An event of EventBridge has a detail-type, one of SQS
// has records.
type SchedulerEvent struct {
	Records    []events.SQSMessage `json:"Records"`
	DetailType string              `json:"detail-type"`
	Detail     struct {
		Name   string `json:"name"`
		Status string `json:"status"`
	} `json:"detail"`
}

// Handle runs one tick. If the metrics of the minute's tick are refused, the invocation
// fails: its errors are then the only sign that an operator gets. A wake-up says nothing but
// that something was freed or added: all wake-ups of an event are one tick. Only one tick
// runs at a time (a lease, fault.Held); one that has lost it is fault.Stale. What the
// minute's tick then leaves is done by the other one, or a minute later.
func (s *Scheduler) Handle(ctx context.Context,
	in SchedulerEvent) (events.SQSEventResponse, error) {
	if in.DetailType == "Step Functions Execution Status Change" {
		err := s.stopped(ctx, in.Detail.Name)
		return none(), errors.Join(err, s.Metrics.Put(ctx))
	}

	woken := len(in.Records) > 0
	began := s.Scheduler.Queue.Now()
	out := none()
	err := s.Scheduler.Tick(ctx, !woken)
	if fault.Is(err, fault.Held) || fault.Is(err, fault.Stale) {
		out, err = s.later(ctx, in.Records), nil
	}

	if woken {
		_ = s.Metrics.Put(ctx) // the log has what was lost
		return out, err
	}

	measured := s.Scheduler.Queue.Measure(ctx)
	components := s.Components(ctx, began.Add(s.Scheduler.Queue.Rules.Timing.Scheduler*15/16))
	return out, errors.Join(err, measured, components, s.Metrics.Put(ctx))
}

// later keeps wake-ups that arrived during another tick, which may already have passed the
// job that they are about. They are hidden and listed as failures, so that they come back
// after the tick.
func (s *Scheduler) later(ctx context.Context,
	records []events.SQSMessage) events.SQSEventResponse {
	out := none()
	timing := s.Scheduler.Queue.Rules.Timing
	for _, r := range records {
		if keep := delay(r, s.Scheduler.Queue.Now(), timing.Scheduler+timing.Margin); keep > 0 {
			hide(ctx, s.Log, s.Queue, r, keep)
			out.BatchItemFailures = append(out.BatchItemFailures, again(r))
		}
	}
	return out
}

// busy is the first delay of a wake-up that arrives during another tick; each further delay
// is longer.
const busy = 2 * time.Second

// delay is how long a wake-up waits that arrives during another tick. It is 0 if the wake-up
// must have been sent before that tick began: then the tick sees the change, and the
// wake-up is done. So no wake-up becomes a dead letter by waiting.
func delay(r events.SQSMessage, now time.Time, longestTick time.Duration) time.Duration {
	received, sent := 1, now.UnixMilli() // if the attributes are missing
	if n, err := strconv.Atoi(r.Attributes["ApproximateReceiveCount"]); err == nil {
		received = n
	}

	if ms, err := strconv.ParseInt(r.Attributes["SentTimestamp"], 10, 64); err == nil {
		sent = ms
	}

	if now.Sub(time.UnixMilli(sent)) >= longestTick {
		return 0
	}
	return busy * time.Duration(received)
}

// stopped reports a stopped execution to the queue, if it is a job's. A job that is gone, or
// has another execution by now, needs nothing.
func (s *Scheduler) stopped(ctx context.Context, name string) error {
	job, exec, ok := executionName(name)
	if !ok {
		return nil
	}
	err := s.Scheduler.Queue.Stopped(ctx, job, exec)
	if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Stale) {
		return nil
	}
	return err
}

// executionName splits the name of an execution, as queue.ExecutionName makes it, into the
// job and its exec. Other names, e.g. of executions that a person has started, are not ok.
func executionName(name string) (job string, exec int64, ok bool) {
	i := strings.LastIndex(name, "-")
	if i < 0 {
		return "", 0, false
	}
	_, err := fmt.Sscan(name[i+1:], &exec)
	return name[:i], exec, err == nil
}
