package revision

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"

	"archivist/pkg/events/event"
	"archivist/pkg/kernel/definition"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/revisions/workflow"
)

// Run is a request to run a task by hand.
type Run struct {
	Task string

	// 0: the watermark, that is the newest revision that is planned.
	Revision int64

	// Also if a newer instance of a latest-only task has started: an old revision is wanted.
	Force bool

	// If it succeeds, what waited for it and did not succeed is run, too: see proceed.
	Dependents bool

	// Values by name: see workflow.Task.Values.
	Parameters map[string]string

	// The same request with the same key starts one run, for runDays; "" for none: each request
	// starts one.
	Key string
}

// request is a run to be made, by hand or by schedule, at a revision that is decided. Replaces and
// all behind it are as in Instance.
type request struct {
	Task       string
	Revision   int64
	Trigger    string
	Force      bool
	Replaces   []string
	Dependents bool
	After      string
	Filtered   bool
	Parameters map[string]string
}

// text is the request of a person, so that the same key for another one is refused.
func (q *request) text() string {
	text := fmt.Sprintf("%s %d %t", q.Task, q.Revision, q.Force)
	if q.Dependents {
		text += " dependents"
	}

	if len(q.Parameters) > 0 {
		set, _ := json.Marshal(q.Parameters) // texts
		text += " " + string(set)
	}
	return text
}

// runRow says which run a request has made. Asked is the request, so that the same key for another
// one is refused. DynamoDB removes the row some time after runDays.
type runRow struct {
	table.Head
	Instance string `dynamo:"instance_id"`
	Asked    string `dynamo:"asked_for"`
}

// runDays is how long the key of a request is known: longer than anybody tries again after a lost
// answer.
const runDays = 7

// runKey is the key of the row of a request to run a task.
func runKey(archive, key string) table.Key { return table.Key{PK: "TASKRUNS#" + archive, SK: key} }

// keys are the keys of requests: a UUID or a ULID fits. They are part of a row's key.
var keys = regexp.MustCompile(`^[A-Za-z0-9_-]{1,100}$`)

// StartRun runs a task by hand, with the definition of the revision. It waits for the revision's
// COMMIT and for its turn of its lock, and supersedes what the task supersedes, but nothing newer.
// It returns the run as it was planned; with a key that was used, the run as it is now.
//
// A reason, a task or a key that cannot be is an Invalid. A Conflict means that no such run can be
// started: see putRun; or that the key was used for another request. An Unavailable may be
// repeated; without a key, a repeat can start a second run.
func (s *Store) StartRun(ctx context.Context, archive string, run Run, by By) (Instance, error) {
	err := checkRun(run, by)
	if err != nil {
		return Instance{}, err
	}

	err = checkTask(run.Task)
	if err != nil {
		return Instance{}, err
	}
	return s.startRun(ctx, archive, run, by)
}

// checkRun checks the reason and the key of a request.
func checkRun(run Run, by By) error {
	err := checkReason(by)
	if err != nil {
		return err
	}

	if run.Key != "" && !keys.MatchString(run.Key) {
		return fault.New(fault.Invalid,
			"key: found %q; expected 1 to 100 letters, digits, hyphens and underscores",
			definition.Clip(run.Key, 60))
	}
	return nil
}

// startRun is StartRun of a request that was checked.
func (s *Store) startRun(ctx context.Context, archive string, run Run, by By) (in Instance, err error) {
	err = s.Table.Again(ctx, "the task "+run.Task, func() error {
		in, err = s.tryRun(ctx, archive, run, by)
		return err
	})
	return in, err
}

// tryRun makes one try of a run. The run and the row of its key are written together, so a repeated
// request finds the run of the first one; the same key at the same time is a Stale.
func (s *Store) tryRun(ctx context.Context, archive string, run Run, by By) (Instance, error) {
	a, err := s.known(ctx, archive)
	if err != nil {
		return Instance{}, err
	}

	if a.Archive.Mode == Deleting {
		return Instance{}, fault.New(fault.Conflict, "the archive %s is being deleted", archive)
	}

	q := request{
		Task:       run.Task,
		Revision:   run.Revision,
		Trigger:    ByHand,
		Force:      run.Force,
		Dependents: run.Dependents,
		Parameters: run.Parameters,
	}
	return s.makeRun(ctx, a, q, run.Key, guard{by: by})
}

// makeRun makes a run, and the row of its key, in one transaction; "" is no key. The run that the
// request has made before is returned as it is now.
func (s *Store) makeRun(ctx context.Context, a *archiveRow, q request, key string, g guard) (Instance, error) {
	k, asked := runKey(a.Name, key), q.text()
	if key != "" {
		in, err := s.asked(ctx, k, asked)
		if !fault.Is(err, fault.NotFound) {
			return in, err
		}
	}

	q.Revision = cmp.Or(q.Revision, a.Watermark)
	tx := s.Table.Begin(s.NewID())
	in, err := s.putRun(ctx, tx, a, q, g.by)
	if err != nil {
		return Instance{}, err
	}

	tx.Require(a.Key(), "archive_mode <> ?", string(Deleting))
	if key != "" {
		tx.Insert(&runRow{
			Head:     table.Head{PK: k.PK, SK: k.SK, ExpiresAt: s.now()/1000 + runDays*24*3600},
			Instance: in.ID,
			Asked:    asked,
		})
	}

	if g.fence != nil {
		g.fence.Guard(tx)
		return in, tx.Commit(ctx)
	}

	s.raise(tx, a.Name)
	err = tx.Commit(ctx)
	if err != nil {
		return in, err
	}

	s.wake(ctx, a.Name)
	return in, nil
}

// asked is the run that the request with a key has made before; a NotFound if there is none. A key
// that was used for another request is a Conflict.
func (s *Store) asked(ctx context.Context, k table.Key, asked string) (Instance, error) {
	var known runRow
	err := s.Table.Get(ctx, k, &known)
	if err != nil {
		return Instance{}, err
	}

	if known.Asked != asked {
		return Instance{}, fault.New(fault.Conflict, "key: %q was used for another run", k.SK)
	}

	r, err := s.found(ctx, known.Instance)
	return r.Instance, err
}

// putRun puts a run into a transaction. A Conflict means that the revision is not planned, has no
// tasks, or has no such task that people may start; or that the task is latest-only and a newer
// instance has started, unless force is set. For a schedule that is a Stale instead: the pass has
// read the archive before another one planned a newer revision, and goes on with what is there now.
func (s *Store) putRun(ctx context.Context, tx *table.Tx, a *archiveRow, q request,
	by By) (Instance, error) {
	r, def, t, err := s.runnable(ctx, a, q)
	if err != nil {
		return Instance{}, err
	}

	names, err := s.nameRow(ctx, a.Ref(), q.Task)
	if err != nil {
		return Instance{}, err
	}

	inputs, err := s.inputsOf(ctx, r, t)
	if err != nil {
		return Instance{}, err
	}

	if t.LatestOnly() && names.Started > q.Revision && !q.Force {
		return Instance{}, q.overtaken(names.Starter)
	}

	names.Runs++
	put(tx, names, names.Rev)
	in := instanceOf(r, def, t, q.Trigger, names.Runs)
	// A person or a schedule wants the run whatever has changed: the filter of paths is not asked, but
	// for what follows another run.
	in.Created, in.Since, in.Force, in.Filtered = s.now(), s.now(), q.Force, q.Filtered
	in.Replaces, in.Dependents, in.After = slices.Clone(q.Replaces), q.Dependents, q.After
	in.Inputs, in.Parameters = inputs, q.Parameters
	if q.After != "" { // nobody has started it
		in.Manual = t.Manual
	}

	err = s.insertRun(ctx, tx, &in, by)
	if err != nil {
		return in, err
	}

	return in, countRun(tx, r, &in)
}

// runnable is the task of a run that can be made, with its revision. Its parameters are checked, unless they are
// set later, by who starts it.
func (s *Store) runnable(ctx context.Context, a *archiveRow,
	q request) (*revisionRow, *workflow.Definition, *workflow.Task, error) {
	// Until the first revision is planned, the watermark is before it.
	if a.Watermark < max(a.First, 1) {
		return nil, nil, nil, fault.New(fault.Conflict,
			"no revision of the archive %s is planned yet", a.Name)
	}

	r, def, err := s.tasksOf(ctx, a, q.Revision)
	if err != nil {
		return nil, nil, nil, err
	}

	t := def.Task(q.Task)
	if t == nil || q.Trigger == ByHand && !t.OnDemand {
		return nil, nil, nil, fault.New(fault.Conflict,
			"revision %d of %s has no task %q that can be started by hand", q.Revision, a.Name, q.Task)
	}

	if q.After == "" || t.Manual == "" {
		_, err = t.Values(q.Parameters)
	}
	return r, def, t, err
}

// tasksOf is a revision with its definition. One that has no tasks is a Conflict.
func (s *Store) tasksOf(ctx context.Context, a *archiveRow, n int64) (*revisionRow, *workflow.Definition, error) {
	r, err := s.revisionRow(ctx, a.Ref(), n)
	if err != nil {
		return r, nil, err
	}

	if r.State != Committed {
		return r, nil, fault.New(fault.Conflict,
			"revision %d of %s has no tasks: it is %s", n, a.Name,
			cmp.Or(r.State, "not known"))
	}

	def, err := s.Definition(ctx, a.Name, r.Definition)
	return r, def, err
}

// overtaken is the refusal of a run of which only the latest result is wanted, when another has started
// at a higher revision.
func (q *request) overtaken(by string) error {
	kind := fault.Conflict
	if q.Trigger == BySchedule {
		// It is for the newest revision: another pass has planned a newer one meanwhile.
		kind = fault.Stale
	}
	return fault.New(kind, "%s has started, and only the latest result of %s is wanted; use force to run it at "+
		"revision %d", by, q.Task, q.Revision)
}

// countRun counts a run at its revision, which also knows it if it is to be followed.
func countRun(tx *table.Tx, r *revisionRow, in *Instance) error {
	if !in.Dependents {
		tx.Count(r.Key(), map[string]int64{"all_n": 1})
		return nil
	}

	r.All++
	r.Again = with(r.Again, in.Task, in.ID)
	return saveRevision(tx, r)
}

// with is a copy of m with one more entry.
func with(m map[string]string, key, value string) map[string]string {
	next := map[string]string{key: value}
	for k, v := range m {
		if k != key {
			next[k] = v
		}
	}
	return next
}

// insertRun puts the instance of a run, its places and its event into a transaction. It
// waits for COMMIT of its revision only; if that has ended, it begins as ready, or as awaiting if
// it supersedes others, or as blocked until its filter was asked. Else the transaction depends on
// that COMMIT has not ended meanwhile: nobody would look for the row of the waiter.
//
// The lock of the run is written without a change, because its line has a new row: see lockRow.
func (s *Store) insertRun(ctx context.Context, tx *table.Tx, in *Instance, by By) error {
	commit := instanceID(in.Archive, in.Revision, workflow.Commit, 0)
	state, err := s.stateOf(ctx, in.Archive, in.Revision, workflow.Commit)
	if err != nil {
		return err
	}

	e := Awaits{Edge: workflow.Edge{Task: workflow.Commit, On: workflow.Ended}, ID: commit}
	if state.Over() {
		e.Verdict, e.End = workflow.Satisfied, state
		switch {
		case in.Filtered: // it stays blocked until its filter was asked
		case in.gated():
			in.State = workflow.Manual
		case len(in.Cancels)+len(in.Replaces) > 0 && !in.Force:
			in.State = workflow.Awaiting
		default:
			in.State = workflow.Ready
		}
	} else {
		k := waiterKey(commit, in.ID)
		tx.Insert(&lineRow{Head: headOf(k), Owner: in.ID})
		tx.Require(taskSubject(commit).Key(),
			"attribute_exists(pk) AND attribute_not_exists(over_ms)")
	}

	in.Edges = []Awaits{e}
	row := &instanceRow{Head: headOf(taskSubject(in.ID).Key()), Instance: *in, Number: 1}
	row.ListPK, row.ListSK = "TASKS#"+in.Archive, in.Order
	row.Text, err = pack(in)
	if err != nil {
		return err
	}

	tx.Insert(row)
	tx.Derive(in.ID, nil, in.rows())
	s.moveLater(tx, in.ID)
	if in.Lock != "" {
		l, err := s.lockRow(ctx, in.Archive, in.Lock)
		if err != nil {
			return err
		}
		put(tx, l, l.Rev)
	}

	return event.Append(tx, taskSubject(in.ID), 1, event.New{
		Type:      "task.planned",
		Time:      in.Since,
		Actor:     cmp.Or(by.Actor, manager),
		Component: manager,
		Parents:   parents(in.Archive, in.Revision),
		Detail:    planned(in, by.Reason),
	})
}
