package revision_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/pkg/revisions/archive"
	"archivist/pkg/revisions/revision"
	"archivist/pkg/revisions/runner"
	"archivist/pkg/revisions/workflow"
)

// These cases were found by test/revisionsim.

// TestScheduleBehindInvalid: a schedule runs the tasks of the last revision that has some, also when the newest one
// is invalid.
func TestScheduleBehindInvalid(t *testing.T) {
	w := newWorld(t)
	r := (&repository{}).add(1, `[{name: a, command: x, triggers: [{schedule: {cron: "*/5 * * * *"}}]}]`)
	r.add(1, "[{name: a, command: x, depends: [nobody]}]")
	w.archive("maps", r, 0)
	w.notify("maps", 1, 2)
	w.pass("maps")
	w.now = w.now.Add(5 * time.Minute)
	w.pass("maps")
	w.want(w.running(), "maps/1/a/1")
	w.end("maps/1/a/1", runner.Succeeded)
	if got := w.state("maps/1/a/1"); got != workflow.Success {
		t.Errorf("the run by schedule is %s", got)
	}
}

// TestFirstMoves: a revision that is notified while a later one is being planned as the first does not become the
// first. The plan goes on.
func TestFirstMoves(t *testing.T) {
	w := newWorld(t)
	r := (&repository{}).add(2, "[{name: a, command: x, depends: [PREV]}]")
	w.archive("maps", r, 0)
	w.notify("maps", 2)
	notified := false
	tab := tabletest.Table(&tabletest.Client{DynamoDBAPI: w.fake, Do: func(op string, call func() error) error {
		err := call()
		if op != "TransactWriteItems" || notified {
			return err
		}
		_, unknown := w.store.Instance(t.Context(), "maps/2/a")
		if unknown == nil {
			notified = true // the instances of revision 2 are written, its COMMIT is not
			w.notify("maps", 1)
		}
		return err
	}})
	w.store.Table.Rows, w.store.Table.DB = tab.Rows, tab.DB
	w.quiet("maps", runner.Succeeded)
	a, err := w.store.Archive(t.Context(), "maps")
	w.must(err)
	if !notified || a.First != 2 || a.Watermark != 2 {
		t.Errorf("revisions %d to %d are planned", a.First, a.Watermark)
	}
}

// TestLockBetweenAttempts: an instance keeps its lock between its attempts, also if an earlier one comes meanwhile.
func TestLockBetweenAttempts(t *testing.T) {
	w := newWorld(t)
	w.archive("maps", (&repository{}).add(2, "[{name: a, command: x, lock: disk, retries: 2}]"), 2)
	w.notify("maps", 2)
	w.pass("maps")
	_, err := w.store.Backfill(t.Context(), "maps", 1, 1, anna)
	w.must(err)
	w.pass("maps")
	w.end("maps/2/a", runner.Failed)
	w.now = w.now.Add(time.Hour)
	w.pass("maps")
	w.want(w.running(), "maps/2/a")
	w.end("maps/2/a", runner.Succeeded)
	w.pass("maps")
	w.want(w.running(), "maps/1/a")
}

// refusing lets refuse see each request for a partition, and fail it.
func (w *world) refusing(refuse func(op, partition string) error) {
	now := ""
	tab := tabletest.Table(&tabletest.Client{DynamoDBAPI: w.fake, Do: func(op string, call func() error) error {
		now = op
		return call()
	}, Refuse: func(partition string) error { return refuse(now, partition) }})
	w.store.Table.Rows, w.store.Table.DB = tab.Rows, tab.DB
}

// filtered is a task with a filter of paths.
const filtered = `[{name: a, command: x, paths: ["maps/**"]}]`

// TestDeletedWhileFiltered: a pass that has lost its lease while it asks a filter finds that its archive was
// deleted, and ends as one whose lease is lost.
func TestDeletedWhileFiltered(t *testing.T) {
	w := newWorld(t)
	w.archive("maps", (&repository{}).add(1, filtered), 1)
	w.notify("maps", 1)
	asked, deleted := false, false
	w.refusing(func(_, partition string) error {
		if asked || partition != "WORKFLOW#maps" {
			return nil
		}
		_, unplanned := w.store.Instance(t.Context(), "maps/1/a")
		if unplanned != nil {
			return nil
		}
		asked = true // it reads the definition, to ask the filter
		w.now = w.now.Add(2 * revision.Default.Pass)
		_, err := w.store.Delete(t.Context(), "maps", anna)
		w.must(err)
		w.pass("maps")
		_, err = w.store.Archive(t.Context(), "maps")
		deleted = fault.Is(err, fault.NotFound)
		return nil
	})
	_, err := w.store.Pass(t.Context(), "maps", w.now.Add(time.Minute))
	if err != nil && !fault.Is(err, fault.Stale) { // its lease is another's
		t.Error(err)
	}
	if !deleted || !w.state("maps/1/a").Over() {
		t.Errorf("deleted: %t, the instance is %s", deleted, w.state("maps/1/a"))
	}
}

// TestFilterUnreadable: a filter that cannot be asked, whatever the reason, keeps nothing else of the archive from
// going on.
func TestFilterUnreadable(t *testing.T) {
	w := newWorld(t)
	w.archive("maps", (&repository{}).add(1, filtered).add(1, "[{name: b, command: x}]"), 1)
	w.notify("maps", 1, 2)
	opens := 0
	open := w.store.Open
	w.store.Open = func(ctx context.Context, l archive.Location) (archive.Source, error) {
		opens++
		if opens > 2 { // both revisions are planned
			return nil, fault.New(fault.Invalid, "the secret does not have the form user:password")
		}
		return open(ctx, l)
	}
	w.pass("maps")
	w.want(w.running(), "maps/2/b")
	w.store.Open = open
	w.now = w.now.Add(time.Minute)
	w.quiet("maps", runner.Succeeded)
	if got := w.state("maps/1/a"); got != workflow.Skipped {
		t.Errorf("when the archive can be read again, the instance is %s", got)
	}
}

// TestLateRest: a pass that has lost its lease does not say when the archive is looked at next. The pass that has the
// lease dies in the middle: what it has left is due at once.
func TestLateRest(t *testing.T) {
	w := newWorld(t)
	w.archive("maps", (&repository{}).add(1, "[{name: a, command: x}]"), 1)
	w.notify("maps", 1)
	w.pass("maps")
	w.begin("maps/1/a")
	in, err := w.store.Instance(t.Context(), "maps/1/a")
	w.must(err)
	reads, dead, died := 0, false, false
	w.refusing(func(op, partition string) error {
		if dead {
			return errors.New("the function has died")
		}
		if op != "GetItem" || partition != "ARCHIVE#maps" || died {
			return nil
		}
		reads++ // when it is to be looked at, its row in the only round, and that before the first pass rests
		if reads < 3 {
			return nil
		}
		died = true
		w.now = time.UnixMilli(in.Until)
		w.store.Tell = func(context.Context, string, string) error { dead = true; return nil }
		_, err := w.store.Pass(t.Context(), "maps", w.now.Add(time.Minute))
		if err == nil || !dead {
			t.Errorf("the second pass lives: %v", err)
		}
		dead = false
		return nil
	})
	_, err = w.store.Pass(t.Context(), "maps", w.now.Add(time.Minute))
	if err != nil && !fault.Is(err, fault.Stale) { // its lease is another's
		t.Error(err)
	}
	due, err := w.store.Waiting(t.Context(), 10)
	w.must(err)
	w.want(due, "maps")
	if !died {
		t.Error("there was no second pass")
	}
}

// TestBackfillBehindFirst: a back-fill needs a first revision that is planned. Else an earlier one could become the
// first, and planning would meet revisions that the back-fill has planned.
func TestBackfillBehindFirst(t *testing.T) {
	w := newWorld(t)
	w.archive("maps", (&repository{}).add(3, "[{name: a, command: x}]"), 0)
	w.notify("maps", 3)
	_, err := w.store.Backfill(t.Context(), "maps", 2, 2, anna)
	if !fault.Is(err, fault.Conflict) {
		t.Fatalf("the first revision is not planned, and a back-fill is accepted: %v", err)
	}
	w.pass("maps")
	_, err = w.store.Backfill(t.Context(), "maps", 2, 2, anna)
	w.must(err)
	set := settings("maps")
	set.Baseline = 1
	_, err = w.store.Add(t.Context(), "maps", set, anna)
	if !fault.Is(err, fault.Conflict) {
		t.Errorf("the first revision moves below a back-fill: %v", err)
	}
	w.notify("maps", 1)
	w.quiet("maps", runner.Succeeded)
	r, err := w.store.Revision(t.Context(), "maps", 1)
	w.must(err)
	if r.State != revision.Before || w.state("maps/2/a") != workflow.Success {
		t.Errorf("revision 1 is %s, the instance of revision 2 is %s", r.State, w.state("maps/2/a"))
	}
}

// TestFilterOfChangedHistory: a filter that cannot be asked for ever, because the revision is another now or is gone,
// skips its instance and says why.
func TestFilterOfChangedHistory(t *testing.T) {
	for want, change := range map[string]func(*repository){
		"revision 1 was notified as t1 and is another": func(r *repository) { r.commits[0].id = "another" },
		"there is no revision 1":                       func(r *repository) { r.commits = nil },
	} {
		w := newWorld(t)
		r := (&repository{}).add(1, filtered)
		w.archive("maps", r, 1)
		w.notify("maps", 1)
		opens, open := 0, w.store.Open
		w.store.Open = func(ctx context.Context, l archive.Location) (archive.Source, error) {
			opens++
			if opens > 1 { // it is planned
				return nil, fault.New(fault.Unavailable, "the archive does not answer")
			}
			return open(ctx, l)
		}
		w.pass("maps")
		if got := w.state("maps/1/a"); got != workflow.Blocked {
			t.Fatalf("while the archive cannot be read it is %s", got)
		}
		change(r)
		w.store.Open = open
		w.now = w.now.Add(time.Minute)
		w.pass("maps")
		in, err := w.store.Instance(t.Context(), "maps/1/a")
		w.must(err)
		if in.State != workflow.Skipped || !strings.Contains(in.Reason, want) {
			t.Errorf("it is %s: %s; want %s", in.State, in.Reason, want)
		}
	}
}

// TestSupersededIsSettled: a superseder that has ended one instance, and waits for another, lets those go on that wait
// for the first, in the same pass.
func TestSupersededIsSettled(t *testing.T) {
	w := newWorld(t)
	w.archive("maps", (&repository{}).add(3, `
- {name: build, command: x, cancels: [PREV], interruptible: false}
- {name: publish, command: x, depends: [{task: build, on: ended}]}
`), 1)
	w.notify("maps", 1)
	w.pass("maps")
	w.begin("maps/1/build")
	w.notify("maps", 2)
	w.pass("maps")
	w.notify("maps", 3)
	throttled := true
	w.refusing(func(op, partition string) error {
		if throttled && op == "Query" && partition == "TASKLIVE#maps#build" {
			return tabletest.Throttled()
		}
		return nil
	})
	w.pass("maps") // all but the superseding
	if got := w.state("maps/2/build"); got != workflow.Awaiting {
		t.Fatalf("the superseded instance is %s already", got)
	}
	throttled = false
	w.pass("maps")
	in, err := w.store.Instance(t.Context(), "maps/2/build")
	w.must(err)
	if in.State != workflow.Superseded || !in.Settled {
		t.Errorf("the superseded instance is %s, settled: %t", in.State, in.Settled)
	}
	w.want(w.running(), "maps/1/build", "maps/2/publish")
}

// TestWaiterInTheBucket: an instance that was cancelled while it waited, and went into the bucket with its revision,
// does not keep what it waited for from being settled.
func TestWaiterInTheBucket(t *testing.T) {
	w := aged(t)
	w.repos["maps"].add(2, "[{name: index, command: x, depends: [PREV], timeout: 10m}]")
	w.notify("maps", 3, 4)
	w.pass("maps")
	w.begin("maps/3/index")
	_, err := w.store.Cancel(t.Context(), "maps/4/index", anna)
	w.must(err)
	w.pass("maps")
	w.must(w.store.Table.Rows.Delete("pk", "TASK#maps/4/index").Range("sk", "TASK").Run(t.Context())) // as by a move
	w.over("maps/3/index", runner.Succeeded)
	w.pass("maps")
	in, err := w.store.Instance(t.Context(), "maps/3/index")
	w.must(err)
	if in.State != workflow.Success || !in.Settled {
		t.Errorf("it is %s, settled: %t", in.State, in.Settled)
	}
	if left := w.rows("TASK#maps/3/index/WAITER"); len(left) > 0 {
		t.Errorf("rows are left: %v", left)
	}
}

// TestNoticeFarAhead: a notice far beyond the newest revision that the archive has is refused, and leaves no gap; the
// archive is asked at once, but not at each such notice, and what it has is planned.
func TestNoticeFarAhead(t *testing.T) {
	w := newWorld(t)
	repo := (&repository{}).add(2, "[{name: a, command: x}]")
	w.archive("maps", repo, 1)
	w.notify("maps", 1, 2)
	w.quiet("maps", runner.Succeeded) // it was never asked, and is known up to 2
	far := func() {
		t.Helper()
		_, err := w.store.Notify(t.Context(), "maps", revision.Notice{Revision: 10_004}, revision.By{Actor: "hook"})
		if !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "more than 10000 ahead of the newest") {
			t.Errorf("a notice far ahead: %v", err)
		}
	}
	far()
	w.now = w.now.Add(2 * time.Hour) // the archive is asked
	w.quiet("maps", runner.Succeeded)
	w.now = w.now.Add(10 * time.Minute)
	repo.add(1, "[{name: a, command: x}]")
	far()
	w.quiet("maps", runner.Succeeded)
	st, err := w.store.Status(t.Context(), "maps")
	w.must(err)
	if st.Watermark != 3 || st.Gap != nil {
		t.Errorf("planned up to %d, gap %+v", st.Watermark, st.Gap)
	}
	looked := st.Looked
	w.now = w.now.Add(time.Second)
	far()
	w.pass("maps")
	st, err = w.store.Status(t.Context(), "maps")
	w.must(err)
	if st.Looked != looked {
		t.Errorf("it was asked again at %d", st.Looked)
	}
	w.notify("maps", 10_003)
}
