package revision

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"time"

	"archivist/pkg/definition"
	"archivist/pkg/event"
	"archivist/pkg/fault"
	"archivist/pkg/table"
	"archivist/pkg/workflow"
)

// define takes over the schedules of a definition at the watermark. A revision whose definition is invalid changes
// none; one that was skipped neither.
func (a *archiveRow) define(now time.Time, state, hash string, d *workflow.Definition) error {
	if state == Committed {
		a.Defined = a.Watermark
	}
	if state != Committed || hash == a.Definition {
		return nil
	}
	known := map[string]schedule{}
	for _, s := range a.Schedules {
		known[s.Task+"\n"+s.Cron+"\n"+s.Zone] = s
	}
	a.Definition, a.Schedules = hash, nil
	for _, t := range d.Tasks {
		for _, s := range t.Schedules {
			next := schedule{Task: t.Name, Schedule: s}
			if old, ok := known[t.Name+"\n"+s.Cron+"\n"+s.Zone]; ok {
				next.Next = old.Next
			} else {
				at, err := s.Next(now)
				if err != nil {
					return err
				}
				next.Next = millis(at)
			}
			a.Schedules = append(a.Schedules, next)
		}
	}
	return nil
}

// fire starts the tasks whose time has come: each occurrence once, and one for a stretch that was missed.
func (p *pass) fire(ctx context.Context, a *archiveRow) (did bool, err error) {
	for i := range a.Schedules {
		s := &a.Schedules[i]
		if s.Next > p.now() || p.over() {
			continue
		}
		err = p.fireOne(ctx, a, s)
		if err != nil {
			return did, err
		}
		did = true
	}
	return did, nil
}

// fireOne starts a task by its schedule, and sets the next time, in one transaction.
func (p *pass) fireOne(ctx context.Context, a *archiveRow, s *schedule) error {
	goesOn, err := p.scheduled(ctx, a.Ref(), s.Task)
	if err != nil {
		return err
	}
	next, err := s.Schedule.Next(p.Now())
	if err != nil {
		return err
	}
	s.Next = millis(next)
	tx := p.Table.Begin(p.NewID())
	if len(goesOn) == 0 || s.Overlap != workflow.Skip {
		r := request{Task: s.Task, Revision: a.Defined, Trigger: BySchedule}
		if s.Overlap == workflow.Replace {
			r.Replaces = goesOn
		}
		_, err = p.putRun(ctx, tx, a, r, By{Actor: manager})
	}
	if err == nil {
		err = saveArchive(tx, a)
	}
	if err != nil {
		return err
	}
	p.lease.Guard(tx)
	return tx.Commit(ctx)
}

// scheduled are the runs of a task by schedule that go on.
func (s *Store) scheduled(ctx context.Context, ref, task string) (ids []string, err error) {
	err = s.owners(ctx, table.Query{PK: timedPK(ref, task)}, func(r lineRow) (bool, error) {
		ids = append(ids, r.Owner)
		return true, nil
	})
	return ids, err
}

// Run is a request to run a task by hand.
type Run struct {
	Task     string
	Revision int64  // 0: the watermark
	Force    bool   // an old revision of a task of which only the latest is wanted
	Key      string // the same request with the same key starts one run; "" for none
}

// request is a run to be made.
type request struct {
	Task     string
	Revision int64
	Trigger  string
	Force    bool
	Replaces []string
}

// runRow says which run a request has made.
type runRow struct {
	table.Head
	Instance string `dynamo:"instance_id"`
	Asked    string `dynamo:"asked_for"`
}

// runDays is how long the key of a request is known.
const runDays = 7

var keys = regexp.MustCompile(`^[A-Za-z0-9_-]{1,100}$`)

// StartRun runs a task by hand, with the definition of the revision. It waits for the revision's COMMIT and for its
// turn of its lock, and supersedes what the task supersedes, but nothing newer.
func (s *Store) StartRun(ctx context.Context, archive string, run Run, by By) (Instance, error) {
	err := checkReason(by)
	if err == nil {
		err = checkTask(run.Task)
	}
	if err == nil && run.Key != "" && !keys.MatchString(run.Key) {
		err = fault.New(fault.Invalid, "key: found %q; expected 1 to 100 letters, digits, hyphens and underscores",
			definition.Clip(run.Key, 60))
	}
	if err != nil {
		return Instance{}, err
	}
	for range maxTries {
		var in Instance
		in, err = s.tryRun(ctx, archive, run, by)
		if !fault.Is(err, fault.Stale) {
			return in, err
		}
	}
	return Instance{}, fault.New(fault.Unavailable, "the task %s keeps changing; try again in a moment (%v)", run.Task,
		err)
}

func (s *Store) tryRun(ctx context.Context, archive string, run Run, by By) (Instance, error) {
	a, err := s.known(ctx, archive)
	if err != nil {
		return Instance{}, err
	}
	if a.Archive.Mode == Deleting {
		return Instance{}, fault.New(fault.Conflict, "the archive %s is being deleted", archive)
	}
	k := table.Key{PK: "TASKRUNS#" + archive, SK: run.Key}
	asked := fmt.Sprintf("%s %d %t", run.Task, run.Revision, run.Force)
	if run.Key != "" {
		var known runRow
		err = s.Table.Get(ctx, k, &known)
		if err == nil && known.Asked != asked {
			return Instance{}, fault.New(fault.Conflict, "key: %q was used for another run", run.Key)
		}
		if err == nil {
			r, err := s.found(ctx, known.Instance)
			return r.Instance, err
		}
		if !fault.Is(err, fault.NotFound) {
			return Instance{}, err
		}
	}
	tx := s.Table.Begin(s.NewID())
	in, err := s.putRun(ctx, tx, a, request{Task: run.Task, Revision: cmp.Or(run.Revision, a.Watermark),
		Trigger: ByHand, Force: run.Force}, by)
	if err != nil {
		return Instance{}, err
	}
	tx.Require(a.Key(), "archive_mode <> ?", string(Deleting))
	if run.Key != "" {
		tx.Insert(&runRow{Head: table.Head{PK: k.PK, SK: k.SK, ExpiresAt: s.now()/1000 + runDays*24*3600},
			Instance: in.ID, Asked: asked})
	}
	s.raise(tx, archive)
	err = tx.Commit(ctx)
	if err == nil {
		s.wake(ctx, archive)
	}
	return in, err
}

// putRun puts a run into a transaction.
func (s *Store) putRun(ctx context.Context, tx *table.Tx, a *archiveRow, q request, by By) (Instance, error) {
	r, err := s.revisionRow(ctx, a.Ref(), q.Revision)
	if err != nil {
		return Instance{}, err
	}
	if a.Watermark < max(a.First, 1) {
		return Instance{}, fault.New(fault.Conflict, "no revision of the archive %s is planned yet", a.Name)
	}
	if r.State != Committed {
		return Instance{}, fault.New(fault.Conflict, "revision %d of %s has no tasks: it is %s", q.Revision, a.Name,
			cmp.Or(r.State, "not known"))
	}
	def, err := s.Definition(ctx, a.Name, r.Definition)
	if err != nil {
		return Instance{}, err
	}
	t := def.Task(q.Task)
	if t == nil || q.Trigger == ByHand && !t.OnDemand {
		return Instance{}, fault.New(fault.Conflict, "revision %d of %s has no task %q that can be started by hand",
			q.Revision, a.Name, q.Task)
	}
	names, err := s.nameRow(ctx, a.Ref(), q.Task)
	if err != nil {
		return Instance{}, err
	}
	if t.LatestOnly() && names.Started > q.Revision && !q.Force {
		return Instance{}, fault.New(fault.Conflict, "%s has started, and only the latest result of %s is wanted; use "+
			"force to run it at revision %d", names.Starter, q.Task, q.Revision)
	}
	names.Runs++
	put(tx, names, names.Rev)
	in := instanceOf(r, def, t, q.Trigger, names.Runs)
	in.Created, in.Since, in.Force, in.Filtered = s.now(), s.now(), q.Force, false
	in.Replaces = slices.Clone(q.Replaces)
	return in, s.insertRun(ctx, tx, &in, by)
}

// insertRun writes the instance of a run.
func (s *Store) insertRun(ctx context.Context, tx *table.Tx, in *Instance, by By) error {
	commit := instanceID(in.Archive, in.Revision, workflow.Commit, 0)
	state, err := s.stateOf(ctx, in.Archive, in.Revision, workflow.Commit)
	if err != nil {
		return err
	}
	e := Awaits{Edge: workflow.Edge{Task: workflow.Commit, On: workflow.Ended}, ID: commit}
	if state.Over() {
		e.Verdict, e.End = workflow.Satisfied, state
		in.State = workflow.Ready
		if len(in.Cancels)+len(in.Replaces) > 0 && !in.Force {
			in.State = workflow.Awaiting
		}
	} else {
		k := waiterKey(commit, in.ID)
		tx.Insert(&lineRow{Head: headOf(k), Owner: in.ID})
		tx.Require(taskSubject(commit).Key(), "attribute_exists(pk) AND attribute_not_exists(over_ms)")
	}
	in.Edges = []Awaits{e}
	row := &instanceRow{Head: headOf(taskSubject(in.ID).Key()), Instance: *in, Number: 1}
	row.ListPK, row.ListSK = "TASKS#"+in.Archive, in.Order
	row.Text, err = pack(in)
	if err != nil {
		return err
	}
	tx.Insert(row)
	moveLines(tx, in.ID, nil, in.places())
	s.keepSoon(tx, in.ID)
	if in.Lock != "" {
		l, err := s.lockRow(ctx, in.Archive, in.Lock)
		if err != nil {
			return err
		}
		put(tx, l, l.Rev)
	}
	tx.Count(revisionSubject(revisionID(in.Archive, in.Revision)).Key(), map[string]int64{"all_n": 1})
	return event.Append(tx, taskSubject(in.ID), 1, event.New{Type: "task.planned", Time: in.Since,
		Actor: cmp.Or(by.Actor, manager), Component: manager, Parents: parents(in.Archive, in.Revision),
		Detail: Planned{in.Trigger, in.State, by.Reason, in.Edges, in.Lock, in.Cancels}})
}
