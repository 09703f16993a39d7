package revision_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/revisions/revision"
	"archivist/pkg/revisions/runner"
	"archivist/pkg/revisions/workflow"
)

// permutations calls f with all orders of the numbers from 1 to n.
func permutations(n int, f func(order []int64)) {
	var next func(order []int64)
	next = func(order []int64) {
		if len(order) == n {
			f(order)
			return
		}
		for i := int64(1); i <= int64(n); i++ {
			if !slices.Contains(order, i) {
				next(append(slices.Clone(order), i))
			}
		}
	}
	next(nil)
}

// TestOrders: all orders in which five revisions are notified give the same history.
func TestOrders(t *testing.T) {
	first := ""
	permutations(5, func(order []int64) {
		w := newWorld(t)
		w.archive("maps", (&repository{}).add(5, theText), 1)
		w.notify("maps", order...)
		w.quiet("maps", runner.Succeeded)
		var ids []string
		for n := range int64(5) {
			for _, task := range []string{"COMMIT", "indexing", "build-PDF"} {
				ids = append(ids, fmt.Sprintf("maps/%d/%s", n+1, task))
			}
		}
		var ends []string
		for _, id := range ids {
			ends = append(ends, fmt.Sprintf("%s %s", id, w.state(id)))
		}
		got := strings.Join(ends, "\n")
		if first == "" {
			first = got
		}
		if got != first {
			t.Fatalf("order %v gives\n%s\nnot\n%s", order, got, first)
		}
	})
	if !strings.Contains(first, "maps/5/build-PDF succeeded") {
		t.Error(first)
	}
}

// TestDuplicates: a notice that comes ten times gives one plan.
func TestDuplicates(t *testing.T) {
	w := newWorld(t)
	w.archive("maps", (&repository{}).add(1, theText), 0)
	w.notify("maps", 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)
	w.quiet("maps", runner.Succeeded)
	if got := len(w.history("maps/1/indexing")); got != 5 { // planned, ready, dispatched, running, succeeded
		t.Errorf("found %d events of maps/1/indexing", got)
	}
}

// TestRewritten: a history that was rewritten stops the archive, although only a revision behind the rewritten ones was
// notified, or none at all.
func TestRewritten(t *testing.T) {
	for name, notified := range map[string]bool{"the next revision is notified": true, "nothing is notified": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r := (&repository{}).add(3, theText)
			w.archive("maps", r, 1)
			w.notify("maps", 1, 2, 3)
			w.quiet("maps", runner.Succeeded)
			for n := range r.commits {
				r.commits[n].id = fmt.Sprint("new", n)
			}
			if notified {
				r.add(1, theText)
				w.notify("maps", 4)
			} else {
				w.now = w.now.Add(2 * time.Hour) // the head is looked at
			}
			w.pass("maps")
			a, err := w.store.Archive(t.Context(), "maps")
			if err != nil || a.Mode != revision.Stopped || a.Watermark != 3 ||
				!strings.Contains(a.Why, "revision 3 was") {
				t.Errorf("%+v, %v", a, err)
			}
		})
	}
}

// TestFalseNotice: a notice that says that a revision is another one, which the archive itself does not say, stops
// nothing, whether the revision is planned or not. It is asked for once.
func TestFalseNotice(t *testing.T) {
	w := newWorld(t)
	w.archive("maps", (&repository{}).add(4, theText), 0)
	w.notify("maps", 1, 2)
	w.pass("maps")
	for _, n := range []int64{2, 1, 3} {
		_, err := w.store.Notify(t.Context(), "maps", revision.Notice{Revision: n, Transaction: "false"}, revision.By{})
		w.must(err)
		w.pass("maps")
	}
	w.notify("maps", 4)
	w.pass("maps")
	a, err := w.store.Archive(t.Context(), "maps")
	if err != nil || a.Mode != revision.Active || a.Watermark != 4 {
		t.Errorf("%+v, %v", a, err)
	}
	r, err := w.store.Revision(t.Context(), "maps", 3)
	if err != nil || r.Transaction != "t3" {
		t.Errorf("revision 3 is %+v, %v", r, err)
	}
}

// TestTrueNotice: a notice that says that an earlier revision is another one stops the archive if that says so itself,
// although the newest is as it was planned.
func TestTrueNotice(t *testing.T) {
	w := newWorld(t)
	r := (&repository{}).add(3, theText)
	w.archive("maps", r, 0)
	w.notify("maps", 1, 2, 3)
	w.pass("maps")
	r.commits[0].id = "other"
	_, err := w.store.Notify(t.Context(), "maps", revision.Notice{Revision: 1, Transaction: "other"}, revision.By{})
	w.must(err)
	w.pass("maps")
	a, err := w.store.Archive(t.Context(), "maps")
	if err != nil || a.Mode != revision.Stopped || !strings.Contains(a.Why, "revision 1 was t1 and is now other") {
		t.Errorf("%+v, %v", a, err)
	}
}

// TestReplaced: a revision that has become another stops the archive, until a person lets it begin anew.
func TestReplaced(t *testing.T) {
	w := newWorld(t)
	r := (&repository{}).add(3, theText)
	w.archive("maps", r, 0)
	w.notify("maps", 1, 2)
	w.pass("maps")
	r.commits[1].id = "other"
	_, err := w.store.Notify(t.Context(), "maps", revision.Notice{Revision: 2, Transaction: "other"}, revision.By{})
	w.must(err)
	w.pass("maps")
	w.notify("maps", 3)
	w.pass("maps")
	if _, err := w.store.Instance(t.Context(), "maps/3/COMMIT"); !fault.Is(err, fault.NotFound) {
		t.Errorf("a stopped archive has planned revision 3: %v", err)
	}
	_, err = w.store.Resume(t.Context(), "maps", 2, revision.By{Actor: "anna", Reason: "restored"})
	w.must(err)
	_, err = w.store.Notify(t.Context(), "maps", revision.Notice{Revision: 2, Transaction: "other"}, revision.By{})
	w.must(err)
	w.notify("maps", 3)
	for range 5 {
		w.pass("maps")
		w.now = w.now.Add(revision.Default.Grace)
	}
	w.want(w.running(), "maps@2/2/indexing")
	w.quiet("maps", runner.Succeeded)
	for id, want := range map[string]workflow.State{"maps@2/3/build-PDF": workflow.Success,
		"maps/1/indexing": workflow.Cancelled, "maps/2/indexing": workflow.Cancelled} {
		if got := w.state(id); got != want {
			t.Errorf("%s is %s, want %s", id, got, want)
		}
	}
}

// TestFailure: a failure skips what depends on it in its revision, and the next revision goes on.
func TestFailure(t *testing.T) {
	w := newWorld(t)
	w.archive("maps", (&repository{}).add(3, theText), 0)
	w.notify("maps", 1, 2, 3)
	w.pass("maps")
	w.end("maps/1/indexing", runner.Succeeded)
	w.pass("maps")
	w.end("maps/2/indexing", runner.Failed)
	w.end("maps/1/build-PDF", runner.Succeeded)
	w.pass("maps")
	in, err := w.store.Instance(t.Context(), "maps/2/build-PDF")
	w.must(err)
	if in.State != workflow.Skipped || in.Root != "maps/2/indexing" {
		t.Errorf("the build of revision 2 is %s because of %q (%s)", in.State, in.Root, in.Reason)
	}
	w.want(w.running(), "maps/3/indexing")
}

// TestLocks: those with one lock run one at a time, in their order; others overlap.
func TestLocks(t *testing.T) {
	w := newWorld(t)
	w.archive("maps", (&repository{}).add(3, `
- {name: check, lock: disk, command: x}
- {name: copy, lock: disk, command: x}
- {name: free, command: x}
`), 0)
	w.notify("maps", 3, 2, 1)
	w.pass("maps")
	w.want(w.running(), "maps/1/check", "maps/1/free", "maps/2/free", "maps/3/free")
	for _, id := range []string{"maps/1/check", "maps/1/copy", "maps/2/check", "maps/2/copy", "maps/3/check"} {
		w.end(id, runner.Succeeded)
		w.pass("maps")
	}
	w.want(w.running(), "maps/1/free", "maps/2/free", "maps/3/copy", "maps/3/free")
}

// TestLoop: a task is not run in the revision that it has made itself, and a chain of revisions ends. A task that is
// not in the chain runs in each of them.
func TestLoop(t *testing.T) {
	w := newWorld(t)
	two := "[{name: a, command: x}, {name: b, command: x}, {name: other, command: x}]"
	r := (&repository{}).add(1, two)
	w.archive("maps", r, 0)
	w.notify("maps", 1)
	w.pass("maps")
	for n := int64(1); ; n++ {
		w.end(fmt.Sprintf("maps/%d/other", n), runner.Succeeded)
		ids := w.running()
		if len(ids) == 0 {
			if n != workflow.MaxDepth+2 {
				t.Errorf("the chain ended at revision %d", n)
			}
			break
		}
		if n > 1 {
			w.want(ids, ids[0])
		}
		w.begin(ids[0])
		in, err := w.store.Instance(t.Context(), ids[0])
		w.must(err)
		task := workflow.Task{}
		job := in.Job(&task, "", "", w.now)
		r.commits = append(r.commits, commit{files: map[string]string{"a.yaml": two}, token: job.Token})
		for _, id := range ids {
			w.end(id, runner.Succeeded)
		}
		w.notify("maps", n+1)
		w.pass("maps")
	}
	_, err := w.store.Notify(context.Background(), "maps", revision.Notice{Revision: 99, Token: "maps/1/a:forged"},
		revision.By{})
	if !fault.Is(err, fault.Denied) {
		t.Errorf("a forged token: %v", err)
	}
}

// TestBound: with a revision every second and a build of 30 seconds, one build ends each time that the bound is
// reached.
func TestBound(t *testing.T) {
	w := newWorld(t)
	r := (&repository{}).add(200, "[{name: build, command: x, cancels: [PREV]}]")
	w.archive("maps", r, 0)
	begun := map[string]int{}
	succeeded := 0
	for second := range 150 {
		w.now = w.now.Add(1000 * 1000 * 1000)
		w.notify("maps", int64(second+1))
		w.pass("maps")
		for _, id := range w.running() {
			if begun[id] == 0 {
				begun[id] = second + 1
				if !w.mayBegin(id) {
					continue
				}
			}
			in, err := w.store.Instance(t.Context(), id)
			w.must(err)
			switch {
			case in.StopRequested != "":
				w.stopped(id)
			case second+1-begun[id] >= 30:
				w.finish(id)
				succeeded++
			}
		}
		w.pass("maps")
	}
	if succeeded < 3 {
		t.Errorf("only %d builds succeeded in 150 seconds", succeeded)
	}
}

// TestRootOfPlanned: what failed before a revision was planned is the cause of what it skips, too.
func TestRootOfPlanned(t *testing.T) {
	w := newWorld(t)
	w.archive("maps", (&repository{}).add(2, `
- {name: index, command: x, depends: [{task: PREV, on: succeeded}]}
- {name: build, command: x, depends: [index]}
`), 0)
	w.notify("maps", 1)
	w.pass("maps")
	w.end("maps/1/index", runner.Failed)
	w.notify("maps", 2)
	w.pass("maps")
	for _, id := range []string{"maps/2/index", "maps/2/build"} {
		in, err := w.store.Instance(t.Context(), id)
		w.must(err)
		if in.State != workflow.Skipped || in.Root != "maps/1/index" {
			t.Errorf("%s is %s because of %q", id, in.State, in.Root)
		}
	}
}

// TestShortened: an archive that has fewer revisions than were planned is stopped, but not before that was seen for a
// while: a copy of a repository can be behind. One that has them again goes on, and counts anew.
func TestShortened(t *testing.T) {
	w := newWorld(t)
	repo := (&repository{}).add(3, "[{name: a, command: x}]")
	w.archive("maps", repo, 1)
	w.notify("maps", 1, 2, 3)
	w.quiet("maps", runner.Succeeded)
	all := repo.commits
	looks := func(n int) (mode revision.Mode) {
		t.Helper()
		for range n {
			st, err := w.store.Status(t.Context(), "maps")
			w.must(err)
			before := st.Looked
			for range 200 {
				w.now = w.now.Add(time.Minute)
				w.quiet("maps", runner.Succeeded)
				st, err = w.store.Status(t.Context(), "maps")
				if err != nil || st.Looked != before || st.Mode != revision.Active {
					break
				}
			}
			w.must(err)
			mode = st.Mode
		}
		return mode
	}
	repo.commits = all[:2]
	if mode := looks(5); mode != revision.Active {
		t.Fatalf("after five looks it is %s", mode)
	}
	repo.commits = all
	if mode := looks(1); mode != revision.Active {
		t.Fatalf("with all revisions it is %s", mode)
	}
	repo.commits = all[:2]
	begin := w.now
	if mode := looks(5); mode != revision.Active {
		t.Fatalf("after five looks anew it is %s", mode)
	}
	if mode := looks(1); mode != revision.Stopped {
		t.Fatalf("after six looks it is %s", mode)
	}
	a, err := w.store.Archive(t.Context(), "maps")
	w.must(err)
	if !strings.HasPrefix(a.Why, "revision 3 is planned, and the archive ends at 2 now") {
		t.Errorf("stopped: %s", a.Why)
	}
	if took := w.now.Sub(begin); took < 15*time.Minute || took > 3*time.Hour {
		t.Errorf("it was believed after %s", took)
	}
	_, err = w.store.Resume(t.Context(), "maps", 1, anna)
	w.must(err)
	w.quiet("maps", runner.Succeeded)
	if got := w.state("maps@2/2/a"); got != workflow.Success {
		t.Errorf("after it has begun anew, revision 2 is %s", got)
	}
}
