package lambda

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"reflect"
	"slices"
	"testing"
	"time"

	"archivist/pkg/aws/cloudwatch"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/passes"
	"archivist/pkg/revisions/revision"
	"archivist/pkg/revisions/workflow"
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
			now, made := time.UnixMilli(0), 0
			var woken []string
			f := &Revisions{Now: func() time.Time { return now }, Budget: 40 * time.Second,
				Metrics: &cloudwatch.Metrics{}, Log: slog.New(slog.DiscardHandler),
				Waiting: func(context.Context, int) ([]string, error) { return []string{"maps", "letters"}, nil },
				Wake: func(_ context.Context, archive string) error {
					woken = append(woken, archive)
					return nil
				},
				Pass: func(_ context.Context, archive string, until time.Time) (revision.Passed, error) {
					made++
					if archive != "maps" || until.Sub(now) <= 0 {
						t.Errorf("a pass in %q for %s", archive, until.Sub(now))
					}
					return revision.Passed{Left: passes.Left{Busy: made <= c.busy, More: c.more && made > c.busy}},
						c.err
				}}
			_, err := f.Handle(t.Context(), c.in)
			if !errors.Is(err, c.err) || made != c.passes || !slices.Equal(woken, c.woken) {
				t.Errorf("%d passes, woken %v, %v", made, woken, err)
			}
		})
	}
}

// TestPreview: a preview, or the error of a kind, comes through as it is; a defect fails the function. No pass is made.
func TestPreview(t *testing.T) {
	var in RevisionsRequest
	sample(t, "revisions.preview.json", &in)
	preview := revision.Preview{Revision: 13, Problems: []workflow.Problem{{File: "_workflows/a.yaml", Line: 3,
		Message: "no"}}, Tasks: []workflow.Planned{{Task: "index", Awaits: []workflow.Await{{Task: "COMMIT",
		Revision: 13, Why: "of its revision"}}}}}
	defect := errors.New("a defect")
	for _, failed := range []error{nil, fault.New(fault.Conflict, "revision 13 is planned"), defect} {
		f := &Revisions{Metrics: &cloudwatch.Metrics{}, Log: slog.New(slog.DiscardHandler),
			Preview: func(_ context.Context, archive string, n int64) (revision.Preview, error) {
				if archive != "maps" || n != 13 {
					t.Errorf("asked for %s/%d", archive, n)
				}
				return preview, failed
			}}
		out, err := f.Handle(t.Context(), in)
		if errors.Is(failed, defect) {
			if !errors.Is(err, defect) {
				t.Errorf("a defect: %v", err)
			}
			continue
		}
		data, _ := json.Marshal(out)
		var got RevisionsAnswer
		err = errors.Join(err, json.Unmarshal(data, &got))
		if err != nil || !reflect.DeepEqual(got.Preview, preview) || fault.Of(got.Err()) != fault.Of(failed) ||
			failed != nil && got.Err().Error() != failed.Error() {
			t.Errorf("%v: %+v, %v, %v", failed, got.Preview, got.Err(), err)
		}
	}
}
