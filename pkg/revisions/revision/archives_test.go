package revision_test

import (
	"testing"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/revisions/archive"
	"archivist/pkg/revisions/revision"
	"archivist/pkg/revisions/runner"
	"archivist/pkg/revisions/workflow"
)

var anna = revision.By{Actor: "anna", Reason: "a test"}

// TestPause: a paused archive records notices, and plans and starts nothing.
func TestPause(t *testing.T) {
	w := newWorld(t)
	w.archive("maps", (&repository{}).add(2, theText), 0)
	_, err := w.store.Pause(t.Context(), "maps", anna)
	w.must(err)
	w.notify("maps", 1, 2)
	w.quiet("maps", runner.Succeeded)
	r, err := w.store.Revision(t.Context(), "maps", 1)
	w.must(err)
	if r.State != revision.Notified {
		t.Errorf("revision 1 is %s", r.State)
	}
	_, err = w.store.Resume(t.Context(), "maps", 0, anna)
	w.must(err)
	w.quiet("maps", runner.Succeeded)
	if got := w.state("maps/2/build-PDF"); got != workflow.Success {
		t.Errorf("after the pause, the build is %s", got)
	}
}

// TestSkip: a revision that cannot be read is skipped by a person, and the next goes on.
func TestSkip(t *testing.T) {
	w := newWorld(t)
	r := (&repository{}).add(2, theText)
	w.archive("maps", r, 0)
	r.fails = fault.New(fault.Unavailable, "the repository does not answer")
	w.notify("maps", 1, 2)
	w.pass("maps")
	a, err := w.store.Archive(t.Context(), "maps")
	w.must(err)
	if a.Trouble == nil || a.Trouble.Revision != 1 {
		t.Fatalf("found the trouble %+v", a.Trouble)
	}
	w.must(w.store.Skip(t.Context(), "maps", 1, anna))
	r.fails = nil
	w.now = w.now.Add(revision.Default.Reconcile)
	w.quiet("maps", runner.Succeeded)
	if got := w.state("maps/2/build-PDF"); got != workflow.Success {
		t.Errorf("behind a skipped revision, the build is %s", got)
	}
}

// TestBaselineTakenBack: without its baseline, an archive begins at the first revision that was notified behind it, and
// at its head if all were before it. No further notice is needed.
func TestBaselineTakenBack(t *testing.T) {
	for _, at := range []struct {
		name            string
		baseline, first int64
		notices         []int64
		later           int64
	}{
		{name: "at the first notified", baseline: 2, notices: []int64{1, 2, 3}, first: 2},
		{name: "before a later notice", baseline: 2, notices: []int64{3}, later: 4, first: 3},
		{name: "at the head", baseline: 9, notices: []int64{1, 2, 3, 4}, first: 4},
	} {
		t.Run(at.name, func(t *testing.T) {
			w := newWorld(t)
			w.archive("maps", (&repository{}).add(4, theText), at.baseline)
			w.notify("maps", at.notices...)
			w.archive("maps", w.repos["maps"], 0)
			if at.later > 0 {
				w.notify("maps", at.later)
			}
			w.now = w.now.Add(revision.Default.Reconcile)
			w.quiet("maps", runner.Succeeded)
			a, err := w.store.Archive(t.Context(), "maps")
			w.must(err)
			if a.First != at.first || a.Watermark != 4 {
				t.Errorf("begins at %d and is planned up to %d, want %d and 4", a.First, a.Watermark, at.first)
			}
		})
	}
}

// TestDelete: an archive that is deleted cancels what has not ended, and leaves no execution.
func TestDelete(t *testing.T) {
	w := newWorld(t)
	w.archive("maps", (&repository{}).add(3, theText), 0)
	w.notify("maps", 1, 2, 3)
	w.pass("maps")
	w.begin("maps/1/indexing")
	_, err := w.store.Delete(t.Context(), "maps", anna)
	w.must(err)
	for range 5 {
		w.pass("maps")
		w.now = w.now.Add(revision.Default.Grace)
	}
	w.want(w.running())
	if _, err := w.store.Archive(t.Context(), "maps"); !fault.Is(err, fault.NotFound) {
		t.Errorf("the archive is still there: %v", err)
	}
	if got := w.state("maps/3/build-PDF"); got != workflow.Cancelled {
		t.Errorf("a task of a deleted archive is %s", got)
	}
	w.archive("maps", (&repository{}).add(1, theText), 0) // the name begins anew
	w.notify("maps", 1)
	w.quiet("maps", runner.Succeeded)
	if got := w.state("maps@2/1/build-PDF"); got != workflow.Success {
		t.Errorf("in the new epoch, the build is %s", got)
	}
}

// TestBackfill: revisions before the first are planned on request.
func TestBackfill(t *testing.T) {
	w := newWorld(t)
	w.archive("maps", (&repository{}).add(6, "[{name: index, depends: [PREV], command: x}]"), 0)
	w.notify("maps", 5)
	w.quiet("maps", runner.Succeeded)
	_, err := w.store.Backfill(t.Context(), "maps", 2, 4, anna)
	w.must(err)
	w.quiet("maps", runner.Succeeded)
	for _, id := range []string{"maps/2/index", "maps/4/index"} {
		if got := w.state(id); got != workflow.Success {
			t.Errorf("%s is %s", id, got)
		}
	}
	w.notify("maps", 6)
	w.quiet("maps", runner.Succeeded)
	in, err := w.store.Instance(t.Context(), "maps/6/index")
	w.must(err)
	if in.Edges[1].ID != "maps/5/index" {
		t.Errorf("revision 6 waited for %s", in.Edges[1].ID)
	}
}

// TestSettings: an archive that nobody could use is refused.
func TestSettings(t *testing.T) {
	w := newWorld(t)
	for name, set := range map[string]revision.Settings{"Maps": {}, "maps": {Baseline: -1}, "more": {Running: 501},
		"less": {Reconcile: 5}} {
		_, err := w.store.Add(t.Context(), name, set, anna)
		if !fault.Is(err, fault.Invalid) {
			t.Errorf("%s %+v: %v", name, set, err)
		}
	}
	w.archive("maps", &repository{}, 0)
	at := archive.Location{Kind: archive.Git, URL: "maps"}
	_, err := w.store.Add(t.Context(), "maps", revision.Settings{Location: at, Title: "Maps"}, anna)
	w.must(err)
}

// TestCancel: a person cancels an instance, one that runs is told, and a completion that comes later is refused.
func TestCancel(t *testing.T) {
	w := newWorld(t)
	w.archive("maps", (&repository{}).add(1, theText), 0)
	w.notify("maps", 1)
	w.pass("maps")
	e := w.begin("maps/1/indexing")
	_, err := w.store.Cancel(t.Context(), "maps/1/indexing", anna)
	w.must(err)
	in, recorded, err := w.store.End(t.Context(), e, runner.Result{End: runner.Succeeded})
	w.must(err)
	if !recorded || in.State != workflow.Cancelled {
		t.Errorf("it is %s", in.State)
	}
	_, recorded, err = w.store.End(t.Context(), e, runner.Result{End: runner.Succeeded})
	if err != nil || recorded {
		t.Errorf("a second end was recorded (%v)", err)
	}
	w.pass("maps")
	if got := w.state("maps/1/build-PDF"); got != workflow.Skipped {
		t.Errorf("what depends on a cancelled task is %s", got)
	}
}

// settings are those of an archive at an address.
func settings(url string) revision.Settings {
	return revision.Settings{Location: archive.Location{Kind: archive.Git, URL: url}}
}

// TestDeleteAtOnce: an archive in which nothing runs is deleted by one pass.
func TestDeleteAtOnce(t *testing.T) {
	w := newWorld(t)
	w.archive("maps", (&repository{}).add(1, "[{name: a, command: x, retries: 2}]"), 0)
	w.notify("maps", 1)
	w.pass("maps")
	w.end("maps/1/a", runner.Failed)
	w.pass("maps")
	_, err := w.store.Delete(t.Context(), "maps", anna)
	w.must(err)
	w.pass("maps")
	_, err = w.store.Archive(t.Context(), "maps")
	if !fault.Is(err, fault.NotFound) {
		t.Errorf("the archive is still there: %v", err)
	}
}
