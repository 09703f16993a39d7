package revision

import (
	"cmp"
	"context"
	"fmt"
	"time"
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

	// A sentence for people; no program reads it.
	Why string
}

// Explanation names the one thing that an archive, a revision or an instance waits for. Times are
// milliseconds since 1970.
type Explanation struct {
	Link         // what was asked for
	Root  Link   // the last of the chain: where a person can do something
	Chain []Link // from what was asked for to the root
	Cut   bool   // the chain is longer
	Since int64  // the root waits, 0: not known
	Until int64  // the root waits at most, 0: not known
}

// maxLinks bounds a chain of waits: each link is some requests. Waits have no circles, but what is
// read while things change can look like one.
const maxLinks = 20

// step is one link of a chain, and what comes behind it. since and until are of the link, as in
// Explanation.
type step struct {
	Link
	next         string // the instance to be explained next, "": this is the root
	since, until int64
}

// explainer explains one thing in an archive. a is the archive as it was read at first; ref is the
// epoch that was asked for. It writes nothing.
type explainer struct {
	*Store
	ctx context.Context
	a   *archiveRow
	ref string
}

// Explain names the one thing that an archive ("maps"), a revision ("maps/12") or an instance
// ("maps/12/index") waits for, by following what each waits for to the root. "maps/12" is in the
// present epoch of the archive if its first part has no epoch and there is such a revision; an
// instance is named by its exact id.
//
// What is no id is an Invalid; an archive or an instance that does not exist a NotFound. A revision
// that nobody knows is explained: it waits for its notice.
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

// chain follows the steps to the root: the first that names no other, or the last of maxLinks.
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
func clock(ms int64) string {
	return time.UnixMilli(ms).UTC().Format("2006-01-02 15:04:05") +
		" UTC"
}

// held says why the archive plans and starts nothing, if so; "" if it is active.
func (e *explainer) held() (Wait, string) {
	a := e.a.Archive
	switch {
	case a.Mode == Deleting || a.Mode == Deleted:
		return OnDelete, fmt.Sprintf("the archive %s is %s", a.Name, a.Mode)
	case a.Mode == Active:
		return "", ""
	}
	return OnPerson, fmt.Sprintf("the archive %s is %s: %s. Resume it", a.Name, a.Mode,
		cmp.Or(a.Why,
			"no reason was given"))
}

// archive explains an archive: who holds it, why its next revision is not planned, or what runs.
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

// planning says why the next revision is not planned; nothing (no Waits) if no revision waits.
// Trouble comes first: a gap behind it does not matter yet.
func (e *explainer) planning() (st step, err error) {
	a := &e.a.Archive
	if t := a.Trouble; t != nil {
		return step{
			Link: Link{Waits: OnArchive,
				Why: fmt.Sprintf("revision %d cannot be read: %s. It was tried %d "+
					"times, and is tried again at %s; or skip it with a reason", t.Revision,
					t.Reason,
					t.Tries, clock(t.Next))},
			since: t.Since,
			until: t.Next,
		}, nil
	}

	g, err := e.gapOf(e.ctx, e.a)
	if err != nil {
		return st, err
	}

	if g != nil {
		why := fmt.Sprintf("revision %d was not notified, but revision %d was, at %s", g.Missing,
			g.Behind,
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
	if err != nil || r.Rev == 0 {
		return st, err
	}

	st.Waits, st.Why = OnPass,
		fmt.Sprintf("revision %d is planned next, within seconds", a.Watermark+1)
	st.since = r.Notified
	return st, nil
}

// revision explains a revision: by its instances, if it is planned, else by why it is not.
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

	// Nothing will ever plan it in its turn.
	if r.Rev > 0 && n < e.a.First {
		st.Waits, st.Why = OnBackfill,
			fmt.Sprintf("the archive begins at revision %d; a back-fill plans earlier ones",
				e.a.First)
		return st, nil
	}

	st.Waits, st.Why = e.held()
	if st.Waits != "" {
		return st, nil
	}

	why, err := e.planning()
	// What keeps the next revision from being planned does not matter to one that nobody knows.
	if err == nil && (r.Rev == 0 && why.Waits != OnGap || e.a.First == 0) {
		why = step{Link: Link{Waits: OnGap, Why: fmt.Sprintf("nobody has notified revision %d", n)}}
	}

	why.ID, why.State = st.ID, st.State
	return why, err
}

// planned explains a revision that is planned, by the first of its instances that has not ended; if
// all have, by how it was planned.
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
				st.Why = fmt.Sprintf(
					"%d of its %d instances have ended; the first that has not is %s",
					r.Over, r.All,
					in.ID)
				return st, nil
			}
		}
	}

	switch {
	case r.State == Invalid:
		st.Why = "its definition is invalid, so that it has no tasks"
		if len(r.Problems) > 0 {
			st.Why += fmt.Sprintf(": %s:%d: %s", r.Problems[0].File, r.Problems[0].Line,
				r.Problems[0].Message)
		}
	case r.State == SkippedBy:
		st.Why = "it was skipped: " + r.Reason
	default:
		st.Why = fmt.Sprintf("all of its %d instances have ended", r.All)
	}
	return st, nil
}
