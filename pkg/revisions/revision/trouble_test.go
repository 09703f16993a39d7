package revision_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/revisions/archive"
	"archivist/pkg/revisions/revision"
	"archivist/pkg/revisions/runner"
	"archivist/pkg/revisions/workflow"
)

// damaged is an archive of which one revision cannot be read.
type damaged struct {
	*repository
	bad   int64 // 0: all can be read
	asked func()
}

func (d *damaged) Revision(ctx context.Context, n int64) (archive.Revision, error) {
	if n != d.bad {
		return d.repository.Revision(ctx, n)
	}
	d.asked()
	return archive.Revision{}, fault.New(fault.Unavailable, "revision %d cannot be read", n)
}

// damage adds an archive of so many revisions, of which one cannot be read.
func (w *world) damage(revisions int, bad, baseline int64) *damaged {
	w.t.Helper()
	d := &damaged{(&repository{}).add(revisions, "[{name: a, command: x}]"), bad, func() {}}
	w.store.Open = func(context.Context, archive.Location) (archive.Source, error) { return d, nil }
	w.archive("maps", d.repository, baseline)
	return d
}

// trouble is the revision that could not be read.
func (w *world) trouble() int64 {
	w.t.Helper()
	a, err := w.store.Archive(w.t.Context(), "maps")
	w.must(err)
	if a.Trouble == nil {
		return 0
	}
	return a.Trouble.Revision
}

// TestTroubleOfAnother: while a revision of a back-fill cannot be read, the next revision is planned; and while that
// cannot be read, the back-fill goes on.
func TestTroubleOfAnother(t *testing.T) {
	fill := func(w *world) {
		_, err := w.store.Backfill(t.Context(), "maps", 1, 1, anna)
		w.must(err)
	}
	next := func(w *world) { w.notify("maps", 4) }
	for name, c := range map[string]struct {
		bad         int64
		first, then func(*world)
		planned     string
	}{
		"of the back-fill":     {1, fill, next, "maps/4/a"},
		"of the next revision": {4, next, fill, "maps/1/a"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.damage(4, c.bad, 3)
			w.notify("maps", 3)
			w.quiet("maps", runner.Succeeded)
			c.first(w)
			w.pass("maps")
			if got := w.trouble(); got != c.bad {
				t.Fatalf("the trouble is with revision %d, want %d", got, c.bad)
			}
			c.then(w)
			w.quiet("maps", runner.Succeeded)
			if got := w.state(c.planned); got != workflow.Success {
				t.Errorf("%s is %s", c.planned, got)
			}
		})
	}
}

// TestUnreadableIsAskedLess: a revision that cannot be read is tried again after 1, 2, 4 … minutes, and then each hour,
// however often there is a pass. At each of these times the archive waits for a pass.
func TestUnreadableIsAskedLess(t *testing.T) {
	w := newWorld(t)
	d := w.damage(1, 1, 1)
	began := w.now
	var at []int // the minutes in which it was tried
	d.asked = func() { at = append(at, int(w.now.Sub(began).Minutes())) }
	w.notify("maps", 1)
	for minute := range 200 {
		w.now = began.Add(time.Duration(minute) * time.Minute)
		due, err := w.store.Waiting(t.Context(), 1)
		w.must(err)
		tries := len(at)
		w.pass("maps")
		if len(at) > tries && len(due) == 0 {
			t.Errorf("in minute %d it is tried, and the archive did not wait for a pass", minute)
		}
	}
	if want := []int{0, 1, 3, 7, 15, 31, 63, 123, 183}; !slices.Equal(at, want) {
		t.Errorf("it was tried in the minutes %v, want %v", at, want)
	}
}

// TestUnreadableIsCounted: each try to read a revision in vain is counted, for the alarm. When it can be read, nothing
// more is.
func TestUnreadableIsCounted(t *testing.T) {
	w := newWorld(t)
	d := w.damage(1, 1, 1)
	counted := 0.0
	w.store.Metric = func(name string, n float64) {
		if name == revision.MetricUnreadable {
			counted += n
		}
	}
	w.notify("maps", 1)
	for _, want := range []float64{1, 2} {
		w.pass("maps")
		w.pass("maps") // it is not tried yet
		if counted != want {
			t.Errorf("after %v tries, %v are counted", want, counted)
		}
		w.now = w.now.Add(time.Minute)
	}
	d.bad = 0
	w.now = w.now.Add(time.Minute)
	w.quiet("maps", runner.Succeeded)
	if got := w.state("maps/1/a"); got != workflow.Success || counted != 2 {
		t.Errorf("when it can be read, the task is %s; %v are counted", got, counted)
	}
}
