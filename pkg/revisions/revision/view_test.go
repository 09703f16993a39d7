package revision_test

import (
	"strings"
	"testing"

	"archivist/pkg/kernel/explain"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/revisions/revision"
	"archivist/pkg/revisions/runner"
	"archivist/pkg/revisions/workflow"
)

// explain checks what a thing waits for in the end: the kind, the thing, and what the reason says.
func (w *world) explain(id string, waits explain.Wait, root, says string) explain.Explanation {
	w.t.Helper()
	x, err := w.store.Explain(w.t.Context(), id)
	w.must(err)
	if x.Root().Waits != waits || x.Root().ID != root || !strings.Contains(x.Root().Why, says) || x.Cut {
		w.t.Errorf("%s waits for %+v; want %s at %s: %s (by %+v)", id, x.Root(), waits, root, says, x.Chain)
	}
	return x
}

// TestExplain: each kind of wait is named, with what is waited for in the end.
func TestExplain(t *testing.T) {
	w := newWorld(t)
	r := (&repository{}).add(6, `
- {name: index, command: x, depends: [PREV], retries: {attempts: 2, backoff: 10s}}
- {name: pdf, command: x, depends: [index], cancels: [PREV]}
- {name: copy, command: x, lock: disk, depends: [index]}
`)
	w.archive("maps", r, 1)
	w.explain("maps", explain.Nothing, "maps", "planned")
	w.explain("maps/2", explain.Gap, "maps/2", "nobody has notified revision 2")
	w.notify("maps", 2)
	w.explain("maps", explain.Gap, "maps", "revision 1 was not notified, but revision 2 was")
	w.explain("maps/2", explain.Gap, "maps/2", "revision 1 was not notified")
	w.notify("maps", 1)
	w.explain("maps/1", explain.Turn, "maps/1", "planned next")
	r.fails = fault.New(fault.Unavailable, "the server is down")
	w.pass("maps")
	w.explain("maps", explain.Source, "maps", "the server is down")
	r.fails = nil
	w.now = w.now.Add(revision.Default.Gap)
	w.pass("maps")
	w.explain("maps/1/index", explain.Start, "maps/1/index", "has not begun")
	w.begin("maps/1/index")
	w.explain("maps/2/copy", explain.Worker, "maps/1/index", "attempt 1 runs since")
	x := w.explain("maps", explain.Worker, "maps/1/index", "")
	if len(x.Chain) != 2 || x.Until == 0 {
		t.Errorf("the chain of the archive is %+v", x)
	}
	w.end("maps/1/index", runner.Failed)
	w.explain("maps/1", explain.Retry, "maps/1/index", "exit code 1")
	w.now = w.now.Add(revision.Default.Gap)
	w.pass("maps")
	w.end("maps/1/index", runner.Succeeded)
	w.explain("maps/1/pdf", explain.Turn, "maps/1/pdf", "maps/1/index has ended: succeeded")
	w.pass("maps")
	w.begin("maps/1/copy")
	w.end("maps/2/index", runner.Succeeded)
	w.pass("maps")
	w.explain("maps/2/copy", explain.Worker, "maps/1/copy", "runs since")
	y, err := w.store.Explain(t.Context(), "maps/2/copy")
	w.must(err)
	if y.Waits != explain.Lock || !strings.Contains(y.Why, "maps/1/copy has the lock disk since 20") {
		t.Errorf("the copy waits for %+v", y.Link)
	}
	w.explain("maps/1/pdf", explain.Grace, "maps/1/pdf", "maps/2/pdf supersedes it")
	w.explain("maps/2/pdf", explain.Grace, "maps/1/pdf", "maps/2/pdf supersedes it")
	_, err = w.store.Pause(t.Context(), "maps", revision.By{Actor: "anna", Reason: "the disk is changed"})
	w.must(err)
	w.end("maps/1/copy", runner.Succeeded)
	w.explain("maps/2/copy", explain.Hold, "maps/2/copy", "the disk is changed")
	w.explain("maps/1/copy", explain.Nothing, "maps/1/copy", "it has ended: succeeded")
	w.explain("maps/1", explain.Grace, "maps/1/pdf", "")
}

// TestExplainLimit: the limit of runs, a superseded run that may finish, a definition that is invalid, and a
// revision before the first.
func TestExplainLimit(t *testing.T) {
	w := newWorld(t)
	r := (&repository{}).add(1, "[{name: a, command: x}]").add(2,
		"[{name: b, command: x}]").add(1, "[{name: a, nonsense: x}]")
	w.repos["maps"] = r
	set := settings("maps")
	set.Running, set.Baseline = 1, 1
	_, err := w.store.Add(t.Context(), "maps", set, anna)
	w.must(err)
	w.notify("maps", 1, 2, 3, 4)
	w.pass("maps")
	w.explain("maps/2/b", explain.Limit, "maps/2/b", "1 tasks of the archive maps run")
	w.end("maps/1/a", runner.Succeeded)
	w.explain("maps/1", explain.Nothing, "maps/1", "all of its 2 tasks have ended")
	w.explain("maps/4", explain.Nothing, "maps/4", "_workflows/all.yaml:1")
	w.archive("fixed", (&repository{}).add(2, "[{name: b, command: x, cancels: [PREV], interruptible: false}]"), 1)
	w.notify("fixed", 1)
	w.pass("fixed")
	w.begin("fixed/1/b")
	w.notify("fixed", 2)
	w.pass("fixed")
	x := w.explain("fixed/2/b", explain.Worker, "fixed/1/b", "")
	if x.Waits != explain.Superseded || !strings.Contains(x.Why, "not interruptible") {
		t.Errorf("the superseder waits for %+v", x.Link)
	}
	for _, id := range []string{"maps", "maps/0", "maps/x", "Maps/1", "maps@1/1/a", "maps/1/a/0", "maps/1/a/1/1",
		"maps/01"} {
		_, err := w.store.Explain(t.Context(), id)
		if id != "maps" && !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", id, err)
		}
	}
}

// TestViews: lists are in their order and filtered before the paging, and a plan has its edges.
func TestViews(t *testing.T) {
	w := newWorld(t)
	w.archive("maps", (&repository{}).add(60, theText), 1)
	w.archive("songs", &repository{}, 0)
	for n := range int64(60) {
		w.notify("maps", n+1)
	}
	w.pass("maps")
	ctx := t.Context()
	archives, next, err := w.store.Archives(ctx, "")
	w.must(err)
	if len(archives) != 2 || archives[0].Name != "maps" || next != "" {
		t.Errorf("found %+v, %q", archives, next)
	}
	all, next, err := w.store.Revisions(ctx, "maps", "")
	w.must(err)
	if len(all) != 60 || all[0].Number != 60 || all[0].Instances != 3 || all[0].Ended != 1 || next != "" {
		t.Errorf("found %d revisions, the first %+v, %q", len(all), all[0], next)
	}
	p, err := w.store.Plan(ctx, "maps", 3)
	w.must(err)
	if len(p.Tasks) != 3 || p.Tasks[1].ID != "maps/3/indexing" || p.Tasks[1].Edges[1].ID != "maps/2/indexing" ||
		p.More {
		t.Errorf("found the plan %+v", p.Tasks)
	}
	count := func(f revision.Filter) (n int) {
		t.Helper()
		cursor := ""
		for {
			page, next, err := w.store.Instances(ctx, "maps", f, cursor)
			w.must(err)
			n, cursor = n+len(page), next
			if next == "" {
				return n
			}
		}
	}
	for want, f := range map[int]revision.Filter{180: {}, 60: {Task: "indexing"}, 1: {State: workflow.Dispatched},
		119: {State: workflow.Blocked}, 3: {Revision: 60}} {
		if got := count(f); got != want {
			t.Errorf("%+v selects %d, want %d", f, got, want)
		}
	}
	if _, _, err := w.store.Instances(ctx, "maps", revision.Filter{State: "lost"}, ""); !fault.Is(err, fault.Invalid) {
		t.Errorf("a state that there is not: %v", err)
	}
	st, err := w.store.Status(ctx, "maps")
	w.must(err)
	if st.Watermark != 60 || st.Open[workflow.Blocked] != 119 || len(st.Running) != 1 ||
		st.Limit != revision.MaxRunning {
		t.Errorf("found %+v", st)
	}
	w.end("maps/1/indexing", runner.Failed)
	tries, err := w.store.Attempts(ctx, "maps/1/indexing")
	w.must(err)
	if len(tries) != 1 || tries[0].Exit != 1 || tries[0].End != runner.Failed || tries[0].Asked == 0 ||
		!strings.HasPrefix(tries[0].Prefix("maps/1/indexing"), "runs/maps/1/indexing/000001-x") {
		t.Errorf("found the attempts %+v", tries)
	}
}

// TestPreview: a revision that is not planned yet says what it would plan.
func TestPreview(t *testing.T) {
	w := newWorld(t)
	w.archive("maps", (&repository{}).add(3, theText).add(1, "- nonsense"), 1)
	w.notify("maps", 1, 2)
	w.pass("maps")
	p, err := w.store.Preview(t.Context(), "maps", 3)
	w.must(err)
	if len(p.Tasks) != 3 || p.Tasks[0].Awaits[0].Revision != 2 || p.Tasks[2].Cancels[0].Revision != 2 {
		t.Errorf("found %+v", p)
	}
	p, err = w.store.Preview(t.Context(), "maps", 0)
	w.must(err)
	if p.Revision != 4 || len(p.Problems) == 0 || len(p.Tasks) != 0 {
		t.Errorf("found %+v", p)
	}
	if _, err := w.store.Preview(t.Context(), "maps", 2); !fault.Is(err, fault.Conflict) {
		t.Errorf("a revision that is planned: %v", err)
	}
}
