package revision

import (
	"context"
	"fmt"
	"slices"

	"archivist/pkg/events/event"
	"archivist/pkg/kernel/table"
	"archivist/pkg/revisions/workflow"
)

// planner plans one revision. Its pass holds the lease.
type planner struct {
	*pass

	// The revision, as it was fixed.
	row *revisionRow

	// Its definition: empty if that is invalid, or the revision was skipped.
	def *workflow.Definition

	// The nearest earlier revision with a task, 0: none. In a back-fill only revisions of the
	// back-fill count: see backfill.
	prev func(ctx context.Context, task string) (int64, error)

	// The tasks of this revision that are planned, by name, in the states in which they were: the
	// edges of those that follow are decided on these.
	done map[string]workflow.State
}

// planTx is one transaction of insertPlan, or that of finish.
type planTx struct {
	*planner
	tx *table.Tx

	// Rows that the transaction has, without its event and the fence: at most txRows.
	rows int

	// Rows of others that the transaction requires or writes: DynamoDB accepts each once.
	keys map[table.Key]bool

	// Instances that it inserts; 0: all were there, and there is nothing to commit.
	fresh int
}

// insertTasks writes the first tasks, as many as fit into a transaction, and returns how many: at least
// one, if there are any. A Stale means that something that one waits for has ended meanwhile, or
// that another pass has the lease.
func (w *planner) insertTasks(ctx context.Context, tasks []workflow.Task) (int, error) {
	t := &planTx{planner: w, tx: w.Table.Begin(w.NewID()), keys: map[table.Key]bool{}}
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

// add adds the instance of a task, if it has room in the transaction. One that was written by a try
// before is left as it is: what it waits for was decided then. The room is estimated from above,
// before the rows are made: two for each edge (the row of a waiter, and what it requires), its
// places, its row, its event, the name's row and the lock. A task that makes a loop is planned as
// skipped, and waits for nothing.
func (t *planTx) add(ctx context.Context, task *workflow.Task) (fits bool, err error) {
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

	// The first task of a transaction always has room: its rows are bounded by workflow.MaxDepends
	// and MaxCancels.
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

// planned remembers an instance of this revision, for those that wait for it.
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

// loop is why a task of a revision that tasks have made is not run, "" if it is: a task is not
// started by its own commit; after workflow.MaxDepth revisions that tasks of each other have made, none of
// these is; and after MaxChain none at all, since no more of them are known. So each loop ends, visibly,
// and tasks that are in no loop go on.
func (w *planner) loop(task string) string {
	chain := w.row.Chain
	switch {
	case len(chain) == 0:
		return ""
	case chain[len(chain)-1] == task:
		return fmt.Sprintf("loop: %s made this revision, and no task is started by its own commit",
			w.row.MadeBy)
	case len(chain) >= MaxChain:
		return fmt.Sprintf("loop: this revision is the result of %d tasks, or more, that started each other by commits",
			MaxChain)
	case len(chain) > workflow.MaxDepth && slices.Contains(chain, task):
		return fmt.Sprintf("loop: this revision is the result of more than %d tasks that started each other by "+
			"commits, and this is one of them", workflow.MaxDepth)
	}
	return ""
}

// instanceOf is an instance of a task in a revision, before it is decided what it waits for. run is
// 0 for the one that the revision plans. What it cancels includes former names: instances of
// earlier revisions have these.
func instanceOf(r *revisionRow, d *workflow.Definition, t *workflow.Task, trigger string,
	run int64) Instance {
	n := r.Revision.Number
	in := Instance{
		ID:              instanceID(r.Archive, n, t.Name, run),
		Archive:         r.Archive,
		Revision:        n,
		Task:            t.Name,
		Run:             run,
		Trigger:         trigger,
		Definition:      r.Definition,
		Order:           order(n, placeOf(t), t.Name, run),
		State:           workflow.Blocked,
		Lock:            t.Lock,
		Cancels:         slices.Clone(t.Cancels),
		LatestOnly:      t.LatestOnly(),
		Follow:          t.Follow,
		Was:             t.Was,
		Uninterruptible: t.Uninterruptible,

		AllowFailure: t.AllowFailure,
		Filtered:     len(t.Paths) > 0,
		Chain:        r.Chain,
	}

	if run == 0 {
		in.Manual = t.Manual
	}

	for _, name := range t.Inputs {
		in.Inputs = append(in.Inputs, Input{Name: name})
	}

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

// resolve makes the edges of a task in this revision: that on COMMIT, which is open until the plan
// is visible, and those of its definition.
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

// edge resolves a dependency: it finds the instance that it is on, and decides it by the state in
// which that is now. No such instance counts as satisfied, and is recorded as none. Of an earlier
// revision, it is the nearest that has planned the task, under its present or its former name,
// whichever is nearer.
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

	task, in, err := w.earlier(ctx, e.Task)
	if err != nil || in == 0 || e.Exact && in != n-1 {
		return a, err
	}

	state, err := w.endOf(ctx, in, task)
	a.judge(instanceID(w.row.Archive, in, task, 0), state)
	if err != nil || a.Verdict != workflow.Impossible || e.On != workflow.Succeeded {
		return a, err
	}

	a.By, err = w.healer(ctx, task, in)
	if a.By != "" {
		a.Verdict = workflow.Healed
	}
	return a, err
}

// healer is a run of a task that a revision has planned, and that has not succeeded: one that has succeeded since, at
// that revision or a later one before this; "" if none has. Without it, one failure would end a line of tasks of which
// each needs the success of the one before, for ever. Only the highest success is known: in a back-fill it can be of a
// later revision.
func (w *planner) healer(ctx context.Context, task string, in int64) (string, error) {
	n, err := w.nameRow(ctx, w.row.Archive, task)
	if err != nil || n.Succeeded < in || n.Succeeded >= w.row.Revision.Number {
		return "", err
	}
	return n.Succeeder, nil
}

// earlier is the nearest earlier revision that has planned a task, 0 if none has, and the name that
// the task had there: its present or its former one.
func (w *planner) earlier(ctx context.Context, task string) (name string, in int64, err error) {
	in, err = w.prev(ctx, task)
	was := formerName(w.def, task)
	if err != nil || was == "" {
		return task, in, err
	}

	former, err := w.prev(ctx, was)
	if former > in {
		return was, former, err
	}
	return task, in, err
}

// endOf is the state of a task of an earlier revision, also of one whose instances are in the
// bucket.
func (w *planner) endOf(ctx context.Context, n int64, task string) (workflow.State, error) {
	return w.stateOf(ctx, w.row.Archive, n, task)
}

// insert puts a new instance into the transaction, with its places, its event, and a row at each
// instance that it waits for. The transaction fails if one of these has ended meanwhile: then the
// edge is to be decided again.
func (t *planTx) insert(ctx context.Context, in Instance) error {
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
	t.tx.Derive(in.ID, nil, table.OwnedAt(in.ID, places...))
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
	return event.Append(t.tx, taskSubject(in.ID), 1, event.New{
		Type:      "task.planned",
		Time:      in.Since,
		Actor:     manager,
		Component: manager,
		Parents:   parents(in.Archive, in.Revision),
		Detail:    planned(&in, in.Reason),
	})
}

// await puts the row of a waiter into the transaction. One of an earlier revision must not have
// ended: else nobody would look for the row. Those of this revision cannot have: their COMMIT is
// not there yet.
func (t *planTx) await(in Instance, e Awaits) {
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

// bump writes the lock of the instance, because its line has a new row: a start that has read the
// line before fails. Each lock is written once in a transaction.
func (t *planTx) bump(ctx context.Context, in Instance) error {
	if in.Lock == "" || in.State.Over() || in.gated() {
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
