package revision

import (
	"context"
	"fmt"
	"slices"

	"archivist/pkg/event"
	"archivist/pkg/table"
	"archivist/pkg/workflow"
)

// planting is one transaction of plantAll.
type planting struct {
	*planner
	tx    *table.Tx
	rows  int
	keys  map[table.Key]bool // that the transaction requires or bumps
	fresh int                // instances that it inserts
}

// plant writes the first tasks, as many as fit into a transaction, and returns how many.
func (w *planner) plant(ctx context.Context, tasks []workflow.Task) (int, error) {
	t := &planting{planner: w, tx: w.Table.Begin(w.NewID()), keys: map[table.Key]bool{}}
	n := 0
	for i := range tasks {
		fits, err := t.add(ctx, &tasks[i])
		if err != nil {
			return 0, err
		}
		if !fits {
			break
		}
		n++
	}
	if t.fresh == 0 {
		return n, nil
	}
	w.lease.Guard(t.tx)
	return n, t.tx.Commit(ctx)
}

// add adds the instance of a task, if it has room in the transaction.
func (t *planting) add(ctx context.Context, task *workflow.Task) (fits bool, err error) {
	in := instanceOf(t.row, t.def, task, ByCommit, 0)
	names, err := t.nameRow(ctx, in.Archive, task.Name)
	if err != nil {
		return false, err
	}
	known, err := t.instanceRow(ctx, in.ID)
	if err != nil {
		return false, err
	}
	if known.Rev > 0 { // by a try before
		t.planned(&known.Instance)
		return true, nil
	}
	in.Created, in.Since = t.now(), t.now()
	in.Edges, err = t.resolve(ctx, task)
	if err != nil {
		return false, err
	}
	loop := t.loop(task.Name)
	if loop != "" {
		in.State, in.Reason, in.Settled = workflow.Skipped, loop, true
	}
	if t.rows > 0 && t.rows+len(in.Edges)*2+len(in.places())+5 > txRows {
		return false, nil
	}
	err = t.insert(ctx, in)
	if err != nil {
		return false, err
	}
	if names.Latest < in.Revision { // not of a back-fill
		names.Before, names.Latest = names.Latest, in.Revision
	}
	put(t.tx, names, names.Rev)
	t.rows++
	t.planned(&in)
	return true, nil
}

// planned remembers an instance of this revision.
func (w *planner) planned(in *Instance) { w.done[in.Task] = in.State }

// over is how many of the tasks had ended when they were planned.
func (w *planner) over() (n int64) {
	for _, state := range w.done {
		if state.Over() {
			n++
		}
	}
	return n
}

// loop is why a task of a revision that tasks have made is not run, "" if it is.
func (w *planner) loop(task string) string {
	chain := w.row.Chain
	switch {
	case len(chain) == 0:
		return ""
	case chain[len(chain)-1] == task:
		return fmt.Sprintf("loop: %s made this revision, and no task is started by its own commit", w.row.MadeBy)
	case len(chain) > workflow.MaxDepth:
		return fmt.Sprintf("loop: this revision is the result of more than %d tasks that started each other by commits",
			workflow.MaxDepth)
	}
	return ""
}

// instanceOf is an instance of a task in a revision, before it is decided what it waits for.
func instanceOf(r *revisionRow, d *workflow.Definition, t *workflow.Task, trigger string, run int64) Instance {
	n := r.Revision.Number
	in := Instance{ID: instanceID(r.Archive, n, t.Name, run), Archive: r.Archive, Revision: n, Task: t.Name, Run: run,
		Trigger: trigger, Definition: r.Definition, Order: order(n, placeOf(t), t.Name, run), State: workflow.Blocked,
		Lock: t.Lock, Cancels: slices.Clone(t.Cancels), LatestOnly: t.LatestOnly(), Follow: t.Follow,
		Was: t.Was, Fixed: t.Uninterruptible, Filtered: len(t.Paths) > 0, Chain: r.Chain}
	for _, name := range t.Cancels {
		if was := formerName(d, name); was != "" {
			in.Cancels = append(in.Cancels, was)
		}
	}
	return in
}

// formerName is the name that a task had in earlier revisions, "" if it had none.
func formerName(d *workflow.Definition, name string) string {
	t := d.Task(name)
	if t == nil {
		return ""
	}
	return t.Was
}

// resolve makes the edges of a task in this revision: that on COMMIT, and those of its definition.
func (w *planner) resolve(ctx context.Context, t *workflow.Task) ([]Awaits, error) {
	n := w.row.Revision.Number
	edges := []Awaits{{Edge: workflow.Edge{Task: workflow.Commit, On: workflow.Ended},
		ID: instanceID(w.row.Archive, n, workflow.Commit, 0)}}
	for _, e := range t.Depends {
		a, err := w.edge(ctx, e)
		if err != nil {
			return nil, err
		}
		edges = append(edges, a)
	}
	return edges, nil
}

// edge resolves a dependency.
func (w *planner) edge(ctx context.Context, e workflow.Edge) (Awaits, error) {
	a := Awaits{Edge: e, Verdict: workflow.None}
	n := w.row.Revision.Number
	if !e.Prev {
		state, ok := w.done[e.Task]
		if ok {
			a.judge(instanceID(w.row.Archive, n, e.Task, 0), state)
		}
		return a, nil
	}
	in, err := w.prev(ctx, e.Task)
	if was := formerName(w.def, e.Task); err == nil && was != "" {
		var former int64
		former, err = w.prev(ctx, was)
		if former > in { // as it was named there
			e.Task, in = was, former
		}
	}
	if err != nil || in == 0 || e.Exact && in != n-1 {
		return a, err
	}
	state, err := w.endOf(ctx, in, e.Task)
	a.judge(instanceID(w.row.Archive, in, e.Task, 0), state)
	return a, err
}

// judge decides an edge on an instance that is in a state.
func (a *Awaits) judge(id string, state workflow.State) {
	a.ID, a.Verdict, a.End = id, a.Edge.Judge(state), ""
	if state.Over() {
		a.End = state
	}
}

// stateOf is the state of an instance, also of one that is in the bucket.
func (s *Store) stateOf(ctx context.Context, ref string, n int64, task string) (workflow.State, error) {
	r, err := s.instanceRow(ctx, instanceID(ref, n, task, 0))
	if err != nil || r.Rev > 0 {
		return r.State, err
	}
	old, err := s.revisionRow(ctx, ref, n)
	if err == nil && old.Ends[task] == "" {
		err = fmt.Errorf("revision %d of %s has planned %s, but there is no instance of it", n, ref, task)
	}
	return workflow.State(old.Ends[task]), err
}

func (w *planner) endOf(ctx context.Context, n int64, task string) (workflow.State, error) {
	return w.stateOf(ctx, w.row.Archive, n, task)
}

// insert puts a new instance into the transaction, with its places, its event, and a row at each instance that it
// waits for. The transaction fails if one of these has ended meanwhile.
func (t *planting) insert(ctx context.Context, in Instance) error {
	row := &instanceRow{Head: headOf(taskSubject(in.ID).Key()), Instance: in, Number: 1}
	row.ListPK, row.ListSK = "TASKS#"+in.Archive, in.Order
	if in.State.Over() {
		row.Over = in.Since
	}
	var err error
	row.Text, err = pack(in)
	if err != nil {
		return err
	}
	t.tx.Insert(row)
	t.fresh++
	places := in.places()
	moveLines(t.tx, in.ID, nil, places)
	t.rows += 2 + len(places)
	err = t.bump(ctx, in)
	if err != nil {
		return err
	}
	for _, e := range in.Edges {
		if e.Verdict == workflow.Open && !in.State.Over() {
			t.await(in, e)
		}
	}
	return event.Append(t.tx, taskSubject(in.ID), 1, event.New{Type: "task.planned", Time: in.Since, Actor: manager,
		Component: manager, Parents: parents(in.Archive, in.Revision), Detail: Planned{in.Trigger, in.State, in.Reason,
			in.Edges, in.Lock, in.Cancels}})
}

// await puts the row of a waiter into the transaction. One of an earlier revision must not have ended: else
// nobody would look for the row.
func (t *planting) await(in Instance, e Awaits) {
	k := waiterKey(e.ID, in.ID)
	t.tx.Insert(&lineRow{Head: headOf(k), Owner: in.ID})
	t.rows++
	awaited := taskSubject(e.ID).Key()
	if e.Prev && !t.keys[awaited] {
		t.keys[awaited] = true
		t.tx.Require(awaited, "attribute_exists(pk) AND attribute_not_exists(over_ms)")
		t.rows++
	}
}

// bump changes the lock of the instance: its line has a new row.
func (t *planting) bump(ctx context.Context, in Instance) error {
	if in.Lock == "" || in.State.Over() {
		return nil
	}
	k := lockKey(in.Archive, in.Lock)
	if t.keys[k] {
		return nil
	}
	t.keys[k] = true
	l, err := t.lockRow(ctx, in.Archive, in.Lock)
	put(t.tx, l, l.Rev)
	t.rows++
	return err
}
