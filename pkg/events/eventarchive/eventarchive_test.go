package eventarchive_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"archivist/pkg/events/consumer"
	"archivist/pkg/events/envelope"
	"archivist/pkg/events/eventarchive"
	"archivist/pkg/kernel/fault"
)

// TestHandle: each partition of a batch is archived up to its last event, once; a replay
// archives nothing; a failure is about the archive, not about an event.
func TestHandle(t *testing.T) {
	var asked []string
	var fails error
	a := eventarchive.Archiver{To: func(_ context.Context, partition string, seq int64) error {
		asked = append(asked, fmt.Sprint(partition, " ", seq))
		return fails
	}}
	item := func(partition string, seq int64) consumer.Item {
		return consumer.Item{Event: envelope.Event{ID: fmt.Sprint(partition, seq), Partition: partition, Seq: seq}}
	}
	events := []consumer.Item{item("maps", 1), item("maps", 2), item("site", 9)}
	for _, b := range []consumer.Batch{{Events: events}, {Events: events, Replay: true}} {
		if failures, err := a.Handle(t.Context(), b); err != nil || len(failures) > 0 {
			t.Error(failures, err)
		}
	}
	slices.Sort(asked)
	if !slices.Equal(asked, []string{"maps 2", "site 9"}) {
		t.Errorf("asked for %q", asked)
	}
	fails = errors.New("S3 does not answer")
	if _, err := a.Handle(t.Context(), consumer.Batch{Events: events}); !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v, want an Unavailable", err)
	}
}
