package revision_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"archivist/pkg/events/event"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/lease"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/pkg/revisions/archive"
	"archivist/pkg/revisions/revision"
	"archivist/pkg/revisions/runner"
	"archivist/pkg/revisions/workflow"
)

// commit is a revision of an archive in memory.
type commit struct {
	files   map[string]string // of workflows
	changed []string
	token   string
	id      string
}

// repository is an archive in memory.
type repository struct {
	commits []commit
	fails   error
}

func (r *repository) Head(context.Context) (int64, error) { return int64(len(r.commits)), r.fails }

func (r *repository) at(n int64) (commit, error) {
	if r.fails != nil {
		return commit{}, r.fails
	}
	if n < 1 || n > int64(len(r.commits)) {
		return commit{}, fault.New(fault.NotFound, "there is no revision %d", n)
	}
	return r.commits[n-1], nil
}

func (r *repository) Revision(_ context.Context, n int64) (archive.Revision, error) {
	c, err := r.at(n)
	return archive.Revision{Number: n, Transaction: c.transaction(n), Token: c.token}, err
}

func (c commit) transaction(n int64) string {
	if c.id != "" {
		return c.id
	}
	return fmt.Sprintf("t%d", n)
}

func (r *repository) Workflows(_ context.Context, n int64) (files []workflow.File, err error) {
	c, err := r.at(n)
	for _, path := range slices.Sorted(maps.Keys(c.files)) {
		files = append(files, workflow.File{Path: workflow.Folder + "/" + path, Data: []byte(c.files[path])})
	}
	return files, err
}

func (r *repository) Changed(_ context.Context, base, n int64) (paths []string, err error) {
	for i := base + 1; i <= n; i++ {
		c, err := r.at(i)
		if err != nil {
			return nil, err
		}
		paths = append(paths, c.changed...)
	}
	return paths, nil
}

func (r *repository) Checkout(context.Context, int64, string) error { return nil }

// add adds revisions with these workflows.
func (r *repository) add(n int, text string) *repository {
	for range n {
		r.commits = append(r.commits, commit{files: map[string]string{"all.yaml": text}})
	}
	return r
}

// world is a revision queue whose executions the test runs.
type world struct {
	t     *testing.T
	store *revision.Store
	fake  *tabletest.Fake
	repos map[string]*repository
	now   time.Time
	ids   int
	begun map[string]revision.Execution // by name, what was started
	told  map[string]string
	kept  objects
}

// objects are those of a bucket. fails, if it is set, is asked before each call and after it.
type objects struct {
	data  map[string][]byte
	fails func() error
}

func (o *objects) call(f func() error) error {
	err := o.asks()
	if err == nil {
		err = f()
	}
	return cmp.Or(err, o.asks())
}

func (o *objects) asks() error {
	if o.fails == nil {
		return nil
	}
	return o.fails()
}

func (o *objects) Write(_ context.Context, key string, data []byte) error {
	return o.call(func() error { o.data[key] = slices.Clone(data); return nil })
}

func (o *objects) Read(_ context.Context, key string) (data []byte, err error) {
	err = o.call(func() error {
		if o.data[key] == nil {
			return fault.New(fault.NotFound, "there is no object %s", key)
		}
		data = o.data[key]
		return nil
	})
	return data, err
}

func (o *objects) List(_ context.Context, prefix, after string) (keys []string, more bool, err error) {
	err = o.call(func() error {
		for _, key := range slices.Sorted(maps.Keys(o.data)) {
			if strings.HasPrefix(key, prefix) && key > after {
				keys = append(keys, key)
			}
		}
		return nil
	})
	n := min(len(keys), 1000)
	return keys[:n], n < len(keys), err
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, fake: tabletest.New(), repos: map[string]*repository{},
		now: time.UnixMilli(1_790_000_000_000).UTC(), begun: map[string]revision.Execution{}, told: map[string]string{},
		kept: objects{data: map[string][]byte{}}}
	tab := tabletest.Table(w.fake)
	tab.Wait = func(context.Context, time.Duration) error { return nil }
	now, id := func() time.Time { return w.now }, func() string { w.ids++; return fmt.Sprintf("x%06d", w.ids) }
	w.store = &revision.Store{Table: tab, Bucket: &w.kept, Now: now, NewID: id, Times: revision.Default,
		Leases: &lease.Store{Table: tab, Now: now, NewID: id}, Secret: func() string { return "secret" + id() },
		Open: func(_ context.Context, l archive.Location) (archive.Source, error) { return w.repos[l.URL], nil },
		Start: func(_ context.Context, e revision.Execution) error {
			w.begun[e.Name()] = e
			return nil
		},
		Stop: func(_ context.Context, e revision.Execution, _ string) error { delete(w.begun, e.Name()); return nil },
		Tell: func(_ context.Context, prefix, reason string) error { w.told[prefix] = reason; return nil }}
	return w
}

// archive adds an archive whose first revision is known.
func (w *world) archive(name string, r *repository, baseline int64) {
	w.t.Helper()
	w.repos[name] = r
	set := revision.Settings{Location: archive.Location{Kind: archive.Git, URL: name}, Baseline: baseline}
	_, err := w.store.Add(w.t.Context(), name, set, revision.By{Actor: "anna"})
	w.must(err)
}

// limit sets how many instances of an archive run at once.
func (w *world) limit(name string, n int) {
	w.t.Helper()
	a, err := w.store.Archive(w.t.Context(), name)
	w.must(err)
	a.Running = n
	_, err = w.store.Add(w.t.Context(), name, a.Settings, revision.By{Actor: "anna"})
	w.must(err)
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) notify(name string, revisions ...int64) {
	w.t.Helper()
	for _, n := range revisions {
		_, err := w.store.Notify(w.t.Context(), name, revision.Notice{Revision: n}, revision.By{Actor: "hook"})
		w.must(err)
	}
}

// pass makes one pass.
func (w *world) pass(name string) revision.Passed {
	w.t.Helper()
	p, err := w.store.Pass(w.t.Context(), name, w.now.Add(time.Minute))
	w.must(err)
	return p
}

// running are the instances whose executions were started and have not ended, in order.
func (w *world) running() (ids []string) {
	for _, e := range w.begun {
		ids = append(ids, e.Instance)
	}
	slices.Sort(ids)
	return ids
}

// begin begins the execution of an instance.
func (w *world) begin(id string) revision.Execution {
	w.t.Helper()
	for _, e := range w.begun {
		if e.Instance == id {
			_, _, proceed, err := w.store.Begin(w.t.Context(), e)
			w.must(err)
			if !proceed {
				w.t.Fatalf("%s may not begin", id)
			}
			return e
		}
	}
	w.t.Fatalf("%s was not started; running: %v", id, w.running())
	return revision.Execution{}
}

// mayBegin begins an execution, if it may. One that may not is over.
func (w *world) mayBegin(id string) bool {
	w.t.Helper()
	for name, e := range w.begun {
		if e.Instance == id {
			_, _, proceed, err := w.store.Begin(w.t.Context(), e)
			w.must(err)
			if !proceed {
				delete(w.begun, name)
			}
			return proceed
		}
	}
	return false
}

// end begins and ends the execution of an instance.
func (w *world) end(id, end string) revision.Instance {
	w.t.Helper()
	e := w.begin(id)
	res := runner.Result{End: end, Exit: map[string]int{runner.Failed: 1}[end]}
	in, recorded, err := w.store.End(w.t.Context(), e, res)
	w.must(err)
	if !recorded {
		w.t.Fatalf("the end of %s was refused", id)
	}
	delete(w.begun, e.Name())
	return in
}

// quiet lets all go on until nothing is left, with every run of this end.
func (w *world) quiet(name, end string) {
	w.t.Helper()
	for range 10_000 {
		w.pass(name)
		ids := w.running()
		if len(ids) == 0 {
			return
		}
		w.end(ids[0], end)
	}
	w.t.Fatal("it does not come to rest")
}

// state is that of an instance, with its reason.
func (w *world) state(id string) workflow.State {
	w.t.Helper()
	in, err := w.store.Instance(w.t.Context(), id)
	w.must(err)
	return in.State
}

// history is what the events of an archive's instances say, in the order in which they were written.
func (w *world) history(ids ...string) (lines []string) {
	for _, id := range ids {
		rows, _, err := event.Page(w.t.Context(), w.store.Table, event.Subject{Type: event.Task, ID: id}, "")
		w.must(err)
		for _, r := range rows {
			lines = append(lines, fmt.Sprintf("%s %s %s", r.SubjectID, r.Type, r.Detail))
		}
	}
	return lines
}

// want compares ids.
func (w *world) want(got []string, want ...string) {
	w.t.Helper()
	if !slices.Equal(got, want) {
		w.t.Fatalf("found %v, want %v", got, want)
	}
}

// stopped ends a run that has begun, as one that was told to end; finish ends it with success.
func (w *world) stopped(id string) { w.over(id, runner.Cancelled) }
func (w *world) finish(id string)  { w.over(id, runner.Succeeded) }

func (w *world) over(id, end string) {
	w.t.Helper()
	for name, e := range w.begun {
		if e.Instance == id {
			_, _, err := w.store.End(w.t.Context(), e, runner.Result{End: end})
			w.must(err)
			delete(w.begun, name)
		}
	}
}
