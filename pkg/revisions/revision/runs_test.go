package revision_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/revisions/archive"
	"archivist/pkg/revisions/revision"
	"archivist/pkg/revisions/runner"
	"archivist/pkg/revisions/workflow"
)

// run starts a task by hand.
func (w *world) run(task string, n int64, force bool, key string) (revision.Instance, error) {
	return w.store.StartRun(w.t.Context(), "maps", revision.Run{Task: task, Revision: n, Force: force, Key: key}, anna)
}

// TestRuns: a task is run by hand at the watermark or at an older revision, once for each key.
func TestRuns(t *testing.T) {
	w := newWorld(t)
	w.archive("maps", (&repository{}).add(2, theText), 1)
	w.notify("maps", 1, 2)
	w.quiet("maps", runner.Succeeded)
	in, err := w.run("indexing", 0, false, "k1")
	w.must(err)
	again, err := w.run("indexing", 0, false, "k1")
	w.must(err)
	if in.ID != "maps/2/indexing/1" || again.ID != in.ID {
		t.Errorf("found %s and %s", in.ID, again.ID)
	}
	_, err = w.run("indexing", 1, false, "k1")
	if !fault.Is(err, fault.Conflict) {
		t.Errorf("a key for another run: %v", err)
	}
	for task, kind := range map[string]fault.Kind{"none": fault.Conflict, "a/b": fault.Invalid} {
		if _, err := w.run(task, 0, false, ""); !fault.Is(err, kind) {
			t.Errorf("%s: %v", task, err)
		}
	}
	w.quiet("maps", runner.Succeeded)
	if got := w.state("maps/2/indexing/1"); got != workflow.Success {
		t.Errorf("the run is %s", got)
	}
}

// TestRerun: an old revision of a task of which only the latest result is wanted needs force after a newer
// success, and never cancels what is newer.
func TestRerun(t *testing.T) {
	w := newWorld(t)
	w.archive("maps", (&repository{}).add(3, fmt.Sprintf(builds, "")), 1)
	w.notify("maps", 1, 2)
	w.quiet("maps", runner.Succeeded)
	_, err := w.run("build", 1, false, "")
	if !fault.Is(err, fault.Conflict) {
		t.Fatalf("without force: %v", err)
	}
	w.notify("maps", 3)
	w.pass("maps")
	w.begin("maps/3/build")
	in, err := w.run("build", 1, true, "")
	w.must(err)
	w.pass("maps")
	w.want(w.running(), in.ID, "maps/3/build")
	w.quiet("maps", runner.Succeeded)
	for _, id := range []string{in.ID, "maps/3/build"} {
		if got := w.state(id); got != workflow.Success {
			t.Errorf("%s is %s", id, got)
		}
	}
}

// TestRunsTakePartInLocks: a run by hand of an older revision does not start beside the holder of its lock.
func TestRunsTakePartInLocks(t *testing.T) {
	w := newWorld(t)
	w.archive("maps", (&repository{}).add(3, "[{name: check, lock: disk, command: x}]"), 1)
	w.notify("maps", 1)
	w.quiet("maps", runner.Succeeded)
	w.notify("maps", 2, 3)
	w.pass("maps")
	in, err := w.run("check", 1, false, "")
	w.must(err)
	w.pass("maps")
	w.want(w.running(), "maps/2/check")
	w.end("maps/2/check", runner.Succeeded)
	w.pass("maps")
	w.want(w.running(), in.ID)
	w.end(in.ID, runner.Succeeded)
	w.pass("maps")
	w.want(w.running(), "maps/3/check")
}

// TestSchedules: an occurrence is fired once, a stretch that was missed too, and an overlap does what it says.
func TestSchedules(t *testing.T) {
	for overlap, want := range map[string]int{"skip": 1, "queue": 2, "replace": 2} {
		w := newWorld(t)
		w.archive("maps", (&repository{}).add(1, fmt.Sprintf(
			"[{name: check, command: x, timeout: 14m, triggers: {schedule: {cron: '*/10 * * * *', overlap: %s}}}]",
			overlap)), 1)
		w.notify("maps", 1)
		w.pass("maps")
		w.want(w.running())
		w.now = w.now.Add(51 * time.Minute) // five occurrences, of which one is fired
		w.pass("maps")
		w.pass("maps")
		w.want(w.running(), "maps/1/check/1")
		w.begin("maps/1/check/1")
		w.now = w.now.Add(10 * time.Minute)
		w.pass("maps")
		w.now = w.now.Add(revision.Default.Grace)
		w.pass("maps")
		_, err := w.store.Instance(t.Context(), "maps/1/check/2")
		if (err == nil) != (want == 2) {
			t.Errorf("%s: a second run: %v", overlap, err)
		}
		state := workflow.Running
		if overlap == "replace" {
			state = workflow.Superseded
		}
		if got := w.state("maps/1/check/1"); got != state {
			t.Errorf("%s: the first run is %s", overlap, got)
		}
	}
}

// TestGap: a revision that nobody notified is asked for, and so is the last one.
func TestGap(t *testing.T) {
	w := newWorld(t)
	w.archive("maps", (&repository{}).add(4, theText), 1)
	w.notify("maps", 1, 3)
	w.quiet("maps", runner.Succeeded)
	if _, err := w.store.Instance(t.Context(), "maps/3/COMMIT"); !fault.Is(err, fault.NotFound) {
		t.Errorf("revision 3 was planned before revision 2 (%v)", err)
	}
	w.now = w.now.Add(revision.Default.Gap)
	w.quiet("maps", runner.Succeeded) // and revision 4 is found with it
	for _, id := range []string{"maps/2/indexing", "maps/4/build-PDF"} {
		if got := w.state(id); got != workflow.Success {
			t.Errorf("%s is %s", id, got)
		}
	}
	w.repos["maps"].add(1, theText)
	w.now = w.now.Add(revision.Default.Reconcile)
	w.quiet("maps", runner.Succeeded)
	if got := w.state("maps/5/build-PDF"); got != workflow.Success {
		t.Errorf("a revision that was found by looking at the head: %s", got)
	}
}

// TestLookFails: an archive that cannot be read when it is asked for a missing revision is asked again soon, also if
// it is not asked from time to time.
func TestLookFails(t *testing.T) {
	w := newWorld(t)
	r := (&repository{}).add(3, theText)
	w.repos["maps"] = r
	set := revision.Settings{Location: archive.Location{Kind: archive.Git, URL: "maps"}, Baseline: 1, Reconcile: -1}
	_, err := w.store.Add(t.Context(), "maps", set, anna)
	w.must(err)
	w.notify("maps", 1, 3)
	w.quiet("maps", runner.Succeeded)
	for wait := revision.Default.Gap; wait < 8*time.Minute; wait *= 2 {
		r.fails = fault.New(fault.Unavailable, "it is away")
		w.now = w.now.Add(wait)
		w.pass("maps")
		r.fails = nil
		w.pass("maps")
		if _, err := w.store.Instance(t.Context(), "maps/2/COMMIT"); !fault.Is(err, fault.NotFound) {
			t.Fatalf("it was asked again at once (%v)", err)
		}
	}
	w.now = w.now.Add(8 * time.Minute)
	w.quiet("maps", runner.Succeeded)
	if got := w.state("maps/3/build-PDF"); got != workflow.Success {
		t.Errorf("it is %s", got)
	}
}

// TestNoSuchRevision: a notice of a revision that does not exist is the archive's trouble, until a person skips it.
func TestNoSuchRevision(t *testing.T) {
	w := newWorld(t)
	w.archive("maps", (&repository{}).add(1, theText), 1)
	w.notify("maps", 1, 2)
	w.quiet("maps", runner.Succeeded)
	a, err := w.store.Archive(t.Context(), "maps")
	w.must(err)
	if a.Trouble == nil || a.Trouble.Revision != 2 || !strings.Contains(a.Trouble.Reason, "no revision 2") {
		t.Errorf("found the trouble %+v", a.Trouble)
	}
	if got := w.state("maps/1/build-PDF"); got != workflow.Success {
		t.Errorf("revision 1: %s", got)
	}
	w.must(w.store.Skip(t.Context(), "maps", 2, anna))
	w.quiet("maps", runner.Succeeded)
	if got := w.state("maps/2/COMMIT"); got != workflow.Success {
		t.Errorf("the skipped revision: %s", got)
	}
}

// TestSkipUnknown: only what is known to exist is skipped: what was notified or found, and gaps before that.
func TestSkipUnknown(t *testing.T) {
	w := newWorld(t)
	r := (&repository{}).add(3, theText)
	w.archive("maps", r, 1)
	w.notify("maps", 1)
	w.quiet("maps", runner.Succeeded)
	for _, n := range []int64{2, 9} {
		if err := w.store.Skip(t.Context(), "maps", n, anna); !fault.Is(err, fault.Conflict) {
			t.Errorf("revision %d, which nobody has notified, is skipped: %v", n, err)
		}
	}
	w.notify("maps", 3)
	w.must(w.store.Skip(t.Context(), "maps", 2, anna)) // a gap
	w.quiet("maps", runner.Succeeded)
	r.add(2, theText)
	w.store.Open = func(context.Context, archive.Location) (archive.Source, error) { return headed{r}, nil }
	w.now = w.now.Add(revision.Default.Reconcile)
	w.pass("maps")
	for n := int64(4); n <= 5; n++ {
		w.must(w.store.Skip(t.Context(), "maps", n, anna))
	}
	w.quiet("maps", runner.Succeeded)
	a, err := w.store.Archive(t.Context(), "maps")
	w.must(err)
	if a.Watermark != 5 {
		t.Errorf("planned up to %d", a.Watermark)
	}
	if err := w.store.Skip(t.Context(), "maps", 6, anna); !fault.Is(err, fault.Conflict) {
		t.Errorf("the next revision is skipped before it is there: %v", err)
	}
}

// headed is an archive of which only the head can be read.
type headed struct{ *repository }

func (headed) Revision(context.Context, int64) (archive.Revision, error) {
	return archive.Revision{}, fault.New(fault.Unavailable, "the revision cannot be read")
}

// TestBeginsLate: an archive begins at the first revision that is notified.
func TestBeginsLate(t *testing.T) {
	w := newWorld(t)
	w.archive("maps", (&repository{}).add(1000, theText), 0)
	w.notify("maps", 1000)
	w.quiet("maps", runner.Succeeded)
	if got := w.state("maps/1000/build-PDF"); got != workflow.Success {
		t.Errorf("found %s", got)
	}
	w.notify("maps", 999)
	r, err := w.store.Revision(t.Context(), "maps", 999)
	w.must(err)
	if r.State != revision.Before {
		t.Errorf("an earlier revision is %s", r.State)
	}
}

// TestManyTasks: 200 tasks of a revision are seen at once: before the plan is complete, none of them moves.
func TestManyTasks(t *testing.T) {
	var text strings.Builder
	for i := range workflow.MaxTasks {
		fmt.Fprintf(&text, "- {name: t%03d, command: x, lock: l%d, depends: [PREV]}\n", i, i%7)
	}
	w := newWorld(t)
	w.archive("maps", (&repository{}).add(2, text.String()), 1)
	w.notify("maps", 1, 2)
	w.quiet("maps", runner.Succeeded)
	for _, id := range []string{"maps/1/t000", "maps/2/t199"} {
		if got := w.state(id); got != workflow.Success {
			t.Errorf("%s is %s", id, got)
		}
	}
}

// TestLongTask: a locked task of an hour does not delay the index of later revisions.
func TestLongTask(t *testing.T) {
	w := newWorld(t)
	w.archive("maps", (&repository{}).add(3, `
- {name: index, command: x, depends: [PREV]}
- {name: copy, command: x, lock: disk, timeout: 10m}
`), 1)
	w.notify("maps", 1)
	w.pass("maps")
	w.begin("maps/1/copy")
	w.end("maps/1/index", runner.Succeeded)
	w.notify("maps", 2, 3)
	w.pass("maps")
	w.want(w.running(), "maps/1/copy", "maps/2/index")
	w.end("maps/2/index", runner.Succeeded)
	w.pass("maps")
	w.want(w.running(), "maps/1/copy", "maps/3/index")
}

// TestLostExecutions: an execution that was never seen is started again, and one that ends without a result is a
// failed attempt.
func TestLostExecutions(t *testing.T) {
	w := newWorld(t)
	w.archive("maps", (&repository{}).add(1, "[{name: a, command: x, retries: 2}]"), 1)
	w.notify("maps", 1)
	w.pass("maps")
	clear(w.begun)
	w.now = w.now.Add(revision.Default.Resend)
	w.pass("maps")
	w.want(w.running(), "maps/1/a")
	w.begin("maps/1/a")
	w.now = w.now.Add(workflow.DefaultTimeout + revision.Default.Margin + runner.Margin)
	w.pass("maps")
	if got := w.state("maps/1/a"); got != workflow.Waiting {
		t.Fatalf("after a lost attempt it is %s", got)
	}
	w.now = w.now.Add(time.Hour)
	w.quiet("maps", runner.Succeeded)
	in, err := w.store.Instance(t.Context(), "maps/1/a")
	w.must(err)
	if in.State != workflow.Success || in.Attempt != 2 {
		t.Errorf("it is %s in attempt %d", in.State, in.Attempt)
	}
}
