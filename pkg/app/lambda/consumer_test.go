package lambda

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"archivist/pkg/aws/cloudwatch"
	"archivist/pkg/kernel/fault"
)

// consumed is a runtime with runs to do, each of which takes a second, and a function that counts
// how often it is woken.
type consumed struct {
	now         time.Time
	left, woken int
	err         error
}

func (c *consumed) Run(_ context.Context, consumer, partition string, until time.Time) (bool, error) {
	if consumer != "search" || partition != "maps" || !c.now.Before(until) {
		return false, errors.New("it was not to be run")
	}
	c.now = c.now.Add(time.Second)
	c.left--
	return c.left > 0, c.err
}

// TestConsumer: a wake-up is worked on for the time of an invocation; what is left then is for
// another one. A run that fails wakes nobody.
func TestConsumer(t *testing.T) {
	broken := errors.New("it is broken")
	var in WakeUp
	sample(t, "consumer.wake.json", &in)
	for name, c := range map[string]struct {
		consumed
		want        error
		left, woken int
	}{
		"nothing left": {consumed: consumed{left: 10}},
		"too much":     {consumed: consumed{left: 15}, left: 5, woken: 1},
		"failed":       {consumed: consumed{left: 15, err: broken}, want: broken, left: 14},
	} {
		run := c.consumed
		f := &Consumer{Runtime: &run, Now: func() time.Time { return run.now }, Budget: 10 * time.Second,
			Wake: func(_ context.Context, consumer, partition string) error {
				if consumer == in.Consumer && partition == in.Partition {
					run.woken++
				}
				return nil
			}, Metrics: &cloudwatch.Metrics{}, Log: slog.New(slog.DiscardHandler)}
		if err := f.Handle(t.Context(), in); !errors.Is(err, c.want) || run.left != c.left || run.woken != c.woken {
			t.Errorf("%s: %v, %d left, woken %d times", name, err, run.left, run.woken)
		}
		if err := f.Handle(t.Context(), WakeUp{Consumer: "search"}); !fault.Is(err, fault.Invalid) {
			t.Errorf("a wake-up for nothing: %v", err)
		}
	}
}
