package lambda

import (
	"context"
	"log/slog"
	"time"

	"archivist/pkg/aws/cloudwatch"
	"archivist/pkg/kernel/fault"
)

// Runner runs a consumer in a partition of the log until a time, and reports whether there is
// more to do. An error means that the run could not be made; failures of single events are
// none.
type Runner interface {
	Run(ctx context.Context, consumer, partition string, until time.Time) (more bool, err error)
}

// Consumer is the function in which consumers of events run.
type Consumer struct {
	Runtime Runner
	// Wake invokes this function asynchronously.
	Wake    func(ctx context.Context, consumer, partition string) error
	Now     func() time.Time
	Budget  time.Duration // of one invocation
	Metrics *cloudwatch.Metrics
	Log     *slog.Logger
}

// WakeUp invokes the function. It carries no truth: what there is to do is in the table.
type WakeUp struct {
	Consumer  string `json:"consumer"`
	Partition string `json:"partition"` // of the log
}

// Handle runs the consumer that a wake-up names. If there is more to do at the end of the
// invocation's time, the function wakes itself. So a wake-up by itself follows only work for
// the whole time of an invocation.
//
// Lambda tries a failed run twice more, and then tells an operator; the tick wakes it again in any case. Several
// wake-ups of one consumer and partition are harmless: one of them has the lease of the
// cursor.
func (c *Consumer) Handle(ctx context.Context, in WakeUp) error {
	if in.Consumer == "" || in.Partition == "" {
		return fault.New(fault.Invalid, "the wake-up names no consumer or no partition: %+v", in)
	}

	began := c.Now()
	until := began.Add(c.Budget)
	log := c.Log.With("consumer", in.Consumer, "partition", in.Partition)
	more, err := c.run(ctx, in, until)
	if err != nil {
		log.Error("not done; the sweep wakes it again", "error", err)
	} else {
		log.Info("run", "more", more, "ms", c.Now().Sub(began).Milliseconds())
	}

	_ = c.Metrics.Put(ctx) // the log has what was lost
	return err
}

// run runs the consumer while there is more to do and time, and wakes the function if there is
// more to do then. more is what the last run has said; it is true if the time was over before
// the first.
func (c *Consumer) run(ctx context.Context, in WakeUp, until time.Time) (more bool, err error) {
	for more = true; more && c.Now().Before(until); {
		more, err = c.Runtime.Run(ctx, in.Consumer, in.Partition, until)
		if err != nil {
			return more, err
		}
	}

	if more {
		err = c.Wake(ctx, in.Consumer, in.Partition)
	}
	return more, err
}
