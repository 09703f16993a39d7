package consumer

import (
	"context"

	"archivist/pkg/envelope"
)

// Log is what consumers read; package eventlog has it.
type Log interface {
	// Partitions lists all partitions, those of earlier generations included.
	Partitions(ctx context.Context) ([]envelope.Partition, error)

	// Partition reads one. One that has no events yet is a NotFound.
	Partition(ctx context.Context, name string) (envelope.Partition, error)

	// Read returns the facts of at most limit events whose seq is greater than after, in order.
	Read(ctx context.Context, partition string, after int64, limit int) ([]envelope.Event, error)

	// Events returns the events with their payload, in the order of facts. Of the facts it uses
	// the subject, its version, and the place in the log. An event that is not kept is a NotFound.
	Events(ctx context.Context, facts []envelope.Event) ([]envelope.Event, error)
}
