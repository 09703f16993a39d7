// Package eventarchive is the consumer that brings the log of events into its archive in S3.
//
// The archive itself, its files and its chain of digests, is that of package eventlog. The
// consumer's cursor never passes an event that is not in the archive.
package eventarchive

import (
	"context"

	"archivist/pkg/events/consumer"
	"archivist/pkg/kernel/fault"
)

// Name of the consumer and of its handler.
const Name = "event-archive"

// Definition is the consumer: each hour it archives what has come since. Each file costs a
// request and a row, so it sleeps in between. A failure can only be one of S3 or of the table: the
// cursor then waits.
var Definition = consumer.Definition{
	Name:          Name,
	Version:       1,
	Description:   "Brings the log of events into the archive in S3.",
	Filter:        "All+All",
	Target:        consumer.Target{Handler: Name},
	Mode:          consumer.Scheduled,
	Schedule:      "rate(1 hour)",
	Order:         consumer.OrderCollection,
	Concurrency:   1,
	Batch:         consumer.MaxBatch,
	Window:        consumer.MaxWindow,
	OnFailure:     consumer.Block,
	OwnEvents:     consumer.OwnHandle,
	MaxDepth:      consumer.AnyDepth,
	Start:         consumer.StartHorizon,
	Required:      true,
	IgnoreReplays: true,
}

// Archiver archives events: the consumer's handler. To brings the events of a partition up to a seq
// into the archive, unless they are there; eventlog.Log has it.
type Archiver struct {
	To func(ctx context.Context, partition string, seq int64) error
}

// Handle archives the events of a batch. Those that are in the archive are not archived again.
func (a Archiver) Handle(ctx context.Context, b consumer.Batch) ([]consumer.Failure, error) {
	if b.Replay {
		return nil, nil
	}

	last := map[string]int64{}
	for _, it := range b.Events {
		last[it.Partition] = max(last[it.Partition], it.Seq)
	}

	for partition, seq := range last {
		if err := a.To(ctx, partition, seq); err != nil {
			return nil, fault.New(fault.Unavailable, "archive %s up to event %d: %w", partition,
				seq, err)
		}
	}
	return nil, nil
}
