package revision

import (
	"context"
	"fmt"
	"slices"

	"archivist/pkg/kernel/definition"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/revisions/workflow"
)

// A run may be followed by the tasks that were skipped because the planned one had failed. Each of them
// is a run, too, which begins when all that it needs has ended so since, and is followed in turn. So a
// failure is healed in the order of the graph, within the revision and in those behind it.

// Limits of what follows a run.
const (
	// Revisions that are looked through for tasks that wait for one of an earlier revision: each is
	// two reads.
	followedAhead = 50

	// Instances that are named as those that follow.
	followMost = 100

	// Reasons that are kept in the row of a run, and bytes of each.
	leftMost, leftText = 20, 300
)

// stalled reports whether an instance was planned and has not done its work, because it failed or
// because of another. One that a filter of paths has skipped had nothing to do; what was cancelled or
// superseded is not wanted.
func (in *Instance) stalled() bool {
	return in.Run == 0 && (in.State == workflow.Failure || in.State == workflow.Skipped && in.Root != "")
}

// waiters are the ids of the instances that a commit has planned and that may have waited for one that a
// revision has planned: those of the revision, and of later ones up to the next that has planned the
// task, in their order. Those of which a run has succeeded are not among them.
func (s *Store) waiters(ctx context.Context, a *archiveRow, n int64, task string) (ids []string, err error) {
	for m := n; m <= min(a.Watermark, n+followedAhead); m++ {
		r, def, err := s.tasksOf(ctx, a, m)
		if fault.Is(err, fault.Conflict) {
			continue
		}

		if err != nil {
			return nil, err
		}

		planned := false
		for _, t := range def.Tasks {
			planned = planned || t.Name == task && t.OnCommit
			if t.OnCommit && r.Healed[t.Name] == "" && mayAwait(def, &t, task, m > n) {
				ids = append(ids, instanceID(a.Ref(), m, t.Name, 0))
			}
		}

		// The nearest earlier instance of a task is what others wait for.
		if m > n && planned {
			break
		}
	}
	return ids, nil
}

// mayAwait reports whether a task names another one among its dependencies, of its revision or of an
// earlier one. One that was renamed is known by both names.
func mayAwait(def *workflow.Definition, t *workflow.Task, task string, earlier bool) bool {
	return slices.ContainsFunc(t.Depends, func(e workflow.Edge) bool {
		return e.Prev == earlier && (e.Task == task || earlier && formerName(def, e.Task) == task)
	})
}

// follower is an instance that waited for another.
type follower struct {
	Instance

	// Why it cannot be run yet, "" if it can.
	why string

	// It is being run again, or another is that it waits for: it is looked at again when that has ended.
	later bool

	// It is for a failure, and there is none any more.
	needless bool
}

// follower reads an instance, and decides whether it can be run. It has no id if it is not stalled, or
// has not waited for on. healed are ids of planned instances that are taken for succeeded.
func (s *Store) follower(ctx context.Context, id, on string, healed map[string]bool) (f follower, err error) {
	r, err := s.found(ctx, id)
	if err != nil || !r.stalled() || healed[id] {
		return f, err
	}

	_, f.later, err = s.lastEnd(ctx, id, healed)
	for _, e := range r.Edges {
		if e.ID == on {
			f.Instance = r.Instance
		}

		if err == nil && e.ID != "" && e.Task != workflow.Commit {
			err = s.needs(ctx, e, &f, healed)
		}
	}

	if f.needless {
		return follower{}, err
	}
	return f, err
}

// needs adds to a follower what is wrong with one of its edges.
func (s *Store) needs(ctx context.Context, e Awaits, f *follower, healed map[string]bool) error {
	end, runs, err := s.lastEnd(ctx, e.ID, healed)
	f.later = f.later || runs
	verdict := e.Judge(end)
	f.needless = f.needless || e.On == workflow.Failed && verdict == workflow.Impossible
	if verdict != workflow.Satisfied && f.why == "" {
		f.why = fmt.Sprintf("it needs %s to be %s, and it is %s", e.ID, e.On, end)
	}
	return err
}

// lastEnd is the state of an instance that a revision has planned, succeeded if a run of it has been
// since; and whether it is being run again with its dependents.
func (s *Store) lastEnd(ctx context.Context, id string,
	healed map[string]bool) (end workflow.State, runs bool, err error) {
	at, err := ParseID(id)
	if err != nil || healed[id] {
		return workflow.Success, false, err
	}

	r, err := s.revisionRow(ctx, at.Ref, at.N)
	if err != nil || r.Healed[at.Task] != "" {
		return workflow.Success, false, err
	}

	in, err := s.found(ctx, id)
	if err != nil || r.Again[at.Task] == "" {
		return in.State, false, err
	}

	run, err := s.found(ctx, r.Again[at.Task])
	return in.State, !run.State.Over(), err
}

// Follow are the ids of the planned instances that are run again, one after the other, after a run of
// an instance with its dependents, if each succeeds: at most followMost. None of one that has ended in
// an epoch before.
func (s *Store) Follow(ctx context.Context, in Instance) (ids []string, err error) {
	a, err := s.archiveRow(ctx, archiveOf(in.Archive))
	if err != nil || a.Ref() != in.Archive {
		return nil, err
	}

	in.ID = instanceID(in.Archive, in.Revision, in.Task, 0)
	healed := map[string]bool{in.ID: true}
	for queue := []Instance{in}; len(queue) > 0 && len(ids) < followMost; queue = queue[1:] {
		next, err := s.waiters(ctx, a, queue[0].Revision, queue[0].Task)
		if err != nil {
			return nil, err
		}

		for _, id := range next {
			f, err := s.follower(ctx, id, queue[0].ID, healed)
			if err != nil {
				return nil, err
			}

			if f.ID != "" && f.why == "" && len(ids) < followMost {
				healed[id] = true
				ids, queue = append(ids, id), append(queue, f.Instance)
			}
		}
	}
	return ids, nil
}

// proceed is what follows the end of a run: if it has succeeded, its revision knows that the planned
// instance is healed; and what waited for that is run, if the run was started so. It may be repeated:
// the key of each run is the pair of both. It returns why some are not run.
func (p *pass) proceed(ctx context.Context, ended *Instance) (left []string, err error) {
	if ended.Run > 0 && ended.State == workflow.Success {
		err = p.heal(ctx, ended)
		if err != nil {
			return nil, err
		}
	}

	if !ended.Dependents || ended.State != workflow.Success && ended.State != workflow.Failure {
		return nil, nil
	}

	a, err := p.archiveRow(ctx, p.archive)
	if err != nil {
		return nil, err
	}

	if a.Ref() != ended.Archive || a.Archive.Mode == Deleting {
		return []string{"nothing follows: the archive has begun anew, or is being deleted"}, nil
	}

	left, err = p.follow(ctx, a, ended)
	if err != nil && fault.Of(err) == "" { // an object is damaged: the archive goes on without
		left, err = append(left, definition.Clip("not all follow: "+err.Error(), leftText)), nil
	}
	return left, err
}

// follow runs what waited for an instance of which a run has ended, and can be run now.
func (p *pass) follow(ctx context.Context, a *archiveRow, ended *Instance) (left []string, err error) {
	ids, err := p.waiters(ctx, a, ended.Revision, ended.Task)
	for _, id := range ids {
		f, err := p.follower(ctx, id, instanceID(ended.Archive, ended.Revision, ended.Task, 0), nil)
		if err != nil {
			return left, err
		}

		if f.ID == "" || f.later {
			continue
		}

		if f.why == "" {
			f.why, err = p.runAfter(ctx, ended, &f.Instance)
			if err != nil {
				return left, err
			}
		}

		if f.why != "" && len(left) < leftMost {
			left = append(left, definition.Clip(fmt.Sprintf("%s is not run: %s", id, f.why), leftText))
		}
	}
	return left, err
}

// heal keeps at the revision of a run that it has succeeded.
func (p *pass) heal(ctx context.Context, ended *Instance) error {
	return p.Table.AgainUnless(ctx, "the archive "+p.archive, p.lease.Lost, func() error {
		r, err := p.revisionRow(ctx, ended.Archive, ended.Revision)
		if err != nil || r.Rev == 0 || r.Healed[ended.Task] != "" {
			return err
		}

		r.Healed = with(r.Healed, ended.Task, ended.ID)
		tx := p.Table.Begin(p.NewID())
		err = saveRevision(tx, r)
		if err != nil {
			return err
		}

		p.lease.Guard(tx)
		return tx.Commit(ctx)
	})
}

// runAfter runs an instance again after a run that it waited for, once. why says why it cannot be run.
func (p *pass) runAfter(ctx context.Context, ended, next *Instance) (why string, err error) {
	err = p.Table.AgainUnless(ctx, "the archive "+p.archive, p.lease.Lost, func() error {
		a, err := p.known(ctx, p.archive)
		if err != nil {
			return err
		}

		_, err = p.makeRun(ctx, a, request{
			Task:       next.Task,
			Revision:   next.Revision,
			Trigger:    ByHand,
			Force:      ended.Force,
			Dependents: true,
			After:      ended.ID,
			Filtered:   next.Filtered,
		}, ended.ID+" "+next.ID, p.guard())
		return err
	})
	if fault.Is(err, fault.Conflict) {
		return err.Error(), nil
	}
	return "", err
}

// RunFailed runs again what has failed at a revision, with its dependents: each failed instance that
// does not follow another one. An instance that cannot be run is left, with the reason. The archive is
// named as in StartRun, whose errors it has; a Conflict also means that nothing has failed, or that
// nothing of it can be run.
func (s *Store) RunFailed(ctx context.Context, archive string, run Run, by By) (started []Instance, left []string,
	err error) {
	err = checkRun(run, by)
	if err != nil {
		return nil, nil, err
	}

	a, err := s.known(ctx, archive)
	if err != nil {
		return nil, nil, err
	}

	r, def, err := s.tasksOf(ctx, a, run.Revision)
	if r.Rev == 0 && fault.Is(err, fault.Conflict) {
		err = fault.New(fault.NotFound, "there is no revision %d of %s", run.Revision, archive)
	}

	if err != nil {
		return nil, nil, err
	}

	key, follow := run.Key, map[string]bool{}
	run.Dependents = true
	for _, t := range def.Tasks { // what others wait for comes first
		in, err := s.found(ctx, instanceID(a.Ref(), run.Revision, t.Name, 0))
		if err != nil {
			return started, left, err
		}

		if in.State != workflow.Failure || r.Healed[t.Name] != "" || follow[in.ID] {
			continue
		}

		run.Task, run.Key, run.Parameters = t.Name, keyOf(key, t.Name), in.Parameters
		one, err := s.startRun(ctx, archive, run, by)
		if fault.Is(err, fault.Conflict) {
			left = append(left, fmt.Sprintf("%s is not run: %v", in.ID, err))
			continue
		}

		if err == nil {
			started = append(started, one)
			err = s.addFollow(ctx, in.Instance, follow)
		}

		if err != nil {
			return started, left, err
		}
	}
	return started, left, noneRun(archive, run.Revision, started, left)
}

// keyOf is the key of one run of several that are made with a key; "" for none.
func keyOf(key, task string) string {
	if key == "" {
		return ""
	}
	return key + "-" + task
}

// addFollow adds what follows an instance.
func (s *Store) addFollow(ctx context.Context, in Instance, to map[string]bool) error {
	ids, err := s.Follow(ctx, in)
	for _, id := range ids {
		to[id] = true
	}
	return err
}

// noneRun is a Conflict if nothing was run.
func noneRun(archive string, n int64, started []Instance, left []string) error {
	switch {
	case len(started) > 0:
		return nil
	case len(left) > 0:
		return fault.New(fault.Conflict, "%s", left[0])
	}
	return fault.New(fault.Conflict,
		"no task of revision %d of %s has failed and was not run again since", n, archive)
}
