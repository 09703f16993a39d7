package lambda

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"archivist/pkg/cloudwatch"
	"archivist/pkg/revision"
)

// TestRevisions: the minute wakes each archive that is to be looked at; a wake-up makes a pass in its archive, waits a
// little for one that is at work, and is repeated if the time is over.
func TestRevisions(t *testing.T) {
	var minute, wake RevisionsRequest
	sample(t, "scheduler.minute.json", &minute)
	sample(t, "revisions.wake.json", &wake)
	broken := errors.New("it is broken")
	for name, c := range map[string]struct {
		in     RevisionsRequest
		busy   int
		more   bool
		err    error
		passes int
		woken  []string
	}{
		"minute":  {in: minute, woken: []string{"maps", "letters"}},
		"wake":    {in: wake, passes: 1},
		"at work": {in: wake, busy: 2, passes: 3},
		"more":    {in: wake, more: true, passes: 1, woken: []string{"maps"}},
		"broken":  {in: wake, err: broken, passes: 1},
	} {
		t.Run(name, func(t *testing.T) {
			now, passes := time.UnixMilli(0), 0
			var woken []string
			f := &Revisions{Now: func() time.Time { return now }, Budget: 40 * time.Second,
				Metrics: &cloudwatch.Metrics{}, Log: slog.New(slog.DiscardHandler),
				Waiting: func(context.Context, int) ([]string, error) { return []string{"maps", "letters"}, nil },
				Wake: func(_ context.Context, archive string) error {
					woken = append(woken, archive)
					return nil
				},
				Pass: func(_ context.Context, archive string, until time.Time) (revision.Passed, error) {
					passes++
					if archive != "maps" || until.Sub(now) <= 0 {
						t.Errorf("a pass in %q for %s", archive, until.Sub(now))
					}
					return revision.Passed{Busy: passes <= c.busy, More: c.more && passes > c.busy}, c.err
				}}
			err := f.Handle(t.Context(), c.in)
			if !errors.Is(err, c.err) || passes != c.passes || !slices.Equal(woken, c.woken) {
				t.Errorf("%d passes, woken %v, %v", passes, woken, err)
			}
		})
	}
}
