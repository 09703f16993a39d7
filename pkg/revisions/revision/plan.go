package revision

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"archivist/pkg/kernel/definition"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/revisions/archive"
	"archivist/pkg/revisions/workflow"
)

// plan plans the next revision of an archive, which was notified; fill: the next one of a
// back-fill. What it has fixed once it does not change: it can be called again after a crash at any
// point. Its steps are transactions of their own:
//
//   - fix keeps which revision it is and its definition (Planning), or that it is Invalid;
//   - insertPlan writes the instances, which nobody sees yet;
//   - finish writes COMMIT, and raises the watermark.
//
// A Stale means that another pass has the lease, or that the archive has changed: the next round
// decides. A Conflict means that the archive was stopped. Any other error of a kind is why the
// revision cannot be read.
func (p *pass) plan(ctx context.Context, a *archiveRow, r *revisionRow, fill bool) error {
	if r.State == Notified || r.State == Before {
		err := p.fix(ctx, a, r, fill)
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
		w.prev = func(_ context.Context, task string) (int64, error) {
			return a.Backfill.Latest[task], nil
		}
	}

	err := w.insertPlan(ctx)
	if err != nil {
		return err
	}
	return w.finish(ctx, a, fill)
}

// read reads the revision and its definition from the archive, and puts into r what it says of
// itself. If the revision is another than the notified one, the archive is stopped. A definition
// that is wrong is no error, but has problems.
func (p *pass) read(ctx context.Context, a *archiveRow,
	r *revisionRow) (*workflow.Definition, []workflow.Problem, error) {
	n := r.Revision.Number
	src, rev, err := p.sourceAt(ctx, a, n, r.Transaction)
	if fault.Is(err, fault.Conflict) && r.onlyNotified(a.Location.Kind) {
		p.warn("a revision is not as it was notified", "archive", a.Name, "error", err)
		err = nil
	}

	if fault.Is(err, fault.Conflict) {
		return nil, nil, p.stop(ctx, a, err.Error(), By{})
	}

	if err == nil && n > 1 {
		err = p.sameAs(ctx, a, src, r.Archive, n-1)
	}

	if err != nil {
		return nil, nil, err
	}

	err = p.describe(ctx, r, rev)
	if err != nil {
		return nil, nil, err
	}
	return definitionAt(ctx, src, a.Name, n)
}

// onlyNotified reports whether nobody but a notifier has said which revision it is: the repository knows better. Of an
// object it is the other way round: the notice is an event of ours, and independent of what is stored.
func (r *revisionRow) onlyNotified(kind string) bool {
	return r.State == Notified && kind != archive.Object
}

// fix keeps which the revision and its definition are. From now on, no earlier revision can become
// the first: the transaction depends on that the first one is still the same, and a notice that
// moves it depends on the state of that one (movable).
func (p *pass) fix(ctx context.Context, a *archiveRow, r *revisionRow, fill bool) error {
	def, problems, err := p.read(ctx, a, r)
	if err != nil {
		return err
	}

	tx := p.Table.Begin(p.NewID())
	if r.State == Before && !fill { // the first one was a later one when it was notified
		n := r.Revision.Number
		k := planKey(r.Archive, n)
		tx.Insert(&lineRow{Head: headOf(k), Owner: revisionID(r.Archive, n)})
	}

	r.State = Planning
	if len(problems) > 0 {
		r.State, r.Problems = Invalid, keptProblems(problems)
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

	if !fill {
		tx.Require(a.Key(), "first_n = ?", a.First)
	}

	p.lease.Guard(tx)
	return tx.Commit(ctx)
}

// describe keeps what the archive says of a revision, and who made it, if its token says so and the
// notice did not. A token that is not accepted is kept as a reason only: a commit cannot be refused
// any more.
func (p *pass) describe(ctx context.Context, r *revisionRow, rev archive.Revision) error {
	r.Transaction = rev.Transaction
	r.Author, r.Message = definition.Clip(rev.Author, keptText),
		definition.Clip(rev.Message, keptText)
	if !rev.Time.IsZero() {
		r.Time = millis(rev.Time)
	}

	if r.MadeBy != "" {
		return nil
	}

	maker, err := p.maker(ctx, r.Archive, rev.Token)
	if fault.Is(err, fault.Denied) {
		r.Reason = "the token of the commit was not accepted: " + err.Error()
		return nil
	}

	if err != nil {
		return err
	}

	r.made(maker)
	return nil
}

// definitionAt reads the definition of a revision, or what is wrong with it: with problems, there
// is no definition. Too many or too large files (an Invalid of the archive) are a problem of the
// revision. Any other error means that it could not be read.
func definitionAt(ctx context.Context, src archive.Source, name string,
	n int64) (*workflow.Definition, []workflow.Problem, error) {
	files, err := src.Workflows(ctx, n)
	if fault.Is(err, fault.Invalid) {
		return nil, []workflow.Problem{{File: workflow.Folder, Message: err.Error()}}, nil
	}
	if err != nil {
		return nil, nil, err
	}

	def, problems := workflow.Parse(files)
	if def != nil {
		problems = def.Foreign(name)
	}
	if len(problems) > 0 {
		return nil, problems, nil
	}
	return def, nil, nil
}

// keptProblems are the problems that the revision's row names, and its event: the first ones. Paths
// can be long. In all they have at most listKept bytes as JSON.
func keptProblems(all []workflow.Problem) (kept []workflow.Problem) {
	size := 0
	for _, p := range all[:min(len(all), problemsKept)] {
		p.File, p.Message = definition.Clip(p.File, keptText), definition.Clip(p.Message, keptText)
		size += sizeOf(p)
		if size > listKept {
			break
		}
		kept = append(kept, p)
	}
	return kept
}

// keepDefinition writes a definition, if it is not known, and returns its hash. It is written
// before the revision names it, so a definition that is named is there; one that is not named,
// after a crash, does no harm.
func (p *pass) keepDefinition(ctx context.Context, archive string,
	d *workflow.Definition) (string, error) {
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

// latest is the nearest earlier revision that has planned a task, 0 if none has. The task may have
// been planned in this revision already, by a try before: then it is the one before. A fault.Stale
// means that a pass has planned this revision and later ones meanwhile, which has the lease now.
func (w *planner) latest(ctx context.Context, task string) (int64, error) {
	r, err := w.nameRow(ctx, w.row.Archive, task)
	if err != nil {
		return 0, err
	}

	n := w.row.Revision.Number
	switch {
	case r.Latest < n:
		return r.Latest, nil
	case r.Before < n:
		return r.Before, nil
	}
	return 0, fault.New(fault.Stale, "%s is planned in revision %d already, behind %d", task,
		r.Before, n)
}

// insertPlan writes the instances of the tasks, in order, as many at once as a transaction takes.
// They are not seen until COMMIT is there: each waits for it. A task comes after those of its
// revision that it waits for, since the definition is in topological order. After a Stale that is
// not of the lease, what did not fit is decided again.
func (w *planner) insertPlan(ctx context.Context) error {
	tasks := slices.DeleteFunc(slices.Clone(w.def.Tasks),
		func(t workflow.Task) bool { return !t.OnCommit })
	for len(tasks) > 0 {
		n := 0
		// After a Stale, what one waits for has ended meanwhile: its edge is decided anew.
		err := w.Table.AgainUnless(ctx, "the archive "+w.archive, w.lease.Lost, func() (err error) {
			n, err = w.insertTasks(ctx, tasks)
			return err
		})
		if err != nil {
			return err
		}
		tasks = tasks[n:]
	}
	return nil
}

// finish writes COMMIT and makes the plan visible: the watermark rises. If something has changed
// meanwhile (the COMMIT before has ended, or a person has changed the archive), all is read again,
// and it is decided again whether the revision is still the next one. nil also if it is not: then
// the next round sees what is.
func (w *planner) finish(ctx context.Context, a *archiveRow, fill bool) error {
	var err error
	for range maxTries {
		err = w.tryFinish(ctx, a, fill)
		if !fault.Is(err, fault.Stale) || w.lease.Lost(err) {
			return err
		}

		// The archive was changed by a person, or the COMMIT before has ended.
		fresh, again := w.archiveRow(ctx, a.Name)
		if again != nil {
			return again
		}

		if fresh.Ref() != w.row.Archive || fresh.Archive.Mode != Active {
			return nil // it is paused, or begins anew
		}

		*a = *fresh
		if !fill && a.Watermark != w.row.Revision.Number-1 {
			return nil // an earlier one has become the first
		}

		r, again := w.revisionRow(ctx, w.row.Archive, w.row.Revision.Number)
		if again != nil || r.State == Committed {
			return again
		}

		*w.row = *r
	}
	return err
}

// tryFinish makes one try of finish, in one transaction: COMMIT, the revision with the numbers of
// its instances and its event, the row by which it goes into the bucket later, and the archive,
// with its watermark and schedules or with its back-fill. a and w.row are changed only after the
// commit has succeeded, so that a Stale leaves them as they were read.
func (w *planner) tryFinish(ctx context.Context, a *archiveRow, fill bool) error {
	r, n := w.row, w.row.Revision.Number
	commit, err := w.commit(ctx, a, fill)
	if err != nil {
		return err
	}

	t := &planTx{planner: w, tx: w.Table.Begin(w.NewID()), keys: map[table.Key]bool{}}
	err = t.insert(ctx, commit)
	if err != nil {
		return err
	}

	// Copies are changed, since this try can fail.
	row := *r
	row.Planned = w.now()
	if row.State == Planning {
		row.State = Committed
	}

	row.All, row.Over = int64(len(w.done)+1), w.over()
	if commit.State.Over() {
		row.Over++
	}

	w.moveLater(t.tx, revisionID(r.Archive, n))
	err = row.event(t.tx, "revision.committed", w.now(), By{},
		CommitDetail{row.State, row.Transaction, row.Definition,
			len(w.done), row.Problems, row.Reason})
	if err != nil {
		return err
	}

	err = saveRevision(t.tx, &row)
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
		if err != nil {
			return err
		}
	}

	err = saveArchive(t.tx, &next)
	if err != nil {
		return err
	}

	w.lease.Guard(t.tx)
	err = t.tx.Commit(ctx)
	if err != nil {
		return err
	}

	*a, *r = next, row
	return nil
}

// after is a back-fill behind a revision, nil if that was the last. done are the tasks that the
// revision has planned. It is a copy: b stays as it is, since the commit can fail.
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
	next.forget()
	return next
}

// latestMost is how many tasks a back-fill remembers: they are in the row of the archive, which has 400 KB.
const latestMost = 2000

// forget leaves out the tasks that were planned longest ago, beyond latestMost: PREV does not find them any more.
func (b *backfill) forget() {
	names := slices.SortedFunc(maps.Keys(b.Latest),
		func(x, y string) int { return cmp.Or(cmp.Compare(b.Latest[y], b.Latest[x]), cmp.Compare(x, y)) })
	for _, name := range names[min(latestMost, len(names)):] {
		delete(b.Latest, name)
	}
}

// commit is the instance COMMIT of the revision. It waits for the end of COMMIT of the revision
// before, of whatever kind, and for what its definition adds; the first revision of the archive, or
// of a back-fill, waits for no revision before it. If all of that has ended, it is planned as
// succeeded.
func (w *planner) commit(ctx context.Context, a *archiveRow, fill bool) (Instance, error) {
	r, n := w.row, w.row.Revision.Number
	in := Instance{
		ID:       instanceID(r.Archive, n, workflow.Commit, 0),
		Archive:  r.Archive,
		Revision: n,
		Task:     workflow.Commit,
		Trigger:  ByCommit,
		Order:    order(n, placeOfCommit, workflow.Commit, 0),
		State:    workflow.Blocked,
		Created:  w.now(),
		Since:    w.now(),
	}

	prev := Awaits{Edge: workflow.Edge{
		Task: workflow.Commit,
		Prev: true,
		On:   workflow.Ended,
	}, Verdict: workflow.None}

	// The first revision waits for nothing before it: of the archive, or of this back-fill.
	first := !fill && n <= a.First || fill && a.Backfill.Latest[workflow.Commit] == 0
	if !first {
		state, err := w.endOf(ctx, n-1, workflow.Commit)
		if err != nil {
			return in, err
		}
		prev.judge(instanceID(r.Archive, n-1, workflow.Commit, 0), state)
	}

	in.Edges = []Awaits{prev}
	for _, e := range w.def.Commit {
		a, err := w.edge(ctx, e)
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
