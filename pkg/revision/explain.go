package revision

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"archivist/pkg/runner"
	"archivist/pkg/table"
	"archivist/pkg/workflow"
)

// Wait is what kind of thing an archive, a revision or an instance waits for.
type Wait string

// What is waited for.
const (
	OnNothing  Wait = "nothing"  // it has ended, or nothing is to be done
	OnPerson   Wait = "person"   // the archive is paused or stopped: a person lets it go on
	OnDelete   Wait = "delete"   // the archive is being deleted
	OnGap      Wait = "gap"      // a revision that was not notified
	OnArchive  Wait = "archive"  // the archive cannot be read
	OnPass     Wait = "pass"     // nothing is missing: the next pass does it, within seconds
	OnCommit   Wait = "commit"   // COMMIT of its revision
	OnEdge     Wait = "edge"     // another instance that it depends on
	OnFilter   Wait = "filter"   // what changed is compared with its filter of paths
	OnVictim   Wait = "victim"   // an instance that it supersedes, and that is let finish
	OnGrace    Wait = "grace"    // the end of an instance that was told to end
	OnLock     Wait = "lock"     // its turn of a lock
	OnLimit    Wait = "limit"    // the number of instances that run at once
	OnRetry    Wait = "retry"    // the time of its next attempt
	OnStart    Wait = "start"    // its execution, which was started, begins
	OnRun      Wait = "run"      // its execution, which runs
	OnBackfill Wait = "backfill" // it is before the first revision: only a back-fill plans it
)

// Link is a thing that waits, and why.
type Link struct {
	ID    string // of an archive, a revision or an instance
	State string
	Waits Wait
	Why   string
}

// Explanation names the one thing that an archive, a revision or an instance waits for.
type Explanation struct {
	Link         // what was asked for
	Root  Link   // the last of the chain: where a person can do something
	Chain []Link // from what was asked for to the root
	Cut   bool   // the chain is longer
	Since int64  // the root waits, 0: not known
	Until int64  // the root waits at most, 0: not known
}

// maxLinks bounds a chain of waits: each link is some requests.
const maxLinks = 20

// step is one link of a chain, and what comes behind it.
type step struct {
	Link
	next         string // the instance to be explained next, "": this is the root
	since, until int64
}

// explainer explains one thing in an archive.
type explainer struct {
	*Store
	ctx context.Context
	a   *archiveRow
	ref string
}

// Explain names the one thing that an archive ("maps"), a revision ("maps/12") or an instance ("maps/12/index")
// waits for, by following what each waits for to the root. "maps/12" is in the present epoch of the archive if its
// first part has no epoch and there is such a revision; an instance is named by its exact id.
func (s *Store) Explain(ctx context.Context, text string) (x Explanation, err error) {
	id, err := ParseID(text)
	if err != nil {
		return x, err
	}
	a, at, err := s.locate(ctx, id.Ref)
	if err != nil {
		return x, err
	}
	e := &explainer{Store: s, ctx: ctx, a: a, ref: at}
	var first step
	switch {
	case id.Task != "":
		e.ref = id.Ref
		first, err = e.instance(text)
	case id.N > 0:
		first, err = e.revision(id.N)
	default:
		first, err = e.archive()
	}
	if err != nil {
		return x, err
	}
	return e.chain(first)
}

// chain follows the steps to the root.
func (e *explainer) chain(at step) (x Explanation, err error) {
	x.Link = at.Link
	for {
		x.Chain = append(x.Chain, at.Link)
		x.Root, x.Since, x.Until = at.Link, at.since, at.until
		x.Cut = at.next != "" && len(x.Chain) >= maxLinks
		if at.next == "" || x.Cut {
			return x, nil
		}
		at, err = e.instance(at.next)
		if err != nil {
			return x, err
		}
	}
}

// clock is a time as people read it.
func clock(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02 15:04:05") + " UTC" }

// held says why the archive plans and starts nothing, if so.
func (e *explainer) held() (Wait, string) {
	a := e.a.Archive
	switch {
	case a.Mode == Deleting || a.Mode == Deleted:
		return OnDelete, fmt.Sprintf("the archive %s is %s", a.Name, a.Mode)
	case a.Mode == Active:
		return "", ""
	}
	return OnPerson, fmt.Sprintf("the archive %s is %s: %s. Resume it", a.Name, a.Mode, cmp.Or(a.Why,
		"no reason was given"))
}

func (e *explainer) archive() (step, error) {
	a := e.a.Archive
	st := step{Link: Link{ID: a.Name, State: string(a.Mode)}}
	st.Waits, st.Why = e.held()
	if st.Waits != "" {
		return st, nil
	}
	next, err := e.planning()
	if err != nil || next.Waits != "" {
		next.ID, next.State = st.ID, st.State
		return next, err
	}
	busy, err := e.first(e.ctx, kind(a.Name, running))
	if err != nil {
		return st, err
	}
	st.Waits, st.Why = OnNothing, "no revision was notified yet"
	if a.First > 0 {
		st.Why = fmt.Sprintf("all revisions that are known are planned, up to %d", a.Watermark)
	}
	if busy != "" {
		st.Waits, st.Why, st.next = OnRun, st.Why+"; instances run, the first is "+busy, busy
	}
	return st, nil
}

// planning says why the next revision is not planned; nothing if no revision waits.
func (e *explainer) planning() (st step, err error) {
	a := &e.a.Archive
	if t := a.Trouble; t != nil {
		return step{Link: Link{Waits: OnArchive, Why: fmt.Sprintf("revision %d cannot be read: %s. It was tried %d "+
			"times, and is tried again at %s; or skip it with a reason", t.Revision, t.Reason, t.Tries, clock(t.Next))},
			since: t.Since, until: t.Next}, nil
	}
	g, err := e.gapOf(e.ctx, e.a)
	if err != nil {
		return st, err
	}
	if g != nil {
		why := fmt.Sprintf("revision %d was not notified, but revision %d was, at %s", g.Missing, g.Behind,
			clock(g.Since))
		if g.Looks > 0 {
			why += fmt.Sprintf(". The archive is asked for it at %s", clock(g.Looks))
		}
		return step{Link: Link{Waits: OnGap, Why: why}, since: g.Since, until: g.Looks}, nil
	}
	if a.First == 0 {
		return st, nil
	}
	r, err := e.revisionRow(e.ctx, a.Ref(), a.Watermark+1)
	if err == nil && r.Rev > 0 {
		st.Waits, st.Why = OnPass, fmt.Sprintf("revision %d is planned next, within seconds", a.Watermark+1)
		st.since = r.Notified
	}
	return st, err
}

func (e *explainer) revision(n int64) (step, error) {
	r, err := e.revisionRow(e.ctx, e.ref, n)
	st := step{Link: Link{ID: revisionID(e.ref, n), State: cmp.Or(r.State, "not known")}}
	if err != nil {
		return st, err
	}
	if r.Planned > 0 {
		return e.planned(st, r)
	}
	if e.ref != e.a.Ref() {
		st.Waits, st.Why = OnNothing, "the archive has begun anew since: it is never planned"
		return st, nil
	}
	if r.Rev > 0 && n < e.a.First {
		st.Waits, st.Why = OnBackfill, fmt.Sprintf("the archive begins at revision %d; a back-fill plans earlier ones",
			e.a.First)
		return st, nil
	}
	st.Waits, st.Why = e.held()
	if st.Waits != "" {
		return st, nil
	}
	why, err := e.planning()
	if err == nil && (r.Rev == 0 && why.Waits != OnGap || e.a.First == 0) {
		why = step{Link: Link{Waits: OnGap, Why: fmt.Sprintf("nobody has notified revision %d", n)}}
	}
	why.ID, why.State = st.ID, st.State
	return why, err
}

// planned explains a revision that is planned, by the first of its instances that has not ended.
func (e *explainer) planned(st step, r *revisionRow) (step, error) {
	st.Waits = OnNothing
	if r.Over < r.All {
		p, err := e.Plan(e.ctx, e.ref, r.Revision.Number)
		if err != nil {
			return st, err
		}
		for _, in := range p.Tasks {
			if !in.State.Over() {
				st.Waits, st.next = OnEdge, in.ID
				st.Why = fmt.Sprintf("%d of its %d instances have ended; the first that has not is %s", r.Over, r.All,
					in.ID)
				return st, nil
			}
		}
	}
	switch {
	case r.State == Invalid:
		st.Why = "its definition is invalid, so that it has no tasks"
		if len(r.Problems) > 0 {
			st.Why += fmt.Sprintf(": %s:%d: %s", r.Problems[0].File, r.Problems[0].Line, r.Problems[0].Message)
		}
	case r.State == SkippedBy:
		st.Why = "it was skipped: " + r.Reason
	default:
		st.Why = fmt.Sprintf("all of its %d instances have ended", r.All)
	}
	return st, nil
}

// instance explains an instance.
func (e *explainer) instance(id string) (step, error) {
	in, err := e.Instance(e.ctx, id)
	st := step{Link: Link{ID: id, State: string(in.State)}, since: in.Since}
	switch {
	case err != nil:
		return st, err
	case in.State.Over():
		st.Waits, st.Why = OnNothing, e.ended(&in)
		return st, nil
	case in.Told != "":
		st.Waits, st.until = OnGrace, in.Until
		st.Why = fmt.Sprintf("it was told to end (%s) and is to become %s; it is ended at %s at the latest", in.Reason,
			in.Told, clock(in.Until))
		return st, nil
	}
	switch in.State {
	case workflow.Blocked:
		return e.blocked(&in, st)
	case workflow.Awaiting:
		return e.awaiting(&in, st)
	case workflow.Ready:
		return e.ready(&in, st)
	case workflow.Waiting:
		st.Waits, st.until = OnRetry, in.Until
		st.Why = fmt.Sprintf("attempt %d failed (%s); the next is made at %s", in.Attempt, in.Reason, clock(in.Until))
	case workflow.Dispatched:
		st.Waits, st.until = OnStart, in.Latest
		st.Why = fmt.Sprintf("its execution was started at %s and has not begun; it is started again at %s",
			clock(in.Since), clock(in.Until))
	case workflow.Running:
		st.Waits, st.until = OnRun, in.Until-(e.Times.Margin+runner.Margin).Milliseconds()
		st.Why = fmt.Sprintf("attempt %d runs since %s; its time is over at %s", in.Attempt, clock(in.Since),
			clock(st.until))
	}
	return st, nil
}

// ended says how an instance has ended.
func (e *explainer) ended(in *Instance) string {
	why := fmt.Sprintf("it has ended: %s", in.State)
	if in.Reason != "" {
		why += ": " + in.Reason
	}
	if in.Root != "" && !strings.Contains(in.Reason, in.Root) {
		why += fmt.Sprintf(". The cause is the end of %s", in.Root)
	}
	if in.State == workflow.Cancelled && in.By != "" {
		why += fmt.Sprintf(" (by %s)", in.By)
	}
	return why
}

// pass is a step that the next pass takes.
func (e *explainer) pass(st step, what string) step {
	st.Waits, st.Why = e.held()
	if st.Waits == "" || st.Waits == OnDelete {
		st.Waits, st.Why = OnPass, what+"; the next pass does it, within seconds"
	}
	return st
}

// blocked follows the first edge that is open; that on COMMIT decides before all others.
func (e *explainer) blocked(in *Instance, st step) (step, error) {
	open := Open(in.Edges)
	for _, edge := range in.Edges {
		if edge.Verdict != workflow.Open {
			continue
		}
		r, err := e.instanceRow(e.ctx, edge.ID)
		if err != nil {
			return st, err
		}
		if r.State.Over() {
			return e.pass(st, fmt.Sprintf("%s has ended: %s", edge.ID, r.State)), nil
		}
		if r.Rev == 0 { // COMMIT is written with the whole plan
			return e.pass(st, fmt.Sprintf("revision %d is being planned", in.Revision)), nil
		}
		st.Waits, st.next = OnEdge, edge.ID
		if edge.Task == workflow.Commit && !edge.Prev {
			st.Waits = OnCommit
		}
		st.Why = fmt.Sprintf("%s must be %s first, and it is %s", edge.ID, edge.On, r.State)
		if edge.On == workflow.Ended {
			st.Why = fmt.Sprintf("%s must have ended first, and it is %s", edge.ID, r.State)
		}
		if open > 1 {
			st.Why += fmt.Sprintf("; %d more are waited for", open-1)
		}
		return st, nil
	}
	if in.Filtered {
		st = e.pass(st, "what changed is compared with its filter of paths")
		if st.Waits == OnPass {
			st.Waits = OnFilter
		}
		return st, nil
	}
	return e.pass(st, "all that it depends on has ended"), nil
}

// awaiting finds the first of those that an instance supersedes, and that has not ended.
func (e *explainer) awaiting(in *Instance, st step) (step, error) {
	victim := in.Victim
	for _, task := range in.Cancels {
		id, err := e.first(e.ctx, table.Query{PK: livePK(in.Archive, task), From: "0", To: before(in.Revision)})
		if err != nil {
			return st, err
		}
		victim = cmp.Or(victim, id)
	}
	for _, id := range in.Replaces {
		r, err := e.instanceRow(e.ctx, id)
		if err != nil {
			return st, err
		}
		if r.Rev > 0 && !r.State.Over() {
			victim = cmp.Or(victim, id)
		}
	}
	if victim == "" {
		return e.pass(st, "all that it supersedes has ended"), nil
	}
	v, err := e.Instance(e.ctx, victim)
	if err != nil {
		return st, err
	}
	return e.victim(in, &v, st)
}

// victim says why one that is superseded has not ended.
func (e *explainer) victim(in, v *Instance, st step) (step, error) {
	st.Waits, st.next = OnVictim, v.ID
	n, err := e.nameRow(e.ctx, v.Archive, v.Task)
	switch {
	case err != nil:
		return st, err
	case v.Told != "":
		st.Waits = OnGrace
		st.Why = fmt.Sprintf("it supersedes %s, which was told to end and has until %s", v.ID, clock(v.Until))
	case v.Force && v.Run > 0:
		st.Why = fmt.Sprintf("%s was started by hand with force: it is let finish", v.ID)
	case v.Fixed && v.State.Started():
		st.Why = fmt.Sprintf("it supersedes %s, which is %s and not interruptible: it is let finish", v.ID, v.State)
	case n.InRow >= workflow.Bound && v.State.Started():
		st.Why = fmt.Sprintf("%d of %s were superseded in a row, so %s is let finish", n.InRow, v.Task, v.ID)
	default:
		st = e.pass(st, fmt.Sprintf("%s supersedes %s", in.ID, v.ID))
		st.next = ""
	}
	return st, nil
}

// ready says why an instance is not started that could be.
func (e *explainer) ready(in *Instance, st step) (step, error) {
	waits, why := e.held()
	if waits != "" {
		st.Waits, st.Why = waits, why
		return st, nil
	}
	if in.Lock != "" {
		turn, err := e.turn(in, st)
		if err != nil || turn.Waits != "" {
			return turn, err
		}
	}
	most, busy := cmp.Or(e.a.Running, MaxRunning), 0
	err := e.owners(e.ctx, kind(e.a.Name, running), func(lineRow) (bool, error) {
		busy++
		return busy < most, nil
	})
	if err == nil && busy >= most {
		st.Waits, st.Why = OnLimit, fmt.Sprintf("%d instances of the archive %s run, which is the most at once", most,
			e.a.Name)
		return st, nil
	}
	return e.pass(st, "it can start"), err
}

// linesRead bounds how many places of a line are counted.
const linesRead = 1000

// turn says who comes before an instance at its lock; nothing if it is its turn.
func (e *explainer) turn(in *Instance, st step) (step, error) {
	l, err := e.lockRow(e.ctx, in.Archive, in.Lock)
	if err != nil {
		return st, err
	}
	before, first := 0, ""
	q := table.Query{PK: lockKey(in.Archive, in.Lock).PK, From: "0", To: in.Order}
	err = e.owners(e.ctx, q, func(r lineRow) (bool, error) {
		if r.Owner != in.ID && r.Owner != l.Holder {
			before++
			first = cmp.Or(first, r.Owner)
		}
		return before < linesRead, nil
	})
	if err != nil || l.Holder == "" && first == "" || l.Holder == in.ID {
		return st, err
	}
	st.Waits, st.next = OnLock, cmp.Or(l.Holder, first)
	if l.Holder == "" {
		st.Why = fmt.Sprintf("%s comes first at the lock %s; %d are before it", first, in.Lock, before)
		return st, nil
	}
	st.Why = fmt.Sprintf("%s has the lock %s%s", l.Holder, in.Lock, e.heldSince(l.Holder))
	if before > 0 {
		st.Why += fmt.Sprintf(", and %d more come first", before)
	}
	return st, nil
}

// heldSince says since when a holder has its lock: since its first execution was started.
func (e *explainer) heldSince(id string) string {
	all, err := e.Attempts(e.ctx, id)
	if err != nil || len(all) == 0 {
		return "" // the rest of the explanation is of use without it
	}
	return " since " + clock(all[0].Asked)
}
