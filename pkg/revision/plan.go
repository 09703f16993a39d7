package revision

import (
	"context"
	"fmt"
	"slices"

	"archivist/pkg/event"
	"archivist/pkg/fault"
	"archivist/pkg/table"
	"archivist/pkg/workflow"
)

// reasonLoop is why a task of a revision that tasks have made is not run.
const reasonLoop = "loop"

// Fixed is the detail of revision.committed.
type Fixed struct {
	State       string             `json:"state"`
	Transaction string             `json:"transaction,omitempty"`
	Definition  string             `json:"definition,omitempty"`
	Tasks       int                `json:"tasks"`
	Problems    []workflow.Problem `json:"problems,omitempty"`
	Reason      string             `json:"reason,omitempty"`
}

// Planned is the detail of task.planned.
type Planned struct {
	Trigger string         `json:"trigger"`
	State   workflow.State `json:"state"`
	Reason  string         `json:"reason,omitempty"`
	Edges   []Awaits       `json:"edges,omitempty"`
	Lock    string         `json:"lock,omitempty"`
	Cancels []string       `json:"cancels,omitempty"`
}

// planner plans one revision.
type planner struct {
	*pass
	row  *revisionRow
	def  *workflow.Definition
	prev func(ctx context.Context, task string) (int64, error) // the nearest earlier revision with it, 0: none
	done map[string]workflow.State                             // the tasks of this revision, as they were planned
}

// plan plans the next revision of an archive, which was notified. What it has fixed once it does not change: it can
// be called again after a crash at any point.
func (p *pass) plan(ctx context.Context, a *archiveRow, r *revisionRow, fill bool) error {
	if r.State == Notified || fill && r.State == Before {
		err := p.fix(ctx, a, r)
		if err != nil {
			return err
		}
	}
	def := &workflow.Definition{}
	if r.State == Planning {
		var err error
		def, err = p.Definition(ctx, a.Name, r.Definition)
		if err != nil {
			return err
		}
	}
	w := &planner{pass: p, row: r, def: def, done: map[string]workflow.State{}}
	w.prev = w.latest
	if fill {
		w.prev = func(_ context.Context, task string) (int64, error) { return a.Backfill.Latest[task], nil }
	}
	err := w.plantAll(ctx)
	if err != nil {
		return err
	}
	return w.finish(ctx, a, fill)
}

// fix reads the revision and its definition from the archive, and keeps which they are.
func (p *pass) fix(ctx context.Context, a *archiveRow, r *revisionRow) error {
	src, err := p.Open(ctx, a.Location)
	if err != nil {
		return err
	}
	n := r.Revision.Number
	rev, err := src.Revision(ctx, n)
	if err != nil {
		return err
	}
	if r.Transaction != "" && r.Transaction != rev.Transaction {
		why := fmt.Sprintf("revision %d was notified as %s and is %s", n, r.Transaction, rev.Transaction)
		return p.stop(ctx, a, why, By{})
	}
	r.Transaction, r.Author, r.Message = rev.Transaction, clip(rev.Author), clip(rev.Message)
	if !rev.Time.IsZero() {
		r.Time = millis(rev.Time)
	}
	if r.MadeBy == "" {
		maker, err := p.maker(ctx, r.Archive, rev.Token)
		switch {
		case fault.Is(err, fault.Denied):
			r.Reason = "the token of the commit was not accepted: " + err.Error()
		case err != nil:
			return err
		default:
			r.made(maker)
		}
	}
	files, err := src.Workflows(ctx, n)
	var problems []workflow.Problem
	def := &workflow.Definition{}
	switch {
	case fault.Is(err, fault.Invalid):
		problems = []workflow.Problem{{File: workflow.Folder, Message: err.Error()}}
	case err != nil:
		return err
	default:
		def, problems = workflow.Parse(files)
	}
	tx := p.Table.Begin(p.NewID())
	r.State = Planning
	if len(problems) > 0 {
		r.State, r.Problems = Invalid, problems[:min(len(problems), problemsKept)]
	} else {
		r.Definition, err = p.keepDefinition(ctx, a.Name, def)
		if err != nil {
			return err
		}
	}
	err = saveRevision(tx, r)
	if err != nil {
		return err
	}
	p.lease.Guard(tx)
	return tx.Commit(ctx)
}

// keptText bounds what a revision's row keeps of its author and its message, in bytes.
const keptText = 1000

func clip(s string) string {
	if len(s) <= keptText {
		return s
	}
	return string([]rune(s[:keptText])[:len([]rune(s[:keptText]))-1]) + "…"
}

// keepDefinition writes a definition, if it is not known, and returns its hash.
func (p *pass) keepDefinition(ctx context.Context, archive string, d *workflow.Definition) (string, error) {
	hash := d.Hash()
	k := workflowKey(archive, hash)
	text, err := pack(d)
	if err != nil {
		return "", err
	}
	var r workflowRow
	err = p.Table.Get(ctx, k, &r)
	if !fault.Is(err, fault.NotFound) {
		return hash, err
	}
	tx := p.Table.Begin(p.NewID())
	tx.Insert(&workflowRow{Head: headOf(k), Text: text})
	return hash, tx.Commit(ctx)
}

// latest is the nearest earlier revision that has planned a task.
func (w *planner) latest(ctx context.Context, task string) (int64, error) {
	r, err := w.nameRow(ctx, w.row.Archive, task)
	if r.Latest >= w.row.Revision.Number {
		return r.Before, err
	}
	return r.Latest, err
}

// plantAll writes the instances of the tasks, in order, as many at once as a transaction takes. They are not seen
// until COMMIT is there: each waits for it.
func (w *planner) plantAll(ctx context.Context) error {
	tasks := slices.DeleteFunc(slices.Clone(w.def.Tasks), func(t workflow.Task) bool { return !t.OnCommit })
	for len(tasks) > 0 {
		n, err := w.plant(ctx, tasks)
		for tries := 0; fault.Is(err, fault.Stale) && !w.lease.Lost(err) && tries < maxTries; tries++ {
			n, err = w.plant(ctx, tasks) // what one waits for has ended meanwhile
		}
		if err != nil {
			return err
		}
		tasks = tasks[n:]
	}
	return nil
}

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
	in := instanceOf(t.row, task, ByCommit, 0)
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
	if t.loops(task.Name) {
		in.State, in.Reason, in.Settled = workflow.Skipped, reasonLoop, true
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

// loops reports whether a task is not run because tasks have made the revision: this one, or too many in a
// chain.
func (w *planner) loops(task string) bool {
	chain := w.row.Chain
	return len(chain) > 0 && (chain[len(chain)-1] == task || len(chain) > workflow.MaxDepth)
}

// instanceOf is an instance of a task in a revision, before it is decided what it waits for.
func instanceOf(r *revisionRow, t *workflow.Task, trigger string, run int64) Instance {
	n := r.Revision.Number
	in := Instance{ID: instanceID(r.Archive, n, t.Name, run), Archive: r.Archive, Revision: n, Task: t.Name, Run: run,
		Trigger: trigger, Definition: r.Definition, Order: order(n, placeOf(t), t.Name, run), State: workflow.Blocked,
		Lock: t.Lock, Cancels: slices.Clone(t.Cancels), LatestOnly: t.LatestOnly(), Follow: t.Follow,
		Fixed: t.Uninterruptible, Filtered: len(t.Paths) > 0, Chain: r.Chain}
	if t.Was != "" && in.LatestOnly {
		in.Cancels = append(in.Cancels, t.Was)
	}
	return in
}

// resolve makes the edges of a task in this revision: that on COMMIT, and those of its definition.
func (w *planner) resolve(ctx context.Context, t *workflow.Task) ([]Awaits, error) {
	n := w.row.Revision.Number
	edges := []Awaits{{Edge: workflow.Edge{Task: workflow.Commit, On: workflow.Ended},
		ID: instanceID(w.row.Archive, n, workflow.Commit, 0)}}
	for _, e := range t.Depends {
		a, err := w.edge(ctx, e, t)
		if err != nil {
			return nil, err
		}
		edges = append(edges, a)
	}
	return edges, nil
}

// edge resolves a dependency. t is the task that has it, nil for COMMIT.
func (w *planner) edge(ctx context.Context, e workflow.Edge, t *workflow.Task) (Awaits, error) {
	a := Awaits{Edge: e, Verdict: workflow.None}
	n := w.row.Revision.Number
	if !e.Prev {
		state, ok := w.done[e.Task]
		if ok {
			a.ID, a.Verdict = instanceID(w.row.Archive, n, e.Task, 0), e.Judge(state)
		}
		if a.Verdict != workflow.Open {
			a.End = state
		}
		return a, nil
	}
	in, err := w.prev(ctx, e.Task)
	if err == nil && in == 0 && t != nil && t.Was != "" && e.Task == t.Name {
		e.Task = t.Was // it had another name
		in, err = w.prev(ctx, t.Was)
	}
	if err != nil || in == 0 || e.Exact && in != n-1 {
		return a, err
	}
	a.ID = instanceID(w.row.Archive, in, e.Task, 0)
	state, err := w.endOf(ctx, in, e.Task)
	a.Verdict = e.Judge(state)
	if a.Verdict != workflow.Open {
		a.End = state
	}
	return a, err
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

// finish writes COMMIT and makes the plan visible: the watermark rises.
func (w *planner) finish(ctx context.Context, a *archiveRow, fill bool) error {
	var err error
	for range maxTries {
		err = w.tryFinish(ctx, a, fill)
		if !fault.Is(err, fault.Stale) || w.lease.Lost(err) {
			return err
		}
		fresh, again := w.archiveRow(ctx, a.Name)
		if again != nil {
			return again
		}
		if fresh.Ref() != w.row.Archive || fresh.Archive.Mode != Active {
			return nil // it is paused, or begins anew
		}
		*a = *fresh
		r, again := w.revisionRow(ctx, w.row.Archive, w.row.Revision.Number)
		if again != nil || r.State == Committed {
			return again
		}
		*w.row = *r
	}
	return err
}

func (w *planner) tryFinish(ctx context.Context, a *archiveRow, fill bool) error {
	r, n := w.row, w.row.Revision.Number
	commit, err := w.commit(ctx, a, fill)
	if err != nil {
		return err
	}
	t := &planting{planner: w, tx: w.Table.Begin(w.NewID()), keys: map[table.Key]bool{}}
	err = t.insert(ctx, commit)
	if err != nil {
		return err
	}
	row := *r
	row.Planned = w.now()
	if row.State == Planning {
		row.State = Committed
	}
	row.All, row.Over = int64(len(w.done)+1), w.over()
	if commit.State.Over() {
		row.Over++
	}
	err = row.event(t.tx, "revision.committed", w.now(), By{}, Fixed{row.State, row.Transaction, row.Definition,
		len(w.done), row.Problems, row.Reason})
	if err == nil {
		err = saveRevision(t.tx, &row)
	}
	if err != nil {
		return err
	}
	next := *a
	next.Trouble = nil
	if fill {
		next.Backfill = a.Backfill.after(n, w.done)
	} else {
		k := planKey(r.Archive, n)
		t.tx.RemoveOwned(k, revisionID(r.Archive, n))
		next.Watermark = n
		err = next.define(w.Now(), row.State, row.Definition, w.def)
	}
	if err == nil {
		err = saveArchive(t.tx, &next)
	}
	if err != nil {
		return err
	}
	w.lease.Guard(t.tx)
	err = t.tx.Commit(ctx)
	if err == nil {
		*a, *r = next, row
	}
	return err
}

// after is a back-fill behind a revision, nil if that was the last.
func (b *backfill) after(n int64, done map[string]workflow.State) *backfill {
	if n >= b.To {
		return nil
	}
	next := &backfill{Next: n + 1, To: b.To, Latest: map[string]int64{}}
	for task, in := range b.Latest {
		next.Latest[task] = in
	}
	for task := range done {
		next.Latest[task] = n
	}
	next.Latest[workflow.Commit] = n
	return next
}

// commit is the instance COMMIT of the revision.
func (w *planner) commit(ctx context.Context, a *archiveRow, fill bool) (Instance, error) {
	r, n := w.row, w.row.Revision.Number
	in := Instance{ID: instanceID(r.Archive, n, workflow.Commit, 0), Archive: r.Archive, Revision: n,
		Task: workflow.Commit, Trigger: ByCommit, Order: order(n, placeOfCommit, workflow.Commit, 0),
		State: workflow.Blocked, Created: w.now(), Since: w.now()}
	prev := Awaits{Edge: workflow.Edge{Task: workflow.Commit, Prev: true, On: workflow.Ended}, Verdict: workflow.None}
	first := !fill && n <= a.First || fill && a.Backfill.Latest[workflow.Commit] == 0
	if !first {
		prev.ID = instanceID(r.Archive, n-1, workflow.Commit, 0)
		state, err := w.endOf(ctx, n-1, workflow.Commit)
		if err != nil {
			return in, err
		}
		prev.Verdict = prev.Judge(state)
		if state.Over() {
			prev.End = state
		}
	}
	in.Edges = []Awaits{prev}
	for _, e := range w.def.Commit {
		a, err := w.edge(ctx, e, nil)
		if err != nil {
			return in, err
		}
		in.Edges = append(in.Edges, a)
	}
	if Open(in.Edges) == 0 {
		in.State = workflow.Success
	}
	return in, nil
}
