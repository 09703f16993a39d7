package revision_test

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/revisions/revision"
	"archivist/pkg/revisions/runner"
	"archivist/pkg/revisions/workflow"
)

// line is a workflow in which each task waits for the one before, and for itself at the revision before.
const line = `
[{name: index, command: x},
 {name: pdf, command: x, depends: index},
 {name: site, command: x, depends: [pdf, {task: PREV, on: succeeded}], paths: ["*.md"]}]`

// TestRerunWithDependents: after a run again that succeeds, what was skipped is run in its order, also in later
// revisions, and each only when all that it needs has succeeded. A filter of paths is asked, as if nothing had failed.
func TestRerunWithDependents(t *testing.T) {
	w := newWorld(t)
	repo := (&repository{}).add(2, line)
	repo.commits[0].changed, repo.commits[1].changed = []string{"a.md"}, []string{"b.txt"}
	w.archive("maps", repo, 1)
	w.notify("maps", 1)
	w.pass("maps")
	w.end("maps/1/index", runner.Failed)
	w.notify("maps", 2)
	w.quiet("maps", runner.Succeeded)
	for id, want := range map[string]workflow.State{"maps/1/pdf": workflow.Skipped, "maps/1/site": workflow.Skipped,
		"maps/2/pdf": workflow.Success, "maps/2/site": workflow.Skipped} {
		if got := w.state(id); got != want {
			t.Fatalf("%s is %s", id, got)
		}
	}
	failed, err := w.store.Instance(t.Context(), "maps/1/index")
	w.must(err)
	follow, err := w.store.Follow(t.Context(), failed)
	w.must(err)
	w.want(follow, "maps/1/pdf", "maps/1/site", "maps/2/site")
	why, err := w.store.Explain(t.Context(), failed.ID)
	w.must(err)
	if !strings.Contains(why.Why, "--with-dependents, maps/1/pdf and 2 more follow") {
		t.Errorf("explained as %s", why.Why)
	}

	run := revision.Run{Task: "index", Revision: 1, Dependents: true, Key: "again"}
	in, err := w.store.StartRun(t.Context(), "maps", run, anna)
	w.must(err)
	w.want([]string{in.ID}, "maps/1/index/1")
	for _, id := range []string{"maps/1/index/1", "maps/1/pdf/1", "maps/1/site/1"} {
		w.pass("maps")
		w.want(w.running(), id)
		w.end(id, runner.Succeeded)
	}
	w.quiet("maps", runner.Succeeded)
	last, err := w.store.Instance(t.Context(), "maps/2/site/2")
	w.must(err)
	if last.State != workflow.Skipped || !strings.HasPrefix(last.Reason, "no path") || last.After != "maps/1/site/1" {
		t.Errorf("the last one is %+v", last)
	}
	// The same request is known, and nothing is left to do.
	again, err := w.store.StartRun(t.Context(), "maps", run, anna)
	w.must(err)
	if again.State != workflow.Success {
		t.Errorf("the same request again: %+v", again)
	}
	run.Dependents = false
	if _, err := w.store.StartRun(t.Context(), "maps", run, anna); !fault.Is(err, fault.Conflict) {
		t.Errorf("the key for another request: %v", err)
	}
}

// TestRerunLeaves: what cannot be run after a run is named in its row: here a task that needs another one, and one that
// people may not start. A filter that has skipped a task, and a task for a failure, are no reason.
func TestRerunLeaves(t *testing.T) {
	w := newWorld(t)
	w.archive("maps", (&repository{}).add(1, `
[{name: a, command: x}, {name: b, command: x}, {name: both, command: x, depends: [a, b]},
 {name: closed, command: x, depends: a, triggers: [commit]},
 {name: filtered, command: x, depends: {task: a, on: ended}, paths: "*.c"},
 {name: last, command: x, depends: [a, {task: after, on: ended}]},
 {name: after, command: x, depends: {task: a, on: ended}},
 {name: alarm, command: x, depends: [{task: a, on: failed}, {task: b, on: succeeded}]}]`), 1)
	w.notify("maps", 1)
	w.quiet("maps", runner.Failed)
	_, err := w.store.StartRun(t.Context(), "maps", revision.Run{Task: "a", Revision: 1, Dependents: true}, anna)
	w.must(err)
	w.pass("maps")
	w.end("maps/1/a/1", runner.Succeeded)
	w.pass("maps")
	w.want(w.running(), "maps/1/after/1") // before the last, which waits for its end, too
	w.quiet("maps", runner.Succeeded)
	if got := w.state("maps/1/last/1"); got != workflow.Success {
		t.Errorf("the last is %s", got)
	}
	if _, err := w.store.Instance(t.Context(), "maps/1/filtered/1"); !fault.Is(err, fault.NotFound) {
		t.Errorf("what the filter has skipped is run: %v", err)
	}
	in, err := w.store.Instance(t.Context(), "maps/1/a/1")
	w.must(err)
	w.want(in.Left, "maps/1/both is not run: it needs maps/1/b to be succeeded, and it is failed",
		`maps/1/closed is not run: revision 1 of maps has no task "closed" that can be started by hand`)

	started, left, err := w.store.RunFailed(t.Context(), "maps", revision.Run{Revision: 1}, anna)
	w.must(err)
	if len(started) != 1 || started[0].ID != "maps/1/b/1" || len(left) > 0 {
		t.Errorf("started %+v, left %v", started, left)
	}
	w.quiet("maps", runner.Succeeded)
	if got := w.state("maps/1/both/1"); got != workflow.Success {
		t.Errorf("both is %s", got)
	}
	_, _, err = w.store.RunFailed(t.Context(), "maps", revision.Run{Revision: 1}, anna)
	if !fault.Is(err, fault.Conflict) {
		t.Errorf("nothing has failed: %v", err)
	}
}

// model is what reruns are to do, from the definitions alone: a plan is a set of edges between pairs of a revision and
// a task, and what waits in vain is run when all that it needs has succeeded.
type model struct {
	ref    string              // of the archive in its epoch
	first  int                 // the revision with which the epoch begins
	defs   []map[string][]edge // by revision - 1, by task
	end    map[string]string   // of planned instances and, by the same id, of what healed them
	healed map[string]bool
	runs   []string          // planned ids that were run again
	by     map[string]string // the runs that have healed, by planned ids
}

func newModel(ref string, first int) *model {
	return &model{ref: ref, first: first, end: map[string]string{}, healed: map[string]bool{}, by: map[string]string{}}
}

func (m *model) id(n int, task string) string { return fmt.Sprintf("%s/%d/%s", m.ref, n, task) }

type edge struct {
	on, need string
	prev     bool
	exact    bool
	input    bool
}

// inputs are the instances whose outputs an instance gets, "" for none, in the order of their names: what is planned,
// if it has succeeded, or else the first run of it that has, or else what is planned, whatever its end was.
func (m *model) inputs(n int, task string) (ids []string) {
	byName := map[string]string{}
	for _, e := range m.defs[n-1][task] {
		id := m.target(n, e)
		if m.end[id] != "succeeded" && m.by[id] != "" {
			id = m.by[id]
		}
		if e.input {
			byName[map[bool]string{true: "PREV:", false: ""}[e.prev]+e.on] = id
		}
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		ids = append(ids, name+" "+byName[name])
	}
	return ids
}

// given compares the inputs of an instance with the model.
func (w *world) given(m *model, id string) {
	w.t.Helper()
	at, err := revision.ParseID(id)
	w.must(err)
	in, err := w.store.Instance(w.t.Context(), id)
	w.must(err)
	var got []string
	for _, i := range in.Inputs {
		got = append(got, i.Name+" "+i.ID)
	}
	if want := m.inputs(int(at.N), at.Task); !slices.Equal(got, want) {
		w.t.Errorf("%s gets %q, want %q", id, got, want)
	}
}

// target is the planned instance that an edge of a revision is on, "" if there is none.
func (m *model) target(n int, e edge) string {
	if !e.prev {
		return m.id(n, e.on)
	}
	for k := n - 1; k >= m.first && !(e.exact && k < n-1); k-- {
		if _, ok := m.defs[k-1][e.on]; ok {
			return m.id(k, e.on)
		}
	}
	return ""
}

// ready reports whether all that an instance needs has ended so.
func (m *model) ready(n int, task string) bool {
	for _, e := range m.defs[n-1][task] {
		id := m.target(n, e)
		end := m.end[id]
		if m.healed[id] {
			end = "succeeded"
		}
		if id != "" && end != e.need && e.need != "ended" {
			return false
		}
	}
	return true
}

// succeeds lets a run of an instance succeed, and runs what follows.
func (m *model) succeeds(of string) {
	m.healed[of] = true
	for n := m.first - 1; n < len(m.defs); n++ {
		for task, edges := range m.defs[n] {
			id := m.id(n+1, task)
			waits := slices.ContainsFunc(edges, func(e edge) bool { return m.target(n+1, e) == of })
			if waits && m.end[id] != "succeeded" && !m.healed[id] && m.ready(n+1, task) {
				m.runs = append(m.runs, id)
				m.succeeds(id)
			}
		}
	}
}

// draw makes a definition at random, and its text.
func draw(r *rand.Rand) (def map[string][]edge, text string) {
	def = map[string][]edge{}
	names := slices.DeleteFunc([]string{"a", "b", "c", "d", "e"}, func(string) bool { return r.IntN(5) == 0 })
	for i, name := range names {
		def[name] = nil
		var depends, inputs []string
		for _, other := range names {
			need := []string{"succeeded", "succeeded", "ended"}[r.IntN(3)]
			e := edge{on: other, need: need, exact: r.IntN(4) == 0, input: r.IntN(2) == 0}
			switch {
			case r.IntN(3) > 0:
				continue
			case slices.Index(names, other) < i && r.IntN(2) == 0:
				e.exact = false
				depends = append(depends, fmt.Sprintf("{task: %s, on: %s}", other, e.need))
			default:
				e.prev = true
				scope := map[bool]string{true: "exact", false: "nearest"}[e.exact]
				depends = append(depends, fmt.Sprintf("{task: 'PREV:%s', on: %s, scope: %s}", other, need, scope))
			}
			def[name] = append(def[name], e)
			if e.input {
				inputs = append(inputs, map[bool]string{true: "'PREV:", false: "'"}[e.prev]+other+"'")
			}
		}
		waits := ""
		if len(depends) > 0 {
			waits = ", depends: [" + strings.Join(depends, ", ") + "]"
		}
		if len(inputs) > 0 {
			waits += ", inputs: [" + strings.Join(inputs, ", ") + "]"
		}
		text += fmt.Sprintf("- {name: %s, command: x%s}\n", name, waits)
	}
	return def, text
}

// archives is how many archives TestRerunsAsTheReference draws.
var archives = flag.Uint64("archives", 100, "archives that are drawn")

// TestRerunsAsTheReference: in archives of six revisions drawn at random, whose runs fail at random, a rerun with
// dependents runs what the model says, each once, and in an order in which each has all that it needs. The history of
// half of them is rewritten then, and a person begins anew where it has changed: what is planned and run from there on
// knows nothing of what was.
func TestRerunsAsTheReference(t *testing.T) {
	followed, rewritten := 0, 0
	for seed := range *archives {
		r := rand.New(rand.NewPCG(seed, 27))
		m := newModel("maps", 1)
		w, repo := newWorld(t), &repository{}
		for range 6 {
			def, text := draw(r)
			m.defs = append(m.defs, def)
			repo.add(1, text)
		}
		w.archive("maps", repo, 1)
		w.notify("maps", 1, 2, 3, 4, 5, 6)
		followed += w.compare(r, m)
		if r.IntN(2) == 0 {
			rewritten++
			followed += w.compare(r, w.rewrite(r, m, repo))
		}
		if t.Failed() {
			t.Fatalf("seed %d: %v", seed, m.defs)
		}
	}
	if followed < int(*archives) || rewritten < int(*archives)/4 {
		t.Errorf("%d were run after another, %d histories rewritten: too few to show anything", followed, rewritten)
	}
}

// compare lets all end that is planned, and then reruns some of what has failed. It returns how many follow these.
func (w *world) compare(r *rand.Rand, m *model) (followed int) {
	w.t.Helper()
	w.settles(r, m, 60)
	var failed []string
	for n := m.first; n <= len(m.defs); n++ {
		for task := range m.defs[n-1] {
			id := m.id(n, task)
			m.end[id] = string(w.state(id))
			if m.end[id] == "failed" {
				failed = append(failed, id)
			}
		}
	}
	slices.Sort(failed)
	for range min(2, len(failed)) {
		of := failed[r.IntN(len(failed))]
		followed += w.rerun(r, m, of)
		failed = slices.DeleteFunc(failed, func(id string) bool { return m.healed[id] && r.IntN(5) > 0 })
	}
	return followed
}

// rewrite replaces the last revisions of an archive by others, and adds one. The archive stops when it sees that, and
// plans nothing of it; then it begins anew at the first that is another.
func (w *world) rewrite(r *rand.Rand, m *model, repo *repository) *model {
	w.t.Helper()
	next := newModel("maps@2", 1+r.IntN(len(m.defs)))
	repo.commits = repo.commits[:next.first-1]
	next.defs = slices.Clone(m.defs[:next.first-1])
	for n := next.first; n <= len(m.defs)+1; n++ {
		def, text := draw(r)
		next.defs = append(next.defs, def)
		repo.add(1, text)
		repo.commits[n-1].id = fmt.Sprintf("again-%d", n)
	}
	w.notify("maps", int64(len(next.defs)))
	w.pass("maps")
	a, err := w.store.Archive(w.t.Context(), "maps")
	w.must(err)
	if a.Mode != revision.Stopped || a.Watermark != int64(len(m.defs)) {
		w.t.Errorf("the history was rewritten, and the archive is %s, planned up to %d", a.Mode, a.Watermark)
	}
	_, err = w.store.Resume(w.t.Context(), "maps", int64(next.first), anna)
	w.must(err)
	for n := next.first; n <= len(next.defs); n++ {
		w.notify("maps", int64(n))
	}
	return next
}

// settles lets all go on until nothing is left. Of 100 runs some fail.
func (w *world) settles(r *rand.Rand, m *model, fail int) {
	w.t.Helper()
	for w.pass("maps"); len(w.running()) > 0; w.pass("maps") {
		for _, id := range w.running() {
			w.given(m, id)
			end := runner.Succeeded
			if r.IntN(100) < fail {
				end = runner.Failed
			}
			w.end(id, end)
		}
	}
}

// rerun runs an instance again with its dependents, and compares what is run with the model. It returns how many
// follow.
func (w *world) rerun(r *rand.Rand, m *model, of string) int {
	w.t.Helper()
	id, err := revision.ParseID(of)
	w.must(err)
	m.runs = nil
	before := maps.Clone(m.healed)
	m.succeeds(of)
	m.runs = slices.DeleteFunc(m.runs, func(id string) bool { return id == of })

	in, err := w.store.Instance(w.t.Context(), of)
	w.must(err)
	told, err := w.store.Follow(w.t.Context(), in)
	w.must(err)
	slices.Sort(told)
	slices.Sort(m.runs)
	if !slices.Equal(told, m.runs) {
		w.t.Errorf("before the rerun of %s: %v are to follow, want %v", of, told, m.runs)
	}
	run := revision.Run{Task: id.Task, Revision: id.N, Dependents: true}
	_, err = w.store.StartRun(w.t.Context(), "maps", run, anna)
	w.must(err)
	var ran, seen []string
	for w.pass("maps"); len(w.running()) > 0; w.pass("maps") {
		ids := w.running()
		for _, id := range ids { // what they get was decided just now, when they were made
			if !slices.Contains(seen, id) {
				w.given(m, id)
				seen = append(seen, id)
			}
		}
		one := ids[r.IntN(len(ids))]
		at, err := revision.ParseID(one)
		w.must(err)
		planned := m.id(int(at.N), at.Task)
		check := &model{ref: m.ref, first: m.first, defs: m.defs, end: m.end, healed: before}
		if planned != of && !check.ready(int(at.N), at.Task) {
			w.t.Errorf("%s is run before all that it needs", one)
		}
		ran = append(ran, planned)
		w.end(one, runner.Succeeded)
		if m.by[planned] == "" {
			m.by[planned] = one
		}
		before[planned] = true
	}
	slices.Sort(ran)
	want := slices.Sorted(slices.Values(append([]string{of}, m.runs...)))
	if !slices.Equal(ran, want) {
		w.t.Errorf("after the rerun of %s: %v were run, want %v", of, ran, want)
	}
	return len(m.runs)
}
