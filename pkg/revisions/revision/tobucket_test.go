package revision_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/guregu/dynamo/v2"

	"archivist/pkg/events/event"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/pkg/revisions/revision"
	"archivist/pkg/revisions/runner"
	"archivist/pkg/revisions/workflow"
)

// keeps is a definition with what is asked of earlier revisions.
const keeps = `
- {name: index, command: x, depends: [PREV]}
- {name: build, command: x, depends: [index], cancels: [PREV], paths: ["maps/**"]}
- {name: check, command: x, depends: [{task: PREV, on: succeeded}]}
- {name: report, command: x, triggers: [manual]}
`

// ids are all instances of the world old.
var old = []string{"maps/1/COMMIT", "maps/1/index", "maps/1/build", "maps/1/check", "maps/2/COMMIT", "maps/2/index",
	"maps/2/build", "maps/2/check", "maps/1/report/1"}

// aged is a world with two revisions and a run, all of which have ended for long.
func aged(t *testing.T) *world {
	w := newWorld(t)
	w.archive("maps", &repository{}, 1)
	w.commits("maps/a", "maps/b")
	w.notify("maps", 1)
	w.quiet("maps", runner.Succeeded)
	_, err := w.run("report", 1, false, "")
	w.must(err)
	w.quiet("maps", runner.Failed)
	w.notify("maps", 2)
	w.pass("maps")
	w.end("maps/2/check", runner.Failed)
	w.end("maps/2/index", runner.Succeeded)
	w.pass("maps")
	w.end("maps/2/build", runner.Succeeded)
	w.pass("maps")
	w.later()
	return w
}

// commits adds revisions that change these paths.
func (w *world) commits(paths ...string) {
	r := w.repos["maps"]
	for _, path := range paths {
		r.commits = append(r.commits, commit{files: map[string]string{"all.yaml": keeps}, changed: []string{path}})
	}
}

// later lets the time pass after which what has ended goes into the bucket. The archive is not looked at meanwhile.
func (w *world) later() { w.now = w.now.Add(revision.Default.Keep) }

// seen is all that the views show of some instances and of their revisions.
func (w *world) seen(ids ...string) string {
	w.t.Helper()
	var all strings.Builder
	show := func(v any, err error) {
		w.must(err)
		data, err := json.Marshal(v)
		w.must(err)
		fmt.Fprintf(&all, "%s\n", data)
	}
	for _, id := range ids {
		in, err := w.store.Instance(w.t.Context(), id)
		show(in, err)
		tries, err := w.store.Attempts(w.t.Context(), id)
		show(tries, err)
		why, err := w.store.Explain(w.t.Context(), id)
		show(why, err)
	}
	for n := int64(1); n <= 2; n++ {
		p, err := w.store.Plan(w.t.Context(), "maps", n)
		p.Ends = nil
		show(p, err)
		g, err := w.store.Graph(w.t.Context(), "maps", n)
		show(g, err)
		why, err := w.store.Explain(w.t.Context(), fmt.Sprint("maps/", n))
		show(why, err)
		for _, in := range w.list(revision.Filter{Revision: n}) {
			show(in, nil)
		}
		show(len(w.list(revision.Filter{Revision: n, State: workflow.Failure})), nil)
	}
	return all.String()
}

// list are all pages of a list.
func (w *world) list(f revision.Filter) (all []revision.Instance) {
	w.t.Helper()
	cursor := ""
	for {
		page, next, err := w.store.Instances(w.t.Context(), "maps", f, cursor)
		w.must(err)
		all = append(all, page...)
		if next == "" {
			slices.SortFunc(all, func(a, b revision.Instance) int { return strings.Compare(a.Order, b.Order) })
			return all
		}
		cursor = next
	}
}

// differ fails if two of these views differ.
func (w *world) differ(when, before, after string) {
	w.t.Helper()
	lines := strings.Split(after, "\n")
	for i, line := range strings.Split(before, "\n") {
		if i >= len(lines) || line != lines[i] {
			w.t.Fatalf("%s, line %d was\n%s\nand is\n%s", when, i, line, lines[min(i, len(lines)-1)])
		}
	}
}

// rows are those of the table that are not of events, by their keys.
func (w *world) rows(prefix string) (keys []string) {
	for _, row := range w.fake.All() {
		var h table.Head
		w.must(dynamo.UnmarshalItem(row, &h))
		if strings.HasPrefix(h.PK, prefix) && !strings.HasPrefix(h.SK, event.Prefix) {
			keys = append(keys, h.Key().String())
		}
	}
	return keys
}

// TestKeep: what has ended for long goes into the bucket, and is shown as before.
func TestKeep(t *testing.T) {
	w := aged(t)
	w.now = w.now.Add(-time.Hour)
	w.pass("maps")
	if n := len(w.rows("TASK#")); n != len(old) || len(w.kept.data) > 0 {
		t.Fatalf("before the time there are %d rows, and %d objects", n, len(w.kept.data))
	}
	w.now = w.now.Add(time.Hour)
	before := w.seen(old...)
	w.pass("maps")
	w.want(w.rows("TASK#"))
	w.want(w.rows("TASKLINE#"))
	w.differ("in the bucket", before, w.seen(old...))
	if len(w.kept.data) != 3 {
		t.Errorf("there are %d objects", len(w.kept.data))
	}
	var k revision.BucketObject
	w.must(json.Unmarshal(w.kept.data["revisions/maps/1/report/000000001.json"], &k))
	if len(k.Instances) != 1 || len(k.Events) != 4 || k.Events[3].Type != "task.state" || k.Revision.Number != 1 {
		t.Errorf("the object of a run has %d instances, and the events %+v", len(k.Instances), k.Events)
	}
	_, err := w.store.Cancel(t.Context(), "maps/1/index", anna)
	if !fault.Is(err, fault.Conflict) {
		t.Errorf("one that has ended is cancelled: %v", err)
	}
	for _, id := range []string{"maps/1/none", "maps/1/report/2", "maps/3/index"} {
		if _, err := w.store.Instance(t.Context(), id); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: %v", id, err)
		}
	}
	due, err := w.store.Waiting(t.Context(), 10)
	w.must(err)
	w.want(due)
}

// TestKeepCrash: the function dies at each of its calls, before it has an effect and after. At no moment is anything
// lost, and the next pass goes on.
func TestKeepCrash(t *testing.T) {
	deaths := 0
	for at := 0; ; at++ {
		died := false
		for _, effect := range []bool{false, true} {
			w := aged(t)
			before := w.seen(old...)
			dies := w.dying(at, effect)
			_, err := w.store.Pass(t.Context(), "maps", w.now.Add(time.Minute))
			died = dies()
			if died && err == nil && !effect {
				t.Fatalf("call %d failed, and the pass did not", at)
			}
			when := fmt.Sprintf("after the death at call %d, effect: %t", at, effect)
			w.differ(when, before, w.seen(old...))
			w.now = w.now.Add(revision.Default.Pass)
			w.pass("maps")
			w.now = w.now.Add(time.Minute) // what was put off
			w.pass("maps")
			w.want(w.rows("TASK#"))
			w.want(w.rows("TASKLINE#"))
			w.differ("in the end, "+when, before, w.seen(old...))
			if died {
				deaths++
			}
		}
		if !died {
			break
		}
	}
	if deaths < 60 {
		t.Errorf("there were only %d deaths", deaths)
	}
}

// TestKeepMany: a revision whose rows are removed by several transactions is never shown with more or less than it
// has, wherever the function dies between them.
func TestKeepMany(t *testing.T) {
	var text strings.Builder
	fmt.Fprintln(&text, "- {name: first, command: x}")
	for i := range workflow.MaxTasks - 1 {
		fmt.Fprintf(&text, "- {name: t%03d, command: x, depends: [first]}\n", i)
	}
	many := func() *world {
		w := newWorld(t)
		w.archive("maps", (&repository{}).add(1, text.String()), 1)
		w.notify("maps", 1)
		w.quiet("maps", runner.Failed) // and all others are skipped
		w.later()
		return w
	}
	shown := func(w *world, when string) {
		p, err := w.store.Plan(t.Context(), "maps", 1)
		w.must(err)
		if n := len(w.list(revision.Filter{Revision: 1})); len(p.Tasks) != workflow.MaxTasks+1 || n != len(p.Tasks) {
			t.Fatalf("%s, %d instances are shown, and %d listed", when, len(p.Tasks), n)
		}
		if got := w.state("maps/1/t050"); got != workflow.Skipped {
			t.Fatalf("%s, an instance is %s", when, got)
		}
	}
	w := many()
	writes := w.writes(func() { w.pass("maps") })
	shown(w, "in the bucket")
	parts := 0
	for _, at := range writes {
		w := many()
		dies := w.dying(at, true)
		_, _ = w.store.Pass(t.Context(), "maps", w.now.Add(time.Minute))
		dies()
		if n := len(w.rows("TASK#")); n > 0 && n <= workflow.MaxTasks {
			parts++
		}
		when := fmt.Sprintf("after the death at call %d", at)
		shown(w, when)
		w.now = w.now.Add(revision.Default.Pass)
		w.pass("maps")
		w.want(w.rows("TASK#"))
		shown(w, "in the end, "+when)
	}
	if parts < 2 {
		t.Errorf("only %d deaths were between two parts", parts)
	}
}

// writes are the transactions that something commits, as numbers of calls of the table and the bucket.
func (w *world) writes(f func()) (at []int) {
	calls := -1
	tab := tabletest.Table(&tabletest.Client{DynamoDBAPI: w.fake, Do: func(op string, call func() error) error {
		calls++
		if op == "TransactWriteItems" {
			at = append(at, calls)
		}
		return call()
	}})
	usual := *w.store.Table
	w.store.Table.Rows, w.store.Table.DB = tab.Rows, tab.DB
	begun := false
	w.kept.fails = func() error {
		begun = !begun
		if begun {
			calls++
		}
		return nil
	}
	f()
	w.store.Table.Rows, w.store.Table.DB, w.kept.fails = usual.Rows, usual.DB, nil
	return at
}

// dying lets the function die at a call of the table or the bucket: from then on no call has an effect. The returned
// function lets the next one live, and says whether it had died.
func (w *world) dying(at int, effect bool) func() bool {
	calls, dead := -1, false
	died := errors.New("the function has died")
	tab := tabletest.Table(&tabletest.Client{DynamoDBAPI: w.fake, Do: func(_ string, call func() error) error {
		calls++
		switch {
		case dead || calls == at && !effect:
			dead = true
			return died
		case calls == at:
			dead = true
			_ = call()
			return died
		}
		return call()
	}})
	usual := *w.store.Table
	w.store.Table.Rows, w.store.Table.DB = tab.Rows, tab.DB
	begun := false // asked before a call, and after it
	w.kept.fails = func() error {
		begun = !begun
		if begun {
			calls++
		}
		if dead || calls == at && begun != effect {
			dead = true
			return died
		}
		return nil
	}
	return func() bool {
		w.store.Table.Rows, w.store.Table.DB, w.kept.fails = usual.Rows, usual.DB, nil
		return dead
	}
}

// TestAfterKept: revisions behind those that are in the bucket find what they depend on, and what has changed since.
func TestAfterKept(t *testing.T) {
	w := aged(t)
	w.pass("maps")
	w.want(w.rows("TASK#"))
	w.commits("letters/c", "maps/d")
	w.notify("maps", 3, 4)
	w.quiet("maps", runner.Succeeded)
	for id, want := range map[string]workflow.State{
		"maps/3/index": workflow.Success, // behind maps/2/index
		"maps/3/check": workflow.Skipped, // maps/2/check has failed
		"maps/3/build": workflow.Skipped, // no path has changed since revision 2
		"maps/4/build": workflow.Success,
	} {
		if got := w.state(id); got != want {
			t.Errorf("%s is %s, want %s", id, got, want)
		}
	}
	in, err := w.store.Instance(t.Context(), "maps/3/check")
	w.must(err)
	if in.Root != "maps/2/check" {
		t.Errorf("the cause is %q", in.Root)
	}
	in, err = w.store.Instance(t.Context(), "maps/4/build")
	w.must(err)
	if in.Base != 2 {
		t.Errorf("its base is revision %d", in.Base)
	}
}

// TestRunOfKept: a task is run at a revision that is in the bucket, and then goes there, too.
func TestRunOfKept(t *testing.T) {
	w := aged(t)
	w.pass("maps")
	token := ""
	for n := int64(2); n <= 3; n++ {
		in, err := w.run("report", 1, false, "")
		w.must(err)
		if in.ID != fmt.Sprint("maps/1/report/", n) {
			t.Fatalf("the run is %s", in.ID)
		}
		w.pass("maps")
		w.begin(in.ID)
		in, err = w.store.Instance(t.Context(), in.ID)
		w.must(err)
		token = in.Job(&workflow.Task{}, "", "", w.now).Token
		w.quiet("maps", runner.Succeeded)
		p, err := w.store.Plan(t.Context(), "maps", 1)
		w.must(err)
		if len(p.Tasks) != 4+int(n) || p.Instances != 4+n || p.Ended != 4+n || p.More {
			t.Errorf("the plan has %d instances: %+v", len(p.Tasks), p.WithCounts)
		}
		w.later()
		w.pass("maps")
		w.want(w.rows("TASK#"))
	}
	if n := len(w.list(revision.Filter{Revision: 1, Task: "report"})); n != 3 {
		t.Errorf("%d runs are listed", n)
	}
	r, err := w.store.Notify(t.Context(), "maps", revision.Notice{Revision: 3, Token: token}, anna)
	if err != nil || r.MadeBy != "maps/1/report/3" {
		t.Errorf("the revision was made by %q: %v", r.MadeBy, err)
	}
}

// TestKeepLater: a revision with an instance that goes on stays in the table, and so does one while the bucket cannot
// be reached. Nothing else waits for it.
func TestKeepLater(t *testing.T) {
	w := newWorld(t)
	w.archive("maps", (&repository{}).add(3, "[{name: a, command: x, timeout: 14m}]"), 1)
	w.notify("maps", 1, 2)
	w.pass("maps")
	w.end("maps/2/a", runner.Succeeded)
	w.pass("maps")
	w.later()
	w.kept.fails = func() error { return fault.New(fault.Unavailable, "the bucket does not answer") }
	w.notify("maps", 3)
	w.pass("maps")
	w.want(slices.Compact(w.running()), "maps/1/a", "maps/3/a")
	clear(w.begun) // what does not begin is started again
	if n := len(w.rows("TASK#")); n != 6 {
		t.Errorf("there are %d rows of instances", n)
	}
	w.kept.fails = nil
	w.now = w.now.Add(revision.Default.Resend)
	w.pass("maps")
	w.want(w.rows("TASK#maps/2"))
	if n := len(w.rows("TASK#maps/1")); n != 2 {
		t.Errorf("there are %d rows of a revision that goes on", n)
	}
	w.quiet("maps", runner.Succeeded)
	w.later()
	w.pass("maps")
	w.want(w.rows("TASK#"))
}

// TestKeepUnsettled: an instance for whose end another waits stays in the table, until the other knows of the end.
func TestKeepUnsettled(t *testing.T) {
	w := newWorld(t)
	w.archive("maps", (&repository{}).add(2, "[{name: a, command: x, depends: [PREV]}]"), 1)
	w.notify("maps", 1, 2)
	w.pass("maps")
	w.end("maps/1/a", runner.Succeeded)
	down := true
	w.refusing(func(_, partition string) error {
		if down && partition == "TASK#maps/2/a" {
			return errors.New("the connection was lost")
		}
		return nil
	})
	w.later()
	w.pass("maps")
	if w.fake.Row(table.Key{PK: "TASK#maps/1/a", SK: "TASK"}) == nil {
		t.Fatal("its row was removed")
	}
	down = false
	w.now = w.now.Add(time.Minute)
	w.pass("maps")
	w.want(w.running(), "maps/2/a")
	w.quiet("maps", runner.Succeeded)
	w.later()
	w.pass("maps")
	w.want(w.rows("TASK#"))
}
